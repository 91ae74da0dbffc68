package filecopy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/isolate"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// A stepDisk is the disk, and reports each call before it is made. before's result is the call's
// error; errShort makes the call move only a part.
type stepDisk struct {
	sys.Disk
	before func(n int, op string) error
	calls  []string
	open   map[int]bool
}

var errShort = errors.New("short")

func (d *stepDisk) step(op string) error {
	d.calls = append(d.calls, op)
	return d.before(len(d.calls), op)
}

func (d *stepDisk) opened(fd int, err error) (int, error) {
	if err == nil {
		if d.open == nil {
			d.open = map[int]bool{}
		}
		d.open[fd] = true
	}
	return fd, err
}

func (d *stepDisk) short(op string, n int, call func(n int) (int, error)) (int, error) {
	switch err := d.step(op); {
	case err == errShort:
		return call((n + 1) / 2)
	case err != nil:
		return 0, err
	}
	return call(n)
}

func (d *stepDisk) plain(op string, call func() error) error {
	if err := d.step(op); err != nil && err != errShort {
		return err
	}
	return call()
}

func (d *stepDisk) OpenDir(path sys.Name) (int, error) {
	if err := d.step("OpenDir"); err != nil && err != errShort {
		return -1, err
	}
	return d.opened(d.Disk.OpenDir(path))
}

func (d *stepDisk) OpenFile(dir int, name sys.Name, flag int, perm uint32) (int, error) {
	if err := d.step("OpenFile"); err != nil && err != errShort {
		return -1, err
	}
	return d.opened(d.Disk.OpenFile(dir, name, flag, perm))
}

func (d *stepDisk) OpenSource(dir int, name sys.Name) (int, error) {
	if err := d.step("OpenSource"); err != nil && err != errShort {
		return -1, err
	}
	return d.opened(d.Disk.OpenSource(dir, name))
}

func (d *stepDisk) Pipe() (r, w int, err error) {
	if err := d.step("Pipe"); err != nil && err != errShort {
		return -1, -1, err
	}
	r, w, err = d.Disk.Pipe()
	d.opened(r, err)
	d.opened(w, err)
	return r, w, err
}

// Close closes, whatever before returns: so does the kernel.
func (d *stepDisk) Close(fd int) error {
	err := d.step("Close")
	delete(d.open, fd)
	if failed := d.Disk.Close(fd); err == nil || err == errShort || err == syscall.EINTR {
		return failed
	}
	return err
}

func (d *stepDisk) StatFile(fd int) (is sys.FileStat, err error) {
	err = d.plain("StatFile", func() (err error) { is, err = d.Disk.StatFile(fd); return err })
	return is, err
}

func (d *stepDisk) Stat(dir int, name sys.Name) (is sys.Stat, err error) {
	err = d.plain("Stat", func() (err error) { is, err = d.Disk.Stat(dir, name); return err })
	return is, err
}

func (d *stepDisk) ReadAt(fd int, p []byte, at int64) (int, error) {
	return d.short("ReadAt", len(p), func(n int) (int, error) { return d.Disk.ReadAt(fd, p[:n], at) })
}

func (d *stepDisk) WriteAt(fd int, p []byte, at int64) (int, error) {
	return d.short("WriteAt", len(p), func(n int) (int, error) { return d.Disk.WriteAt(fd, p[:n], at) })
}

func (d *stepDisk) CopyRange(to, from int, at int64, n int) (int, error) {
	return d.short("CopyRange", n, func(n int) (int, error) { return d.Disk.CopyRange(to, from, at, n) })
}

func (d *stepDisk) Splice(to int, toAt int64, from int, fromAt int64, n int) (int, error) {
	return d.short("Splice", n, func(n int) (int, error) { return d.Disk.Splice(to, toAt, from, fromAt, n) })
}

func (d *stepDisk) Allocate(fd int, at, n int64, grow bool) error {
	return d.plain("Allocate", func() error { return d.Disk.Allocate(fd, at, n, grow) })
}

func (d *stepDisk) Clone(to, from int) error {
	return d.plain("Clone", func() error { return d.Disk.Clone(to, from) })
}

