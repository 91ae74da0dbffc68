package filecopy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/permission"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/temporary"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

func TestAFailingCopyRemovesNoOthersFile(t *testing.T) {
	c := newCopyCase(t, Options{Method: ReadWrite}, false)
	_, r, err := c.run(t, t.Context(), func(_ int, op string) error {
		if op != "WriteAt" {
			return nil
		}
		must(t, os.WriteFile(c.in("other"), []byte("another's"), 0o644))
		must(t, os.Rename(c.in("other"), c.in("dst")))
		return syscall.EIO
	})
	if got, failed := os.ReadFile(c.in("dst")); err == nil || failed != nil || string(got) != "another's" || r.Outcome != holdfast.OutcomeUntouched {
		t.Errorf("%q, %v; %+v", got, failed, r)
	}
}

// A stickingDisk gives no file another name, and removes none.
type stickingDisk struct{ sys.Disk }

func (stickingDisk) Rename(int, sys.Name, sys.Name) error    { return syscall.EACCES }
func (stickingDisk) RenameNew(int, sys.Name, sys.Name) error { return syscall.EACCES }
func (stickingDisk) Remove(int, sys.Name) error              { return syscall.EROFS }

func TestWhatCantBeRemovedOfACopyIsReported(t *testing.T) {
	for name, o := range map[string]Options{
		"each": {Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncEach}}}, "atomic": {Atomic: true}, "never": {},
	} {
		dir := smallTree(t)
		file := dir + "/to/a/file0"
		if _, err := copyOne(t.Context(), stickingDisk{}, file, dir+"/from/a/file0", o); !errors.Is(err, ErrLeftover) || !errors.Is(err, syscall.EROFS) || !errors.Is(err, syscall.EACCES) {
			t.Errorf("%s: %v", name, err)
		}
		o.KeepGoing = true
		_, err := copyTrees(t.Context(), stickingDisk{}, onePair(dir+"/to", dir+"/from"), o)
		left, _ := filepath.Glob(dir + "/to/a/" + temporary.Prefix + "*")
		if !errors.Is(err, ErrLeftover) || !errors.Is(err, syscall.EACCES) || len(left) < 2 {
			t.Errorf("%s: %v; %q", name, err, left)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != "/old" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// A closedDisk has a directory that may be used and not be read.
type closedDisk struct {
	sys.Disk
	dir string
}

func (d closedDisk) OpenDir(path sys.Name) (int, error) {
	if path.String() == d.dir {
		return -1, syscall.EACCES
	}
	return d.Disk.OpenDir(path)
}

func TestADirectoryNeedNotBeReadableForAFileInIt(t *testing.T) {
	dir := smallTree(t)
	check := func(closed, to, from string, o Options, fine bool) {
		t.Helper()
		os.RemoveAll(dir + "/to/new")
		_, err := copyTrees(t.Context(), closedDisk{dir: dir + closed}, onePair(dir+to, dir+from), o)
		if (err == nil) != fine || err != nil && !errors.Is(err, syscall.EACCES) {
			t.Errorf("%s is closed, %s to %s, %+v: %v", closed, from, to, o, err)
		}
		if _, err := os.Stat(dir + "/to/new"); (err == nil) != fine {
			t.Errorf("%s is closed, %s to %s, %+v: %v", closed, from, to, o, err)
		}
	}
	check("/from/a", "/to/new", "/from/a/file0", Options{}, true)
	check("/from/a", "/to/new", "/from/a/file0", Options{Atomic: true}, true)
	check("/from/a", "/to/new", "/from/a/b", Options{Atomic: true}, true)
	check("/to", "/to/new", "/from/a/file0", Options{}, true)
	check("/to", "/to/new", "/from/a", Options{}, true)
	check("/to", "/to/new", "/from/a/file0", Options{Atomic: true}, false)
	check("/to", "/to/new", "/from/a", Options{Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncClose}}}, false)
}

