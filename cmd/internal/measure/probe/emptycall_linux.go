package probe

import "golang.org/x/sys/unix"

// EmptyCalls makes n system calls that do next to nothing, getppid(2), one after
// the other. The vDSO has no getppid, so each goes to the kernel and back.
func EmptyCalls(n int) error {
	for range n {
		unix.RawSyscall(unix.SYS_GETPPID, 0, 0, 0)
	}
	return nil
}

// EmptyScheduledCalls is EmptyCalls by way of Syscall. Like every call of package os,
// it reports to Go's scheduler that the call may block.
func EmptyScheduledCalls(n int) error {
	for range n {
		unix.Syscall(unix.SYS_GETPPID, 0, 0, 0)
	}
	return nil
}
