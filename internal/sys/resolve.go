package sys

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// mostLinks is the most symbolic links followed for one path, as on Linux.
const mostLinks = 40

// Resolve follows the symbolic link at the end of a path, and the links after it. It returns the
// path of the target, which may not exist. It does not change the directories of the path: the
// system follows their links. A missing directory is not reported here; opening it fails. More than
// 40 links are ELOOP.
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

// linkTarget returns the target of a link. It cleans nothing: only the system knows what ".." after
// a link means.
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

// plainError returns the system's error inside an error of package os.
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
