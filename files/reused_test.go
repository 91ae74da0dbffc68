//go:build go1.25

package files_test

import (
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// reusingDisk gives each file the number of the one before, as file systems do when that is gone.
// It is for one path.
type reusingDisk struct{ *fault.Disk }

func (d reusingDisk) StatFD(fd int) (sys.Stat, error) {
	is, err := d.Disk.StatFD(fd)
	if is.Mode&0o170000 == 0o100000 {
		is.Inode = 1 << 40
	}
	return is, err
}

// TestNewFileWithTheOldNumberHasANewName has another program remove a file that is closed and has bytes
// in memory still. The next file of the path has its number: its name is to be synced all the same.
func TestNewFileWithTheOldNumberHasANewName(t *testing.T) {
	disk := fault.NewDisk()
	disk.SetSyncsAll("/", false) // that would make the name durable too
	f := newSet(reusingDisk{disk}, files.Options{Policy: holdfast.Policy{Buffer: 64, Sync: holdfast.Sync{Mode: holdfast.SyncClose}}})
	defer f.Close()
	mustAppend(t, f, "/a", "old")
	if err := f.Sync(noContext); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, f, "/a", "new")
	for f.Spare() { // as for any file that needs the descriptor
	}
	disk.RemoveAll("/a")
	if err := f.Sync(noContext); err != nil {
		t.Fatal(err)
	}
	wantKept(t, disk, "/a", "new")
}
