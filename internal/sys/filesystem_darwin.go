package sys

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// FileSystem returns the name of dir's file system, such as apfs.
func FileSystem(dir string) (string, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return "", fmt.Errorf("file system of %s is not known: statfs: %w", dir, err)
	}
	return unix.ByteSliceToString(stat.Fstypename[:]), nil
}
