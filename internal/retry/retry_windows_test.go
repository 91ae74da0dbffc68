package retry

import (
	"io/fs"
	"syscall"
	"testing"

	"golang.org/x/sys/windows"
)

// TestErrorsOfWindowsAreThoseOfUnix, also in an error of package os.
func TestErrorsOfWindowsAreThoseOfUnix(t *testing.T) {
	check := func(want syscall.Errno, these ...syscall.Errno) {
		t.Helper()
		for _, errno := range these {
			failed := &fs.PathError{Op: "write", Path: "x", Err: errno}
			if !Is(failed, want) || !Is(failed, syscall.EINTR, want) || Is(failed, syscall.EINTR) {
				t.Errorf("error %d, %v, is not %v alone", errno, errno, want)
			}
		}
	}
	check(syscall.ENOSPC, windows.ERROR_DISK_FULL, windows.ERROR_HANDLE_DISK_FULL, syscall.ENOSPC)
	check(syscall.EDQUOT, windows.ERROR_DISK_QUOTA_EXCEEDED)
	check(syscall.EMFILE, windows.ERROR_TOO_MANY_OPEN_FILES)
	check(syscall.EIO, windows.ERROR_IO_DEVICE, windows.ERROR_CRC)
	check(syscall.EROFS, windows.ERROR_WRITE_PROTECT)
	check(syscall.EFBIG, windows.ERROR_FILE_TOO_LARGE)
	check(syscall.EPIPE, windows.ERROR_BROKEN_PIPE, windows.ERROR_NO_DATA, windows.ERROR_PIPE_NOT_CONNECTED)
}
