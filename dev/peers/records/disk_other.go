//go:build !linux

package records

import (
	"os"
	"time"
)

// fdatasync is the file's own Sync where the system has nothing weaker.
func fdatasync(f *os.File) error { return f.Sync() }

func sleep(d time.Duration) error {
	time.Sleep(d)
	return nil
}