func TestArchiveLeavesNoAccessListOfTheDirectoryAbove(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	must(t, os.MkdirAll(from+"/sub", 0o750))
	must(t, os.WriteFile(from+"/sub/file", []byte("data"), 0o640))
	must(t, os.Mkdir(to, 0o755))
	if err := unix.Setxattr(to, permission.DefaultList, []byte(accessListOf(7, 7, 7, 7, 7)), 0); err != nil {
		t.Skip("no access control lists here: ", err)
	}
	_, err := All(t.Context(), onePair(to+"/copy", from), Options{Archive: true})
	must(t, err)
	for _, name := range []string{"", "/sub", "/sub/file"} {
		for _, list := range []string{permission.AccessList, permission.DefaultList} {
			if n, err := unix.Getxattr(to+"/copy"+name, list, nil); !errors.Is(err, unix.ENODATA) {
				t.Errorf("%q has the %s of the directory above: %d bytes, %v", name, list, n, err)
			}
		}
	}
}

func TestADirectoryThatIsThereKeepsItsStickyBit(t *testing.T) {
	dir := smallTree(t)
	must(t, os.Chmod(dir+"/from/a", 0o777))
	must(t, os.Chmod(dir+"/to/a", os.ModeSticky|os.ModeSetgid|0o777))
	_, err := All(t.Context(), onePair(dir+"/to", dir+"/from"), Options{})
	must(t, err)
	if is, err := os.Stat(dir + "/to/a"); err != nil || is.Mode() != os.ModeDir|os.ModeSticky|os.ModeSetgid|0o777 {
		t.Errorf("%v, %v", is.Mode(), err)
	}
}

// A stainedDisk writes a wrong byte into each file, and drops pages when it is asked to.
type stainedDisk struct{ sys.Disk }

func (stainedDisk) SyncsAll(int) bool                { return true }
func (stainedDisk) LacksJournal(int) bool            { return false }
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
	for name, o := range map[string]Options{
		"together": {Atomic: true, Verify: true}, "each": {Atomic: true, Verify: true, Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncEach}}},
	} {
		dir := smallTree(t)
		o.KeepGoing = true
		o.Each = func(r Result) {
			if is, _ := os.Lstat(r.Source); is.Mode().IsRegular() && (r.Err == nil || r.Verified || r.Durable || r.Outcome != holdfast.OutcomeUntouched) {
				t.Errorf("%s: %+v", name, r)
			}
		}
		_, err := copyTrees(t.Context(), stainedDisk{}, onePair(dir+"/to", dir+"/from"), o)
		var e *Error
		if !errors.As(err, &e) || e.Op != "verify" || e.Offset != 0 || !strings.Contains(e.Error(), "differs from the source") {
			t.Errorf("%s: %v", name, err)
		}
		if wrong := halfFiles(t, dir); len(wrong) > 0 {
			t.Errorf("%s: %q", name, wrong)
		}
	}
}

func TestAWrongCopyOfATreeIsReported(t *testing.T) {
	dir := smallTree(t)
	o := Options{Verify: true, KeepGoing: true, Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncClose}}}
	o.Each = func(r Result) {
		if is, _ := os.Lstat(r.Source); is.Mode().IsRegular() && (r.Err == nil || r.Verified) {
			t.Errorf("%+v", r)
		}
	}
	_, err := copyTrees(t.Context(), stainedDisk{}, onePair(dir+"/to", dir+"/from"), o)
	if e := (*Error)(nil); !errors.As(err, &e) || e.Op != "verify" {
		t.Error(err)
	}
}

// An onceDisk opens each file to read it once, and refuses it from then on.
type onceDisk struct {
	stainedDisk
	opened map[fileID]bool
}

func (d onceDisk) WriteAt(fd int, p []byte, at int64) (int, error) { return d.Disk.WriteAt(fd, p, at) }

func (d onceDisk) OpenSource(dir int, name sys.Name) (int, error) {
	fd, err := d.Disk.OpenSource(dir, name)
	if err != nil {
		return fd, err
	}
	is, err := d.StatFD(fd)
	if err == nil && d.opened[idOf(is)] {
		err = syscall.EACCES
	}
	if err != nil {
		d.Close(fd)
		return -1, err
	}
	d.opened[idOf(is)] = true
	return fd, nil
}

