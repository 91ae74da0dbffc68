package sys

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// CreateUnnamed makes a file of a folder's file system that has no name, with these
// permissions before umask, to be written: open(2), O_TMPFILE, of Linux 3.11. When it is
// closed, and when the process ends, however it ends, it is gone, unless GiveName gave it
// a name. An error that wraps [errors.ErrUnsupported] says that the file system has no
// such files (ext4, xfs, btrfs and tmpfs do), or that proc is not mounted, which a name
// takes.
func CreateUnnamed(folder string, perm fs.FileMode) (*os.File, error) {
	f, err := os.OpenFile(folder, os.O_WRONLY|unix.O_TMPFILE, perm)
	for _, no := range []error{unix.EOPNOTSUPP, unix.EISDIR, unix.EINVAL, unix.ENOSYS} {
		if errors.Is(err, no) { // EISDIR is what older kernels say
			return nil, fmt.Errorf("no file without a name in %s: %w (%w)", folder, err, errors.ErrUnsupported)
		}
	}
	if err != nil {
		return nil, err
	}
	if err := unix.Access(descriptorPath(f), unix.F_OK); err != nil {
		f.Close()
		return nil, fmt.Errorf("no file without a name in %s: proc is not mounted: %w (%w)", folder, err, errors.ErrUnsupported)
	}
	return f, nil
}

func descriptorPath(f *os.File) string { return "/proc/self/fd/" + strconv.Itoa(int(f.Fd())) }

// GiveName gives a file of CreateUnnamed a name: linkat(2), AT_SYMLINK_FOLLOW. If there is
// one of that name the error is [fs.ErrExist], and the file may be given another.
func GiveName(f *os.File, path string) error {
	err := unix.Linkat(unix.AT_FDCWD, descriptorPath(f), unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW)
	if err != nil {
		return &os.LinkError{Op: "link", Old: f.Name(), New: path, Err: err}
	}
	return nil
}
