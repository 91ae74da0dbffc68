package sys

import "os"

// SyncDir makes the names in the open directory d durable: fsync(2), which POSIX requires in
// addition to the file's own. It also fails if the file system has stopped.
func SyncDir(d *os.File) error {
	raw, err := d.SyscallConn()
	if err != nil {
		return err
	}
	failed := raw.Control(func(fd uintptr) {
		err = Uninterrupted(func() error { return Disk{}.Sync(int(fd)) })
	})
	if failed != nil {
		return failed
	}
	return err
}