func (d *stepDisk) Truncate(fd int, size int64) error {
	return d.plain("Truncate", func() error { return d.Disk.Truncate(fd, size) })
}

// Sync does nothing else: what it does is not seen before the power is cut.
func (d *stepDisk) Sync(fd int) error {
	return d.plain("Sync", func() error { return nil })
}

func (d *stepDisk) Rename(dir int, from, to sys.Name) error {
	return d.plain("Rename", func() error { return d.Disk.Rename(dir, from, to) })
}

func (d *stepDisk) RenameNew(dir int, from, to sys.Name) error {
	return d.plain("RenameNew", func() error { return d.Disk.RenameNew(dir, from, to) })
}

func (d *stepDisk) Chmod(fd int, perm uint32) error {
	return d.plain("Chmod", func() error { return d.Disk.Chmod(fd, perm) })
}

func (d *stepDisk) SetTimes(fd int, a, m time.Time) error {
	return d.plain("SetTimes", func() error { return d.Disk.SetTimes(fd, a, m) })
}

func (d *stepDisk) SeekData(fd int, at int64) (found int64, err error) {
	err = d.plain("SeekData", func() (err error) { found, err = d.Disk.SeekData(fd, at); return err })
	return found, err
}

func (d *stepDisk) SeekHole(fd int, at int64) (found int64, err error) {
	err = d.plain("SeekHole", func() (err error) { found, err = d.Disk.SeekHole(fd, at); return err })
	return found, err
}

func (d *stepDisk) StatPath(name sys.Name) (is sys.Stat, err error) {
	err = d.plain("StatPath", func() (err error) { is, err = d.Disk.StatPath(name); return err })
	return is, err
}

func (d *stepDisk) Resolve(path string) (to string, err error) {
	err = d.plain("Resolve", func() (err error) { to, err = d.Disk.Resolve(path); return err })
	return to, err
}

func (d *stepDisk) Remove(dir int, name sys.Name) error {
	return d.plain("Remove", func() error { return d.Disk.Remove(dir, name) })
}

func (d *stepDisk) Lock(fd int) error {
	return d.plain("Lock", func() error { return d.Disk.Lock(fd) })
}

func (d *stepDisk) Free(fd int) (free int64, err error) {
	err = d.plain("Free", func() (err error) { free, err = d.Disk.Free(fd); return err })
	return free, err
}

// Evict does nothing, and Cached finds nothing: there are file systems in memory.
func (d *stepDisk) Evict(int) error { return d.plain("Evict", func() error { return nil }) }

func (d *stepDisk) Cached(int, int64) (int64, error) {
	return 0, d.plain("Cached", func() error { return nil })
}

func (d *stepDisk) Unwritten(fd int, at int64, to []sys.Range) (all []sys.Range, next int64, err error) {
	err = d.plain("Unwritten", func() (err error) { all, next, err = d.Disk.Unwritten(fd, at, to); return err })
	if err != nil {
		return to, -1, err
	}
	return all, next, nil
}

func (d *stepDisk) Chown(fd int, uid, gid uint32) error {
	return d.plain("Chown", func() error { return d.Disk.Chown(fd, uid, gid) })
}

func (d *stepDisk) Attributes(fd int) (names []string, err error) {
	err = d.plain("Attributes", func() (err error) { names, err = d.Disk.Attributes(fd); return err })
	return names, err
}

func (d *stepDisk) Attribute(fd int, name string) (value []byte, err error) {
	err = d.plain("Attribute", func() (err error) { value, err = d.Disk.Attribute(fd, name); return err })
	return value, err
}

func (d *stepDisk) SetAttribute(fd int, name string, value []byte) error {
	return d.plain("SetAttribute", func() error { return d.Disk.SetAttribute(fd, name, value) })
}

func (d *stepDisk) RemoveAttribute(fd int, name string) error {
	return d.plain("RemoveAttribute", func() error { return d.Disk.RemoveAttribute(fd, name) })
}

// A copyCase is a copy under faults: into a directory with or without an old file.
type copyCase struct {
	o       Options
	old     bool
	dir     string
	content []byte
}

func (c *copyCase) in(name string) string { return filepath.Join(c.dir, name) }

