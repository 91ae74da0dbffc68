package sys

// handleState holds the calls as values made once, so that later calls don't allocate, and their
// results. A file that is never synced has none.
type handleState struct {
	datasync, look       func(fd uintptr)
	datasyncErr, lookErr error
	links                uint64
}

// Datasync makes the file's bytes, and the metadata to read them, durable: fdatasync(2).
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

// Links returns the number of the file's names: see [Disk.StatFD].
func (h *Handle) Links() (uint64, error) {
	if h.look == nil {
		h.look = func(fd uintptr) {
			h.lookErr = Uninterrupted(func() error {
				is, err := Disk{}.StatFD(int(fd))
				h.links = is.Links
				return err
			})
		}
	}
	if err := h.raw.Control(h.look); err != nil {
		return 0, err
	}
	return h.links, h.lookErr
}
