package sys

import "golang.org/x/sys/unix"

// WriteAtDurably writes bytes in one call and syncs them, as Datasync does: pwritev2(2) with
// RWF_DSYNC. It may write fewer than p. If the kernel or the file system has no such call, the
// error is [errors.ErrUnsupported], and nothing was written.
func (Disk) WriteAtDurably(fd int, p []byte, at int64) (n int, err error) {
	n, err = transferred(unix.Pwritev2(fd, [][]byte{p}, at, unix.RWF_DSYNC))
	if err != nil {
		return n, err
	}
	return n, groundOf(fd).stopped(fd)
}