func newCopyCase(t *testing.T, o Options, old bool) *copyCase {
	t.Helper()
	c := &copyCase{o: o, old: old, dir: t.TempDir()}
	h := holed{size: 1<<20 + 1<<18 + 77, pieces: []piece{{sys.Range{At: 0, End: 1<<20 + 5}, false}, {sys.Range{At: 1<<20 + 1<<16, End: 1<<20 + 1<<17}, false}}}
	h.make(t, c.in("src"), rand.New(rand.NewPCG(1, 2)))
	if err := unix.Setxattr(c.in("src"), "user.note", []byte("a note"), 0); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		must(t, os.Chown(c.in("src"), 1234, 4321))
	}
	var err error
	c.content, err = os.ReadFile(c.in("src"))
	must(t, err)
	return c
}

// run copies with a disk that reports its calls.
func (c *copyCase) run(t *testing.T, ctx context.Context, before func(n int, op string) error) (d *stepDisk, r Result, err error) {
	t.Helper()
	os.Remove(c.in("dst"))
	if c.old {
		must(t, os.WriteFile(c.in("dst"), []byte("old"), 0o600))
	}
	d = &stepDisk{before: before}
	r, err = copyOne(ctx, d, c.in("dst"), c.in("src"), c.o)
	if len(d.open) > 0 {
		t.Errorf("%v are left open", d.open)
	}
	return d, r, err
}

// judge holds what is there against what the result says.
func (c *copyCase) judge(t *testing.T, r Result) {
	t.Helper()
	got, err := os.ReadFile(c.in("dst"))
	switch {
	case r.Err == nil || r.Outcome == holdfast.OutcomeUncertain:
		if err != nil || !bytes.Equal(got, c.content) {
			t.Errorf("%+v: %d bytes, %v", r, len(got), err)
		}
	case r.Outcome != holdfast.OutcomeUntouched:
		t.Errorf("%+v", r)
	case c.old && string(got) != "old", !c.old && !errors.Is(err, os.ErrNotExist):
		t.Errorf("%+v: %d bytes, %v", r, len(got), err)
	}
	var e *Error
	if r.Err != nil && (!errors.As(r.Err, &e) || e.Op == "" || e.Source != c.in("src") || e.Destination != c.in("dst")) {
		t.Errorf("%v", r.Err)
	}
	partials, _ := filepath.Glob(c.in(".*"))
	for _, p := range partials {
		if r.Err == nil || !c.o.Resume || !strings.HasSuffix(p, partialSuffix) {
			t.Errorf("%v: %s is left", r.Err, p)
		}
	}
}

// copyCases calls with every kind of copy.
func copyCases(t *testing.T, do func(t *testing.T, c *copyCase)) {
	for _, c := range []copyCase{
		{}, {old: true}, {o: Options{Atomic: true}}, {o: Options{Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncEach}}}, old: true},
		{o: Options{Resume: true}}, {o: Options{Method: ReadWrite}},
		{o: Options{Method: CopyRange}}, {o: Options{Archive: true, Verify: true}},
	} {
		o := c.o
		t.Run(fmt.Sprintf("%v atomic %v resume %v archive %v sync %v old %v", o.Method, o.Atomic, o.Resume, o.Archive, o.Policy.Sync, c.old), func(t *testing.T) {
			t.Parallel()
			do(t, newCopyCase(t, o, c.old))
		})
	}
}

// Without these a copy is still good. A file that was only read is closed, the room is
// asked for only to fail early, and there are ways to copy without a pipe, and by copy_file_range. A
// mount that answers no question about attributes has none, unless they are asked for.
func (c *copyCase) mayFail(op string) bool {
	return slices.Contains([]string{"Close", "Free", "Pipe"}, op) || op == "Attribute" && !c.o.Archive || op == "CopyRange" && c.o.Method == Auto
}

