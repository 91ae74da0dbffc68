package retry

import (
	"syscall"

	"golang.org/x/sys/windows"
)

// commonErrno maps an error number of Windows to the common one.
func commonErrno(errno syscall.Errno) syscall.Errno {
	switch errno {
	case windows.ERROR_DISK_FULL, windows.ERROR_HANDLE_DISK_FULL:
		return syscall.ENOSPC
	case windows.ERROR_DISK_QUOTA_EXCEEDED:
		return syscall.EDQUOT
	case windows.ERROR_TOO_MANY_OPEN_FILES:
		return syscall.EMFILE
	case windows.ERROR_NOT_ENOUGH_MEMORY, windows.ERROR_OUTOFMEMORY:
		return syscall.ENOMEM
	case windows.ERROR_NO_SYSTEM_RESOURCES:
		return syscall.ENOBUFS
	case windows.ERROR_SHARING_VIOLATION, windows.ERROR_LOCK_VIOLATION, windows.ERROR_BUSY:
		return syscall.EBUSY // a scanner or an indexer has the file open
	case windows.ERROR_SEM_TIMEOUT:
		return syscall.ETIMEDOUT
	case windows.ERROR_IO_DEVICE, windows.ERROR_CRC:
		return syscall.EIO
	case windows.ERROR_WRITE_PROTECT:
		return syscall.EROFS
	case windows.ERROR_FILE_TOO_LARGE:
		return syscall.EFBIG
	case windows.ERROR_BROKEN_PIPE, windows.ERROR_NO_DATA, windows.ERROR_PIPE_NOT_CONNECTED:
		return syscall.EPIPE // its reader has closed it
	}
	return errno
}
