package sys

import "golang.org/x/sys/unix"

// Writeback starts to write a range of a file's pages to the disk and does not wait for it:
// sync_file_range(2). It makes nothing durable, and takes no error from a later sync.
func (Disk) Writeback(fd int, at, n int64) error {
	return unix.SyncFileRange(fd, at, n, unix.SYNC_FILE_RANGE_WRITE)
}
