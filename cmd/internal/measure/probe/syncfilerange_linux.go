//go:build !arm && !ppc64 && !ppc64le

package probe

import "golang.org/x/sys/unix"

// syncFileRange is the number of sync_file_range(2).
const syncFileRange = unix.SYS_SYNC_FILE_RANGE
