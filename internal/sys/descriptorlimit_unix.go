//go:build unix

package sys

import (
	"math"

	"golang.org/x/sys/unix"
)

// DescriptorLimit returns the most descriptors that this process may have open: the soft
// RLIMIT_NOFILE, which Go raises to the hard one at the start.
func DescriptorLimit() (n int, ok bool) {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return 0, false
	}
	return int(min(uint64(l.Cur), math.MaxInt)), true
}
