//go:build !linux

package sys

import (
	"errors"
	"os"
)

// MemoryFile returns a new file that has no path any more. It is in the directory of temporary files,
// as this system has no other that a process can hand to the next.
func MemoryFile(name string) (*os.File, error) {
	f, err := os.CreateTemp("", name)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
