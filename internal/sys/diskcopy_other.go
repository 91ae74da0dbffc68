//go:build !linux

package sys

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// OpenSource opens a file of a folder for reading. It waits for nobody. A symbolic link
// is followed only where the name is a path, with AtCwd: in an open folder it is ELOOP,
// unless it comes to be one just then.
func (Disk) OpenSource(folder int, name Name) (fd int, err error) {
	err = inFolder(folder, name, func(path string) (err error) {
		if folder != AtCwd {
			if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
				return syscall.ELOOP
			}
		}
		fd, err = open(path, os.O_RDONLY|waitForNobody, 0)
		return err
	})
	if err != nil {
		return -1, err
	}
	return fd, nil
}

// StatFile says what an open file is. A time that the system does not tell is that of
// the last write.
func (Disk) StatFile(fd int) (s FileStat, err error) {
	err = onFile(fd, func(f *os.File) error {
		info, err := f.Stat()
		if err != nil {
			return err
		}
		s.Accessed, s.Modified, s.Changed = timesOf(info)
		s.Stat, err = statOf(info, nil)
		return err
	})
	return s, err
}

// ReadAt reads from a place of a file.
func (Disk) ReadAt(fd int, p []byte, at int64) (n int, err error) {
	err = onFile(fd, func(f *os.File) (err error) {
		n, err = f.ReadAt(p, at)
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	})
	return n, err
}

// WriteAt writes to a place of a file.
func (Disk) WriteAt(fd int, p []byte, at int64) (n int, err error) {
	err = onFile(fd, func(f *os.File) (err error) {
		n, err = f.WriteAt(p, at)
		return err
	})
	return n, err
}

// SeekTo sets a file's position.
func (Disk) SeekTo(fd int, at int64) error {
	return onFile(fd, func(f *os.File) error {
		_, err := f.Seek(at, io.SeekStart)
		return err
	})
}

// SetTimes sets when a file was last read and written.
func (Disk) SetTimes(fd int, accessed, modified time.Time) error {
	return onFile(fd, func(f *os.File) error { return os.Chtimes(f.Name(), accessed, modified) })
}

// RenameNew gives a file of a folder another name there, which no file should have yet.
// Between the look and the rename another program may make one.
func (d Disk) RenameNew(folder int, from, to Name) error {
	if _, err := d.Stat(folder, to); err == nil {
		return os.ErrExist
	}
	return d.Rename(folder, from, to)
}

// Free returns how many bytes may still be written to a file's file system.
func (Disk) Free(fd int) (free int64, err error) {
	err = onFile(fd, func(f *os.File) (err error) {
		free, err = FreeSpace(f.Name())
		return err
	})
	return free, err
}

// CopiesRanges returns false.
func (Disk) CopiesRanges(int) bool { return false }

// SharesFaster returns false.
func (Disk) SharesFaster(int, uint64) bool { return false }

// IsCold returns false: it is not known.
func (Disk) IsCold(int) bool { return false }

// AllocatesFaster returns false.
func (Disk) AllocatesFaster(int) bool { return false }

// The calls that follow are not to be had here.

// Allocate returns [errors.ErrUnsupported].
func (Disk) Allocate(fd int, at, n int64, grow bool) error { return errors.ErrUnsupported }

// Clone returns [errors.ErrUnsupported]. (Darwin's fclonefileat(2) makes the file that
// is to be the clone, and can't fill one that is there, as a copy here is.)
func (Disk) Clone(to, from int) error { return errors.ErrUnsupported }

// CopyRange returns [errors.ErrUnsupported].
func (Disk) CopyRange(to, from int, at int64, n int) (int, error) { return 0, errors.ErrUnsupported }

// SendFile returns [errors.ErrUnsupported].
func (Disk) SendFile(to, from int, at int64, n int) (int, error) { return 0, errors.ErrUnsupported }

// Pipe returns [errors.ErrUnsupported].
func (Disk) Pipe() (r, w int, err error) { return -1, -1, errors.ErrUnsupported }

// Splice returns [errors.ErrUnsupported].
func (Disk) Splice(to int, toAt int64, from int, fromAt int64, n int) (int, error) {
	return 0, errors.ErrUnsupported
}

// Note: Darwin has the calls that follow (lseek(2)), and they are left out: on APFS they
// were reported, by users of GNU cp, to call a hole what had been written before, which a
// copy then loses. Windows tells holes of files that were
// declared to be sparse (FSCTL_QUERY_ALLOCATED_RANGES), which no copy is here.

// SeekData returns [errors.ErrUnsupported].
func (Disk) SeekData(fd int, at int64) (int64, error) { return 0, errors.ErrUnsupported }

// SeekHole returns [errors.ErrUnsupported].
func (Disk) SeekHole(fd int, at int64) (int64, error) { return 0, errors.ErrUnsupported }

// Unwritten returns [errors.ErrUnsupported].
func (Disk) Unwritten(fd int, at int64, to []Range) (ranges []Range, next int64, err error) {
	return to, -1, errors.ErrUnsupported
}

// Lock returns [errors.ErrUnsupported].
func (Disk) Lock(fd int) error { return errors.ErrUnsupported }

// Attributes returns [errors.ErrUnsupported].
func (Disk) Attributes(fd int) (names []string, err error) { return nil, errors.ErrUnsupported }

// Attribute returns [errors.ErrUnsupported].
func (Disk) Attribute(fd int, name string) ([]byte, error) { return nil, errors.ErrUnsupported }

// SetAttribute returns [errors.ErrUnsupported].
func (Disk) SetAttribute(fd int, name string, value []byte) error { return errors.ErrUnsupported }

// RemoveAttribute returns [errors.ErrUnsupported].
func (Disk) RemoveAttribute(fd int, name string) error { return errors.ErrUnsupported }

// AttributesIn returns [errors.ErrUnsupported].
func (Disk) AttributesIn(folder int, name Name) (names []string, err error) {
	return nil, errors.ErrUnsupported
}

// AttributeIn returns [errors.ErrUnsupported].
func (Disk) AttributeIn(folder int, name Name, attribute string) ([]byte, error) {
	return nil, errors.ErrUnsupported
}

// SetAttributeIn returns [errors.ErrUnsupported].
func (Disk) SetAttributeIn(folder int, name Name, attribute string, value []byte) error {
	return errors.ErrUnsupported
}

// Evict returns [errors.ErrUnsupported].
func (Disk) Evict(fd int) error { return errors.ErrUnsupported }

// Cached returns [errors.ErrUnsupported].
func (Disk) Cached(fd int, size int64) (pages int64, err error) { return 0, errors.ErrUnsupported }
