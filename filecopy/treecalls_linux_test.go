package filecopy

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

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// A loggedDisk is this machine's, and knows in which order files were written, named and
// synced.
type loggedDisk struct {
	sys.Disk
	noAll     bool
	noJournal bool
	mu        sync.Mutex
	now       int
	wrote     map[fileID]int // bytes of a file, or names of a directory
	saved     map[fileID]int
	all       int // the last sync of all
	early     []string
}

func newLoggedDisk(noAll bool) *loggedDisk {
	return &loggedDisk{noAll: noAll, wrote: map[fileID]int{}, saved: map[fileID]int{}}
}

func (d *loggedDisk) SyncsAll(int) bool { return !d.noAll }

func (d *loggedDisk) LacksJournal(int) bool { return d.noJournal }

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

func (d *loggedDisk) OpenFile(dir int, name sys.Name, flag int, perm uint32) (int, error) {
	fd, err := d.Disk.OpenFile(dir, name, flag, perm)
	d.mark(d.wrote, dir, err)
	return fd, err
}

func (d *loggedDisk) MkdirIn(dir int, name sys.Name, perm uint32) error {
	err := d.Disk.MkdirIn(dir, name, perm)
	d.mark(d.wrote, dir, err)
	return err
}

func (d *loggedDisk) SymlinkIn(target sys.Name, dir int, name sys.Name) error {
	err := d.Disk.SymlinkIn(target, dir, name)
	d.mark(d.wrote, dir, err)
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

func (d *loggedDisk) SetTimesIn(dir int, name sys.Name, accessed, modified time.Time) error {
	err := d.Disk.SetTimesIn(dir, name, accessed, modified)
	if name.String() == "." {
		d.mark(d.wrote, dir, err)
	}
	return err
}

// renamed looks whether what gets a name is durable before.
func (d *loggedDisk) renamed(dir int, from, to sys.Name, rename func(int, sys.Name, sys.Name) error) error {
	is, err := d.Disk.Stat(dir, from)
	d.mu.Lock()
	if err == nil && is.Mode&vfs.KindMask == vfs.KindRegular && !d.durable(idOf(is)) {
		d.early = append(d.early, to.String())
	}
	d.mu.Unlock()
	err = rename(dir, from, to)
	d.mark(d.wrote, dir, err)
	return err
}

func (d *loggedDisk) Rename(dir int, from, to sys.Name) error {
	return d.renamed(dir, from, to, d.Disk.Rename)
}

func (d *loggedDisk) RenameNew(dir int, from, to sys.Name) error {
	return d.renamed(dir, from, to, d.Disk.RenameNew)
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

func TestFilesAreSyncedBeforeTheirNamesAndDirectoriesAfter(t *testing.T) {
	for name, o := range map[string]Options{
		"close":       {Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncClose}}},
		"each":        {Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncEach}}},
		"atomic":      {Atomic: true},
		"atomic each": {Atomic: true, Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncEach}}},
	} {
		for _, noAll := range []bool{true, false} {
			dir := smallTree(t)
			d := newLoggedDisk(noAll)
			o.Workers = 2
			if _, err := copyTrees(context.Background(), d, onePair(dir+"/to/new", dir+"/from"), o); err != nil {
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
				t.Errorf("%s: %d files and directories were written", name, len(d.wrote))
			}
		}
	}
}

// TestCopiesWithoutAJournalAreSyncedEachByItself has a file system that could be synced as
// a whole, and is not to be.
func TestCopiesWithoutAJournalAreSyncedEachByItself(t *testing.T) {
	for _, o := range []Options{{Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncClose}}}, {Atomic: true}} {
		dir := smallTree(t)
		d := newLoggedDisk(false)
		d.noJournal = true
		if _, err := copyTrees(context.Background(), d, onePair(dir+"/to/new", dir+"/from"), o); err != nil {
			t.Fatal(err)
		}
		if d.all != 0 {
			t.Errorf("%+v: the file system was synced as a whole", o)
		}
		for id, at := range d.wrote {
			if !d.durable(id) {
				t.Errorf("%+v: %v was written or got names at %d, and was synced at %d", o, id, at, d.saved[id])
			}
		}
	}
}

