package trial

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/holdfast-go/holdfast/internal/result"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// headBytes is how long the file is that a trial appends to, unless the file is
// new: some pages, and the last of them not full, as a log that is opened again
// has it. To append there, the kernel has to have that page.
const headBytes = 1<<20 + 1000

// A CacheError says that the page cache is not as it was asked to be, and so
// there is no trial.
type CacheError struct {
	Asked  result.Cache
	Before result.Residency
	Err    error // why, if a step failed
}

func (e *CacheError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("the page cache can't be made %q: %v", e.Asked, e.Err)
	}
	return fmt.Sprintf("the page cache can't be made %q: %d of the file's %d pages are in it (%s)", e.Asked, e.Before.Resident, e.Before.Pages, e.Before.Source)
}

func (e *CacheError) Unwrap() error { return e.Err }

// ontoFile reports whether the trial appends to a file that is there already.
func (a Append) ontoFile() bool { return a.Cache != "" && a.Cache != result.NewFile && !a.Empty }

// head returns how many bytes stand in the file before the first record.
func (a Append) head() int64 {
	if a.ontoFile() {
		return headBytes
	}
	return 0
}

// prepareFile makes the file that the trial appends to, with the page cache as it
// is asked to be, and returns what of it is there in the end; nil for a new file.
func (a Append) prepareFile(g *Ground, path string) (*result.Residency, error) {
	if !a.ontoFile() {
		return nil, nil
	}
	if err := writeHead(path); err != nil {
		return nil, err
	}
	return setCache(g, path, a.Cache)
}

// cacheTries is how often the page cache is made what is asked: the kernel may drop
// a page meanwhile, for another program that needs memory or drops all there are.
const cacheTries = 8

// setCache makes the page cache hold what is asked of the file, and returns what
// it holds in the end, or a *CacheError.
func setCache(g *Ground, path string, asked result.Cache) (*result.Residency, error) {
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

// Can returns why the page cache can't be made to hold of a file on g what is
// asked, or nil. It tries it.
func (g *Ground) Can(asked result.Cache) error {
	path, err := g.fresh()
	if err != nil {
		return err
	}
	if err = writeHead(path); err == nil {
		_, err = setCache(g, path, asked)
	}
	return errors.Join(err, os.RemoveAll(path))
}

// changeCache does what can be done for the state that is asked.
func changeCache(g *Ground, path string, asked result.Cache) error {
	switch asked {
	case result.Warm:
		return readThrough(path)
	case result.Remount:
		return g.remount()
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	err = errors.Join(sys.Evict(f), f.Close())
	if err == nil && asked == result.Dropped {
		err = sys.DropCaches()
	}
	return err
}

// readThrough reads all of the file, a block at a time: it may be larger than the
// process should be.
func readThrough(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	_, err = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{f}, make([]byte, 256<<10))
	return errors.Join(err, f.Close())
}

// writeHead makes a file of headBytes, and waits until the disk has it: a page
// that is not written back can't be evicted.
func writeHead(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(head(headBytes))
	return errors.Join(err, written(f), f.Close())
}

// written waits until the disk has the file, on a file system without an fsync, such
// as bfs, by way of all of it.
func written(f *os.File) error {
	err := f.Sync()
	if !errors.Is(err, syscall.EINVAL) {
		return err
	}
	// SyncAll ends with an fsync of the file itself.
	if err = (sys.Disk{}).SyncAll(int(f.Fd())); errors.Is(err, syscall.EINVAL) {
		return nil
	}
	return err
}

// CanSync returns why a file on g can't be synced, or nil. It tries it: fsync(2) has
// EINVAL for a file system that has none.
func (g *Ground) CanSync() error {
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

// residency asks how much of the file is in the page cache.
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
