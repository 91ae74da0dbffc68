package main

import (
	"crypto/sha256"
	"errors"
	"io/fs"
	"math/big"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// A genFile is a file that is being made for a path where it is not yet. Where the system
// can it has no name until it is whole, so that a kill leaves nothing. Else it has one
// that the next gen of the path knows, and a lock that says that it is not a leftover.
type genFile struct {
	*os.File           // to be written, and closed
	path      string   // where it is to be
	temporary string   // its name; "": it has none
	held      *os.File // keeps its lock, and itself, when the first is closed; nil where the system has no locks
}

// genSlots is how many gens of one path can be told from leftovers at a time.
const genSlots = 8

// slot returns a name that tells which path a temporary file is for, in 255 bytes.
func slot(path string, i int) string {
	folder, base := filepath.Split(path)
	sum := sha256.Sum256([]byte(base))
	name := new(big.Int).SetBytes(sum[:16]).Text(36)
	return filepath.Join(folder, ".holdfast-gen-"+name+"-"+strconv.Itoa(i))
}

// mostNames is how many names are tried.
const mostNames = 100

// temporaryFor returns the names to try in turn: those that tell the path, and then those
// that nobody can have put there before.
func temporaryFor(path string, i int) string {
	if i < genSlots {
		return slot(path, i)
	}
	return filepath.Join(filepath.Dir(path), ".holdfast-"+strconv.FormatUint(rand.Uint64(), 36))
}

// createFor makes a file for a path. It removes what killed gens of that path have left.
func createFor(path string) (*genFile, error) {
	for i := range genSlots {
		removeLeftover(slot(path, i))
	}
	f, err := sys.CreateUnnamed(filepath.Dir(path), 0o666)
	if err == nil {
		g := &genFile{File: f, path: path}
		if g.hold(); g.held != nil {
			return g, nil
		}
		f.Close() // it is gone
		err = errors.ErrUnsupported
	}
	if errors.Is(err, errors.ErrUnsupported) {
		return createNamed(path)
	}
	return nil, err
}

// createNamed makes a file under the first name that no other gen of the path has.
func createNamed(path string) (g *genFile, err error) {
	for i := range mostNames {
		name := temporaryFor(path, i)
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		g = &genFile{File: f, path: path, temporary: name}
		if g.hold() && sameFile(f, name) {
			return g, nil
		}
		g.release() // another gen has taken it for a leftover, before it was locked here
		f.Close()
	}
	return nil, fs.ErrExist
}

// hold locks the file, where the system can, until release. What it can't lock no other
// gen can either, and removes it as little. It reports false if another gen has locked it,
// which removes it then.
func (g *genFile) hold() bool {
	ok, err := sys.TryLock(g.File)
	if ok {
		g.held, _ = sys.Duplicate(g.File)
	}
	return ok || err != nil
}

func (g *genFile) release() {
	if g.held != nil {
		g.held.Close() // what was written to it was closed, and told, before
		g.held = nil
	}
}

// removeLeftover removes a file of a gen that was killed: a regular one of this user and
// of one name, which nobody has locked. What else there is stays.
func removeLeftover(name string) {
	info, err := os.Lstat(name)
	if err != nil || !info.Mode().IsRegular() || !isLeftover(info) {
		return
	}
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe that is there by now must not wait
	if err != nil {
		f, err = os.OpenFile(name, os.O_WRONLY|syscall.O_NONBLOCK, 0) // one that may only be written
	}
	if err != nil {
		return
	}
	defer f.Close() // nothing was written to it
	if ok, err := sys.TryLock(f); err == nil && ok && sameFile(f, name) {
		os.Remove(name) // if it stays, another name is taken
	}
}

// sameFile reports whether an open file is the one of that name.
func sameFile(f *os.File, name string) bool {
	is, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(name)
	return err == nil && os.SameFile(is, there)
}

// publish gives the whole file its name. Unless it is to replace, it takes no file away
// that was made meanwhile, if the file system has hard links. Synced says that what it
// is known by has to be on the disk too.
func (g *genFile) publish(replace, synced bool) error {
	defer g.release()
	if g.temporary == "" {
		if err := g.giveName(replace); err != nil || !synced {
			return err
		}
		return g.held.Sync() // which says now that it has a name
	}
	if replace {
		return os.Rename(g.temporary, g.path)
	}
	err := os.Link(g.temporary, g.path)
	switch {
	case err == nil:
		return os.Remove(g.temporary)
	case errors.Is(err, fs.ErrExist):
		return err
	}
	return os.Rename(g.temporary, g.path)
}

// giveName names a file that has no name. To replace one takes a name to rename.
func (g *genFile) giveName(replace bool) error {
	err := sys.GiveName(g.held, g.path)
	if !replace || !errors.Is(err, fs.ErrExist) {
		return err
	}
	for i := range mostNames {
		g.temporary = temporaryFor(g.path, i)
		if err = sys.GiveName(g.held, g.temporary); !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	if err != nil {
		g.temporary = ""
		return err
	}
	return os.Rename(g.temporary, g.path)
}

// discard removes a file that is not to get its name.
func (g *genFile) discard() {
	if g.temporary != "" {
		os.Remove(g.temporary) // what failed first is what is told
	}
	g.release()
}
