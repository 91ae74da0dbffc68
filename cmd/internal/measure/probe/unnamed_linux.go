package probe

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// CreateUnnamed makes a file without a name on the file system of dir, to be written:
// open(2), O_TMPFILE, of Linux 3.11. The permissions are those before umask. The file is
// gone when it is closed or the process ends, unless GiveName gave it a name. An error
// that wraps [errors.ErrUnsupported] has one of two causes. The file system has no
// files without a name (ext4, xfs, btrfs and tmpfs do); or proc is not mounted, and
// GiveName needs it.
func CreateUnnamed(dir string, perm fs.FileMode) (*os.File, error) {
	f, err := os.OpenFile(dir, os.O_WRONLY|unix.O_TMPFILE, perm)
	for _, no := range []error{unix.EOPNOTSUPP, unix.EISDIR, unix.EINVAL, unix.ENOSYS} {
		if errors.Is(err, no) { // older kernels return EISDIR
			return nil, fmt.Errorf("no file without a name in %s: %w (%w)", dir, err, errors.ErrUnsupported)
		}
	}
	if err != nil {
		return nil, err
	}
	if err := unix.Access(descriptorPath(f), unix.F_OK); err != nil {
		f.Close()
		return nil, fmt.Errorf("no file without a name in %s: proc is not mounted: %w (%w)", dir, err, errors.ErrUnsupported)
	}
	return f, nil
}

func descriptorPath(f *os.File) string { return "/proc/self/fd/" + strconv.Itoa(int(f.Fd())) }

// GiveName gives a file of CreateUnnamed a name: linkat(2), AT_SYMLINK_FOLLOW. If the
// name exists the error is [fs.ErrExist], and the caller may try another name.
func GiveName(f *os.File, path string) error {
	err := unix.Linkat(unix.AT_FDCWD, descriptorPath(f), unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW)
	if err != nil {
		return &os.LinkError{Op: "link", Old: f.Name(), New: path, Err: err}
	}
	return nil
}
