package probe

import (
	"time"

	"golang.org/x/sys/unix"
)

// Pause sleeps for d, or less if a signal comes, and holds its thread meanwhile:
// nanosleep(2). A [time.Sleep] wakes an idle process up to a millisecond late. The
// runtime waits for timers in epoll_wait(2), which counts in milliseconds.
func Pause(d time.Duration) {
	t := unix.NsecToTimespec(int64(d))
	// EINTR ends a pause early; no other error is possible for a valid time.
	_ = unix.Nanosleep(&t, nil)
}
