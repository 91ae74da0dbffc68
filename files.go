package holdfast

import (
	"context"
	"fmt"
	"iter"
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
	options FilesOptions // with every default filled in
	disk    disk
	handles handles
	retries atomic.Int64 // calls that were made again after a pause
	turns   turnstile    // who writes to which file
	streams streams
	era     atomic.Int64 // grows with each Write and WriteAll: see useFolder
	counts  fileCounts

	mu      sync.Mutex
	closing bool
	calls   sync.WaitGroup // calls under way, which Close waits for
}

// A FileWrite is a file that [Files.WriteAll] is to write.
type FileWrite struct {
	Path string // where; or Name, if the path was prepared
	Name Name
	Data []byte // all of the file, or what is to be appended
	Mode Mode
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

var _ = func(f *Files, ctx context.Context, all iter.Seq[FileWrite]) {}
