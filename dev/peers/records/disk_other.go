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

// look makes the call that there is here.
func look(f *os.File) error {
	_, err := f.Stat()
	return err
}
