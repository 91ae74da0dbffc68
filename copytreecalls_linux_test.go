package holdfast

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// A loggedDisk is this machine's, and knows in which order files were written, named and
// synced.
type loggedDisk struct {
	sys.Disk
	noAll bool
	mu    sync.Mutex
	now   int
	wrote map[fileID]int // bytes of a file, or names of a folder
	saved map[fileID]int
	all   int // the last sync of all
	early []string
}

func newLoggedDisk(noAll bool) *loggedDisk {
	return &loggedDisk{noAll: noAll, wrote: map[fileID]int{}, saved: map[fileID]int{}}
}

func (d *loggedDisk) SyncsAll(int) bool { return !d.noAll }

func (d *loggedDisk) Dirty() (int64, bool) { return 0, true }

// mark sets when something was last done to a file.
func (d *loggedDisk) mark(when map[fileID]int, fd int, err error) {
	is, failed := d.Disk.StatFD(fd)
	if err != nil || failed != nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.now++
	when[idOf(is)] = d.now
}

func (d *loggedDisk) durable(id fileID) bool { return max(d.saved[id], d.all) > d.wrote[id] }

func (d *loggedDisk) OpenFile(folder int, name sys.Name, flag int, perm uint32) (int, error) {
	fd, err := d.Disk.OpenFile(folder, name, flag, perm)
	d.mark(d.wrote, folder, err)
	return fd, err
}

func (d *loggedDisk) MkdirIn(folder int, name sys.Name, perm uint32) error {
	err := d.Disk.MkdirIn(folder, name, perm)
	d.mark(d.wrote, folder, err)
	return err
}

func (d *loggedDisk) SymlinkIn(target sys.Name, folder int, name sys.Name) error {
	err := d.Disk.SymlinkIn(target, folder, name)
	d.mark(d.wrote, folder, err)
	return err
}

func (d *loggedDisk) WriteAt(fd int, p []byte, at int64) (int, error) {
	n, err := d.Disk.WriteAt(fd, p, at)
	d.mark(d.wrote, fd, err)
	return n, err
}

func (d *loggedDisk) Chmod(fd int, perm uint32) error {
	err := d.Disk.Chmod(fd, perm)
	d.mark(d.wrote, fd, err)
	return err
}

func (d *loggedDisk) SetTimesIn(folder int, name sys.Name, accessed, modified time.Time) error {
	err := d.Disk.SetTimesIn(folder, name, accessed, modified)
	if name.String() == "." {
		d.mark(d.wrote, folder, err)
	}
	return err
}

// renamed looks whether what gets a name is durable before.
func (d *loggedDisk) renamed(folder int, from, to sys.Name, rename func(int, sys.Name, sys.Name) error) error {
	is, err := d.Disk.Stat(folder, from)
	d.mu.Lock()
	if err == nil && is.Mode&kindMask == kindRegular && !d.durable(idOf(is)) {
		d.early = append(d.early, to.String())
	}
	d.mu.Unlock()
	err = rename(folder, from, to)
	d.mark(d.wrote, folder, err)
	return err
}

func (d *loggedDisk) Rename(folder int, from, to sys.Name) error {
	return d.renamed(folder, from, to, d.Disk.Rename)
}

func (d *loggedDisk) RenameNew(folder int, from, to sys.Name) error {
	return d.renamed(folder, from, to, d.Disk.RenameNew)
}

func (d *loggedDisk) Sync(fd int) error {
	d.mark(d.saved, fd, nil)
	return nil
}

func (d *loggedDisk) SyncAll(int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.now++
	d.all = d.now
	return nil
}

func TestFilesAreSyncedBeforeTheirNamesAndFoldersAfter(t *testing.T) {
	for name, o := range map[string]CopyOptions{
		"close":       {Policy: Policy{Sync: SyncClose}},
		"each":        {Policy: Policy{Sync: SyncEach}},
		"atomic":      {Atomic: true},
		"atomic each": {Atomic: true, Policy: Policy{Sync: SyncEach}},
	} {
		for _, noAll := range []bool{true, false} {
			folder := smallTree(t)
			d := newLoggedDisk(noAll)
			o.Workers = 2
			if _, err := copyTrees(context.Background(), d, onePair(folder+"/to/new", folder+"/from"), o); err != nil {
				t.Fatal(err)
			}
			for id, at := range d.wrote {
				if !d.durable(id) {
					t.Errorf("%s, noAll=%v: %v was written or got names at %d, and was synced at %d", name, noAll, id, at, d.saved[id])
				}
			}
			if o.Atomic && len(d.early) > 0 {
				t.Errorf("%s, noAll=%v: named before they were durable: %q", name, noAll, d.early)
			}
			if len(d.wrote) < 12 {
				t.Errorf("%s: %d files and folders were written", name, len(d.wrote))
			}
		}
	}
}

// A swappingDisk is this machine's, on which somebody exchanges names meanwhile.
type swappingDisk struct {
	sys.Disk
	before, after func(op, name string)
}

func (d *swappingDisk) OpenSource(folder int, name sys.Name) (int, error) {
	d.before("open source", name.String())
	return d.Disk.OpenSource(folder, name)
}

