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

// OpenForNames opens a folder, which has to be readable here.
func (d Disk) OpenForNames(path Name) (fd int, err error) { return d.OpenFolder(path) }

// OpenFolderIn opens a folder of a folder, but not by way of a symbolic link: that is
// ENOTDIR. The name ".." is the folder above.
func (d Disk) OpenFolderIn(folder int, name Name) (fd int, err error) {
	err = inFolder(folder, name, func(path string) (err error) {
		if info, err := os.Lstat(path); err != nil || !info.IsDir() {
			return errors.Join(err, syscall.ENOTDIR)
		}
		fd, err = d.OpenFolder(Name(path + "\x00"))
		return err
	})
	if err != nil {
		return -1, err
	}
	return fd, nil
}

// StatFolder says what an open folder is, with its times. Whether something is mounted
// on it the system does not tell; its device does, if that is another.
func (d Disk) StatFolder(fd int) (FolderStat, error) {
	is, err := d.StatFile(fd)
	return FolderStat{FileStat: is}, err
}

// namesAtOnce is how many names one call reads.
const namesAtOnce = 256

// ReadNames appends some of an open folder's names, without "." and "..", and goes on
// behind them at the next call. It appends none when there are no more.
func (Disk) ReadNames(fd int, _ []byte, to []FolderEntry) ([]FolderEntry, error) {
	err := onFile(fd, func(f *os.File) error {
		entries, err := f.ReadDir(namesAtOnce)
		for _, e := range entries {
			to = append(to, FolderEntry{Name: Name(e.Name() + "\x00"), Kind: statMode(e.Type()) & kindMask})
		}
		if len(entries) > 0 || errors.Is(err, io.EOF) {
			return nil
		}
		return err
	})
	return to, err
}

// MkdirIn makes a folder in a folder, with these permissions before umask.
func (Disk) MkdirIn(folder int, name Name, perm uint32) error {
	return inFolder(folder, name, func(path string) error { return os.Mkdir(path, fileMode(perm)) })
}

// ReadLinkIn returns what a symbolic link of a folder says.
func (Disk) ReadLinkIn(folder int, name Name) (target string, err error) {
	err = inFolder(folder, name, func(path string) (err error) {
		target, err = os.Readlink(path)
		return err
	})
	return target, err
}

// SymlinkIn makes a symbolic link in a folder.
func (Disk) SymlinkIn(target Name, folder int, name Name) error {
	return inFolder(folder, name, func(path string) error { return os.Symlink(target.String(), path) })
}

// LinkIn gives a file of a folder another name, in the same or another folder.
func (Disk) LinkIn(fromFolder int, from Name, toFolder int, to Name) error {
	return inFolder(fromFolder, from, func(old string) error {
		return inFolder(toFolder, to, func(path string) error { return os.Link(old, path) })
	})
}

// ChownIn sets whose a name of a folder is; of a symbolic link, the link itself.
func (Disk) ChownIn(folder int, name Name, uid, gid uint32) error {
	return inFolder(folder, name, func(path string) error { return os.Lchown(path, int(uid), int(gid)) })
}

// TimesIn returns when a name of a folder was last read and written; of a symbolic link,
// the link itself.
func (Disk) TimesIn(folder int, name Name) (accessed, modified time.Time, err error) {
	err = inFolder(folder, name, func(path string) error {
		info, err := os.Lstat(path)
		if err == nil {
			accessed, modified, _ = timesOf(info)
		}
		return err
	})
	return accessed, modified, err
}

// SetTimesIn sets what TimesIn returns. Of a symbolic link they are set only on Darwin.
func (Disk) SetTimesIn(folder int, name Name, accessed, modified time.Time) error {
	return inFolder(folder, name, func(path string) error {
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
