// Package probe holds the system calls that only measuring makes. They count a process's system calls
// and its time, empty the page cache, wake and pin threads, and make files without a name. A call that
// the system lacks returns [errors.ErrUnsupported]; nothing is pretended.
//
// The library's own system calls are in package sys, and so are the calls for a file's page cache.
//
// Start with [StartSyscallCounter], [TraceSyscalls] and [ProcessUsage].
package probe