// TestACopyWhoseSourceCannotBeReadAgainIsNotVerified, and gets no name.
func TestACopyWhoseSourceCannotBeReadAgainIsNotVerified(t *testing.T) {
	dir := smallTree(t)
	o := Options{Atomic: true, Verify: true, KeepGoing: true, Workers: 1}
	o.Each = func(r Result) {
		if is, _ := os.Lstat(r.Source); is.Mode().IsRegular() && (r.Err == nil || r.Verified || r.Outcome != holdfast.OutcomeUntouched) {
			t.Errorf("%+v", r)
		}
	}
	_, err := copyTrees(t.Context(), onceDisk{opened: map[fileID]bool{}}, onePair(dir+"/to", dir+"/from"), o)
	if !errors.Is(err, syscall.EACCES) {
		t.Error(err)
	}
	if wrong := halfFiles(t, dir); len(wrong) > 0 {
		t.Errorf("%q", wrong)
	}
}

func TestAnotherWayIsTakenWhereOneIsNotToBeHad(t *testing.T) {
	c := newCopyCase(t, Options{Atomic: true}, false)
	for _, errno := range []error{
		syscall.EXDEV, syscall.EINVAL, syscall.ENOTTY, syscall.ETXTBSY, syscall.EPERM, syscall.EBADF, syscall.ENOSYS, syscall.EOPNOTSUPP,
	} {
		_, r, err := c.run(t, t.Context(), func(_ int, op string) error {
			return map[string]error{"Clone": errno, "Splice": errno, "RenameNew": errno}[op]
		})
		if err != nil || r.Method != ReadWrite {
			t.Errorf("%v: %+v", errno, r)
		}
		c.judge(t, r)
	}
}

