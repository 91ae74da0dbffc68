package sys

import "golang.org/x/sys/unix"

// handleState holds the calls as values made once, so that no second call allocates, and
// their results. A file that is never synced has no datasync.
type handleState struct {
	datasync, fstat       func(fd uintptr)
	datasyncErr, fstatErr error
	stat                  unix.Stat_t
}

func (h *Handle) init() {
	h.fstat = func(fd uintptr) {
		h.fstatErr = Uninterrupted(func() error { return unix.Fstat(int(fd), &h.stat) })
	}
}

// Datasync makes the file's bytes, and what is needed to read them back, reach
// stable storage: fdatasync(2).
func (h *Handle) Datasync() error {
	if h.datasync == nil {
		h.datasync = func(fd uintptr) {
			h.datasyncErr = Uninterrupted(func() error { return Disk{}.Datasync(int(fd)) })
		}
	}
	if err := h.raw.Control(h.datasync); err != nil {
		return err
	}
	return h.datasyncErr
}

// Links returns how many names the file has: st_nlink of fstat(2).
func (h *Handle) Links() (uint64, error) {
	if err := h.raw.Control(h.fstat); err != nil {
		return 0, err
	}
	return uint64(h.stat.Nlink), h.fstatErr
}
