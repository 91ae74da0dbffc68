package trial

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/probe"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// headBytes is the length of the file that a trial appends to, unless the file is
// new. It has many pages, and the last one is not full, as in a log that is opened again. To append
// there, the kernel must have that page in memory.
const headBytes = 1<<20 + 1000

// A CacheError means that the page cache is not in the required state. So there is no trial.
type CacheError struct {
	Asked  result.Cache
	Before result.Residency
	Err    error // the reason, if a step failed
}

func (e *CacheError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("the page cache can't reach the state %q: %v", e.Asked, e.Err)
	}
	return fmt.Sprintf("the page cache can't reach the state %q: %d of the file's %d pages are cached (%s)", e.Asked, e.Before.Resident, e.Before.Pages, e.Before.Source)
}

func (e *CacheError) Unwrap() error { return e.Err }

// ontoFile reports whether the trial appends to an existing file.
func (a Append) ontoFile() bool { return a.Cache != "" && a.Cache != result.NewFile && !a.Empty }

// cacheTries bounds the attempts to bring the page cache into the required state. The kernel may drop a
// page meanwhile, if another program needs memory or drops all pages.
const cacheTries = 8

// setCache brings the file's page cache into the required state. It returns the final content of the
// cache, or a *CacheError.
func setCache(g *WorkDir, path string, asked result.Cache) (*result.Residency, error) {
	var before result.Residency
	for range cacheTries {
		if err := changeCache(g, path, asked); err != nil && asked != result.TryCold {
			return nil, &CacheError{Asked: asked, Err: err}
		}
		before = residency(path)
		if asked.Holds(before) {
			return &before, nil
		}
	}
	return nil, &CacheError{Asked: asked, Before: before}
}

// Can tries whether the page cache of a file on g can have the required state. It returns nil or the
// reason why not.
func (g *WorkDir) Can(asked result.Cache) error {
	path, err := g.fresh()
	if err != nil {
		return err
	}
	if err = writeHead(path); err == nil {
		_, err = setCache(g, path, asked)
	}
	return errors.Join(err, os.RemoveAll(path))
}

// changeCache takes the steps toward the required state once.
func changeCache(g *WorkDir, path string, asked result.Cache) error {
	if asked == result.Remount {
		return g.remount()
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	if asked == result.Warm {
		// Read a block at a time: the file may be larger than the process should be.
		_, err = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{f}, make([]byte, 256<<10))
		return errors.Join(err, f.Close())
	}
	err = errors.Join(sys.Evict(f), f.Close())
	if err == nil && asked == result.Dropped {
		err = probe.DropCaches()
	}
	return err
}

// remount unmounts the file system and mounts it again. No file on it may be open, so it releases the
// lock meanwhile.
func (g *WorkDir) remount() error {
	mountAgain := g.Remount
	if mountAgain == nil {
		mountAgain = func() error { return probe.Remount(g.dir) }
	}
	if g.held == nil {
		return mountAgain()
	}
	if g.held.IsHeld() {
		return fmt.Errorf("%s can't be remounted: other users may rename a part of that path meanwhile; use a directory that belongs to root", g.Dir())
	}
	if err := g.held.Close(); err != nil {
		return err
	}
	err := mountAgain()
	held, openErr := g.held.Again()
	if openErr != nil {
		return errors.Join(err, openErr)
	}
	g.held = held
	_ = isLocked(held)
	return err
}

// writeHead makes a file of headBytes, and waits until it is on the disk: a page that is not written
// back can't be evicted.
func writeHead(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(head(headBytes))
	return errors.Join(err, written(f), f.Close())
}

// written waits until the file is on the disk. On a file system without an fsync, such as bfs, it syncs
// the whole file system.
func written(f *os.File) error {
	err := f.Sync()
	if !errors.Is(err, syscall.EINVAL) {
		return err
	}
	// SyncAll ends with an fsync of the file itself.
	if err = vfs.SyncAll(sys.Disk{}, int(f.Fd())); errors.Is(err, syscall.EINVAL) {
		return nil
	}
	return err
}

// CanSync tries to sync a file on g, and returns nil or the reason why it can't. On a file system
// without fsync, fsync(2) returns EINVAL.
func (g *WorkDir) CanSync() error {
	path, err := g.fresh()
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close(), os.Remove(path))
}

// residency returns the part of the file that is in the page cache.
func residency(path string) result.Residency {
	f, err := os.Open(path)
	if err != nil {
		return result.Residency{Source: err.Error()}
	}
	defer f.Close()
	r, err := sys.PageCache(f)
	if err != nil {
		return result.Residency{Source: err.Error()}
	}
	return result.Residency(r)
}