// interrupted begins to copy, and is stopped at its second write.
func (c *copyCase) interrupted(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	writes := 0
	_, _, err := c.run(t, ctx, func(_ int, op string) error {
		if op == "WriteAt" {
			if writes++; writes == 2 {
				cancel()
			}
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

func TestACopyUnderALongNameIsResumed(t *testing.T) {
	c := newCopyCase(t, Options{Resume: true, Method: ReadWrite}, false)
	dst := c.in(strings.Repeat("n", longestName))
	ctx, cancel := context.WithCancel(t.Context())
	d := &stepDisk{before: func(_ int, op string) error {
		if op == "WriteAt" {
			cancel()
		}
		return nil
	}}
	if _, err := copyOne(ctx, d, dst, c.in("src"), c.o); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if r, err := File(t.Context(), dst, c.in("src"), c.o); err != nil || r.Resumed == 0 {
		t.Errorf("%+v", r)
	}
	sameFile(t, dst, c.in("src"))
}

func TestOnlyWhatCanBePartOfACopyIsGoneOnWith(t *testing.T) {
	c := newCopyCase(t, Options{Resume: true}, false)
	partial := c.in(".dst" + partialSuffix)
	for what, make := range map[string]func() error{
		"of two names": func() error {
			return errors.Join(os.WriteFile(partial, c.content[:1<<16], 0o600), os.Link(partial, c.in("other")))
		},
		"a link":      func() error { return os.Symlink(c.in("src"), partial) },
		"a pipe":      func() error { return unix.Mkfifo(partial, 0o600) },
		"a directory": func() error { return os.Mkdir(partial, 0o700) },
	} {
		os.Remove(partial)
		must(t, make())
		was, err := os.Lstat(partial)
		must(t, err)
		_, r, err := c.run(t, t.Context(), everyCall)
		if err == nil || !strings.Contains(err.Error(), "can't be part of a copy") || r.Outcome != holdfast.OutcomeUntouched {
			t.Errorf("%s: %+v", what, r)
		}
		if is, err := os.Lstat(partial); err != nil || !os.SameFile(is, was) {
			t.Errorf("%s is gone: %v", what, err)
		}
	}
}

func TestAPartThatIsLockedOrReplacedIsNotGoneOnWith(t *testing.T) {
	c := newCopyCase(t, Options{Resume: true, Method: ReadWrite}, false)
	partial := c.in(".dst" + partialSuffix)
	c.interrupted(t)
	f, err := os.Open(partial)
	must(t, err)
	defer f.Close()
	must(t, unix.Flock(int(f.Fd()), unix.LOCK_EX))
	_, r, err := c.run(t, t.Context(), everyCall)
	if err == nil || !strings.Contains(err.Error(), "another copy is at work on") || r.Outcome != holdfast.OutcomeUntouched {
		t.Errorf("%+v", r)
	}
	must(t, unix.Flock(int(f.Fd()), unix.LOCK_UN))
	for when, nth := range map[string]int{"Lock": 1, "OpenFile": 2} { // the first one wants to make it
		_, r, err = c.run(t, t.Context(), func(_ int, op string) error {
			if op == when {
				nth--
			}
			if op != when || nth != 0 {
				return nil
			}
			must(t, os.WriteFile(c.in("other"), []byte("another's"), 0o600))
			return os.Rename(c.in("other"), partial)
		})
		if got, _ := os.ReadFile(partial); err == nil || !errors.Is(err, errReplaced) || string(got) != "another's" {
			t.Errorf("replaced before %s: %+v, %q", when, r, got)
		}
	}
}

func TestWhatVerifyFindsWrongIsNotGoneOnWith(t *testing.T) {
	c := newCopyCase(t, Options{Resume: true, Verify: true, Method: ReadWrite}, false)
	_, err := copyOne(t.Context(), stainedDisk{}, c.in("dst"), c.in("src"), c.o)
	var e *Error
	if !errors.As(err, &e) || e.Op != "verify" {
		t.Error(err)
	}
	if left, _ := filepath.Glob(c.in(".*")); len(left) > 0 {
		t.Errorf("%q is left", left)
	}
}

func TestRoomIsAskedOnlyForWhatIsMissing(t *testing.T) {
	c := newCopyCase(t, Options{Resume: true, Method: ReadWrite}, false)
	must(t, os.WriteFile(c.in("src"), bytes.Repeat([]byte("7bytes\n"), 4<<20/7), 0o644))
	c.interrupted(t)
	is, err := os.Stat(c.in(".dst" + partialSuffix))
	must(t, err)
	d := &fullDisk{stepDisk{before: everyCall}, 4<<20 - is.Size()}
	if r, err := copyOne(t.Context(), d, c.in("dst"), c.in("src"), c.o); err != nil || r.Resumed != is.Size() {
		t.Errorf("%+v, of %d bytes", r, is.Size())
	}
}

// A forgetfulDisk fails to sync a directory once, and nothing else.
type forgetfulDisk struct {
	sys.Disk
	mu  sync.Mutex
	nth int    // of the syncs of directories
	dir string // that has lost its names; if it is set before, nth is of its syncs
}

func (*forgetfulDisk) SyncsAll(int) bool { return false }

func (d *forgetfulDisk) Sync(fd int) error {
	is, err := d.StatFD(fd)
	if err != nil || is.Mode&vfs.KindMask != kindDir {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		return err
	}
	if d.dir != "" && d.dir != path {
		return nil
	}
	if d.nth--; d.nth != 0 {
		return nil
	}
	d.dir = path
	return syscall.EIO
}

func TestNothingIsDurableInADirectoryThatLostItsNames(t *testing.T) {
	for _, o := range []Options{{Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncClose}}}, {Atomic: true}} { // in steps, in which nothing is reported before the last sync
		for nth := 1; ; nth++ {
			dir := smallTree(t)
			d := &forgetfulDisk{nth: nth}
			o.KeepGoing, o.Workers = true, 1
			var durable []string
			o.Each = func(r Result) {
				if r.Durable && d.dir != "" {
					durable = append(durable, r.Destination)
				}
			}
			_, err := copyTrees(t.Context(), d, onePair(dir+"/to", dir+"/from"), o)
			if d.dir == "" {
				break
			}
			if !errors.Is(err, syscall.EIO) {
				t.Errorf("%+v, sync %d: %v", o.Policy, nth, err)
			}
			for _, path := range durable {
				if strings.HasPrefix(path, d.dir+"/") {
					t.Errorf("%v, atomic %v, sync %d: %s is durable, and %s was not synced", o.Policy, o.Atomic, nth, path, d.dir)
				}
			}
		}
	}
}

func TestTheDirectoryOfSingleFilesIsSyncedAfterThem(t *testing.T) {
	for _, o := range []Options{{Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncClose}}}, {Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncEach}}}, {Atomic: true}} {
		dir := dirInMemory(t)
		d := newLoggedDisk(true)
		pairs := func(yield func(string, string) bool) {
			for _, name := range []string{"one", "other"} {
				must(t, os.WriteFile(filepath.Join(dir, name), []byte(name), 0o644))
				if !yield(filepath.Join(dir, name+"2"), filepath.Join(dir, name)) {
					return
				}
			}
		}
		_, err := copyTrees(t.Context(), d, pairs, o)
		must(t, err)
		for id, at := range d.wrote {
			if !d.durable(id) {
				t.Errorf("%+v: %v was written or got names at %d, and was synced at %d", o, id, at, d.saved[id])
			}
		}
		if len(d.wrote) != 3 {
			t.Errorf("%+v: %d files and directories were written", o, len(d.wrote))
		}
	}
}

