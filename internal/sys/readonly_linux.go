package sys

import "golang.org/x/sys/unix"

const readOnly = unix.ST_RDONLY
