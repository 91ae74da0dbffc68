package workdir

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// mark is the file by which [RemoveStale] recognizes a directory of Claim. A user's directory may
// have a similar name.
const mark = "made-by-holdfast"

// Claim makes a new directory in parent, named prefix and a number. It stays locked while it is
// open, if the system has such locks. [Dir.Discard] removes it.
func Claim(parent, prefix string) (*Dir, error) {
	for {
		d, err := Make(parent, prefix+strconv.FormatUint(uint64(rand.Uint32()), 10))
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		locked, lockErr := sys.TryLock(d.file)
		if lockErr == nil && (!locked || d.Still() != nil) {
			// A RemoveStale has found it before it was locked.
			_ = d.Remove()
			_ = d.Close()
			continue
		}
		f, err := d.root.OpenFile(mark, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			return nil, errors.Join(Named(err, d.Name()), d.Discard())
		}
		return d, nil
	}
}

// Discard removes the directory with its contents, and closes it.
func (d *Dir) Discard() error { return errors.Join(d.removeAll(), d.Close()) }

// removeAll removes the directory with its contents. The mark goes last, so that another call can
// finish an interrupted one.
func (d *Dir) removeAll() error {
	entries, err := d.Entries()
	for _, e := range entries {
		if e.Name() != mark {
			err = errors.Join(err, RemoveAll(d.root, e.Name()))
		}
	}
	if err == nil {
		err = RemoveAll(d.root, mark)
	}
	if err != nil {
		return fmt.Errorf("%s is left: %w", d.Name(), err)
	}
	return d.Remove()
}

// RemoveStale removes directories that [Claim] made in parent for programs that have ended. It
// leaves a directory without a lock, of another owner, or with contents but no mark. It returns an
// error for each that it can't remove.
func RemoveStale(parent, prefix string) (err error) {
	entries, err := os.ReadDir(parent)
	for _, e := range entries {
		number, ok := strings.CutPrefix(e.Name(), prefix)
		if _, noNumber := strconv.ParseUint(number, 10, 32); !ok || noNumber != nil || !e.IsDir() {
			continue
		}
		d, openErr := Open(parent, e.Name())
		if openErr != nil {
			continue // it belongs to another user, or was removed meanwhile
		}
		err = errors.Join(err, d.removeStale(), d.Close())
	}
	return err
}

// removeStale removes the directory if it is marked or empty, and no program has its lock.
func (d *Dir) removeStale() error {
	if locked, err := sys.TryLock(d.file); err != nil || !locked || d.Still() != nil {
		return nil
	}
	entries, err := d.Entries()
	if err != nil {
		return err
	}
	if info, err := d.root.Lstat(mark); len(entries) > 0 && (err != nil || !info.Mode().IsRegular()) {
		return nil
	}
	return d.removeAll()
}
