//go:build linux && !amd64 && !arm64

package sys

import "golang.org/x/sys/unix"

// fstatat copies the name: the call differs from processor to processor.
func fstatat(dir int, name Name, s *unix.Stat_t, flags int) error {
	return unix.Fstatat(dir, name.String(), s, flags)
}
