//go:build !js

package sys

import "syscall"

// ErrTextBusy says that a file is being run.
const ErrTextBusy = syscall.ETXTBSY
