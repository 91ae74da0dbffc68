package sys

import (
	"errors"

	"golang.org/x/sys/unix"
)

// handleState holds the call as a value made once, so that later calls don't allocate, and its
// results.
type handleState struct {
	fstat    func(fd uintptr)
	fstatErr error
	stat     unix.Stat_t
}

// Datasync is not supported: on Darwin fsync(2) and fdatasync(2) stop at the drive's cache, and
// os.File.Sync already uses F_FULLFSYNC, which does not.
func (h *Handle) Datasync() error { return errors.ErrUnsupported }

// Links returns the number of the file's names: st_nlink of fstat(2).
func (h *Handle) Links() (uint64, error) {
	if h.fstat == nil {
		h.fstat = func(fd uintptr) { h.fstatErr = unix.Fstat(int(fd), &h.stat) }
	}
	if err := h.raw.Control(h.fstat); err != nil {
		return 0, err
	}
	return uint64(h.stat.Nlink), h.fstatErr
}
