package files

import (
	"errors"
	"os"

	"github.com/holdfast-go/holdfast/internal/durable"
	"github.com/holdfast-go/holdfast/internal/keyed"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// A keptFile is written, and stays open until it is synced: by its own descriptor, or with its file system
// where that is cheaper. How many there are, and how many bytes other programs have written, is known by then.
type keptFile struct {
	durable.OpenFile
	fd     int
	result *record
	dir    keyed.Key
	added  bool // it was the program's, and written before Errseq may have been open
}

// A keptGroup is files that are synced together. Groups are synced one after the other, in their order.
type keptGroup struct {
	files []keptFile
	over  chan struct{} // closed when they are synced, and closed
}

// keep takes a file. A full group is synced while the program writes the next.
func (b *Batch) keep(x keptFile) *keptGroup {
	b.keeping.Lock()
	defer b.keeping.Unlock()
	if b.kept == nil {
		b.kept = &keptGroup{over: make(chan struct{})}
	}
	g := b.kept
	if g.files = append(g.files, x); len(g.files) >= b.set.options.Handles/4 {
		b.syncBehind()
	}
	return g
}

// syncBehind begins to sync the files that are kept, when the group before is over. keeping is held.
func (b *Batch) syncBehind() {
	g, before := b.kept, b.last
	if g == nil {
		return
	}
	b.kept, b.last = nil, g
	if before != nil {
		<-before.over
	}
	go func() {
		defer close(g.over)
		b.syncKept(g.files)
		g.files = nil
	}()
}

// release syncs the files that are kept, and closes them.
func (b *Batch) release() {
	b.keeping.Lock()
	defer b.keeping.Unlock()
	b.syncBehind()
	b.awaitKept()
}

// awaitKept waits until the groups are over that are synced.
func (b *Batch) awaitKept() {
	if b.last != nil {
		<-b.last.over
	}
}

// awaitSync waits until a file that is to be renamed is synced, and takes its failure. A change of names
// waits for all.
func (b *Batch) awaitSync(r *replacement) {
	if r.change != nil {
		b.awaitKept()
	}
	if r.group == nil {
		return
	}
	<-r.group.over
	b.mu.Lock()
	defer b.mu.Unlock()
	r.Err = b.spoilt[r.result]
}

// dropKept closes the files that are kept.
func (b *Batch) dropKept() {
	b.awaitKept()
	if b.kept == nil {
		return
	}
	for _, x := range b.kept.files {
		b.diskOf(x).Close(x.fd) // it is no promise
	}
	close(b.kept.over)
	b.kept = nil
}

// A syncDisk has the calls on a kept file.
type syncDisk interface {
	vfs.Syncer
	Close(fd int) error
}

func (b *Batch) diskOf(x keptFile) syncDisk {
	if x.added {
		return sys.Disk{}
	}
	return b.set.disk
}

// syncKept syncs files and closes them.
func (b *Batch) syncKept(kept []keptFile) {
	for len(kept) > 0 {
		var same, others []keptFile // of one file system
		for _, x := range kept {
			if x.Errseq == kept[0].Errseq {
				same = append(same, x)
			} else {
				others = append(others, x)
			}
		}
		alone := make([]bool, len(same))
		b.part.step.SyncOpen(same[0].Errseq, len(same), func(i int) *durable.OpenFile { return &same[i].OpenFile }, func(i int) error {
			alone[i] = true
			return b.syncAlone(same[i])
		})
		for i, x := range same {
			if x.added && !alone[i] {
				// What failed before Errseq was open is told to its own descriptor alone.
				if x.Err = writeError(x.fd); errors.Is(x.Err, errors.ErrUnsupported) || errors.Is(x.Err, os.ErrPermission) { // or a filter refuses that call
					x.Err = b.syncAlone(x)
				}
			}
			if err := b.diskOf(x).Close(x.fd); x.Err == nil && !x.added { // of one that was added the program's own close reports
				x.Err = err
			}
			if x.Err != nil {
				b.mu.Lock()
				b.spoilt[x.result] = x.Err
				b.mu.Unlock()
			}
		}
		kept = others
	}
}

func (b *Batch) syncAlone(x keptFile) error {
	b.set.whole.syncs.Add(1)
	defer b.set.watchSync(x.result.path)()
	err := b.diskOf(x).Sync(x.fd)
	if err != nil {
		b.set.failFile(x.fd, x.dir)
	}
	return err
}

// syncAdded syncs a file by the program's own descriptor.
func (b *Batch) syncAdded(file *os.File, x keptFile) {
	b.set.whole.syncs.Add(1)
	defer b.set.watchSync(x.result.path)()
	if err := file.Sync(); err != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.spoilt[x.result] = err
	}
}
