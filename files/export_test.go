//go:build go1.25

package files

import (
	"github.com/holdfast-go/holdfast/internal/durable"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// The tests are package files_test, which knows the contract alone. These are the few things that
// they can't see or bring about through it.

// NewInPortableRoot is [New] with a Root as other systems than Linux keep it.
func NewInPortableRoot(options Options) (*Set, error) {
	d, byPath := inPortableRoot(options.Root)
	return newSetBy(d, byPath, durable.NameSyncsOf(sys.Disk{}), options), options.Validate()
}

// Spare closes an idle descriptor, as for a file that needs it, or reports that there is none.
func (f *Set) Spare() bool { return f.handles.Spare() }

// SharesKernel has two Sets of one disk know of each other's failed syncs, as on real disks all do.
func (f *Set) SharesKernel(g *Set) { g.names = f.names }

// Knows reports whether a path that was appended to is not forgotten.
func (f *Set) Knows(path string) bool {
	absolute, err := f.pathOf(path) // on Windows it begins with a volume
	if err != nil {
		panic(err)
	}
	f.streams.mu.Lock()
	defer f.streams.mu.Unlock()
	return f.streams.paths[absolute] != nil
}

// Unnamed returns how many directories have names of forgotten files that are not durable.
func (f *Set) Unnamed() int {
	f.streams.mu.Lock()
	defer f.streams.mu.Unlock()
	return len(f.streams.forgotten.names)
}

// Unsynced returns how many bytes a sync by bytes counts.
func (f *Set) Unsynced() int64 {
	f.streams.mu.Lock()
	defer f.streams.mu.Unlock()
	return f.streams.unsynced
}

// Marks returns how many directories the Set has locked because of its temporary files.
func (f *Set) Marks() int { return len(f.marks.All) }
