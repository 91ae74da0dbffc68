package sys

import "golang.org/x/sys/unix"

// LowestPriority gives the calling thread the lowest priority (setpriority(2), nice 19): it runs
// when others do not. An ordinary user can't undo that, so lock the goroutine to its thread and
// never unlock it: then the thread ends with the goroutine.
func LowestPriority() error {
	return unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), 19)
}
