// Package syscallfault stands between an unmodified program and the kernel. Each system call of
// some kinds below a directory waits until a supervisor has decided what becomes of it. The
// supervisor lets it go on, makes it fail, shortens or delays it, or changes the files meanwhile.
//
// It needs seccomp user notifications (Linux 5.9) and no root. It sees no write through mapped
// memory, and of io_uring and io_submit only that a program uses them.
//
// Start with [Launch], [Start] and [Call].
package syscallfault

// A Kind is a kind of system calls.
type Kind string

// The kinds.
const (
	Write    Kind = "write"    // write, pwrite64, writev, pwritev, pwritev2, sendfile, splice, copy_file_range
	Sync     Kind = "sync"     // fsync, fdatasync, syncfs, sync_file_range, msync, sync
	Open     Kind = "open"     // open, openat, openat2, creat
	Rename   Kind = "rename"   // rename, renameat, renameat2
	Link     Kind = "link"     // link, linkat, symlink, symlinkat
	Unlink   Kind = "unlink"   // unlink, unlinkat, rmdir
	Close    Kind = "close"    // close
	Allocate Kind = "allocate" // fallocate, ftruncate, truncate
)

// These are for callers that record a program's calls. None of them is made to fail.
const (
	Make   Kind = "make"   // mkdir, mkdirat
	Unseen Kind = "unseen" // io_uring_setup, io_submit: what is asked by them is not seen
)

// Kinds are the calls that may fail.
var Kinds = []Kind{Write, Sync, Open, Rename, Link, Unlink, Close, Allocate}
