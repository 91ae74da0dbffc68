package gen

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/big"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/probe"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/workdir"
)

// A genFile is the file for a path while it is made. Where the system can, it has no name until it
// is complete, so that a kill leaves nothing. Otherwise it has a name that the next gen of the path
// recognizes, and a lock that distinguishes it from a stale file.
type genFile struct {
	*os.File           // for writing
	path      string   // the final path
	temporary string   // the current name; "": none
	held      *os.File // a second descriptor, which keeps the lock after the first is closed; nil where the system has no locks
}

// genSlots is the most gens of one path at a time that are distinguished from stale files.
const genSlots = 8

// slot returns a temporary name, of at most 255 bytes, that identifies the path.
func slot(path string, i int) string {
	dir, base := filepath.Split(path)
	sum := sha256.Sum256([]byte(base))
	name := new(big.Int).SetBytes(sum[:16]).Text(36)
	return filepath.Join(dir, ".holdfast-gen-"+name+"-"+strconv.Itoa(i))
}

// mostNames is the most names tried.
const mostNames = 100

// temporaryFor returns the ith name to try: first the names that identify the path, then random
// ones, which nobody can have taken before.
func temporaryFor(path string, i int) string {
	if i < genSlots {
		return slot(path, i)
	}
	return filepath.Join(filepath.Dir(path), ".holdfast-"+strconv.FormatUint(rand.Uint64(), 36))
}

// createFor creates a file for a path. It removes the stale files of killed gens of that path.
func createFor(path string) (*genFile, error) {
	for i := range genSlots {
		removeLeftover(slot(path, i))
	}
	f, err := probe.CreateUnnamed(filepath.Dir(path), 0o666)
	if err == nil {
		g := &genFile{File: f, path: path}
		if g.hold(); g.held != nil {
			return g, nil
		}
		f.Close() // the file is gone
		err = errors.ErrUnsupported
	}
	if errors.Is(err, errors.ErrUnsupported) {
		return createNamed(path)
	}
	return nil, err
}

// createNamed creates a file under the first name that no other gen of the path has.
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
		g.release() // another gen removed it as stale before it was locked here
		f.Close()
	}
	return nil, fs.ErrExist
}

// hold locks the file, where the system can, until release. If this process can't lock the file, no
// other gen can, and so none removes it. It reports false if another gen has locked the file, and
// so will remove it.
func (g *genFile) hold() bool {
	ok, err := sys.TryLock(g.File)
	if ok {
		g.held, _ = sys.Duplicate(g.File)
	}
	return ok || err != nil
}

func (g *genFile) release() {
	if g.held != nil {
		g.held.Close() // the close of the first descriptor has reported every error
		g.held = nil
	}
}

// removeLeftover removes the stale file of a killed gen: a regular file of this user, with
// one name and not locked. It leaves everything else alone.
func removeLeftover(name string) {
	info, err := os.Lstat(name)
	if err != nil || !info.Mode().IsRegular() || !isLeftover(info) {
		return
	}
	f, err := os.OpenFile(name, os.O_RDONLY|asItIs, 0)
	if err != nil {
		f, err = os.OpenFile(name, os.O_WRONLY|asItIs, 0) // the file may be write-only
	}
	if err != nil {
		return
	}
	defer f.Close() // nothing was written to it
	if ok, err := sys.TryLock(f); err == nil && ok && sameFile(f, name) {
		os.Remove(name) // on a failure another name is tried
	}
}

// sameFile reports whether a name belongs to an open file.
func sameFile(f *os.File, name string) bool {
	is, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(name)
	return err == nil && os.SameFile(is, there)
}

