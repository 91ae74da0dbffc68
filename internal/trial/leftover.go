package trial

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// lockFolder opens and locks a folder; nil is that there are no such locks. It is not
// ours if another has the lock, or has removed it.
func lockFolder(dir string) (lock *os.File, ours bool) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, !errors.Is(err, fs.ErrNotExist)
	}
	locked, err := sys.TryLock(d)
	if err != nil {
		return nil, d.Close() == nil
	}
	if _, err := os.Stat(dir); !locked || err != nil {
		_ = d.Close()
		return nil, false
	}
	return d, true
}

func (g *Ground) unlock() error {
	if g.lock == nil {
		return nil
	}
	defer func() { g.lock = nil }()
	return g.lock.Close()
}

// remount takes the file system down and up again, which nothing on it may be
// open for: the lock is given up meanwhile.
func (g *Ground) remount() error {
	if err := g.unlock(); err != nil {
		return err
	}
	defer func() { g.lock, _ = lockFolder(g.dir) }()
	if g.Remount != nil {
		return g.Remount()
	}
	return sys.Remount(g.dir)
}

// Neighbours lists the folders beside this one that have a name like it: of runs
// that go on, or that were killed. It opens none of them.
func (g *Ground) Neighbours() []string {
	parent := filepath.Dir(g.dir)
	entries, err := os.ReadDir(parent)
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), groundPrefix) && e.Name() != g.Name() {
			names = append(names, filepath.Join(parent, e.Name()))
		}
	}
	return names
}

// Leftovers lists the names of the grounds in parent that nobody has: what runs that
// were killed have left. Where folders can't be locked it lists none. It changes nothing.
func Leftovers(parent string) (names []string, err error) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !e.IsDir() || !groundName.MatchString(e.Name()) {
			continue
		}
		if lock, ours := lockFolder(filepath.Join(parent, e.Name())); ours && lock != nil {
			names = append(names, e.Name())
			_ = lock.Close()
		}
	}
	return names, nil
}

// ErrAlive says that the run which made a ground still goes on.
var ErrAlive = errors.New("the run that made it still goes on")

// The names of a ground, of what is in it, also by studies that keep a file for all
// trials, and of the files of a trial that has a folder: see OpenGround, fresh, fill
// and Beside.
var (
	groundName  = regexp.MustCompile(`^` + groundPrefix + `\d+$`)
	fileName    = regexp.MustCompile(`^(m-|memory-|read-by-all-|s-)?\d+$`)
	folderName  = regexp.MustCompile(`^\d+$`)
	createdName = regexp.MustCompile(`^(check|[a-z]+-\d+)$`)
)

// RemoveLeftover removes the ground of the given name in parent, which a run that
// was killed has left there, and tells whether it was there.
//
// It touches nothing unless all of it proves to be such a ground: a folder, and no
// link to one, by the names of what is in it, and unlocked, so that no run has it.
// Where folders can't be locked nothing is proven. A run that has it is ErrAlive.
func RemoveLeftover(parent, name string) (removed bool, err error) {
	dir := filepath.Join(parent, name)
	info, err := os.Lstat(dir)
	switch {
	case !groundName.MatchString(name):
		return false, fmt.Errorf("%q is no name that a run gives its folder", name)
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case !info.IsDir():
		return false, fmt.Errorf("%s is no folder", dir)
	}
	if err := removeGround(dir, info); err != nil {
		return false, fmt.Errorf("%s is left: %w", dir, err)
	}
	return true, nil
}

// removeGround removes the folder that info is of.
func removeGround(dir string, info fs.FileInfo) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	d, err := root.Open(".")
	if err != nil {
		return err
	}
	defer d.Close()
	if now, err := d.Stat(); err != nil || !os.SameFile(now, info) {
		return errors.Join(errors.New("it was exchanged for another"), err)
	}
	switch alone, err := sys.TryLock(d); {
	case err != nil:
		return err
	case !alone:
		return ErrAlive
	}
	return removeFiles(root, d)
}

// removeFiles empties a ground and removes it, if nothing else is in it.
func removeFiles(root *os.Root, d *os.File) error {
	entries, err := d.ReadDir(-1)
	if err != nil {
		return err
	}
	var ours []string
	for _, e := range entries {
		inside, err := made(root, e)
		if err != nil {
			return err
		}
		ours = append(append(ours, inside...), e.Name())
	}
	for _, name := range ours {
		if err := root.Remove(name); err != nil {
			return err
		}
	}
	return os.Remove(root.Name())
}

// made returns what is in an entry of a ground, if that is a trial's folder, and an
// error if a run makes nothing like it.
func made(root *os.Root, e fs.DirEntry) (inside []string, err error) {
	switch {
	case e.Type().IsRegular() && fileName.MatchString(e.Name()):
		return nil, nil
	case !e.IsDir() || !folderName.MatchString(e.Name()):
		return nil, fmt.Errorf("%s in it is nothing that a run makes", e.Name())
	}
	files, err := fs.ReadDir(root.FS(), e.Name())
	for _, f := range files {
		name := path.Join(e.Name(), f.Name())
		if !f.Type().IsRegular() || !createdName.MatchString(f.Name()) {
			return nil, fmt.Errorf("%s in it is nothing that a run makes", name)
		}
		inside = append(inside, name)
	}
	return inside, err
}
