package powercut

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// forgetDevice is BTRFS_IOC_FORGET_DEV, Linux 5.4. A device that btrfs doesn't know is no error.
func forgetDevice(control *os.File, name string) error {
	const forget = 0x50009405 // _IOW(0x94, 5, struct btrfs_ioctl_vol_args)
	var args struct {
		fd   int64
		name [4088]byte
	}
	copy(args.name[:], name)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, control.Fd(), forget, uintptr(unsafe.Pointer(&args))); errno != 0 && errno != unix.ENOENT {
		return fmt.Errorf("BTRFS_IOC_FORGET_DEV of %s: %w", name, errno)
	}
	return nil
}