// publish gives the complete file its name. Without replace, it does not replace a file that was
// made meanwhile, if the file system has hard links. With synced, the name must be durable too. On
// an error op is the failed call; there reports whether the file has its name all the same.
func (g *genFile) publish(replace, synced bool) (there bool, op string, err error) {
	defer g.release()
	if g.temporary == "" {
		if err := g.giveName(replace); err != nil || !synced {
			return err == nil, "rename", err
		}
		return true, "sync of the name", g.held.Sync() // the sync now covers the name
	}
	if replace {
		err = os.Rename(g.temporary, g.path)
		return err == nil, "rename", err
	}
	err = os.Link(g.temporary, g.path)
	switch {
	case err == nil:
		return true, "removal of its temporary name", os.Remove(g.temporary)
	case errors.Is(err, fs.ErrExist):
		return false, "rename", err
	}
	err = os.Rename(g.temporary, g.path)
	return err == nil, "rename", err
}

// giveName names a file without a name. To replace a file, it links a temporary name and renames
// that.
func (g *genFile) giveName(replace bool) error {
	err := probe.GiveName(g.held, g.path)
	if !replace || !errors.Is(err, fs.ErrExist) {
		return err
	}
	for i := range mostNames {
		g.temporary = temporaryFor(g.path, i)
		if err = probe.GiveName(g.held, g.temporary); !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	if err != nil {
		g.temporary = ""
		return err
	}
	return os.Rename(g.temporary, g.path)
}

// discard removes a file that gets no name.
func (g *genFile) discard() {
	if g.temporary != "" {
		os.Remove(g.temporary) // the first failure is reported
	}
	g.release()
}

// make makes the file without its name, and names it when it is complete. On an error the path is
// unchanged.
func (g *generation) make(ctx context.Context, show *cli.Progress) error {
	path, old, err := g.place()
	if err != nil {
		return err
	}
	dir := filepath.Dir(path)
	free, err := sys.FreeSpace(dir) // if it is not known, a write to a full disk fails
	if g.kind != genSparse && err == nil && int64(g.size) > free {
		hint := "free some space, use a directory on another disk, or --kind sparse, which takes no room"
		if g.force {
			hint += "; an existing file is kept until the new one is complete"
		}
		return &cli.Refusal{Code: cli.ExitCannot, Err: fmt.Errorf("gen %s needs %s, and %s has %s free", g.file, cli.BytesText(int64(g.size)), dir, cli.BytesText(free)), Hint: hint}
	}
	held, release, err := workdir.At(dir)
	if err != nil {
		return &cli.Refusal{Code: cli.ExitCannot, Err: fmt.Errorf("gen %s: %w", g.file, cli.Cause(err)), Hint: "give a directory that you may write to"}
	}
	defer release()
	f, err := createFor(filepath.Join(held, filepath.Base(path)))
	if err != nil {
		return &cli.Refusal{Code: cli.ExitCannot, Err: fmt.Errorf("gen %s: %w", g.file, cli.Cause(err)), Hint: "give a directory that you may write to"}
	}
	done, op, err := g.write(ctx, f.File, old, show)
	there := false
	if err == nil {
		there, op, err = f.publish(g.force, g.durable())
	}
	switch {
	case err != nil && !there:
		f.discard()
		left := "no part of it is left"
		if g.force {
			left = "the existing file is unchanged"
		}
		return g.refusal(err, done, op, left)
	case err == nil && g.durable():
		op, err = "sync of the directory", syncDir(held)
	}
	if err != nil {
		return g.refusal(err, done, op, "the file is complete, but a power cut may lose it")
	}
	return nil
}

// place returns the file's final path, after symbolic links with --force, and the file that exists
// there, or nil.
func (g *generation) place() (path string, old fs.FileInfo, err error) {
	if g.file == "" {
		return "", nil, cli.Misuse("for instance: holdfast gen source 100MB", "the name of the file is empty")
	}
	path, err = sys.Disk{}.Resolve(g.file)
	if err != nil {
		return "", nil, cli.Misuse("give another name", "gen %s: %w", g.file, err)
	}
	old, err = os.Lstat(path)
	switch {
	case os.IsPathSeparator(g.file[len(g.file)-1]) || err == nil && old.IsDir():
		return "", nil, cli.Misuse("end it with a file's name", "%s is a directory", g.file)
	case errors.Is(err, fs.ErrNotExist):
		dir := filepath.Dir(path)
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			return "", nil, cli.Misuse("make it first, with mkdir -p", "gen %s: there is no directory %s", g.file, dir)
		}
		if path != g.file && !g.force {
			return "", nil, cli.Misuse("--force makes the file that it points to", "%s is a symbolic link to a file that does not exist", g.file)
		}
		return path, nil, nil
	case err != nil:
		return "", nil, cli.Misuse("give another name", "gen %s: %w", g.file, cli.Cause(err))
	case !old.Mode().IsRegular():
		return "", nil, cli.Misuse(fmt.Sprintf("write to standard output instead: holdfast gen - %s > %s", g.sizeText, g.file), "%s is not a file but a device, pipe or socket", g.file)
	case !g.force:
		return "", nil, cli.Misuse("--force replaces it", "%s exists already", g.file)
	}
	return path, old, nil
}

