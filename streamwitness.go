package holdfast

import "github.com/holdfast-go/holdfast/internal/sys"

// leastTogether is from how many files on one sync of their whole file system is
// the cheaper step: below, the syncs of the files share one commit just as well.
const leastTogether = 8

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
	if !first {
		return known
	}
	fd := t.files.openWitness(d.path, is.Device)
	t.mu.Lock()
	defer t.mu.Unlock()
	*w = streamWitness{wanted: fd >= 0, open: fd >= 0, fd: fd, device: is.Device}
	return w.open
}

// closeWitness is called when nothing is left to be synced.
func (t *streams) closeWitness() {
	t.mu.Lock()
	w := t.witness
	t.witness = streamWitness{}
	t.mu.Unlock()
	if w.open {
		t.files.closeWitness(w.fd)
	}
}

// syncTogether syncs the files of duties that the witness answers for in one step, if
// that is cheaper, and reports whether it did. If it fails nothing is known of any
// one of them, but each has its own descriptor, which has told nothing yet.
func (t *streams) syncTogether(duties []duty) bool {
	t.mu.Lock()
	w := t.witness
	t.mu.Unlock()
	if !w.open {
		return false
	}
	n := 0
	for _, d := range duties {
		if d.file.on(w.device) {
			n++
		}
	}
	if n < leastTogether {
		return false
	}
	dirty, ok := t.files.disk.Dirty()
	if !ok || !worthSyncAll(n, dirty) || t.files.disk.SyncAll(w.fd) != nil {
		return false
	}
	for i := range duties {
		duties[i].together = duties[i].file.on(w.device)
	}
	return true
}

// on reports whether the witness of this device answers for the file.
func (x *streamFile) on(device uint64) bool { return x.witnessed && x.key.device == device }
