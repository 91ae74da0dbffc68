// Package probe holds the system calls that only the laboratory makes. They count a process's
// system calls and its time, empty the page cache, wake and pin threads, and make files without a
// name. What a system cannot do is [errors.ErrUnsupported], never a pretence.
//
// What the library needs of the system is in package sys, and so is the page cache of a file.
//
// Start with [StartSyscallCounter], [TraceSyscalls] and [ProcessUsage].
package probe