// syncDir makes a directory's names durable, if the system can.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := sys.SyncDir(d); !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}

// genChunk is the number of bytes made and written at once: they stay in a CPU's second cache in
// between.
const genChunk = 256 << 10

// write fills and closes the file. On an error it returns the number of bytes done and the failed
// call.
func (g *generation) write(ctx context.Context, f *os.File, old fs.FileInfo, show *cli.Progress) (done int64, op string, err error) {
	w, err := holdfast.New(f, g.policy)
	if err != nil {
		f.Close()
		return 0, "open", err
	}
	if old != nil {
		op, err = "chmod", f.Chmod(old.Mode().Perm())
	}
	switch {
	case err != nil:
	case g.kind == genSparse:
		op, err = "truncate", f.Truncate(int64(g.size))
	default:
		op = "write"
		done, err = g.fill(ctx, w, show)
	}
	if err == nil && done == 0 && g.durable() {
		op, err = "sync", f.Sync() // a Writer without a byte has nothing to sync
	}
	if err != nil {
		_ = f.Truncate(0) // Close then waits for no byte that is removed afterwards
		_ = w.Close()
		return done, op, err
	}
	if err = w.Close(); err == nil {
		err = ctx.Err()
	}
	return done, "close", err
}

// fill writes the bytes, chunk by chunk, and returns the number written.
func (g *generation) fill(ctx context.Context, w io.Writer, show *cli.Progress) (done int64, err error) {
	bytes := newFiller(g.kind, g.seed)
	chunk := make([]byte, min(genChunk, int64(g.size)))
	for left := int64(g.size); left > 0; left -= int64(len(chunk)) {
		if err := ctx.Err(); err != nil {
			return done, err
		}
		chunk = chunk[:min(left, int64(len(chunk)))]
		_, _ = bytes.ReadAt(chunk, done) // the offset is not negative
		n, err := w.Write(chunk)
		done += int64(n)
		if err != nil {
			return done, err
		}
		show.SetBytes(done)
	}
	return done, nil
}

// refusal adds an exit code and a hint to an error after done bytes.
func (g *generation) refusal(err error, done int64, op, left string) error {
	if errors.Is(err, context.Canceled) {
		return &cli.Refusal{Code: cli.ExitInterrupted, Err: fmt.Errorf("interrupted after %s of %s", cli.BytesText(done), cli.BytesText(int64(g.size))), Hint: left}
	}
	at := ""
	if op == "write" {
		at = fmt.Sprintf(" at byte %d", done)
	}
	hint := cli.DiskHint(err)
	if errors.Is(err, fs.ErrExist) {
		hint = "another program made the file meanwhile; --force replaces it"
	}
	if hint != "" && left != "" {
		left += "; "
	}
	return &cli.Refusal{Code: cli.ExitNotMet, Err: fmt.Errorf("gen %s: %s%s: %w", g.file, op, at, cli.Cause(err)), Hint: left + hint}
}
