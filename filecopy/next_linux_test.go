package filecopy

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/durable"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// A losingDisk is this machine's; the first sync of a whole file system fails,
// after others have copied some more.
type losingDisk struct {
	sys.Disk
	alone   bool // files copied meanwhile are synced one by one
	begun   chan struct{}
	first   sync.Once
	waits   atomic.Bool  // one file waits to be made until the sync has begun
	late    atomic.Int32 // its descriptor
	written chan struct{}
	failed  atomic.Bool

	mu   sync.Mutex
	lost map[string]bool // names that were opened before it failed
}

func newLosingDisk(alone bool) *losingDisk {
	return &losingDisk{alone: alone, begun: make(chan struct{}), written: make(chan struct{}), lost: map[string]bool{}}
}

func (d *losingDisk) SyncsAll(int) bool     { return true }
func (d *losingDisk) LacksJournal(int) bool { return false }

func (d *losingDisk) Dirty() (int64, bool) {
	select {
	case <-d.begun:
		if d.alone {
			return 1 << 40, true
		}
	default:
	}
	return 0, true
}

func (d *losingDisk) OpenFile(dir int, name sys.Name, flag int, perm uint32) (int, error) {
	in, _ := os.Readlink(fmt.Sprint("/proc/self/fd/", dir))
	late := flag&os.O_CREATE != 0 && strings.HasSuffix(in, "/toTwo") && d.waits.CompareAndSwap(false, true)
	if late {
		<-d.begun
	}
	fd, err := d.Disk.OpenFile(dir, name, flag, perm)
	if !d.failed.Load() {
		d.mu.Lock()
		d.lost[name.String()] = true
		d.mu.Unlock()
	}
	if late {
		d.late.Store(int32(fd))
	}
	return fd, err
}

func (d *losingDisk) Close(fd int) error {
	err := d.Disk.Close(fd)
	if fd > 0 && d.late.CompareAndSwap(int32(fd), 0) {
		close(d.written)
	}
	return err
}

func (d *losingDisk) Sync(int) error { return nil }

func (d *losingDisk) SyncAll(int) (err error) {
	d.first.Do(func() {
		close(d.begun)
		<-d.written
		d.failed.Store(true)
		err = syscall.EIO
	})
	return err
}

// TestFailedSyncOfAllTakesWhatWasCopiedMeanwhile has the sync of one part of a copy fail
// when some of the next part is written, in another directory.
func TestFailedSyncOfAllTakesWhatWasCopiedMeanwhile(t *testing.T) {
	for _, c := range []struct{ alone, atomic bool }{{false, false}, {true, false}, {false, true}} {
		alone := c.alone
		dir := t.TempDir()
		for _, name := range []string{"one", "two", "toOne", "toTwo"} {
			must(t, os.Mkdir(dir+"/"+name, 0o755))
		}
		must(t, os.WriteFile(dir+"/one/big", nil, 0o644), os.Truncate(dir+"/one/big", durable.MostBytesPerStep+1))
		for i := range 12 {
			must(t, os.WriteFile(dir+"/two/next"+string(rune('a'+i)), []byte("new"), 0o644))
			if c.atomic {
				must(t, os.WriteFile(dir+"/toTwo/next"+string(rune('a'+i)), []byte("old"), 0o644))
			}
		}
		d := newLosingDisk(alone)
		o := Options{Workers: 2, Atomic: c.atomic, KeepGoing: true, Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncClose}}}
		o.Each = func(r Result) {
			name := r.Destination[strings.LastIndexByte(r.Destination, '/')+1:]
			if r.Durable && d.lost[name] {
				t.Errorf("alone=%v: %s is durable, and was lost", alone, r.Destination)
			}
		}
		_, err := copyTrees(context.Background(), d, func(yield func(string, string) bool) {
			_ = yield(dir+"/toOne", dir+"/one") && yield(dir+"/toTwo", dir+"/two")
		}, o)
		if err == nil || !d.failed.Load() {
			t.Errorf("alone=%v: %v", alone, err)
		}
		if old := oldFiles(t, dir+"/toTwo"); c.atomic && old == 0 {
			t.Error("a file was replaced by one whose bytes a failed sync has lost")
		}
	}
}

// oldFiles returns how many files of a directory were not replaced.
func oldFiles(t *testing.T, directory string) (n int) {
	t.Helper()
	entries, err := os.ReadDir(directory)
	must(t, err)
	for _, e := range entries {
		if text, _ := os.ReadFile(directory + "/" + e.Name()); string(text) == "old" {
			n++
		}
	}
	return n
}
