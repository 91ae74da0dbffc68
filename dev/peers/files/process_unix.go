//go:build unix

package files

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// raiseDescriptors raises this process's limit of open files to at least need.
func raiseDescriptors(need uint64) error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	if limit.Cur >= need {
		return nil
	}
	limit.Cur, limit.Max = need, max(limit.Max, need)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return &unsupported{fmt.Sprintf("%d descriptors are not to be had here: %v", need, err)}
	}
	return nil
}

// limitDescriptors sets this process's limit of open files to most.
func limitDescriptors(most uint64) error {
	return unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: most, Max: most})
}

// nobody is the user without any files.
const nobody = 65534

// dropRoot makes this process another user's, without root's rights. The directory
// becomes that user's.
func dropRoot(dir string) error {
	if os.Getuid() != 0 {
		return nil
	}
	if err := os.Chown(dir, nobody, nobody); err != nil {
		return err
	}
	return errors.Join(syscall.Setgroups(nil), syscall.Setgid(nobody), syscall.Setuid(nobody))
}
