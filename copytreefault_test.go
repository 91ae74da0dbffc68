package holdfast

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// A failingDisk is this machine's, of which one call fails.
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

func (d *failingDisk) OpenFolder(path sys.Name) (int, error) {
	return d.opened("open folder", func() (int, error) { return d.Disk.OpenFolder(path) })
}

func (d *failingDisk) OpenFolderIn(folder int, name sys.Name) (int, error) {
	return d.opened("open folder in", func() (int, error) { return d.Disk.OpenFolderIn(folder, name) })
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

func (d *failingDisk) OpenSource(folder int, name sys.Name) (int, error) {
	return d.opened("open source", func() (int, error) { return d.Disk.OpenSource(folder, name) })
}

func (d *failingDisk) OpenFile(folder int, name sys.Name, flag int, perm uint32) (int, error) {
	return d.opened("open file", func() (int, error) { return d.Disk.OpenFile(folder, name, flag, perm) })
}

func (d *failingDisk) ReadNames(fd int, buf []byte, to []sys.FolderEntry) ([]sys.FolderEntry, error) {
	if err := d.hit("read names"); err != nil {
		return to, err
	}
	return d.Disk.ReadNames(fd, buf, to)
}

func (d *failingDisk) MkdirIn(folder int, name sys.Name, perm uint32) error {
	return d.first("mkdir", func() error { return d.Disk.MkdirIn(folder, name, perm) })
}

func (d *failingDisk) ReadLinkIn(folder int, name sys.Name) (string, error) {
	if err := d.hit("read link"); err != nil {
		return "", err
	}
	return d.Disk.ReadLinkIn(folder, name)
}

// first makes a call unless it is the one that fails.
func (d *failingDisk) first(op string, call func() error) error {
	if err := d.hit(op); err != nil {
		return err
	}
	return call()
}

func (d *failingDisk) SymlinkIn(target sys.Name, folder int, name sys.Name) error {
	return d.first("symlink", func() error { return d.Disk.SymlinkIn(target, folder, name) })
}

func (d *failingDisk) LinkIn(a int, from sys.Name, b int, to sys.Name) error {
	return d.first("link", func() error { return d.Disk.LinkIn(a, from, b, to) })
}

func (d *failingDisk) SetTimesIn(folder int, name sys.Name, a, m time.Time) error {
	return d.first("set times in", func() error { return d.Disk.SetTimesIn(folder, name, a, m) })
}

func (d *failingDisk) AttributesIn(folder int, name sys.Name) ([]string, error) {
	if err := d.hit("attributes in"); err != nil {
		return nil, err
	}
	return d.Disk.AttributesIn(folder, name)
}

func (d *failingDisk) StatFolder(fd int) (is sys.FolderStat, err error) {
	if err := d.hit("stat folder"); err != nil {
		return is, err
	}
	return d.Disk.StatFolder(fd)
}

func (d *failingDisk) TimesIn(folder int, name sys.Name) (a, m time.Time, err error) {
	if err := d.hit("times in"); err != nil {
		return a, m, err
	}
	return d.Disk.TimesIn(folder, name)
}

func (d *failingDisk) Chmod(fd int, perm uint32) error {
	return d.first("chmod", func() error { return d.Disk.Chmod(fd, perm) })
}

func (d *failingDisk) Rename(folder int, from, to sys.Name) error {
	return d.first("rename", func() error { return d.Disk.Rename(folder, from, to) })
}

func (d *failingDisk) RenameNew(folder int, from, to sys.Name) error {
	return d.first("rename", func() error { return d.Disk.RenameNew(folder, from, to) })
}

func (d *failingDisk) Sync(fd int) error {
	return d.first("sync", func() error { return d.Disk.Sync(fd) })
}

func (d *failingDisk) Datasync(fd int) error {
	return d.first("sync", func() error { return d.Disk.Datasync(fd) })
}

func (d *failingDisk) SyncAll(fd int) error {
	return d.first("sync all", func() error { return d.Disk.SyncAll(fd) })
}

func (d *failingDisk) SyncsAll(int) bool { return !d.noAll }

func (d *failingDisk) Dirty() (int64, bool) { return 0, true }

func onePair(dst, src string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) { yield(dst, src) }
}

// folderInMemory returns a folder that is removed at the end, in a file system in memory
// if there is one: a sync takes no time there.
func folderInMemory(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("/dev/shm", "holdfast")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	return folder
}

// smallTree has one of everything.
func smallTree(t *testing.T) (folder string) {
	t.Helper()
	folder = folderInMemory(t)
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, sub := range []string{"", "/a", "/a/b", "/c"} {
		check(os.MkdirAll(folder+"/from"+sub, 0o755))
		for i := range 2 {
			check(os.WriteFile(fmt.Sprintf("%s/from%s/file%d", folder, sub, i), []byte(sub+"text"), 0o644))
		}
	}
	check(os.Symlink("nowhere", folder+"/from/c/link"))
	check(os.Link(folder+"/from/a/file0", folder+"/from/c/other"))
	// Some of it is there already.
	check(os.MkdirAll(folder+"/to/a", 0o755))
	check(os.WriteFile(folder+"/to/a/file0", []byte("/old"), 0o644))
	check(os.Symlink("old", folder+"/to/link"))
	return folder
}

