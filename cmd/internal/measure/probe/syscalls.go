package probe

// SyscallCounts is the number of system calls that this process entered.
type SyscallCounts struct {
	// Total counts all calls, including the Go runtime's and Stop's own: at most one for each thread
	// that Start found.
	Total int64
	// Writes is write, pwrite64, writev, pwritev and pwritev2, to any file: when the Go runtime wakes
	// its own poller, that is a write too.
	Writes int64
	// Syncs is fsync, fdatasync, sync_file_range and syncfs.
	Syncs int64
}