func TestEveryFailureOfACopyIsReportedAndCleaned(t *testing.T) {
	errnos := []error{syscall.EIO, syscall.EINTR, syscall.EINVAL, errShort}
	if isolate.RaceEnabled { // goroutines meet in the same places at each
		errnos = errnos[:1]
	}
	copyCases(t, func(t *testing.T, c *copyCase) {
		whole, _, err := c.run(t, t.Context(), func(int, string) error { return nil })
		must(t, err)
		for n := 1; n <= len(whole.calls); n++ {
			for _, errno := range errnos {
				_, r, err := c.run(t, t.Context(), func(i int, _ string) error {
					if i == n {
						return errno
					}
					return nil
				})
				c.judge(t, r)
				op := whole.calls[n-1]
				if (errno == syscall.EINTR || errno == errShort) && err != nil && !strings.HasPrefix(op, "Open") {
					t.Errorf("%v of %s: %v", errno, op, err)
				}
				if errno == syscall.EIO && err == nil && !c.mayFail(op) {
					t.Errorf("EIO of %s (call %d) is not reported", op, n)
				}
				if errno == syscall.EIO && err != nil && !errors.Is(err, syscall.EIO) {
					t.Errorf("EIO of %s is reported as %v", op, err)
				}
				if t.Failed() {
					t.Fatalf("%v of call %d, %s, of %v", errno, n, op, whole.calls)
				}
				clearPartials(t, c)
			}
		}
	})
}

func clearPartials(t *testing.T, c *copyCase) {
	t.Helper()
	partials, _ := filepath.Glob(c.in(".*"))
	for _, p := range partials {
		must(t, os.Remove(p))
	}
}

func TestACopyInterruptedAtAnyCallLeavesOldOrNew(t *testing.T) {
	copyCases(t, func(t *testing.T, c *copyCase) {
		whole, _, err := c.run(t, t.Context(), func(int, string) error { return nil })
		must(t, err)
		for n := 1; n <= len(whole.calls); n++ {
			ctx, cancel := context.WithCancelCause(t.Context())
			why := errors.New("enough")
			_, r, err := c.run(t, ctx, func(i int, _ string) error {
				if i == n {
					cancel(why)
				}
				return nil
			})
			if err != nil && !errors.Is(err, why) {
				t.Errorf("%v", err)
			}
			c.judge(t, r)
			if c.o.Resume && err != nil {
				_, r, err = c.run(t, t.Context(), func(int, string) error { return nil })
				must(t, err)
				c.judge(t, r)
			}
			if t.Failed() {
				t.Fatalf("after call %d of %v", n, whole.calls)
			}
		}
	})
}

func TestResumeGoesOnWhereItIsProven(t *testing.T) {
	c := newCopyCase(t, Options{Resume: true, Method: ReadWrite}, false)
	ctx, cancel := context.WithCancel(t.Context())
	writes := 0
	c.run(t, ctx, func(_ int, op string) error {
		if op == "WriteAt" {
			if writes++; writes == 2 {
				cancel()
			}
		}
		return nil
	})
	partial := c.in(".dst" + partialSuffix)
	is, err := os.Stat(partial)
	must(t, err)
	_, r, err := c.run(t, t.Context(), func(int, string) error { return nil })
	if err != nil || r.Resumed != is.Size() || r.Resumed == 0 || r.Size != int64(len(c.content)) {
		t.Errorf("%+v, of %d bytes", r, is.Size())
	}
	c.judge(t, r)
	sameFile(t, c.in("dst"), c.in("src"))

	for at, want := range map[int]int64{0: -1, 5000: 4096, 70000: 69632} {
		wrong := bytes.Clone(c.content[:80000])
		wrong[at]++
		must(t, os.WriteFile(partial, wrong, 0o600))
		_, r, err := c.run(t, t.Context(), func(int, string) error { return nil })
		if want >= 0 && (err != nil || r.Resumed != want) {
			t.Errorf("a wrong byte at %d: %+v", at, r)
		}
		if got, _ := os.ReadFile(partial); want < 0 && (err == nil || !strings.Contains(err.Error(), "is not the beginning of the source") || !bytes.Equal(got, wrong)) {
			t.Errorf("another's file: %+v", r)
		}
		os.Remove(partial)
	}
	// A power cut left a size, and of the bytes the second sector and some from the second block on.
	cut := bytes.Clone(c.content[:80000])
	clear(cut[:512])
	clear(cut[1024:4096])
	must(t, os.WriteFile(partial, cut, 0o600))
	if _, r, err := c.run(t, t.Context(), func(int, string) error { return nil }); err != nil || r.Resumed != 0 {
		t.Errorf("behind a power cut: %+v", r)
	}
	sameFile(t, c.in("dst"), c.in("src"))
	must(t, os.WriteFile(partial, append(bytes.Clone(c.content), "of a source that was longer"...), 0o600))
	if _, r, err := c.run(t, t.Context(), func(int, string) error { return nil }); err != nil || r.Resumed != r.Size {
		t.Errorf("%+v", r)
	}
	sameFile(t, c.in("dst"), c.in("src"))
}

