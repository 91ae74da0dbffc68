package holdfast

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// Files writes any number of files through a bounded number of descriptors and a
// bounded memory, under one [Policy] and from any number of goroutines.
//
// [Files.Append] is for files that live long: logs, journals, one for each tenant.
// [Files.Write] and [Files.WriteAll] are for whole files: exports, caches, what a
// build makes. Both may be used on the same paths.
//
// A Files must be closed. It starts goroutines and timers only while bytes wait,
// and none is left after Close.
type Files struct {
	options      FilesOptions // with every default filled in
	disk         disk
	handles      handles
	turns        turnstile // who writes to which file
	folderSyncs  turnstile // who syncs which folder
	streams      streams
	era          atomic.Int64  // grows with each Write and WriteAll, and each file opened to append: see useFolder
	retries      atomic.Int64  // calls made again after a pause
	whole        wholeCounts   // of Write and WriteAll
	watches      chan struct{} // one for each witness that a batch may have
	makers       atomic.Int64  // how many make folders, or wait for that
	making       chan struct{} // held by the one who does
	fresh        freshFiles    // made and not written yet: see openFresh
	undone       atomic.Int64  // how many files were made and removed again
	narrow       chan struct{} // held by the one file that goes on without descriptors to spare
	spareScribes spares[scribe]
	spareBatches spares[batch]

	mu      sync.Mutex
	closing bool
	// lostFolders is why the names of folders that were made may be lost, by their paths.
	lostFolders map[string]error
	calls       sync.WaitGroup // calls under way, which Close waits for
	close       sync.Once
	closeErr    error
}

// errFilesClosed is what every call gets after Close.
var errFilesClosed = fmt.Errorf("holdfast: the Files was closed: %w", os.ErrClosed)

// NewFiles returns a Files, or an error that names the option which can't be kept.
// It opens nothing.
func NewFiles(options FilesOptions) (*Files, error) {
	if err := options.Validate(); err != nil {
		return nil, err
	}
	return newFiles(sys.Disk{}, options), nil
}

// newFiles returns a Files on a disk, under options that are valid.
func newFiles(d disk, options FilesOptions) *Files {
	f := &Files{options: options.withDefaults(), disk: d}
	f.handles.init(d, f.options.Handles)
	f.watches = make(chan struct{}, witnesses)
	f.narrow = make(chan struct{}, 1)
	f.making = make(chan struct{}, 1)
	f.streams.init(f)
	return f
}

// enter begins a call, which leave ends; it fails after Close.
func (f *Files) enter() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closing {
		return errFilesClosed
	}
	f.calls.Add(1)
	return nil
}

func (f *Files) leave() { f.calls.Done() }

// Close refuses new calls with an error that is os.ErrClosed, waits for those
// under way, flushes all that was appended, syncs it unless the policy is
// sync=never, and closes every descriptor, whatever the steps before came to. It
// returns every failure of these that no call has returned yet. Another Close waits
// for the first and returns what it returned. It must not be called by an iterator
// that a WriteAll runs, for which it would wait.
func (f *Files) Close() error {
	f.close.Do(func() {
		f.mu.Lock()
		f.closing = true
		f.mu.Unlock()
		f.calls.Wait()
		f.closeErr = f.streams.close()
		f.handles.closeAll()
	})
	return f.closeErr
}

// A Name is a path that was prepared by [NewName], so that to write it takes no
// further memory. It can be used any number of times, by any Files.
type Name struct {
	path   string
	folder string
	base   sys.Name
}

// NewName prepares a path. It refuses what can't be a file's.
func NewName(path string) (Name, error) {
	folder, base := splitPath(path)
	name, err := sys.NewName(base)
	if err != nil {
		return Name{}, fmt.Errorf("holdfast: path %q: %w", path, err)
	}
	return Name{path: path, folder: folder, base: name}, nil
}

// String returns the path.
func (n Name) String() string { return n.path }
