package holdfast

import "github.com/holdfast-go/holdfast/internal/sys"

// leastTogether is from how many files on one sync of their whole file system is
// the cheaper step: below, the syncs of the files share one commit just as well.
const leastTogether = 8

// A streamWitness is a descriptor of one file system, opened before anything was
// written there: SyncAll on it tells every failure since. There is one, of the file
// system that was first written to; files elsewhere are synced one by one.
//
// It tells a failure once, and not of which file. So it is used by one at a time, and
// after a failure never again: then the files that it was to answer for are synced by
// themselves, on descriptors which have told nothing yet.
type streamWitness struct {
	wanted bool // somebody has opened it, or tries to
	number int  // counts those that were opened; 0 is none
	open   bool
	fd     int
	device uint64
	use    chan struct{} // holds a value while somebody syncs with it; he waits for no turn
}

// watch sees to it that there is a witness, if that may be of use, and returns the
// number of the one that was open before the caller writes to a new descriptor in the
// folder; or 0.
func (t *streams) watch(d *folder, is sys.Stat) int {
	if !t.policy.syncs() || t.policy.Sync == SyncEach || !d.syncsAll || is.Device != d.is.Device {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	w := &t.witness
	if !w.wanted {
		w.wanted = true
		t.mu.Unlock()
		fd := t.files.openWitness(d.path, is.Device)
		t.mu.Lock()
		w.wanted, w.open, w.fd, w.device = fd >= 0, fd >= 0, fd, is.Device
		w.number++
	}
	if !w.open || w.device != is.Device {
		return 0
	}
	return w.number
}

// closeWitness is called when nothing is left to be synced, or when it has failed.
func (t *streams) closeWitness() {
	w := &t.witness
	t.mu.Lock()
	open, fd := w.open, w.fd
	w.wanted, w.open = false, false
	t.mu.Unlock()
	if open {
		t.files.closeWitness(fd)
	}
}

// syncTogether syncs the files of duties that the witness answers for in one step, if
// that is cheaper, and reports whether it did.
func (t *streams) syncTogether(duties []duty) bool {
	w := &t.witness
	w.use <- struct{}{}
	defer func() { <-w.use }()
	t.mu.Lock()
	open, fd, number := w.open, w.fd, w.number
	t.mu.Unlock()
	n := 0
	for _, d := range duties {
		if d.file.witness == number {
			n++
		}
	}
	if !open || n < leastTogether {
		return false
	}
	if dirty, ok := t.files.disk.Dirty(); !ok || !worthSyncAll(n, dirty) {
		return false
	}
	if t.files.disk.SyncAll(fd) != nil {
		t.closeWitness()
		return false
	}
	for i := range duties {
		duties[i].together = duties[i].file.witness == number
	}
	t.awaitFolderSyncs(duties)
	return true
}

// awaitFolderSyncs returns when no sync of the duties' folders is under way that began
// before: one that fails may have lost names before all was synced, and is counted then.
func (t *streams) awaitFolderSyncs(duties []duty) {
	awaited := map[turnKey]bool{}
	for _, d := range duties {
		t.mu.Lock()
		folder := d.stream.named.folder
		t.mu.Unlock()
		if !awaited[folder] {
			awaited[folder] = true
			t.files.inTurn(folder, func() error { return nil })
		}
	}
}
