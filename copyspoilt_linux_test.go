package holdfast

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/sys"
)

func TestAFailingCopyRemovesNoOthersFile(t *testing.T) {
	c := newCopyCase(t, CopyOptions{Method: MethodReadWrite}, false)
	_, r, err := c.run(t, t.Context(), func(_ int, op string) error {
		if op != "WriteAt" {
			return nil
		}
		told(t, os.WriteFile(c.in("other"), []byte("another's"), 0o644))
		told(t, os.Rename(c.in("other"), c.in("dst")))
		return syscall.EIO
	})
	if got, failed := os.ReadFile(c.in("dst")); err == nil || failed != nil || string(got) != "another's" || r.Outcome != OutcomeUntouched {
		t.Errorf("%q, %v; %+v", got, failed, r)
	}
}

// A stickingDisk gives no file another name, and removes none.
type stickingDisk struct{ sys.Disk }

func (stickingDisk) Rename(int, sys.Name, sys.Name) error    { return syscall.EACCES }
func (stickingDisk) RenameNew(int, sys.Name, sys.Name) error { return syscall.EACCES }
func (stickingDisk) Remove(int, sys.Name) error              { return syscall.EROFS }

func TestWhatCantBeRemovedOfACopyIsTold(t *testing.T) {
	for name, o := range map[string]CopyOptions{
		"each": {Policy: Policy{Sync: SyncEach}}, "atomic": {Atomic: true}, "never": {},
	} {
		folder := smallTree(t)
		file := folder + "/to/a/file0"
		if _, err := copyOne(t.Context(), stickingDisk{}, file, folder+"/from/a/file0", o); !errors.Is(err, ErrLeft) || !errors.Is(err, syscall.EROFS) || !errors.Is(err, syscall.EACCES) {
			t.Errorf("%s: %v", name, err)
		}
		o.KeepGoing = true
		_, err := copyTrees(t.Context(), stickingDisk{}, onePair(folder+"/to", folder+"/from"), o)
		left, _ := filepath.Glob(folder + "/to/a/" + temporaryPrefix + "*")
		if !errors.Is(err, ErrLeft) || !errors.Is(err, syscall.EACCES) || len(left) < 2 {
			t.Errorf("%s: %v; %q", name, err, left)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != "/old" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// A closedDisk has a folder that may be used and not be read.
type closedDisk struct {
	sys.Disk
	folder string
}

func (d closedDisk) OpenFolder(path sys.Name) (int, error) {
	if path.String() == d.folder {
		return -1, syscall.EACCES
	}
	return d.Disk.OpenFolder(path)
}

func TestAFolderNeedNotBeReadableForAFileInIt(t *testing.T) {
	folder := smallTree(t)
	check := func(closed, to, from string, o CopyOptions, fine bool) {
		t.Helper()
		os.RemoveAll(folder + "/to/new")
		_, err := copyTrees(t.Context(), closedDisk{folder: folder + closed}, onePair(folder+to, folder+from), o)
		if (err == nil) != fine || err != nil && !errors.Is(err, syscall.EACCES) {
			t.Errorf("%s is closed, %s to %s, %+v: %v", closed, from, to, o, err)
		}
		if _, err := os.Stat(folder + "/to/new"); (err == nil) != fine {
			t.Errorf("%s is closed, %s to %s, %+v: %v", closed, from, to, o, err)
		}
	}
	check("/from/a", "/to/new", "/from/a/file0", CopyOptions{}, true)
	check("/from/a", "/to/new", "/from/a/file0", CopyOptions{Atomic: true}, true)
	check("/from/a", "/to/new", "/from/a/b", CopyOptions{Atomic: true}, true)
	check("/to", "/to/new", "/from/a/file0", CopyOptions{}, true)
	check("/to", "/to/new", "/from/a", CopyOptions{}, true)
	check("/to", "/to/new", "/from/a/file0", CopyOptions{Atomic: true}, false)
	check("/to", "/to/new", "/from/a", CopyOptions{Policy: Policy{Sync: SyncClose}}, false)
}

func TestArchiveLeavesNoAccessListOfTheFolderAbove(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	told(t, os.MkdirAll(from+"/sub", 0o750))
	told(t, os.WriteFile(from+"/sub/file", []byte("data"), 0o640))
	told(t, os.Mkdir(to, 0o755))
	if err := unix.Setxattr(to, defaultList, []byte(accessListOf(7, 7, 7, 7, 7)), 0); err != nil {
		t.Skip("no access control lists here: ", err)
	}
	_, err := CopyAll(t.Context(), onePair(to+"/copy", from), CopyOptions{Archive: true})
	told(t, err)
	for _, name := range []string{"", "/sub", "/sub/file"} {
		for _, list := range []string{accessList, defaultList} {
			if n, err := unix.Getxattr(to+"/copy"+name, list, nil); !errors.Is(err, unix.ENODATA) {
				t.Errorf("%q has the %s of the folder above: %d bytes, %v", name, list, n, err)
			}
		}
	}
}

func TestAFolderThatIsThereKeepsItsStickyBit(t *testing.T) {
	folder := smallTree(t)
	told(t, os.Chmod(folder+"/from/a", 0o777))
	told(t, os.Chmod(folder+"/to/a", os.ModeSticky|0o777))
	_, err := CopyAll(t.Context(), onePair(folder+"/to", folder+"/from"), CopyOptions{})
	told(t, err)
	if is, err := os.Stat(folder + "/to/a"); err != nil || is.Mode() != os.ModeDir|os.ModeSticky|0o777 {
		t.Errorf("%v, %v", is.Mode(), err)
	}
}

// A stainedDisk writes a wrong byte into each file, and drops pages when it is asked to.
type stainedDisk struct{ sys.Disk }

func (stainedDisk) SyncsAll(int) bool                { return true }
func (stainedDisk) Dirty() (int64, bool)             { return 0, true }
func (stainedDisk) SyncAll(int) error                { return nil }
func (stainedDisk) Evict(int) error                  { return nil }
func (stainedDisk) Cached(int, int64) (int64, error) { return 0, nil }

func (d stainedDisk) WriteAt(fd int, p []byte, at int64) (int, error) {
	p = bytes.Clone(p)
	p[0]++
	return d.Disk.WriteAt(fd, p, at)
}

func TestAWrongCopyGetsNoNameOfAnAtomicOne(t *testing.T) {
	for name, o := range map[string]CopyOptions{
		"together": {Atomic: true, Verify: true}, "each": {Atomic: true, Verify: true, Policy: Policy{Sync: SyncEach}},
	} {
		folder := smallTree(t)
		o.KeepGoing = true
		o.Each = func(r CopyResult) {
			if is, _ := os.Lstat(r.Source); is.Mode().IsRegular() && (r.Err == nil || r.Verified || r.Durable || r.Outcome != OutcomeUntouched) {
				t.Errorf("%s: %+v", name, r)
			}
		}
		_, err := copyTrees(t.Context(), stainedDisk{}, onePair(folder+"/to", folder+"/from"), o)
		var e *CopyError
		if !errors.As(err, &e) || e.Op != "verify" || e.Offset != 0 || !strings.Contains(e.Error(), "differs from the source") {
			t.Errorf("%s: %v", name, err)
		}
		if wrong := halfFiles(t, folder); len(wrong) > 0 {
			t.Errorf("%s: %q", name, wrong)
		}
	}
}
