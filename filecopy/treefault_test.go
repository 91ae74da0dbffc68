package filecopy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// A failingDisk is this machine's; one call of it fails.
type failingDisk struct {
	sys.Disk
	mu     sync.Mutex
	op     string
	at     int // the number of the call of op, from 0
	calls  map[string]int
	failed bool
	open   int
	after  func() // is called after the call that would fail, which does not then
	noAll  bool   // SyncAll can't be relied on
}

func (d *failingDisk) hit(op string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.calls[op]
	d.calls[op]++
	if op != d.op || n != d.at {
		return nil
	}
	d.failed = true
	if d.after != nil {
		d.after()
		return nil
	}
	return syscall.EIO
}

func (d *failingDisk) opened(op string, open func() (int, error)) (int, error) {
	if err := d.hit(op); err != nil {
		return -1, err
	}
	fd, err := open()
	if err == nil {
		d.mu.Lock()
		d.open++
		d.mu.Unlock()
	}
	return fd, err
}

func (d *failingDisk) OpenDir(path sys.Name) (int, error) {
	return d.opened("open directory", func() (int, error) { return d.Disk.OpenDir(path) })
}

func (d *failingDisk) OpenDirIn(dir int, name sys.Name) (int, error) {
	return d.opened("open directory in", func() (int, error) { return d.Disk.OpenDirIn(dir, name) })
}

func (d *failingDisk) Close(fd int) error {
	if err := d.Disk.Close(fd); err != nil {
		return err
	}
	d.mu.Lock()
	d.open--
	d.mu.Unlock()
	return nil
}

func (d *failingDisk) OpenSource(dir int, name sys.Name) (int, error) {
	return d.opened("open source", func() (int, error) { return d.Disk.OpenSource(dir, name) })
}

func (d *failingDisk) OpenFile(dir int, name sys.Name, flag int, perm uint32) (int, error) {
	return d.opened("open file", func() (int, error) { return d.Disk.OpenFile(dir, name, flag, perm) })
}

func (d *failingDisk) ReadNames(fd int, buf []byte, to []sys.DirEntry) ([]sys.DirEntry, error) {
	if err := d.hit("read names"); err != nil {
		return to, err
	}
	return d.Disk.ReadNames(fd, buf, to)
}

func (d *failingDisk) MkdirIn(dir int, name sys.Name, perm uint32) error {
	return d.first("mkdir", func() error { return d.Disk.MkdirIn(dir, name, perm) })
}

func (d *failingDisk) ReadLinkIn(dir int, name sys.Name) (string, error) {
	if err := d.hit("read link"); err != nil {
		return "", err
	}
	return d.Disk.ReadLinkIn(dir, name)
}

// first makes a call unless it is the one that fails.
func (d *failingDisk) first(op string, call func() error) error {
	if err := d.hit(op); err != nil {
		return err
	}
	return call()
}

func (d *failingDisk) SymlinkIn(target sys.Name, dir int, name sys.Name) error {
	return d.first("symlink", func() error { return d.Disk.SymlinkIn(target, dir, name) })
}

func (d *failingDisk) LinkIn(a int, from sys.Name, b int, to sys.Name) error {
	return d.first("link", func() error { return d.Disk.LinkIn(a, from, b, to) })
}

func (d *failingDisk) SetTimesIn(dir int, name sys.Name, a, m time.Time) error {
	return d.first("set times in", func() error { return d.Disk.SetTimesIn(dir, name, a, m) })
}

func (d *failingDisk) AttributesIn(dir int, name sys.Name) ([]string, error) {
	if err := d.hit("attributes in"); err != nil {
		return nil, err
	}
	return vfs.AttributesOf(d.Disk).AttributesIn(dir, name)
}

func (d *failingDisk) StatDir(fd int) (is sys.DirStat, err error) {
	if err := d.hit("stat directory"); err != nil {
		return is, err
	}
	return d.Disk.StatDir(fd)
}

func (d *failingDisk) TimesIn(dir int, name sys.Name) (a, m time.Time, err error) {
	if err := d.hit("times in"); err != nil {
		return a, m, err
	}
	return d.Disk.TimesIn(dir, name)
}

