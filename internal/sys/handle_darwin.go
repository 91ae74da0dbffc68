package sys

import (
	"errors"

	"golang.org/x/sys/unix"
)

// handleState holds the call as a value made once, so that no second call allocates,
// and its results.
type handleState struct {
	fstat    func(fd uintptr)
	fstatErr error
	stat     unix.Stat_t
}

// Datasync is not to be had: fsync(2) and fdatasync(2) stop at the drive's cache
// on Darwin, and os.File.Sync already uses F_FULLFSYNC, which does not.
func (h *Handle) Datasync() error { return errors.ErrUnsupported }

// Links returns how many names the file has: st_nlink of fstat(2).
func (h *Handle) Links() (uint64, error) {
	if h.fstat == nil {
		h.fstat = func(fd uintptr) { h.fstatErr = unix.Fstat(int(fd), &h.stat) }
	}
	if err := h.raw.Control(h.fstat); err != nil {
		return 0, err
	}
	return uint64(h.stat.Nlink), h.fstatErr
}