func TestWhatFailsOfOneNameKeepsNoOtherFromBeingCopied(t *testing.T) {
	for op, most := range map[string]int{"rename": 8, "set times in": 8, "symlink": 1, "link": 1} {
		for at := range most {
			dir := smallTree(t)
			d := &failingDisk{op: op, at: at, calls: map[string]int{}, noAll: true}
			o := Options{Workers: 1, Archive: true, Atomic: true, KeepGoing: true}
			failed := map[string]bool{}
			o.Each = func(r Result) {
				if r.Err != nil {
					failed[r.Destination] = true
				}
			}
			_, err := copyTrees(t.Context(), d, onePair(dir+"/to", dir+"/from"), o)
			if d.failed != (err != nil) || len(failed) > 1 {
				t.Errorf("%s, call %d: %v; %v", op, at, err, failed)
			}
			for path := range failed {
				if is, err := os.Lstat(path); err == nil && !is.IsDir() && path != dir+"/to/a/file0" {
					t.Errorf("%s, call %d: %s is there, though it failed", op, at, path)
				}
			}
		}
	}
}

func TestADirectoryThatWasNotBegunWholeIsNotReportedAsCopied(t *testing.T) {
	for _, o := range []Options{{Workers: 1}, {Workers: 1, Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncClose}}}, {Workers: 1, Atomic: true}} {
		dir := smallTree(t)
		o.Each = func(r Result) {
			if is, err := os.Lstat(r.Source); r.Err == nil && (err != nil || is.IsDir()) {
				t.Errorf("%+v", r)
			}
		}
		d := &failingDisk{op: "open source", calls: map[string]int{}}
		if _, err := copyTrees(t.Context(), d, onePair(dir+"/to", dir+"/from"), o); !errors.Is(err, syscall.EIO) {
			t.Error(err)
		}
	}
}

func TestArchiveNeedsNoAttributes(t *testing.T) {
	c := newCopyCase(t, Options{Archive: true}, false)
	_, r, err := c.run(t, t.Context(), func(_ int, op string) error {
		return map[string]error{"Attributes": syscall.EOPNOTSUPP, "Attribute": syscall.EOPNOTSUPP}[op]
	})
	if err != nil {
		t.Errorf("%+v", r)
	}
}

