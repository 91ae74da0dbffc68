//go:build go1.25

package files_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
)

// TestTruncateThatCannotLookLeavesTheFileUntouched fails the look at a file that is to be
// emptied.
func TestTruncateThatCannotLookLeavesTheFileUntouched(t *testing.T) {
	for _, mode := range []files.Mode{files.Truncate, files.Append} {
		d := fault.NewDisk()
		d.WriteFile("first", []byte("text"), 0o644)
		d.WriteFile("a", bytes.Repeat([]byte("old"), 60), 0o644)
		f := newSet(d, files.Options{Retry: files.Retry{Attempts: 1}})
		f.WriteFile(context.Background(), "first", []byte("new"), mode)
		d.Add(fault.DiskFault{Op: fault.DiskStatFD, Path: "a", Err: syscall.EACCES})
		r, err := f.WriteFile(context.Background(), "a", []byte("new"), mode)
		if data, _ := d.ReadFile("a"); err == nil || r.Outcome != holdfast.OutcomeUntouched || len(data) != 180 {
			t.Errorf("%v: %v, and %d bytes are there: %v", mode, r.Outcome, len(data), err)
		}
		f.Close()
	}
}

// TestUndoLooksWhileTheFileIsOpen fails a file that is made. Once it is closed, another
// program's new file may have its inode.
func TestUndoLooksWhileTheFileIsOpen(t *testing.T) {
	d := fault.NewDisk(fault.DiskFault{Op: fault.DiskWrite, First: 2, Err: syscall.EIO}, fault.DiskFault{Op: fault.DiskWrite, Times: 1, Take: 3})
	f := newSet(d, files.Options{})
	defer f.Close()
	open := true
	d.Watch(func(c fault.DiskCall) {
		switch {
		case c.Op == fault.DiskClose && strings.HasSuffix(c.Path, "/a"):
			open = false
		case (c.Op == fault.DiskStat || c.Op == fault.DiskRemove) && runtime.GOOS != "windows" && !open:
			t.Errorf("%v after the file was closed", c.Op)
		}
	})
	r, err := f.WriteFile(context.Background(), "a", []byte("a file"), files.Create)
	d.Watch(nil)
	if _, there := d.ProcessCrash().File("a"); there || !errors.Is(err, syscall.EIO) || r.Outcome != holdfast.OutcomeUntouched {
		t.Errorf("there %v: %+v", there, r)
	}
	if open {
		t.Error("it stays open")
	}
}

// TestUndoLeavesAnothersFile puts another file of the same size in the place of one that
// fails, before it is looked at.
func TestUndoLeavesAnothersFile(t *testing.T) {
	d := fault.NewDisk(fault.DiskFault{Op: fault.DiskWrite, First: 2, Err: syscall.EIO}, fault.DiskFault{Op: fault.DiskWrite, Times: 1, Take: 3})
	f := newSet(d, files.Options{})
	defer f.Close()
	d.Watch(func(c fault.DiskCall) {
		if c.Op == fault.DiskStat && c.End.IsZero() && strings.HasSuffix(c.Path, "/a") {
			d.RemoveAll("a")
			d.WriteFile("a", []byte("its"), 0o644)
		}
	})
	r, err := f.WriteFile(context.Background(), "a", []byte("a file"), files.Create)
	d.Watch(nil)
	if data, _ := d.ReadFile("a"); string(data) != "its" || err == nil || r.Outcome != holdfast.OutcomePartial {
		t.Errorf("%q is there: %+v", data, r)
	}
}

// TestAPartNeverReplacesTheOldFile fills the disk in the middle of a long replacement.
func TestAPartNeverReplacesTheOldFile(t *testing.T) {
	eachWay(t, func(t *testing.T, p holdfast.Policy, write func(f *files.Set, w files.Write) (files.Result, error)) {
		for what, faults := range map[string][]fault.DiskFault{
			"100 bytes with the error": {{Op: fault.DiskWrite, Take: 100, Err: syscall.ENOSPC}},
			"100 bytes, and then the error": {
				{Op: fault.DiskWrite, Times: 1, Take: 100}, {Op: fault.DiskWrite, First: 2, Err: syscall.ENOSPC},
			},
			"100 bytes each, and then the error": {
				{Op: fault.DiskWrite, Times: 50, Take: 100}, {Op: fault.DiskWrite, First: 51, Err: syscall.ENOSPC},
			},
		} {
			for _, beside := range []bool{false, true} { // a batch of one file is no batch
				old, replacement := bytes.Repeat([]byte("old "), 4<<10), bytes.Repeat([]byte("new "), 3<<10)
				d := fault.NewDisk()
				d.WriteFile("a", old, 0o644)
				for _, x := range faults {
					d.Add(x)
				}
				f := newSet(d, files.Options{Policy: p, Workers: 1, Retry: files.Retry{Attempts: 1}})
				w := files.Write{Path: "a", Data: replacement, Mode: files.Replace}
				var r files.Result
				if beside {
					other := w
					other.Path = "b"
					results, _ := f.WriteAll(context.Background(), one(w, other))
					r = results.At(0)
				} else {
					r, _ = write(f, w)
				}
				if data, _ := d.ReadFile("a"); !bytes.Equal(data, old) {
					t.Errorf("%s: %d bytes of the old file's %d are there", what, len(data), len(old))
				}
				if !errors.Is(r.Err, syscall.ENOSPC) || r.Outcome != holdfast.OutcomeUntouched || r.Bytes != 0 {
					t.Errorf("%s: %+v", what, r)
				}
				if err := f.Close(); err != nil {
					t.Error(err)
				}
				for name := range d.ProcessCrash().Files {
					if name != "/a" {
						t.Errorf("%s: %s is left", what, name)
					}
				}
			}
		}
	})
}

// TestReplacementThatStaysIsNamed has a replacement fail, and its temporary file not be removed or
// be gone: a directory may allow new names and no other change.
func TestReplacementThatStaysIsNamed(t *testing.T) {
	for _, op := range []fault.DiskOp{fault.DiskWrite, fault.DiskRename} {
		eachWay(t, func(t *testing.T, p holdfast.Policy, write func(f *files.Set, w files.Write) (files.Result, error)) {
			for _, gone := range []bool{false, true} {
				for _, beside := range []bool{false, true} { // a batch of one file is no batch
					d := fault.NewDisk(fault.DiskFault{Op: op, Err: syscall.EIO})
					if !gone {
						d.Add(fault.DiskFault{Op: fault.DiskRemove, Err: syscall.EPERM})
					}
					d.WriteFile("a", []byte("old"), 0o644)
					f := newSet(d, files.Options{Policy: p, Workers: 1, Retry: once})
					d.Watch(func(c fault.DiskCall) {
						if gone && c.Op == fault.DiskRemove && c.End.IsZero() {
							d.RemoveAll(c.Path)
						}
					})
					w := files.Write{Path: "a", Data: []byte("new"), Mode: files.Replace}
					var r files.Result
					if beside {
						results, _ := f.WriteAll(context.Background(), one(w, files.Write{Path: "b", Data: w.Data, Mode: files.Replace}))
						r = results.At(0)
					} else {
						r, _ = write(f, w)
					}
					d.Watch(nil)
					if r.Outcome != holdfast.OutcomeUntouched || !errors.Is(r.Err, syscall.EIO) {
						t.Errorf("%v: %+v", op, r)
					}
					if said := strings.HasSuffix(fmt.Sprint(r.Err), " is left in that directory"); said == gone {
						t.Errorf("%v, beside another: %v, removed: %v: %v", op, beside, gone, r.Err)
					}
					if err := f.Close(); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
}
