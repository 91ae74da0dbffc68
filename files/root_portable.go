//go:build go1.25

package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"syscall"

	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// A portableRoot is a disk below an os.Root, by that type's methods: other systems' calls take paths, which a
// link may lead elsewhere. Each open directory is a root of its own, and a name is used in that.
type portableRoot struct {
	sys.Disk
	root *os.Root
	dirs *openRoots
}

// openRoots are the open directories by their descriptors.
type openRoots struct {
	mu sync.Mutex
	of map[int]*os.Root
}

func inPortableRoot(root *os.Root) (vfs.Disk, paths) {
	d := portableRoot{root: root, dirs: &openRoots{of: map[int]*os.Root{}}}
	return d, portablePaths{d}
}

// dir returns an open directory.
func (d portableRoot) dir(fd int) (*os.Root, error) {
	d.dirs.mu.Lock()
	defer d.dirs.mu.Unlock()
	if dir := d.dirs.of[fd]; dir != nil {
		return dir, nil
	}
	return nil, os.ErrClosed
}

// open opens a directory in another.
func (d portableRoot) open(in *os.Root, path string) (fd int, err error) {
	dir, err := in.OpenRoot(path)
	if err != nil {
		return -1, causeOf(err)
	}
	f, err := dir.Open(".")
	if err == nil {
		fd, err = sys.Adopt(f)
	}
	if err != nil {
		dir.Close() // nothing was done in it
		return -1, causeOf(err)
	}
	d.dirs.mu.Lock()
	defer d.dirs.mu.Unlock()
	d.dirs.of[fd] = dir
	return fd, nil
}

func (d portableRoot) OpenDir(path sys.Name) (fd int, err error) {
	return d.open(d.root, path.String())
}

func (d portableRoot) OpenForNames(path sys.Name) (fd int, err error) { return d.OpenDir(path) }

func (d portableRoot) OpenDirIn(dir int, name sys.Name) (fd int, err error) {
	in, err := d.dir(dir)
	if err != nil {
		return -1, err
	}
	return d.open(in, name.String())
}

func (d portableRoot) Close(fd int) error {
	d.dirs.mu.Lock()
	dir := d.dirs.of[fd]
	delete(d.dirs.of, fd)
	d.dirs.mu.Unlock()
	if dir != nil {
		dir.Close() // the descriptor's own close reports
	}
	return d.Disk.Close(fd)
}

// OpenFile follows no link, as others do by a flag. One that is put there between its two calls leads to a
// file below the same directory.
func (d portableRoot) OpenFile(dir int, name sys.Name, flag int, perm uint32) (fd int, err error) {
	in, err := d.dir(dir)
	if err != nil {
		return -1, err
	}
	if perm&^uint32(fs.ModePerm) != 0 {
		return -1, fmt.Errorf("permissions %#o: below a root a new file has no bits beside 0777", perm)
	}
	if flag&os.O_EXCL == 0 {
		is, err := in.Lstat(name.String())
		if err == nil && is.Mode()&fs.ModeSymlink != 0 {
			return -1, syscall.ELOOP
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return -1, causeOf(err)
		}
	}
	f, err := in.OpenFile(name.String(), flag|sys.WaitForNobody, fs.FileMode(perm))
	if err != nil {
		return -1, causeOf(err)
	}
	return sys.Adopt(f)
}

func (d portableRoot) Stat(dir int, name sys.Name) (sys.Stat, error) {
	in, err := d.dir(dir)
	if err != nil {
		return sys.Stat{}, err
	}
	return statOf(in.Lstat(name.String()))
}

func (d portableRoot) StatPath(path sys.Name) (sys.Stat, error) {
	return statOf(d.root.Stat(path.String()))
}

func (d portableRoot) Mkdir(path sys.Name, perm uint32) error {
	return causeOf(d.root.Mkdir(path.String(), fs.FileMode(perm)&fs.ModePerm))
}

func (d portableRoot) Rename(dir int, from, to sys.Name) error {
	in, err := d.dir(dir)
	if err != nil {
		return err
	}
	return causeOf(in.Rename(from.String(), to.String()))
}

func (d portableRoot) Remove(dir int, name sys.Name) error {
	in, err := d.dir(dir)
	if err != nil {
		return err
	}
	return causeOf(in.Remove(name.String()))
}

func (d portableRoot) Resolve(path string) (string, error) {
	return linksInRoot(path, func(path string) (target string, err error) {
		is, err := d.root.Lstat(path)
		if err == nil && is.Mode()&fs.ModeSymlink == 0 {
			return "", syscall.EINVAL
		}
		if err == nil {
			target, err = d.root.Readlink(path)
		}
		return target, causeOf(err)
	})
}

// portablePaths are the paths below a root.
type portablePaths struct{ portableRoot }

func (p portablePaths) of(file *os.File) string { return pathInRoot(p.root, file) }

func (p portablePaths) stat(path string) (fs.FileInfo, error) { return p.root.Stat(path) }

func (p portablePaths) mkdir(path string, perm fs.FileMode) error { return p.root.Mkdir(path, perm) }

func (p portablePaths) remove(path string) error { return p.root.Remove(path) }

func (p portablePaths) rename(from, to string) error { return p.root.Rename(from, to) }

func (p portablePaths) link(from, to string) error { return p.root.Link(from, to) }