func (d *swappingDisk) MkdirIn(folder int, name sys.Name, perm uint32) error {
	err := d.Disk.MkdirIn(folder, name, perm)
	d.after("mkdir", name.String())
	return err
}

func (d *swappingDisk) RenameNew(folder int, from, to sys.Name) error {
	d.before("rename", to.String())
	return d.Disk.RenameNew(folder, from, to)
}

// onSwap returns a disk that calls swap once, before or after a call.
func onSwap(op, name string, swap func()) *swappingDisk {
	var once sync.Once
	hook := func(o, n string) {
		if o == op && n == name {
			once.Do(swap)
		}
	}
	return &swappingDisk{before: hook, after: hook}
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func TestALinkThatComesMeanwhileIsNotFollowed(t *testing.T) {
	for _, c := range []struct{ op, name, swapped string }{
		{"open source", "file0", "from/file0"}, // all of these hold text
		{"mkdir", "c", "to/c"},
		{"mkdir", "to", "to"},
	} {
		folder := smallTree(t)
		must(t, os.RemoveAll(folder+"/to"), os.Mkdir(folder+"/elsewhere", 0o755),
			os.WriteFile(folder+"/secret", []byte("secret"), 0o600))
		target := folder + "/elsewhere"
		if c.op == "open source" {
			target = folder + "/secret"
		}
		d := onSwap(c.op, c.name, func() {
			must(t, os.RemoveAll(folder+"/"+c.swapped), os.Symlink(target, folder+"/"+c.swapped))
		})
		totals, err := copyTrees(context.Background(), d, onePair(folder+"/to", folder+"/from"), CopyOptions{Workers: 1, KeepGoing: true})
		if err == nil || totals.Failed != 1 {
			t.Errorf("%s: %+v, %v", c.swapped, totals, err)
		}
		if names, _ := os.ReadDir(folder + "/elsewhere"); len(names) > 0 {
			t.Errorf("%s: %d names are where the link leads", c.swapped, len(names))
		}
		if text, _ := os.ReadFile(folder + "/to/file0"); string(text) == "secret" {
			t.Errorf("%s: it was followed", c.swapped)
		}
	}
}

func TestAFileThatComesMeanwhileIsReplacedByAnAtomicCopy(t *testing.T) {
	folder := smallTree(t)
	d := onSwap("rename", "file1", func() { os.WriteFile(folder+"/to/file1", []byte("other"), 0o600) })
	if _, err := copyTrees(context.Background(), d, onePair(folder+"/to", folder+"/from"), CopyOptions{Atomic: true}); err != nil {
		t.Error(err)
	}
	if wrong := halfFiles(t, folder); len(wrong) > 0 {
		t.Errorf("%q", wrong)
	}
}

// An unreliableDisk is this machine's, on which calls fail at random.
type unreliableDisk struct {
	sys.Disk
	mu sync.Mutex
	r  *rand.Rand
}

func (d *unreliableDisk) fails() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.r.IntN(8) == 0 {
		return syscall.EIO
	}
	return nil
}

func (d *unreliableDisk) OpenSource(folder int, name sys.Name) (int, error) {
	if err := d.fails(); err != nil {
		return -1, err
	}
	return d.Disk.OpenSource(folder, name)
}

func (d *unreliableDisk) OpenFolderIn(folder int, name sys.Name) (int, error) {
	if err := d.fails(); err != nil {
		return -1, err
	}
	return d.Disk.OpenFolderIn(folder, name)
}

func (d *unreliableDisk) Chmod(fd int, perm uint32) error {
	return errors.Join(d.fails(), d.Disk.Chmod(fd, perm))
}

func (d *unreliableDisk) Sync(int) error { return d.fails() }

func (d *unreliableDisk) SyncAll(int) error { return d.fails() }

func TestTotalsAreWhatEachWasTold(t *testing.T) {
	for seed := range uint64(40) {
		folder := smallTree(t)
		must(t, syscall.Mkfifo(folder+"/from/pipe", 0o600))
		d := &unreliableDisk{r: rand.New(rand.NewPCG(seed, 3))}
		told, failed := 0, 0
		o := CopyOptions{KeepGoing: seed%4 > 0, Workers: 3, Archive: seed%2 > 0, Atomic: seed%3 > 0}
		o.Each = func(r CopyResult) {
			told++
			if r.Err != nil {
				failed++
			}
		}
		totals, err := copyTrees(context.Background(), d, onePair(folder+"/to", folder+"/from"), o)
		if sum := totals.Files + totals.Failed + totals.Refused + totals.Links + totals.Folders; sum != told || totals.Failed+totals.Refused != failed {
			t.Errorf("seed %d: %d told, %d failed, %+v", seed, told, failed, totals)
		}
		if lines := len(strings.Split(fmt.Sprint(err), "\n")); failed > 0 && (err == nil || lines < min(failed, mostErrors)) {
			t.Errorf("seed %d: %d failed, %d lines: %v", seed, failed, lines, err)
		}
	}
}
