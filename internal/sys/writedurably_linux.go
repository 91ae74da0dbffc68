package sys

import "golang.org/x/sys/unix"

// WriteAtDurably writes what the kernel takes in one call and syncs these bytes, as
// fdatasync does: pwritev2(2) with RWF_DSYNC. Where the kernel or the file system has no such
// call, the error is [errors.ErrUnsupported], and nothing was written.
//
// It is for bytes that the file has, all of it durable: then no journal is needed. A file system
// that has stopped may still take them, so this is not asked, other than in [Disk.Datasync].
func (Disk) WriteAtDurably(fd int, p []byte, at int64) (n int, err error) {
	return transferred(unix.Pwritev2(fd, [][]byte{p}, at, unix.RWF_DSYNC))
}
