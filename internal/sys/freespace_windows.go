package sys

import (
	"fmt"
	"math"

	"golang.org/x/sys/windows"
)

// FreeSpace returns the number of bytes that this user may still write to the volume of dir, within
// the user's quota.
func FreeSpace(dir string) (int64, error) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, fmt.Errorf("free space of %q is not known: %w", dir, err)
	}
	var free uint64
	if err := windows.GetDiskFreeSpaceEx(name, &free, nil, nil); err != nil {
		return 0, fmt.Errorf("free space of %s is not known: GetDiskFreeSpaceEx: %w", dir, err)
	}
	return int64(min(free, math.MaxInt64)), nil
}
