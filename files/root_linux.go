package files

import (
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

const whyNoRoot = ""

// A rootDisk is the kernel below an os.Root. The root opens each directory; a name in it has no slash,
// and is used without following a link. So none of the other calls needs it.
//
// Note: os.Root renames and links since Go 1.25 alone, and never by the descriptors that a sync needs.
type rootDisk struct {
	sys.Disk
	root *os.Root
}

// inRoot returns the calls below a root.
func inRoot(root *os.Root) (vfs.Disk, paths) {
	d := rootDisk{root: root}
	return d, rootPaths{d}
}

// open opens a directory.
func (d rootDisk) open(path string, flag int) (fd int, err error) {
	f, err := d.root.OpenFile(path, flag|unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
	if err != nil {
		return -1, causeOf(err)
	}
	return sys.Adopt(f)
}

func (d rootDisk) OpenDir(path sys.Name) (fd int, err error) {
	return d.open(path.String(), os.O_RDONLY)
}

func (d rootDisk) OpenForNames(path sys.Name) (fd int, err error) {
	return d.open(path.String(), unix.O_PATH)
}

func (d rootDisk) StatPath(path sys.Name) (sys.Stat, error) {
	return statOf(d.root.Stat(path.String()))
}

func (d rootDisk) Mkdir(path sys.Name, perm uint32) error {
	return causeOf(d.root.Mkdir(path.String(), fs.FileMode(perm)&fs.ModePerm))
}

// Resolve is [linksInRoot].
func (d rootDisk) Resolve(path string) (string, error) { return linksInRoot(path, d.readLink) }

func (d rootDisk) readLink(path string) (target string, err error) {
	err = d.in(path, func(dir int, name sys.Name) (err error) {
		target, err = d.ReadLinkIn(dir, name)
		return err
	})
	return target, err
}

// in calls do with the directory of a path.
func (d rootDisk) in(path string, do func(dir int, name sys.Name) error) error {
	above, base := vfs.SplitPath(path)
	name, err := sys.NewName(base)
	if err != nil {
		return err
	}
	dir, err := d.open(above, unix.O_PATH)
	if err != nil {
		return err
	}
	defer d.Close(dir) // only names were used
	return do(dir, name)
}

// inBoth calls do with the directories of two paths.
func (d rootDisk) inBoth(from, to string, do func(fromDir int, from string, toDir int, to string) error) error {
	return d.in(from, func(fromDir int, old sys.Name) error {
		return d.in(to, func(toDir int, name sys.Name) error {
			return sys.Uninterrupted(func() error { return do(fromDir, old.String(), toDir, name.String()) })
		})
	})
}

// rootPaths are the paths below a root.
type rootPaths struct{ rootDisk }

func (p rootPaths) of(file *os.File) string { return pathInRoot(p.root, file) }

func (p rootPaths) stat(path string) (fs.FileInfo, error) { return p.root.Stat(path) }

func (p rootPaths) mkdir(path string, perm fs.FileMode) error { return p.root.Mkdir(path, perm) }

func (p rootPaths) remove(path string) error { return p.root.Remove(path) }

func (p rootPaths) rename(from, to string) error { return p.inBoth(from, to, unix.Renameat) }

func (p rootPaths) link(from, to string) error {
	return p.inBoth(from, to, func(fromDir int, from string, toDir int, to string) error {
		return unix.Linkat(fromDir, from, toDir, to, 0)
	})
}
