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

// keep takes a file. A group of them is synced while the program writes the next.
func (b *Batch) keep(x keptFile) {
	b.keeping.Lock()
	defer b.keeping.Unlock()
	if b.kept = append(b.kept, x); len(b.kept) < b.set.options.Handles/4 {
		return
	}
	group := b.kept
	b.kept = nil
	b.behind <- struct{}{}
	go func() {
		defer func() { <-b.behind }()
		b.syncKept(group)
	}()
}

// release syncs the files that are kept, and closes them.
func (b *Batch) release() {
	b.keeping.Lock()
	defer b.keeping.Unlock()
	b.behind <- struct{}{}
	defer func() { <-b.behind }()
	b.syncKept(b.kept)
	b.kept = nil
}

// dropKept closes them.
func (b *Batch) dropKept() {
	b.behind <- struct{}{}
	defer func() { <-b.behind }()
	for _, x := range b.kept {
		b.diskOf(x).Close(x.fd) // it is no promise
	}
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
