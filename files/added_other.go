//go:build !linux

package files

import "os"

// addedFile: no system but Linux syncs many at once.
type addedFile struct{}

func deviceOf(os.FileInfo) uint64 { return 0 }

// sync syncs a file that the program has given to Add.
func (b *Batch) sync(file *os.File, r *record, _ bool) error {
	b.set.whole.syncs.Add(1)
	defer b.set.watchSync(r.path)()
	b.synced(r, file.Sync())
	return nil
}

func (b *Batch) takeAdded(int) []addedFile { return nil }

func (b *Batch) syncAdded([]addedFile) {}
