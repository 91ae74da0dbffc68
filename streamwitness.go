package holdfast

import "github.com/holdfast-go/holdfast/internal/sys"

const (
	// leastTogether is from how many files on one sync of their whole file system is
	// the cheaper step.
	leastTogether = 8
	// dirtyEach is how many bytes of others such a step may take along for each file:
	// about what a disk writes in the time that it saves.
	dirtyEach = 64 << 10
)

// A streamWitness is a descriptor of one file system, opened before anything was
// written there: SyncAll on it tells every failure since. There is one, of the file
// system that was first written to; files elsewhere are synced one by one.
type streamWitness struct {
	wanted bool // somebody has opened it, or tries to
	open   bool
	fd     int
	device uint64
}

// watch sees to it that there is a witness, if that may be of use, and reports
// whether it was open before the caller writes to a new descriptor in the folder.
func (t *streams) watch(d *folder, is sys.Stat) bool {
	if !t.policy.syncs() || t.policy.Sync == SyncEach || !d.syncsAll || is.Device != d.is.Device {
		return false
	}
	t.mu.Lock()
	w := &t.witness
	first := !w.wanted
	w.wanted = true
	known := w.open && w.device == is.Device
	t.mu.Unlock()
	return known || first && t.openWitness(d)
}

func (t *streams) openWitness(d *folder) bool {
	f := t.files
	select {
	case f.watches <- struct{}{}: // one of the descriptors set aside for this
	default:
		return t.noWitness()
	}
	name, _ := sys.NewName(d.path)
	f.handles.reserve()
	fd, err := f.disk.OpenFolder(name)
	if err != nil {
		f.handles.release()
		<-f.watches
		return t.noWitness()
	}
	is, err := f.disk.StatFD(fd)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.witness.open, t.witness.fd, t.witness.device = true, fd, is.Device
	return err == nil && is.Device == d.is.Device
}

// noWitness lets the next who wants one try.
func (t *streams) noWitness() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.witness.wanted = false
	return false
}

// closeWitness is called when nothing is left to be synced.
func (t *streams) closeWitness() {
	t.mu.Lock()
	w := t.witness
	t.witness = streamWitness{}
	t.mu.Unlock()
	if w.open {
		t.files.disk.Close(w.fd) // nothing was written to it
		t.files.handles.release()
		<-t.files.watches
	}
}

// syncTogether syncs the files of duties that the witness answers for in one step, if
// that is cheaper, and reports whether it did. If it fails nothing is known of any
// one of them, but each has its own descriptor, which has told nothing yet.
func (t *streams) syncTogether(duties []duty) bool {
	t.mu.Lock()
	w := t.witness
	t.mu.Unlock()
	n, bytes := 0, int64(0)
	for _, d := range duties {
		if d.file.witnessed && d.file.key.device == w.device {
			n++
			bytes += d.bytes
		}
	}
	if !w.open || n < leastTogether {
		return false
	}
	dirty, ok := t.files.disk.Dirty()
	if !ok || dirty > bytes+int64(n)*dirtyEach || t.files.disk.SyncAll(w.fd) != nil {
		return false
	}
	for i := range duties {
		d := &duties[i]
		d.together = d.file.witnessed && d.file.key.device == w.device
	}
	return true
}
