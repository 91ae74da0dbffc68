//go:build unix

package read

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// withMapped maps the whole file.
func withMapped(read func(data []byte) result) func(string, int) (result, error) {
	return func(path string, size int) (result, error) {
		f, err := os.Open(path)
		if err != nil {
			return result{}, err
		}
		defer f.Close()
		data, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
		if err != nil {
			return result{}, err
		}
		return read(data), errors.Join(unix.Munmap(data))
	}
}
