package files

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// fillDisk mounts a small file system in memory on the directory and fills it but for half of the
// fault's bytes. Its lift makes room again.
func fillDisk(dir string) (lift, unmount func() error, err error) {
	if os.Getuid() != 0 {
		return nil, nil, &unsupported{"only root can mount a disk to fill"}
	}
	if err := unix.Mount("files", dir, "tmpfs", 0, "size=32m"); err != nil {
		return nil, nil, &unsupported{fmt.Sprintf("no disk to fill can be mounted here: %v", err)}
	}
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 20<<20), 0o600); err != nil {
		return nil, nil, errors.Join(err, unix.Unmount(dir, 0))
	}
	return func() error { return os.Remove(ballast) }, func() error { return unix.Unmount(dir, 0) }, nil
}
