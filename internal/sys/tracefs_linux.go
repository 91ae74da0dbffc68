package sys

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// readTracefs reads a file of tracefs: where it is mounted, or, if it is mounted
// nowhere, through a mount of our own that is attached to no folder, so that
// nobody else sees it and it ends with its descriptor (fsmount(2), Linux 5.2; it
// takes root).
func readTracefs(name string) ([]byte, error) {
	var first error
	for _, folder := range tracefsFolders {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err == nil {
			return text, nil
		}
		if first == nil || os.IsPermission(err) {
			first = err
		}
	}
	root, err := detachedTracefs()
	if err != nil {
		return nil, first
	}
	defer unix.Close(root)
	return os.ReadFile(filepath.Join(fmt.Sprintf("/proc/self/fd/%d", root), name))
}

func detachedTracefs() (root int, err error) {
	context, err := unix.Fsopen("tracefs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer unix.Close(context)
	if err := unix.FsconfigCreate(context); err != nil {
		return -1, err
	}
	return unix.Fsmount(context, unix.FSMOUNT_CLOEXEC, 0)
}
