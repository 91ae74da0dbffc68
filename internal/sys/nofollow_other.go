//go:build !unix && !windows

package sys

// NoFollow is a flag of open that this system lacks.
const NoFollow = 0
