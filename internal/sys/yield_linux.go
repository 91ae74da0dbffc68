package sys

import "golang.org/x/sys/unix"

// YieldThread gives this thread's processor to another waiting thread: sched_yield(2). The
// goroutine stays on its thread.
func YieldThread() { _, _, _ = unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }
