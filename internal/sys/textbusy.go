//go:build !js

package sys

import "syscall"

// ErrTextBusy is the error for a file that is being executed.
const ErrTextBusy = syscall.ETXTBSY
