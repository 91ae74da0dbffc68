package probe

import "time"

// Usage is the resources that this process has used since it started, in all threads together. A count
// that the system doesn't keep is 0.
type Usage struct {
	// User and System are the CPU time in the process's own code and in the
	// kernel. The unit is a nanosecond; the system counts in microseconds, and
	// some in clock ticks (Windows: commonly 15.6 ms).
	User, System time.Duration

	// VoluntarySwitches are context switches because a thread waits, InvoluntarySwitches because the
	// scheduler took the CPU away.
	VoluntarySwitches, InvoluntarySwitches int64

	// MinorFaults are page faults without I/O, MajorFaults page faults with I/O.
	MinorFaults, MajorFaults int64

	// BlocksIn and BlocksOut count the blocks that the file systems read and wrote for this process. On
	// Linux a block is 512 bytes: bytes >> 9 in task_io_get_inblock and task_io_get_oublock,
	// include/linux/task_io_accounting_ops.h. A page of a file counts as written when it becomes dirty,
	// whether or not it ever reaches a disk. A read from the page cache is not counted. On Darwin and
	// the BSDs they count operations of any size: getrusage(2).
	BlocksIn, BlocksOut int64
}
