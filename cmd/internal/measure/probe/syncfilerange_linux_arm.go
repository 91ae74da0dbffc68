package probe

import "golang.org/x/sys/unix"

// syncFileRange is the number of sync_file_range(2), whose arguments have another order here.
const syncFileRange = unix.SYS_ARM_SYNC_FILE_RANGE