func (d *failingDisk) Chmod(fd int, perm uint32) error {
	return d.first("chmod", func() error { return d.Disk.Chmod(fd, perm) })
}

func (d *failingDisk) Rename(dir int, from, to sys.Name) error {
	return d.first("rename", func() error { return d.Disk.Rename(dir, from, to) })
}

func (d *failingDisk) RenameNew(dir int, from, to sys.Name) error {
	return d.first("rename", func() error { return d.Disk.RenameNew(dir, from, to) })
}

func (d *failingDisk) Sync(fd int) error {
	return d.first("sync", func() error { return d.Disk.Sync(fd) })
}

func (d *failingDisk) Datasync(fd int) error {
	return d.first("sync", func() error { return d.Disk.Datasync(fd) })
}

func (d *failingDisk) SyncAll(fd int) error {
	return d.first("sync all", func() error { return vfs.SyncAll(d.Disk, fd) })
}

func (d *failingDisk) SyncsAll(int) bool { return !d.noAll }

func (d *failingDisk) LacksJournal(int) bool { return false }

func (d *failingDisk) Dirty() (int64, bool) { return 0, true }

func onePair(dst, src string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) { yield(dst, src) }
}

// dirInMemory returns a directory that is removed at the end. It is in a file system in
// memory if there is one, where a sync takes no time.
func dirInMemory(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "holdfast")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// smallTree has one of everything.
func smallTree(t *testing.T) (dir string) {
	t.Helper()
	dir = dirInMemory(t)
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, sub := range []string{"", "/a", "/a/b", "/c"} {
		check(os.MkdirAll(dir+"/from"+sub, 0o755))
		for i := range 2 {
			check(os.WriteFile(fmt.Sprintf("%s/from%s/file%d", dir, sub, i), []byte(sub+"text"), 0o644))
		}
	}
	check(os.Symlink("nowhere", dir+"/from/c/link"))
	check(os.Link(dir+"/from/a/file0", dir+"/from/c/other"))
	// Some of it is there already.
	check(os.MkdirAll(dir+"/to/a", 0o755))
	check(os.WriteFile(dir+"/to/a/file0", []byte("/old"), 0o644))
	check(os.Symlink("old", dir+"/to/link"))
	return dir
}

// halfFiles returns what is in the destination that is not whole, old, or of ours at all.
func halfFiles(t *testing.T, dir string) (wrong []string) {
	t.Helper()
	filepath.WalkDir(dir+"/to", func(path string, d fs.DirEntry, _ error) error {
		if strings.Contains(d.Name(), ".holdfast") {
			wrong = append(wrong, path)
		}
		if !d.Type().IsRegular() {
			return nil
		}
		name, _ := filepath.Rel(dir+"/to", path)
		has, err := os.ReadFile(path)
		want, _ := os.ReadFile(filepath.Join(dir, "from", name))
		if err != nil || string(has) != string(want) && (string(has) != "/old" || filepath.ToSlash(name) != "a/file0") {
			wrong = append(wrong, path)
		}
		return nil
	})
	return wrong
}

// notCopied are the files of the tree that are not in its copy as they are.
func notCopied(dir string) (missing []string) {
	filepath.WalkDir(dir+"/from", func(path string, d fs.DirEntry, _ error) error {
		if d.Type().IsRegular() {
			name, _ := filepath.Rel(dir+"/from", path)
			want, _ := os.ReadFile(path)
			if has, err := os.ReadFile(filepath.Join(dir, "to", name)); err != nil || string(has) != string(want) {
				missing = append(missing, path)
			}
		}
		return nil
	})
	return missing
}

// eachFault calls check with every call of a copy of the small tree that may fail.
func eachFault(t *testing.T, o Options, noAll bool, check func(dir string, d *failingDisk)) {
	dry := &failingDisk{calls: map[string]int{}, noAll: noAll}
	dir := smallTree(t)
	if _, err := copyTrees(context.Background(), dry, onePair(dir+"/to", dir+"/from"), o); err != nil {
		t.Fatal(err)
	}
	if dry.open != 0 {
		t.Errorf("%d descriptors stay open", dry.open)
	}
	for op, calls := range dry.calls {
		for at := range calls {
			check(smallTree(t), &failingDisk{op: op, at: at, calls: map[string]int{}, noAll: noAll})
		}
	}
}

