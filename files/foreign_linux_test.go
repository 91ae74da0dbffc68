package files

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/folding"
	"github.com/holdfast-go/holdfast/internal/foreign"
)

// onForeign returns a Set whose disk is a foreign mount at dir.
func onForeign(t *testing.T, o Options) (f *Set, d *foreign.Disk, dir string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d = &foreign.Disk{Root: dir, Refuses: map[string]error{}}
	f = newSet(d, o)
	t.Cleanup(func() { f.Close() })
	return f, d, dir
}

func content(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(data)
}

func TestABatchDoesNotWriteOneOfItsFilesOverAnother(t *testing.T) {
	for _, old := range []bool{false, true} {
		for _, policy := range []holdfast.Policy{holdfast.Durable(), holdfast.EachDurable()} {
			f, d, dir := onForeign(t, Options{Policy: policy, Batch: 1})
			d.Folds = true
			in := func(name string) string { return filepath.Join(dir, name) }
			if old {
				if err := os.WriteFile(in("a"), []byte("old"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			b := f.Begin()
			_ = b.Write(in("A"), []byte("1")) // Commit tells
			_ = b.Write(in("b"), []byte("2"))
			_ = b.Write(in("A"), []byte("3"))
			_ = b.Write(in("a"), []byte("4"))
			p, err := b.Create(in("B"))
			if err != nil {
				t.Fatal(err)
			}
			io.WriteString(p, "5")
			_ = p.Commit(t.Context())
			totals, err := b.Commit(t.Context())
			var taken *folding.TakenError
			if policy.Sync.Mode == holdfast.SyncEach {
				continue // each is a call of its own
			}
			if !errors.As(err, &taken) || totals.Failed != 2 {
				t.Errorf("old %v, %v: %v", old, policy, err)
			}
			if content(t, in("A"))+content(t, in("a")) != "3" || content(t, in("b")) != "2" {
				t.Errorf("old %v, %v: A or a %q %q, b %q", old, policy, content(t, in("A")), content(t, in("a")), content(t, in("b")))
			}
		}
	}
}

func TestAReplaceDoesWithoutWhatAMountRefuses(t *testing.T) {
	check := func(call string, err error, effort holdfast.Effort, want func(Result) bool, fails bool) {
		t.Helper()
		f, d, dir := onForeign(t, Options{Policy: holdfast.Durable(), Effort: effort, Retry: Retry{Attempts: 1}})
		d.Refuses[call] = err
		path := filepath.Join(dir, "f")
		if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
			t.Fatal(err)
		}
		r, failed := f.WriteFile(t.Context(), path, []byte("new"), Replace)
		if fails != (failed != nil) || !fails && (content(t, path) != "new" || !want(r)) {
			t.Errorf("%s answers %v, %v: %v, %+v, file %q", call, err, effort, failed, r, content(t, path))
		}
		if d.Refused(call) == 0 {
			t.Errorf("%s was not called", call)
		}
		if left, _ := os.ReadDir(dir); len(left) != 1 {
			t.Errorf("%s answers %v, %v: left %v", call, err, effort, left)
		}
	}
	stripped := func(r Result) bool { return r.Stripped && r.Durable() }
	unsynced := func(r Result) bool { return r.NameUnsynced && r.Outcome == holdfast.OutcomeWritten }
	inPlace := func(r Result) bool { return r.InPlace && r.Durable() }
	for _, err := range []error{syscall.EPERM, syscall.ENOSYS} {
		check("Chmod", err, holdfast.Strict, nil, true)
		check("Chmod", err, holdfast.Best, stripped, false)
	}
	check("Attributes", syscall.EIO, holdfast.Strict, nil, true)
	check("Attributes", syscall.EIO, holdfast.Best, stripped, false)
	for _, err := range []error{syscall.EINVAL, syscall.ENOTSUP} {
		check("SyncDir", err, holdfast.Strict, nil, true)
		check("SyncDir", err, holdfast.Best, unsynced, false)
	}
	check("SyncDir", syscall.EIO, holdfast.Best, nil, true)
	check("Rename", syscall.EACCES, holdfast.Best, nil, true)
	check("RenameOver", syscall.EBUSY, holdfast.Strict, nil, true)
	check("RenameOver", syscall.EBUSY, holdfast.Best, inPlace, false)
}

// Both a stream and a whole file of a Set on a server that syncs no directories.
func TestAStreamGoesOnWhereNoDirectoryIsSynced(t *testing.T) {
	f, d, dir := onForeign(t, Options{Policy: holdfast.EachDurable(), Effort: holdfast.Best})
	d.Refuses["SyncDir"] = syscall.EINVAL
	for range 2 {
		if err := f.Append(t.Context(), filepath.Join(dir, "log"), []byte("line\n")); err != nil {
			t.Error(err)
		}
	}
	if d.Refused("SyncDir") == 0 {
		t.Error("no directory was synced")
	}
}

// Strict says why, and a later sync is not taken for one that has lost names.
func TestADirectoryThatCannotBeSyncedIsNamed(t *testing.T) {
	f, d, dir := onForeign(t, Options{Policy: holdfast.Durable()})
	d.Refuses["SyncDir"] = syscall.EINVAL
	path := filepath.Join(dir, "f")
	if _, err := f.WriteFile(t.Context(), path, []byte("1"), Replace); err == nil || !strings.Contains(err.Error(), "syncs no directory") {
		t.Error(err)
	}
	delete(d.Refuses, "SyncDir")
	if r, err := f.WriteFile(t.Context(), path, []byte("2"), Replace); err != nil || !r.Durable() {
		t.Error(r, err)
	}
}

func TestADescriptorIsNotReplaced(t *testing.T) {
	dir := t.TempDir()
	file, err := os.Create(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	own := "/proc/self/fd/" + strconv.Itoa(int(file.Fd()))
	link := filepath.Join(dir, "link")
	if err := os.Symlink(own, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{own, link, "/dev/fd/" + strconv.Itoa(int(file.Fd()))} {
		if err := WriteFile(path, []byte("x"), 0o644); !errors.Is(err, errDescriptor) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if names, _ := os.ReadDir(dir); len(names) != 2 {
		t.Error(names)
	}
}

// An interruptedDisk writes three bytes at a time, and interrupts every second write.
type interruptedDisk struct {
	*foreign.Disk
	calls int
}

func (d *interruptedDisk) WriteAt(fd int, p []byte, at int64) (int, error) {
	if d.calls++; d.calls%2 == 0 {
		return 0, syscall.EINTR
	}
	return d.Disk.WriteAt(fd, p[:min(3, len(p))], at)
}

func TestAWriteInPlaceGoesOnAfterASignal(t *testing.T) {
	dir := t.TempDir()
	d := &interruptedDisk{Disk: &foreign.Disk{Root: dir, Refuses: map[string]error{"RenameOver": syscall.EBUSY}}}
	f := newSet(d, Options{Policy: holdfast.Durable(), Effort: holdfast.Best, Workers: 1})
	defer f.Close()
	path := filepath.Join(dir, "f")
	if err := os.WriteFile(path, []byte("the old file is longer"), 0o644); err != nil {
		t.Fatal(err)
	}
	r, err := f.WriteFile(t.Context(), path, []byte("the new file"), Replace)
	if err != nil || !r.InPlace || content(t, path) != "the new file" {
		t.Errorf("%v, %+v, file %q", err, r, content(t, path))
	}
}
