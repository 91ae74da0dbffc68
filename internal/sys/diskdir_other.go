//go:build !linux

package sys

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// OpenForNames opens a directory, which must be readable here.
func (d Disk) OpenForNames(path Name) (fd int, err error) { return d.OpenDir(path) }

// OpenDirIn opens a directory in a directory, but not through a symbolic link: that is ENOTDIR. The
// name ".." is the parent.
func (d Disk) OpenDirIn(dir int, name Name) (fd int, err error) {
	err = inDir(dir, name, func(path string) (err error) {
		if info, err := os.Lstat(path); err != nil || !info.IsDir() {
			return errors.Join(err, syscall.ENOTDIR)
		}
		fd, err = d.OpenDir(Name(path + "\x00"))
		return err
	})
	if err != nil {
		return -1, err
	}
	return fd, nil
}

// StatDir returns the attributes of an open directory with its times. The system does not report
// mounts; a mount shows by another device.
func (d Disk) StatDir(fd int) (DirStat, error) {
	is, err := d.StatFile(fd)
	return DirStat{FileStat: is}, err
}

// namesAtOnce is the number of names that one call reads.
const namesAtOnce = 256

// ReadNames appends the next names of an open directory, without "." and "..", and none after the
// last.
func (Disk) ReadNames(fd int, _ []byte, to []DirEntry) ([]DirEntry, error) {
	err := onFile(fd, func(f *os.File) error {
		entries, err := f.ReadDir(namesAtOnce)
		for _, e := range entries {
			to = append(to, DirEntry{Name: Name(e.Name() + "\x00"), Kind: statMode(e.Type()) & kindMask})
		}
		if len(entries) > 0 || errors.Is(err, io.EOF) {
			return nil
		}
		return err
	})
	return to, err
}

// MkdirIn makes a directory in a directory with the given permissions, before umask.
func (Disk) MkdirIn(dir int, name Name, perm uint32) error {
	return inDir(dir, name, func(path string) error { return os.Mkdir(path, fileMode(perm)) })
}

// ReadLinkIn returns the target of a symbolic link in a directory.
func (Disk) ReadLinkIn(dir int, name Name) (target string, err error) {
	err = inDir(dir, name, func(path string) (err error) {
		target, err = os.Readlink(path)
		return err
	})
	return target, err
}

// SymlinkIn makes a symbolic link in a directory.
func (Disk) SymlinkIn(target Name, dir int, name Name) error {
	return inDir(dir, name, func(path string) error { return os.Symlink(target.String(), path) })
}

// LinkIn gives a file in a directory another name, in the same or another directory.
func (Disk) LinkIn(fromDir int, from Name, toDir int, to Name) error {
	return inDir(fromDir, from, func(old string) error {
		return inDir(toDir, to, func(path string) error { return os.Link(old, path) })
	})
}

// ChownIn sets the owner of a name in a directory, and of a symbolic link itself.
func (Disk) ChownIn(dir int, name Name, uid, gid uint32) error {
	return inDir(dir, name, func(path string) error { return os.Lchown(path, int(uid), int(gid)) })
}

// TimesIn returns the times of the last read and write of a name in a directory, and of a symbolic
// link itself.
func (Disk) TimesIn(dir int, name Name) (accessed, modified time.Time, err error) {
	err = inDir(dir, name, func(path string) error {
		info, err := os.Lstat(path)
		if err == nil {
			accessed, modified, _ = timesOf(info)
		}
		return err
	})
	return accessed, modified, err
}

// SetTimesIn sets the times of TimesIn, and on Darwin alone for a symbolic link.
func (Disk) SetTimesIn(dir int, name Name, accessed, modified time.Time) error {
	return inDir(dir, name, func(path string) error {
		info, err := os.Lstat(path)
		switch {
		case err != nil:
			return err
		case info.Mode()&fs.ModeSymlink != 0:
			return setLinkTimes(path, accessed, modified)
		}
		return os.Chtimes(filepath.Clean(path), accessed, modified)
	})
}
