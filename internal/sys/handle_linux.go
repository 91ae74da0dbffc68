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
	kind                 uint32 // of the file system, which an open file never leaves; 0: not asked yet
}

// Datasync makes the file's bytes, and the metadata to read them, durable: fdatasync(2). It also
// fails if the file system has stopped.
func (h *Handle) Datasync() error {
	if h.datasync == nil {
		h.datasync = func(fd uintptr) {
			h.datasyncErr = Uninterrupted(func() error { return syscall.Fdatasync(int(fd)) })
			if h.datasyncErr == nil && canStop(h.ground(int(fd))) {
				h.datasyncErr = refusal(int(fd))
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
	if kind := h.ground(fd); kind == 0 || canHide(kind) {
		is, err := Disk{}.StatFD(fd)
		h.links = is.Links
		return err
	}
	var s unix.Statx_t
	err := statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_NLINK, &s)
	h.links = uint64(s.Nlink)
	return err
}

// ground returns the kind of the file system, or 0 if it can't be asked.
func (h *Handle) ground(fd int) uint32 {
	if h.kind == 0 {
		h.kind = fileSystem(fd)
	}
	return h.kind
}