var faultyCopies = []Options{
	{Workers: 1},
	{Workers: 1, Archive: true, Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncClose}}},
	{Workers: 1, Archive: true, Atomic: true},
}

func TestAFaultOfACallLeavesWholeFilesAndIsReported(t *testing.T) {
	for i, o := range faultyCopies {
		o.KeepGoing = true
		eachFault(t, o, i == 2 || runtime.GOOS != "linux", func(dir string, d *failingDisk) {
			reported := map[string]error{}
			o.Each = func(r Result) {
				reported[r.Destination] = r.Err
				if r.Durable && r.Err != nil {
					t.Errorf("%s is durable, and failed: %v", r.Destination, r.Err)
				}
			}
			_, err := copyTrees(context.Background(), d, onePair(dir+"/to", dir+"/from"), o)
			what := fmt.Sprintf("%v: %s, call %d", o.Policy, d.op, d.at)
			// Directories are opened once more to find the root, which can be done without.
			if d.failed && err == nil && !strings.HasPrefix(d.op, "open directory") {
				t.Errorf("%s: no error", what)
			}
			if err != nil && !errors.Is(err, syscall.EIO) {
				t.Errorf("%s: err = %v", what, err)
			}
			if d.open != 0 {
				t.Errorf("%s: %d descriptors stay open", what, d.open)
			}
			if wrong := halfFiles(t, dir); len(wrong) > 0 {
				t.Errorf("%s: %q", what, wrong)
			}
			for path, err := range reported {
				if _, e := os.Lstat(path); err == nil && e != nil {
					t.Errorf("%s: %s is reported as copied: %v", what, path, e)
				}
			}
		})
	}
}

func TestACopyThatIsStoppedAnywhereLeavesWholeFiles(t *testing.T) {
	for i, o := range faultyCopies {
		if i == 1 {
			continue // the other two stop at all that it does
		}
		eachFault(t, o, i == 2 || runtime.GOOS != "linux", func(dir string, d *failingDisk) {
			ctx, cancel := context.WithCancelCause(context.Background())
			stopped := errors.New("stopped")
			d.after = func() { cancel(stopped) }
			_, err := copyTrees(ctx, d, onePair(dir+"/to", dir+"/from"), o)
			what := fmt.Sprintf("%v: %s, call %d", o.Policy, d.op, d.at)
			switch {
			case err == nil: // all was done when it was stopped
				if missing := notCopied(dir); len(missing) > 0 {
					t.Errorf("%s: no error, and %q are not copied", what, missing)
				}
			case !errors.Is(err, stopped):
				t.Errorf("%s: err = %v", what, err)
			}
			if d.open != 0 {
				t.Errorf("%s: %d descriptors stay open", what, d.open)
			}
			if wrong := halfFiles(t, dir); len(wrong) > 0 {
				t.Errorf("%s: %q", what, wrong)
			}
			cancel(nil)
		})
	}
}

func TestNothingIsDurableWhoseSyncFailed(t *testing.T) {
	for _, noAll := range []bool{false, true} {
		if !noAll && runtime.GOOS != "linux" {
			continue // no other system syncs all files by one call
		}
		for _, atomic := range []bool{false, true} {
			o := Options{Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncClose}}, Atomic: atomic, KeepGoing: true, Workers: 2}
			durable, failed := 0, 0
			o.Each = func(r Result) {
				if r.Durable {
					durable++
				}
				if r.Err != nil {
					failed++
				}
			}
			op := "sync all"
			if noAll {
				op = "sync"
			}
			dir := smallTree(t)
			d := &failingDisk{calls: map[string]int{}, noAll: noAll, op: op}
			_, err := copyTrees(context.Background(), d, onePair(dir+"/to", dir+"/from"), o)
			if err == nil || failed == 0 {
				t.Errorf("noAll=%v atomic=%v: %d failed, err = %v", noAll, atomic, failed, err)
			}
			if !noAll && !atomic && durable > 0 {
				t.Errorf("%d are durable though the one sync of all failed", durable)
			}
			if wrong := halfFiles(t, dir); len(wrong) > 0 {
				t.Errorf("noAll=%v atomic=%v: %q", noAll, atomic, wrong)
			}
		}
	}
}
