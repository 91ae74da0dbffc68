package fuselog

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Mount mounts a disk on an existing file, and returns the descriptor of /dev/fuse for [Disk].
// The descriptor blocks, and is for a process that knows nothing of the mount. When it is
// closed everywhere, the kernel aborts the connection: nothing waits for it any more.
func Mount(point, source string) (device int, err error) {
	device, err = unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open /dev/fuse: %w", err)
	}
	options := fmt.Sprintf("fd=%d,rootmode=%o,user_id=0,group_id=0", device, unix.S_IFREG)
	if err := unix.Mount(source, point, "fuse", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		_ = unix.Close(device)
		return -1, fmt.Errorf("mount -t fuse: %w", err)
	}
	return device, nil
}
