//go:build !linux

package sys

import (
	"errors"
	"os"
)

// MemoryFile returns a new file without a path. It is in the directory of temporary files, because
// this system has no file in memory that a process can pass to a child.
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
