package sys

import "golang.org/x/sys/unix"

// YieldThread lets another thread have this one's processor, if one waits for it: sched_yield(2). It
// keeps the goroutine on its thread.
func YieldThread() { _, _, _ = unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }
