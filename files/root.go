package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// paths are the calls of a [Batch] that take whole paths.
type paths interface {
	// of returns the path by which a file was opened.
	of(file *os.File) string
	stat(path string) (fs.FileInfo, error)
	mkdir(path string, perm fs.FileMode) error
	rename(from, to string) error
	link(from, to string) error
	remove(path string) error
}

// systemPaths are the paths of the system.
type systemPaths struct{}

func (systemPaths) of(file *os.File) string                   { return file.Name() }
func (systemPaths) stat(path string) (fs.FileInfo, error)     { return os.Stat(path) }
func (systemPaths) mkdir(path string, perm fs.FileMode) error { return os.Mkdir(path, perm) }
func (systemPaths) rename(from, to string) error              { return os.Rename(from, to) }
func (systemPaths) link(from, to string) error                { return os.Link(from, to) }
func (systemPaths) remove(path string) error                  { return os.Remove(path) }

// causeOf returns the system's error inside one of package os.
func causeOf(err error) error {
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		return path.Err
	}
	if link := (*os.LinkError)(nil); errors.As(err, &link) {
		return link.Err
	}
	return err
}

// statOf returns the attributes that package os has returned.
func statOf(info fs.FileInfo, err error) (sys.Stat, error) {
	if err != nil {
		return sys.Stat{}, causeOf(err)
	}
	return sys.StatOf(info), nil
}

// mostLinks is the most symbolic links followed for one path, as on Linux.
const mostLinks = 40

// linksInRoot follows the links at the end of a path below a root. One that leads out of the root is an
// error when the directory is opened; an absolute one leads out.
func linksInRoot(path string, readLink func(path string) (target string, err error)) (string, error) {
	for range mostLinks {
		target, err := readLink(path)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.EINVAL): // none, or no link
			return path, nil
		case err != nil:
			return "", err
		case filepath.IsAbs(target):
			return "", errLeadsOut
		}
		dir, _ := vfs.SplitPath(path)
		path = dir + "/" + target
	}
	return "", syscall.ELOOP
}

var errLeadsOut = errors.New("the symbolic link leads out of the root")

// pathInRoot returns the path below a root by which a file was opened.
func pathInRoot(root *os.Root, file *os.File) string {
	if path, err := filepath.Rel(root.Name(), file.Name()); err == nil {
		return path
	}
	return file.Name()
}
