package study

import "syscall"

// openDataSync opens a file whose every write returns when its data is on stable
// storage; 0 where there is no such flag.
const openDataSync = syscall.O_DSYNC
