//go:build unix

package sys

import "syscall"

// NoFollow is a flag of open: a path that ends in a symbolic link is ELOOP. It is 0
// where the system has no such flag; there no directory is synced either. On Windows it is a flag of a
// Disk's OpenFile alone.
const NoFollow = syscall.O_NOFOLLOW
