package sys

import (
	"fmt"
	"os"

	"golang.org/x/sys/windows"
)

// FileSystem returns the name of dir's file system, such as NTFS.
func FileSystem(dir string) (string, error) {
	if _, err := os.Stat(dir); err != nil { // the calls below know the volume of any path
		return "", fmt.Errorf("file system of %q is not known: %w", dir, err)
	}
	path, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return "", fmt.Errorf("file system of %q is not known: %w", dir, err)
	}
	var volume, name [windows.MAX_PATH + 1]uint16
	if err := windows.GetVolumePathName(path, &volume[0], uint32(len(volume))); err != nil {
		return "", fmt.Errorf("file system of %s is not known: GetVolumePathName: %w", dir, err)
	}
	if err := windows.GetVolumeInformation(&volume[0], nil, 0, nil, nil, nil, &name[0], uint32(len(name))); err != nil {
		return "", fmt.Errorf("file system of %s is not known: GetVolumeInformation: %w", dir, err)
	}
	return windows.UTF16ToString(name[:]), nil
}
