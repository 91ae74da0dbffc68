package sys

import "syscall"

// ErrTextBusy stands for the error of a file that is being executed: here no file is.
const ErrTextBusy = syscall.EBUSY
