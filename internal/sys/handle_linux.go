package sys

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// handleState holds the calls as values made once, so that later calls don't allocate, and their
// results. A file that is never synced has none.
type handleState struct {
	datasync, look       func(fd uintptr)
	datasyncErr, lookErr error
	links                uint64
	ground               ground
}

// Datasync makes the file's bytes, and the metadata to read them, durable: fdatasync(2). It also
// fails if the file system has stopped.
func (h *Handle) Datasync() error {
	if h.datasync == nil {
		h.datasync = func(fd uintptr) {
			h.datasyncErr = Uninterrupted(func() error { return syscall.Fdatasync(int(fd)) })
			if h.datasyncErr == nil {
				h.datasyncErr = h.ground.stopped(int(fd))
			}
		}
	}
	if err := h.raw.Control(h.datasync); err != nil {
		return err
	}
	return h.datasyncErr
}

// Links returns the number of the file's names. A removed file has none, also where the file system
// only hides it.
func (h *Handle) Links() (uint64, error) {
	if h.look == nil {
		h.look = func(fd uintptr) { h.lookErr = Uninterrupted(func() error { return h.count(int(fd)) }) }
	}
	if err := h.raw.Control(h.look); err != nil {
		return 0, err
	}
	return h.links, h.lookErr
}

func (h *Handle) count(fd int) error {
	if kind := h.ground.of(fd); kind == 0 || canHide(kind) {
		is, err := Disk{}.StatFD(fd)
		h.links = is.Links
		return err
	}
	var s unix.Statx_t
	err := statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_NLINK, &s)
	h.links = uint64(s.Nlink)
	return err
}
