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

// OpenSource opens a file of a directory for reading. It never waits. It follows a symbolic link
// only where the name is a path, with AtCwd. In an open directory a link is ELOOP, unless the name
// becomes one just then.
func (Disk) OpenSource(dir int, name Name) (fd int, err error) {
	err = inDir(dir, name, func(path string) (err error) {
		if dir != AtCwd {
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

// StatFile says what an open file is. A time that the system does not report is that of
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

// SetTimes sets when a file was last read and written.
func (Disk) SetTimes(fd int, accessed, modified time.Time) error {
	return onFile(fd, func(f *os.File) error { return os.Chtimes(f.Name(), accessed, modified) })
}

// RenameNew gives a file of a directory another name there, which no file should have yet.
// Between the look and the rename another program may make one.
func (d Disk) RenameNew(dir int, from, to Name) error {
	if _, err := d.Stat(dir, to); err == nil {
		return os.ErrExist
	}
	return d.Rename(dir, from, to)
}

// Free returns how many bytes may still be written to a file's file system.
func (Disk) Free(fd int) (free int64, err error) {
	err = onFile(fd, func(f *os.File) (err error) {
		free, err = FreeSpace(f.Name())
		return err
	})
	return free, err
}

// Lock keeps other programs from locking the file, where the system has such locks: see
// [TryLock].
func (Disk) Lock(fd int) error {
	return onFile(fd, func(f *os.File) error { return flock(f, lockAlone) })
}

// LockShared is Lock for any number of descriptors at once.
func (Disk) LockShared(fd int) error {
	return onFile(fd, func(f *os.File) error { return flock(f, lockShared) })
}

// Unlock ends the lock of a descriptor.
func (Disk) Unlock(fd int) error {
	return onFile(fd, func(f *os.File) error { return flock(f, unlock) })
}

// Note: Darwin can seek holes (lseek(2)), and that is left out. Users of GNU cp reported that APFS
// calls a hole what had been written before, which a copy then loses. Windows reports holes of
// files that were declared to be sparse (FSCTL_QUERY_ALLOCATED_RANGES), which no copy is here.
//
// Darwin's fclonefileat(2) makes the file that is to be the clone, and can't fill one that
// is there, as a copy here is.