// TestCopiesTellTheDoubtOfAFileSystemWithoutAJournal asks each way to copy, and a link to
// the destination.
func TestCopiesTellTheDoubtOfAFileSystemWithoutAJournal(t *testing.T) {
	for _, o := range []Options{{}, {Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncClose}}}, {Policy: holdfast.EachDurable()}, {Atomic: true}} {
		for _, lacks := range []bool{false, true} {
			dir := smallTree(t)
			d := newLoggedDisk(false)
			d.noJournal = lacks
			results := 0
			check := func(r Result) {
				results++
				if r.Err != nil || r.NoJournal != (lacks && r.Durable) {
					t.Errorf("%+v, without a journal %v: %+v", o, lacks, r)
				}
			}
			o.Each = check
			totals, err := copyTrees(context.Background(), d, onePair(dir+"/to/new", dir+"/from"), o)
			if err != nil {
				t.Fatal(err)
			}
			if want := map[bool]int{true: results}[lacks && (o.Atomic || o.Policy.Sync.Mode != holdfast.SyncNever)]; totals.NoJournal != want || results < 3 {
				t.Errorf("%+v, without a journal %v: %d of %d are in doubt, want %d", o, lacks, totals.NoJournal, results, want)
			}
			one := dir + "/one"
			if err := os.WriteFile(one, []byte("x"), 0o666); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink("to/elsewhere", dir+"/link"); err != nil {
				t.Fatal(err)
			}
			for _, to := range []string{"/to/one", "/link"} {
				r, _ := copyOne(context.Background(), d, dir+to, one, Options{Policy: o.Policy, Atomic: o.Atomic})
				check(r)
			}
			if _, err := copyTrees(context.Background(), d, onePair(dir+"/to/alone", one), o); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A swappingDisk is this machine's, on which another program exchanges names meanwhile.
type swappingDisk struct {
	sys.Disk
	before, after func(op, name string)
}

func (d *swappingDisk) OpenSource(dir int, name sys.Name) (int, error) {
	d.before("open source", name.String())
	return d.Disk.OpenSource(dir, name)
}

func (d *swappingDisk) MkdirIn(dir int, name sys.Name, perm uint32) error {
	err := d.Disk.MkdirIn(dir, name, perm)
	d.after("mkdir", name.String())
	return err
}

func (d *swappingDisk) RenameNew(dir int, from, to sys.Name) error {
	d.before("rename", to.String())
	return d.Disk.RenameNew(dir, from, to)
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
		dir := smallTree(t)
		must(t, os.RemoveAll(dir+"/to"), os.Mkdir(dir+"/elsewhere", 0o755),
			os.WriteFile(dir+"/secret", []byte("secret"), 0o600))
		target := dir + "/elsewhere"
		if c.op == "open source" {
			target = dir + "/secret"
		}
		d := onSwap(c.op, c.name, func() {
			must(t, os.RemoveAll(dir+"/"+c.swapped), os.Symlink(target, dir+"/"+c.swapped))
		})
		totals, err := copyTrees(context.Background(), d, onePair(dir+"/to", dir+"/from"), Options{Workers: 1, KeepGoing: true})
		if err == nil || totals.Failed != 1 {
			t.Errorf("%s: %+v, %v", c.swapped, totals, err)
		}
		if names, _ := os.ReadDir(dir + "/elsewhere"); len(names) > 0 {
			t.Errorf("%s: %d names are where the link leads", c.swapped, len(names))
		}
		if text, _ := os.ReadFile(dir + "/to/file0"); string(text) == "secret" {
			t.Errorf("%s: it was followed", c.swapped)
		}
	}
}

func TestAFileThatComesMeanwhileIsReplacedByAnAtomicCopy(t *testing.T) {
	dir := smallTree(t)
	d := onSwap("rename", "file1", func() { os.WriteFile(dir+"/to/file1", []byte("other"), 0o600) })
	if _, err := copyTrees(context.Background(), d, onePair(dir+"/to", dir+"/from"), Options{Atomic: true}); err != nil {
		t.Error(err)
	}
	if wrong := halfFiles(t, dir); len(wrong) > 0 {
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

func (d *unreliableDisk) OpenSource(dir int, name sys.Name) (int, error) {
	if err := d.fails(); err != nil {
		return -1, err
	}
	return d.Disk.OpenSource(dir, name)
}

func (d *unreliableDisk) OpenDirIn(dir int, name sys.Name) (int, error) {
	if err := d.fails(); err != nil {
		return -1, err
	}
	return d.Disk.OpenDirIn(dir, name)
}

func (d *unreliableDisk) Chmod(fd int, perm uint32) error {
	return errors.Join(d.fails(), d.Disk.Chmod(fd, perm))
}

func (d *unreliableDisk) Sync(int) error { return d.fails() }

func (d *unreliableDisk) SyncAll(int) error { return d.fails() }

func TestTotalsAreTheSumOfTheReports(t *testing.T) {
	for seed := range uint64(40) {
		dir := smallTree(t)
		must(t, syscall.Mkfifo(dir+"/from/pipe", 0o600))
		d := &unreliableDisk{r: rand.New(rand.NewPCG(seed, 3))}
		reports, failed := 0, 0
		o := Options{KeepGoing: seed%4 > 0, Workers: 3, Archive: seed%2 > 0, Atomic: seed%3 > 0}
		o.Each = func(r Result) {
			reports++
			if r.Err != nil {
				failed++
			}
		}
		totals, err := copyTrees(context.Background(), d, onePair(dir+"/to", dir+"/from"), o)
		if sum := totals.Files + totals.Failed + totals.Refused + totals.Links + totals.Dirs; sum != reports || totals.Failed+totals.Refused != failed {
			t.Errorf("seed %d: %d reports, %d failed, %+v", seed, reports, failed, totals)
		}
		if lines := len(strings.Split(fmt.Sprint(err), "\n")); failed > 0 && (err == nil || lines != min(failed, 10)) {
			t.Errorf("seed %d: %d failed, %d lines: %v", seed, failed, lines, err)
		}
	}
}
