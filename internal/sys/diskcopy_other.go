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

// OpenSource opens a file in a directory for reading. It never waits. It follows a symbolic link
// only if the name is a path, with AtCwd. In an open directory a link is ELOOP, unless the name
// becomes one at that very moment.
func (Disk) OpenSource(dir int, name Name) (fd int, err error) {
	err = inDir(dir, name, func(path string) (err error) {
		if dir != AtCwd {
			if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
				return syscall.ELOOP
			}
		}
		fd, err = open(path, os.O_RDONLY|WaitForNobody, 0)
		return err
	})
	if err != nil {
		return -1, err
	}
	return fd, nil
}

// StatFile returns the attributes of an open file. A time that the system does not report is the
// time of the last write.
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

// ReadAt reads at an offset of a file.
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

// WriteAt writes at an offset of a file.
func (Disk) WriteAt(fd int, p []byte, at int64) (n int, err error) {
	err = onFile(fd, func(f *os.File) (err error) {
		n, err = f.WriteAt(p, at)
		return err
	})
	return n, err
}

// SetTimes sets the times of a file's last read and write.
func (Disk) SetTimes(fd int, accessed, modified time.Time) error {
	return onFile(fd, func(f *os.File) error { return os.Chtimes(f.Name(), accessed, modified) })
}

// RenameNew renames a file in a directory to an unused name. Another program may make a file of
// that name between the check and the rename.
func (d Disk) RenameNew(dir int, from, to Name) error {
	if _, err := d.Stat(dir, to); err == nil {
		return os.ErrExist
	}
	return d.Rename(dir, from, to)
}

// Free returns the number of bytes that may still be written to a file's file system.
func (Disk) Free(fd int) (free int64, err error) {
	err = onFile(fd, func(f *os.File) (err error) {
		free, err = FreeSpace(f.Name())
		return err
	})
	return free, err
}

// Lock locks the file against other programs, where the system has such locks: see [TryLock].
func (Disk) Lock(fd int) error {
	return onFile(fd, func(f *os.File) error { return flock(f, lockAlone) })
}

// LockWait is Lock that waits until no other has the lock.
func (Disk) LockWait(fd int) error {
	return onFile(fd, func(f *os.File) error { return flock(f, lockWait) })
}

// LockShared is Lock for any number of descriptors at once.
func (Disk) LockShared(fd int) error {
	return onFile(fd, func(f *os.File) error { return flock(f, lockShared) })
}

// Unlock ends the lock of a descriptor.
func (Disk) Unlock(fd int) error {
	return onFile(fd, func(f *os.File) error { return flock(f, unlock) })
}

// Note: holes are not sought on Darwin, though lseek(2) can: users of GNU cp reported that APFS
// reports written bytes as holes, and then a copy loses them. Windows reports holes only in files
// declared sparse (FSCTL_QUERY_ALLOCATED_RANGES), and a copy here is none.
//
// Darwin's fclonefileat(2) creates the clone, and can't clone into an existing file, as a copy here
// needs.
