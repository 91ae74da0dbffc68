package probe

import "time"

// Usage is what this process has used since it started, all threads together.
// A count that the system doesn't keep is 0.
type Usage struct {
	// User and System are the CPU time in the process's own code and in the
	// kernel. The unit is a nanosecond; the system counts in microseconds, and
	// some in clock ticks (Windows: commonly 15.6 ms).
	User, System time.Duration

	// VoluntarySwitches are context switches to wait, InvoluntarySwitches those by
	// which the scheduler took the CPU away.
	VoluntarySwitches, InvoluntarySwitches int64

	// MinorFaults are page faults without input or output, MajorFaults those with.
	MinorFaults, MajorFaults int64

	// BlocksIn and BlocksOut are what the file systems read and wrote for this process. On Linux a
	// block is 512 bytes: bytes >> 9 in task_io_get_inblock and task_io_get_oublock,
	// include/linux/task_io_accounting_ops.h. A page of a file counts as written when it becomes
	// dirty, whether or not it ever reaches a disk. What the page cache answers is not counted as
	// read. On Darwin and the BSDs they are operations of whatever size: getrusage(2).
	BlocksIn, BlocksOut int64
}