func TestWhatCouldNotBeSyncedIsNotGoneOnWith(t *testing.T) {
	c := newCopyCase(t, Options{Resume: true, Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncEach}}}, false)
	if _, r, err := c.run(t, t.Context(), failing("Sync", 1, syscall.EIO)); !errors.Is(err, syscall.EIO) {
		t.Errorf("%+v", r)
	}
	if left, _ := filepath.Glob(c.in(".*")); len(left) > 0 {
		t.Errorf("%q is left", left)
	}
}

func TestNothingIsLeftToGoOnWithThatHoldsNothing(t *testing.T) {
	c := newCopyCase(t, Options{Resume: true, Method: ReadWrite}, false)
	if _, r, err := c.run(t, t.Context(), failing("WriteAt", 1, syscall.EIO)); !errors.Is(err, syscall.EIO) {
		t.Errorf("%+v", r)
	}
	if left, _ := filepath.Glob(c.in(".*")); len(left) > 0 {
		t.Errorf("%q is left", left)
	}
}

func TestATreeThatIsCopiedAgainKeepsItsLinks(t *testing.T) {
	dir := smallTree(t)
	for _, o := range []Options{{Archive: true}, {Archive: true}, {Archive: true, Atomic: true}} {
		_, err := copyTrees(t.Context(), sys.Disk{}, onePair(dir+"/to", dir+"/from"), o)
		must(t, err)
		one, err := os.Stat(dir + "/to/a/file0")
		must(t, err)
		other, err := os.Stat(dir + "/to/c/other")
		must(t, err)
		if wrong := halfFiles(t, dir); len(wrong) > 0 || !os.SameFile(one, other) {
			t.Errorf("%q; one file: %v", wrong, os.SameFile(one, other))
		}
	}
}

func TestAPartThatCantBeRemovedIsReported(t *testing.T) {
	c := newCopyCase(t, Options{Method: ReadWrite}, false)
	_, r, err := c.run(t, t.Context(), func(_ int, op string) error {
		return map[string]error{"WriteAt": syscall.EIO, "Remove": syscall.EPERM}[op]
	})
	if !errors.Is(err, ErrLeftover) || !errors.Is(err, syscall.EPERM) || r.Outcome != holdfast.OutcomePartial {
		t.Errorf("%+v", r)
	}
}

func TestASmallFileKeepsItsHoles(t *testing.T) {
	dir := t.TempDir()
	src, dst := filepath.Join(dir, "src"), filepath.Join(dir, "dst")
	h := holed{size: smallCopy - 4096, pieces: []piece{{sys.Range{At: 8192, End: 12288}, false}}}
	h.make(t, src, rand.New(rand.NewPCG(5, 6)))
	_, err := File(t.Context(), dst, src, Options{})
	must(t, err)
	if got, want := blocksOf(t, dst), blocksOf(t, src); got > want {
		t.Errorf("%d blocks, want %d", got, want)
	}
	sameFile(t, dst, src)
}

func TestAPartThatHasItsOwnerAlreadyIsGoneOnWith(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	c := newCopyCase(t, Options{Resume: true, Archive: true}, false)
	partial := c.in(".dst" + partialSuffix)
	must(t, os.WriteFile(partial, c.content[:1<<16], 0o600))
	must(t, os.Chown(partial, 1234, 4321)) // as the source
	if _, r, err := c.run(t, t.Context(), everyCall); err != nil || r.Resumed != 1<<16 {
		t.Errorf("%+v", r)
	}
}

// A placeDisk knows which directories are synced.
type placeDisk struct {
	sys.Disk
	synced []string
}

func (d *placeDisk) Sync(fd int) error {
	path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	d.synced = append(d.synced, path)
	return err
}

func TestTheDirectoryThatALinkLeadsToIsSynced(t *testing.T) {
	for _, o := range []Options{{Atomic: true}, {Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncEach}}}} {
		dir := smallTree(t)
		must(t, os.Symlink("../from/c/new", dir+"/to/leads"))
		d := &placeDisk{}
		r, err := copyOne(t.Context(), d, dir+"/to/leads", dir+"/from/file0", o)
		if err != nil || !r.Durable || !slices.Contains(d.synced, dir+"/from/c") {
			t.Errorf("%+v; synced: %q", r, d.synced)
		}
	}
}