func TestAtomicCopySyncsRenamesAndSyncs(t *testing.T) {
	for _, old := range []bool{false, true} {
		c := newCopyCase(t, Options{Atomic: true, Method: ReadWrite}, old)
		d, r, err := c.run(t, t.Context(), func(int, string) error { return nil })
		if err != nil || !r.Durable || r.Outcome != holdfast.OutcomeDurable {
			t.Fatalf("%+v", r)
		}
		ordered := slices.DeleteFunc(d.calls, func(op string) bool {
			return !slices.Contains([]string{"WriteAt", "SetTimes", "Sync", "Rename", "RenameNew"}, op)
		})
		rename := "RenameNew"
		if old {
			rename = "Rename"
		}
		if want := []string{"SetTimes", "Sync", rename, "Sync"}; !slices.Equal(ordered[len(ordered)-4:], want) || ordered[0] != "WriteAt" {
			t.Errorf("%v, want them to end in %v", ordered, want)
		}
	}
}

func TestASmallCopyTakesFewCalls(t *testing.T) {
	c := newCopyCase(t, Options{}, false)
	must(t, os.WriteFile(c.in("src"), []byte("a small file"), 0o644))
	d, _, err := c.run(t, t.Context(), func(int, string) error { return nil })
	d.calls = slices.DeleteFunc(d.calls, func(op string) bool { return op == "Clone" }) // on overlayfs all seems to be cold
	want := []string{"OpenSource", "StatFile", "Attribute", "OpenFile", "ReadAt", "WriteAt", "StatFile", "StatFile", "SetTimes", "Close", "Close"}
	if err != nil || !slices.Equal(d.calls, want) {
		t.Errorf("%v, %v", d.calls, err)
	}
}

// TestEachWriteIsSynced: with SyncWrites no write follows another without a sync between, and a
// sync that fails ends the copy.
func TestEachWriteIsSynced(t *testing.T) {
	o := Options{SyncWrites: true, Method: ReadWrite, Policy: holdfast.Policy{Buffer: 64 << 10, Sync: holdfast.Sync{Mode: holdfast.SyncEach}}}
	c := newCopyCase(t, o, false)
	d, r, err := c.run(t, t.Context(), func(int, string) error { return nil })
	c.judge(t, r)
	calls := slices.DeleteFunc(d.calls, func(op string) bool { return op != "WriteAt" && op != "Sync" })
	writes := 0
	for i, op := range calls {
		if op == "WriteAt" {
			if writes++; i+1 == len(calls) || calls[i+1] != "Sync" {
				t.Fatalf("write %d is not synced: %v", writes, calls)
			}
		}
	}
	if err != nil || !r.Durable || writes < 16 {
		t.Errorf("%d writes, %+v", writes, r)
	}
	syncs := 0
	_, r, err = c.run(t, t.Context(), func(_ int, op string) error {
		if op == "Sync" {
			if syncs++; syncs == 3 {
				return syscall.EIO
			}
		}
		return nil
	})
	var failed *Error
	if !errors.As(err, &failed) || failed.Op != "sync" || failed.Offset != 3*64<<10 || r.Durable {
		t.Errorf("a failed sync: %v, %+v", err, r)
	}
	c.judge(t, r)
	for _, wrong := range []Options{
		{SyncWrites: true, Policy: o.Policy},
		{SyncWrites: true, Method: ReadWrite},
	} {
		if err := wrong.Validate(); err == nil || !strings.Contains(err.Error(), "SyncWrites") {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
}