// halfFiles returns what is in the destination that is not whole, old, or of ours at all.
func halfFiles(t *testing.T, folder string) (wrong []string) {
	t.Helper()
	filepath.WalkDir(folder+"/to", func(path string, d fs.DirEntry, _ error) error {
		if strings.Contains(d.Name(), ".holdfast") {
			wrong = append(wrong, path)
		}
		if !d.Type().IsRegular() {
			return nil
		}
		has, err := os.ReadFile(path)
		want, _ := os.ReadFile(folder + "/from" + strings.TrimPrefix(path, folder+"/to"))
		if err != nil || string(has) != string(want) && (string(has) != "/old" || path != folder+"/to/a/file0") {
			wrong = append(wrong, path)
		}
		return nil
	})
	return wrong
}

// notCopied are the files of the tree that are not in its copy as they are.
func notCopied(folder string) (missing []string) {
	filepath.WalkDir(folder+"/from", func(path string, d fs.DirEntry, _ error) error {
		if d.Type().IsRegular() {
			want, _ := os.ReadFile(path)
			if has, err := os.ReadFile(folder + "/to" + strings.TrimPrefix(path, folder+"/from")); err != nil || string(has) != string(want) {
				missing = append(missing, path)
			}
		}
		return nil
	})
	return missing
}

// eachFault calls check with every call of a copy of the small tree that may fail.
func eachFault(t *testing.T, o CopyOptions, noAll bool, check func(folder string, d *failingDisk)) {
	dry := &failingDisk{calls: map[string]int{}, noAll: noAll}
	folder := smallTree(t)
	if _, err := copyTrees(context.Background(), dry, onePair(folder+"/to", folder+"/from"), o); err != nil {
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

var faultyCopies = []CopyOptions{
	{Workers: 1},
	{Workers: 1, Archive: true, Policy: Policy{Sync: SyncClose}},
	{Workers: 1, Archive: true, Atomic: true},
}

func TestAFaultOfACallLeavesWholeFilesAndIsTold(t *testing.T) {
	for i, o := range faultyCopies {
		o.KeepGoing = true
		eachFault(t, o, i == 2, func(folder string, d *failingDisk) {
			told := map[string]error{}
			o.Each = func(r CopyResult) {
				told[r.Destination] = r.Err
				if r.Durable && r.Err != nil {
					t.Errorf("%s is durable, and failed: %v", r.Destination, r.Err)
				}
			}
			_, err := copyTrees(context.Background(), d, onePair(folder+"/to", folder+"/from"), o)
			what := fmt.Sprintf("%v: %s, call %d", o.Policy, d.op, d.at)
			// Folders are opened once more to find the root, which can be done without.
			if d.failed && err == nil && !strings.HasPrefix(d.op, "open folder") {
				t.Errorf("%s: no error", what)
			}
			if err != nil && !errors.Is(err, syscall.EIO) {
				t.Errorf("%s: err = %v", what, err)
			}
			if d.open != 0 {
				t.Errorf("%s: %d descriptors stay open", what, d.open)
			}
			if wrong := halfFiles(t, folder); len(wrong) > 0 {
				t.Errorf("%s: %q", what, wrong)
			}
			for path, err := range told {
				if _, e := os.Lstat(path); err == nil && e != nil {
					t.Errorf("%s: %s is told as copied: %v", what, path, e)
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
		eachFault(t, o, i == 2, func(folder string, d *failingDisk) {
			ctx, cancel := context.WithCancelCause(context.Background())
			stopped := errors.New("stopped")
			d.after = func() { cancel(stopped) }
			_, err := copyTrees(ctx, d, onePair(folder+"/to", folder+"/from"), o)
			what := fmt.Sprintf("%v: %s, call %d", o.Policy, d.op, d.at)
			switch {
			case err == nil: // all was done when it was stopped
				if missing := notCopied(folder); len(missing) > 0 {
					t.Errorf("%s: no error, and %q are not copied", what, missing)
				}
			case !errors.Is(err, stopped):
				t.Errorf("%s: err = %v", what, err)
			}
			if d.open != 0 {
				t.Errorf("%s: %d descriptors stay open", what, d.open)
			}
			if wrong := halfFiles(t, folder); len(wrong) > 0 {
				t.Errorf("%s: %q", what, wrong)
			}
			cancel(nil)
		})
	}
}

func TestNothingIsDurableWhoseSyncFailed(t *testing.T) {
	for _, noAll := range []bool{false, true} {
		for _, atomic := range []bool{false, true} {
			o := CopyOptions{Policy: Policy{Sync: SyncClose}, Atomic: atomic, KeepGoing: true, Workers: 2}
			durable, failed := 0, 0
			o.Each = func(r CopyResult) {
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
			folder := smallTree(t)
			d := &failingDisk{calls: map[string]int{}, noAll: noAll, op: op}
			_, err := copyTrees(context.Background(), d, onePair(folder+"/to", folder+"/from"), o)
			if err == nil || failed == 0 {
				t.Errorf("noAll=%v atomic=%v: %d failed, err = %v", noAll, atomic, failed, err)
			}
			if !noAll && !atomic && durable > 0 {
				t.Errorf("%d are durable though the one sync of all failed", durable)
			}
			if wrong := halfFiles(t, folder); len(wrong) > 0 {
				t.Errorf("noAll=%v atomic=%v: %q", noAll, atomic, wrong)
			}
		}
	}
}
