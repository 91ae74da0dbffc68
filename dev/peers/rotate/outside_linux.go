package rotate

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// forbidChanges takes away the permission to write to a directory, or gives it back. No permission stops
// root, so root makes the directory immutable too, as chattr +i does.
func forbidChanges(dir string, on bool) (err error) {
	mode := os.FileMode(0o700)
	if on {
		mode = 0o500
	}
	if os.Geteuid() != 0 {
		return os.Chmod(dir, mode)
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	const immutable = 0x10 // FS_IMMUTABLE_FL
	flags, err := unix.IoctlGetUint32(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	if err == nil && on {
		err = errors.Join(f.Chmod(mode), unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, int(flags|immutable)))
	} else if err == nil {
		err = errors.Join(unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, int(flags&^immutable)), f.Chmod(mode))
	}
	if err != nil {
		return fmt.Errorf("%w: root needs a file system with chattr +i (%w)", errors.ErrUnsupported, err)
	}
	return nil
}

// mountSmall mounts a tmpfs of the given size in bytes.
func mountSmall(dir string, bytes int64) (unmount func() error, err error) {
	if err := unix.Mount("rotate", dir, "tmpfs", 0, fmt.Sprintf("size=%d", bytes)); err != nil {
		return nil, fmt.Errorf("%w: only root may mount a disk to fill (%w)", errors.ErrUnsupported, err)
	}
	return func() error { return unix.Unmount(dir, unix.MNT_DETACH) }, nil
}
