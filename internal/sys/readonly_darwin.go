package sys

import "golang.org/x/sys/unix"

const readOnly = unix.MNT_RDONLY
