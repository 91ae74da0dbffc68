package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// Flags of open(2).
const (
	oDsync  = unix.O_DSYNC
	oDirect = unix.O_DIRECT
)

// settle writes out what the trials before left in the file system under dir, so
// that none pays for another.
func settle(dir string) {
	d, err := os.Open(dir)
	if err != nil {
		return // the trial is about to fail with the reason
	}
	defer d.Close()
	_ = unix.Syncfs(int(d.Fd())) // an unsettled disk makes a trial slower, not wrong
}
