package sys

import "syscall"

// ErrTextBusy stands for the error that a file is being run: here no file is.
const ErrTextBusy = syscall.EBUSY
