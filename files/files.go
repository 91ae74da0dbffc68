// Package files writes many files, whole or piece by piece, and makes them durable
// together. It makes one sync of a file system where that is cheaper than one of each file.
// A [holdfast.Policy] says when. It keeps descriptors open within a limit, retries failures
// that may pass, and reports the outcome of every file. Start with [New].
package files

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/durable"
	"github.com/holdfast-go/holdfast/internal/errorqueue"
	"github.com/holdfast-go/holdfast/internal/handles"
	"github.com/holdfast-go/holdfast/internal/keyed"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/temporary"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// A Set writes any number of files under one [holdfast.Policy], with a bounded number of
// descriptors and a bounded memory. Any number of goroutines may use it.
//
// [Set.Append] is for files that live long: logs, journals, one for each tenant.
// [Set.WriteFile] and [Set.WriteAll] are for whole files: exports, caches, what a
// build makes. Both may be used on the same paths.
//
// A Set must be closed. It starts goroutines and timers only while bytes wait,
// and none is left after Close.
type Set struct {
	options    Options // with every default filled in
	disk       vfs.Disk
	attributes vfs.Attributes // of disk
	handles    handles.Cache
	marks      temporary.Marks
	turns      keyed.Queue        // one writer at a time for each path and each file
	names      *durable.NameSyncs // the syncs of directories and of file systems
	streams    streams
	era        atomic.Int64  // grows with each Write and WriteAll, and each file opened to append: see UseDir
	retries    atomic.Int64  // calls made again after a pause
	jobs       jobCounts     // of Write and WriteAll
	watches    chan struct{} // one for each errseq descriptor that a batch may have
	makers     atomic.Int64  // calls that make directories, or wait for that
	making     chan struct{} // held by the one that does
	fresh      freshFiles    // made and not written yet: see openFresh
	undone     atomic.Int64  // how many files were made and removed again
	narrow     chan struct{} // held by the one file that goes on without descriptors to spare

	failures errorqueue.Queue[*Error]

	mu      sync.Mutex
	closing bool
	// lostDirs is why the names of directories that were made may be lost, by their paths.
	lostDirs map[string]error
	calls    sync.WaitGroup // calls under way, which Close waits for
	close    sync.Once
	closeErr error
}

// errFilesClosed is what every call gets after Close.
const errFilesClosed = sys.Closed("holdfast: the set of files was closed")

// New returns a Set, or an error that names the option which can't be kept.
// It opens nothing.
func New(options Options) (*Set, error) {
	if err := options.Validate(); err != nil {
		return nil, err
	}
	return newSet(sys.Disk{}, options), nil
}

func init() { vfs.NewSet = newSet }

// newFiles returns a Set on a disk, under options that are valid.
func newSet(d vfs.Disk, options Options) *Set {
	f := &Set{options: options.withDefaults(), disk: d, attributes: vfs.AttributesOf(d)}
	f.names = durable.NameSyncsOf(d)
	f.handles.Init(d, f.options.Handles)
	f.handles.Syncs = f.options.Policy.Sync.Mode != holdfast.SyncNever
	if log := f.options.Logger; log != nil {
		f.handles.Opened = func(path string) { log.Debug("open", "path", path) }
		f.handles.Evicted = func(path string) { log.Debug("evict", "path", path) }
	}
	f.marks = temporary.Marks{Disk: d, Handles: &f.handles, Most: handles.FileMarks(f.options.Handles)}
	f.watches = make(chan struct{}, handles.ErrseqDescriptors)
	f.narrow = make(chan struct{}, 1)
	f.making = make(chan struct{}, 1)
	f.streams.init(f)
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

// A fileName is a path, and how the system calls take it.
type fileName struct {
	path string
	dir  string
	base sys.Name
}

// newName takes a path apart. It refuses what can't be a file's.
func newName(path string) (fileName, error) {
	var own strings.Builder
	return newNameIn(&own, path, 0)
}

// newNameIn takes the memory of the name as [sys.NameIn] does.
func newNameIn(block *strings.Builder, path string, size int) (fileName, error) {
	dir, base := vfs.SplitPath(path)
	name, err := sys.NameIn(block, base, size)
	return nameOf(path, dir, name, err)
}

// newNameOver takes the memory of the name as [sys.NameOver] does.
func newNameOver(memory []byte, path string) (fileName, []byte, error) {
	dir, base := vfs.SplitPath(path)
	name, memory, err := sys.NameOver(memory, base)
	full, err := nameOf(path, dir, name, err)
	return full, memory, err
}

func nameOf(path, dir string, base sys.Name, err error) (fileName, error) {
	if err != nil {
		return fileName{}, fmt.Errorf("path %q: %w", path, err)
	}
	return fileName{path: path, dir: dir, base: base}, nil
}
