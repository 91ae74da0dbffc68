package sys

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// mostLinks is how many symbolic links are followed for one path, as on Linux.
const mostLinks = 40

// Resolve follows the symbolic link that a path ends in, and those that it leads to. It
// returns the path of what is there, or is missing there. The directories of the path
// are left as they are: the system follows their links. A missing directory is not
// reported here; opening it fails. More than 40 links are ELOOP.
func (Disk) Resolve(path string) (string, error) {
	for range mostLinks {
		info, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) {
			return path, nil
		}
		if err != nil {
			return "", plainError(err)
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			return path, nil
		}
		target, err := os.Readlink(path)
		if err != nil {
			return "", plainError(err)
		}
		path = linkTarget(path, target)
	}
	return "", syscall.ELOOP
}

// linkTarget returns where a link leads. Nothing is tidied up: what ".." means
// behind a link only the system knows.
func linkTarget(link, target string) string {
	if filepath.IsAbs(target) {
		return target
	}
	end := len(link)
	for end > 0 && !os.IsPathSeparator(link[end-1]) {
		end--
	}
	return link[:end] + target
}

// plainError takes off what package os says around the system's error.
func plainError(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	var link *os.LinkError
	if errors.As(err, &link) {
		return link.Err
	}
	var call *os.SyscallError
	if errors.As(err, &call) {
		return call.Err
	}
	return err
}
