//go:build linux && !amd64 && !arm64

package sys

import "golang.org/x/sys/unix"

// fstatat copies the name: the call differs from processor to processor.
func fstatat(folder int, name Name, s *unix.Stat_t, flags int) error {
	return unix.Fstatat(folder, name.String(), s, flags)
}