func TestALinkInATreeIsReplacedAndNotWrittenThrough(t *testing.T) {
	for _, o := range []Options{{}, {Atomic: true}} {
		dir := smallTree(t)
		must(t, os.WriteFile(dir+"/mine", []byte("mine"), 0o644))
		must(t, os.Symlink(dir+"/mine", dir+"/to/file1"))
		_, err := copyTrees(t.Context(), sys.Disk{}, onePair(dir+"/to", dir+"/from"), o)
		must(t, err)
		if got, err := os.ReadFile(dir + "/mine"); err != nil || string(got) != "mine" {
			t.Errorf("%q, %v", got, err)
		}
		if is, err := os.Lstat(dir + "/to/file1"); err != nil || !is.Mode().IsRegular() {
			t.Errorf("%v, %v", is.Mode(), err)
		}
	}
}

// A shortDisk has names of 30 bytes at most, as minix has.
type shortDisk struct{ stepDisk }

func (d *shortDisk) OpenFile(dir int, name sys.Name, flag int, perm uint32) (int, error) {
	if len(filepath.Base(name.String())) > 30 {
		return -1, syscall.ENAMETOOLONG
	}
	return d.stepDisk.OpenFile(dir, name, flag, perm)
}

func TestACopyIsResumedWhereNamesAreShort(t *testing.T) {
	c := newCopyCase(t, Options{Resume: true, Method: ReadWrite}, false)
	dst := c.in(strings.Repeat("n", 30))
	ctx, cancel := context.WithCancel(t.Context())
	d := &shortDisk{stepDisk{before: func(_ int, op string) error {
		if op == "WriteAt" {
			cancel()
		}
		return nil
	}}}
	if _, err := copyOne(ctx, d, dst, c.in("src"), c.o); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	d = &shortDisk{stepDisk{before: everyCall}}
	if r, err := copyOne(t.Context(), d, dst, c.in("src"), c.o); err != nil || r.Resumed == 0 {
		t.Errorf("%+v", r)
	}
	sameFile(t, dst, c.in("src"))
	if left, _ := filepath.Glob(c.in(".*")); len(left) > 0 {
		t.Errorf("%q are left", left)
	}
}

func TestAFileIsReplacedWhereNamesAreShort(t *testing.T) {
	c := newCopyCase(t, Options{}, true)
	for _, atomic := range []bool{false, true} {
		must(t, os.WriteFile(c.in("dst"), []byte("old"), 0o600))
		must(t, os.Chmod(c.in("dst"), 0o644))
		d := &shortDisk{stepDisk{before: everyCall}}
		totals, err := copyTrees(t.Context(), d, maps.All(map[string]string{c.in("dst"): c.in("src")}), Options{Atomic: atomic, Workers: 1})
		if err != nil || totals.Files != 1 {
			t.Errorf("atomic %v: %+v, %v", atomic, totals, err)
		}
		sameFile(t, c.in("dst"), c.in("src"))
	}
}

// An emptyDisk is a kernel whose own ways copy nothing, and return no error. It is so for some
// files that are made when they are read.
type emptyDisk struct{ *stepDisk }

func (emptyDisk) CopyRange(int, int, int64, int) (int, error)     { return 0, nil }
func (emptyDisk) Splice(int, int64, int, int64, int) (int, error) { return 0, nil }
func (emptyDisk) Clone(int, int) error                            { return syscall.EXDEV }

func TestAWayThatCopiesNothingIsLeft(t *testing.T) {
	c := newCopyCase(t, Options{}, false)
	d := emptyDisk{&stepDisk{before: func(int, string) error { return nil }}}
	r, err := copyOne(t.Context(), d, c.in("dst"), c.in("src"), c.o)
	if err != nil || r.Method != ReadWrite {
		t.Errorf("%+v, %v", r, err)
	}
	sameFile(t, c.in("dst"), c.in("src"))
}
