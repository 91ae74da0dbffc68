package probe

// SyscallCounts says how many system calls this process entered.
type SyscallCounts struct {
	// Total is all of them, including the Go runtime's and those of Stop itself: at most one for each
	// thread that Start found.
	Total int64
	// Writes is write, pwrite64, writev, pwritev and pwritev2, to whatever file:
	// when the Go runtime wakes its own poller, that is a write too.
	Writes int64
	// Syncs is fsync, fdatasync, sync_file_range and syncfs.
	Syncs int64
}
