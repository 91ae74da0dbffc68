// Package files writes many files, whole or piece by piece, and makes them durable
// together. A [holdfast.Policy] says when bytes are flushed and synced. Where it is cheaper, a
// whole file system is synced once in place of each file. A [Set] keeps descriptors open within
// a limit, retries failures that may pass, and reports the outcome of every file. Start with [New].
package files

import (
	"sync"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/internal/durable"
	"github.com/holdfast-go/holdfast/internal/handles"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/temporary"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// A Set writes any number of files under one [holdfast.Policy], with a bounded number of
// descriptors and a bounded memory. Any number of goroutines may use it.
//
// [Set.Append] is for files that live long: logs, journals, one for each tenant.
// [Set.WriteFile] and [Set.WriteAll] are for whole files: exports, caches, what a
// build makes. [Set.Pending] is for one that comes as a stream, and
// [Set.Begin] for many that come one by one. All may be used on the same
// paths.
//
// A Set must be closed. It starts goroutines and timers only while bytes wait,
// and none is left after Close.
type Set struct {
	ground
	streams streams // appends, from the lowest room to the highest
	open    openFiles
	flusher flusher
	syncer  syncer

	attributes vfs.Attributes // whole files, of disk
	marks      temporary.Marks
	undone     atomic.Int64  // files that were made and removed again
	narrow     chan struct{} // held by the one file that goes on without descriptors to spare

	mu         sync.Mutex
	closing    bool
	unfinished map[unfinished]struct{} // the ones that Close discards
	calls      sync.WaitGroup          // WriteFile and WriteAll under way, which Close waits for
	close      sync.Once
	closeErr   error
}

// New returns a Set, or an error that names the option which can't be kept.
// It opens nothing.
func New(options Options) (*Set, error) {
	if err := options.Validate(); err != nil {
		return nil, err
	}
	return newSet(sys.Disk{}, options), nil
}

func init() { vfs.NewSet = newSet }

// newSet returns a Set on a disk, under options that are valid.
func newSet(d vfs.Disk, options Options) *Set {
	names, byPath := durable.NameSyncsOf(d), paths(systemPaths{})
	if options.Root != nil {
		d, byPath = inRoot(options.Root)
	}
	return newSetBy(d, byPath, names, options)
}

func newSetBy(d vfs.Disk, byPath paths, names *durable.NameSyncs, options Options) *Set {
	f := &Set{narrow: make(chan struct{}, 1), unfinished: map[unfinished]struct{}{}}
	f.byPath, f.names = byPath, names
	f.ground.init(d, options)
	f.attributes = vfs.AttributesOf(f.disk)
	f.marks = temporary.Marks{Disk: f.disk, Handles: &f.handles, Most: handles.FileMarks(f.options.Handles)}
	f.streams.init(&f.ground)
	f.open.init(&f.streams)
	f.flusher.init(&f.open)
	f.syncer.init(&f.flusher)
	return f
}

// enter begins a call, which leave ends; it fails after Close.
func (f *Set) enter() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closing {
		return errFilesClosed
	}
	f.calls.Add(1)
	return nil
}

func (f *Set) leave() { f.calls.Done() }
