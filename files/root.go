package files

import (
	"errors"
	"io/fs"
	"os"
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
	return err
}
