package probe

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/mountinfo"
)

// A mounted is a mount that Remount may have to repeat.
type mounted struct{ mountinfo.Mount }

// mounts reads what is mounted.
func mounts() ([]mounted, error) {
	list, err := mountinfo.Read()
	if err != nil {
		return nil, err
	}
	all := make([]mounted, len(list))
	for i, m := range list {
		all[i].Mount = m
	}
	return all, nil
}

// mountID returns the number of the mount that holds path: statx(2), Linux 5.8.
// Unlike a search by name it also sees through links and stacked mounts.
func mountID(path string) (int, error) {
	var stat unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_MNT_ID, &stat); err != nil {
		return 0, fmt.Errorf("statx: %w", err)
	}
	if stat.Mask&unix.STATX_MNT_ID == 0 {
		return 0, fmt.Errorf("statx doesn't report the mount, which takes Linux 5.8: %w", unix.EOPNOTSUPP)
	}
	return int(stat.Mnt_id), nil
}
