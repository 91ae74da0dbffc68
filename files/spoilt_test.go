//go:build go1.25

package files_test

import (
	"context"
	"os"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// TestFailedCreateRemovesOnlyItsOwnFile lets another program have the name, or write to
// the file, in the moment in which a write fails: what it has written stays.
func TestFailedCreateRemovesOnlyItsOwnFile(t *testing.T) {
	check := func(name, want string, outcome holdfast.Outcome, beside func(t *testing.T, disk *fault.Disk)) {
		t.Run(name, func(t *testing.T) {
			disk := fault.NewDisk(
				fault.DiskFault{Op: fault.DiskWrite, Path: "file", Times: 1, Take: 3},
				fault.DiskFault{Op: fault.DiskWrite, Path: "file", First: 2, Times: 1, Err: syscall.EIO})
			if err := disk.MkdirAll("/a"); err != nil {
				t.Fatal(err)
			}
			f := onDisk(t, disk, files.Options{Policy: holdfast.Durable(), Retry: once})
			disk.Watch(func(c fault.DiskCall) {
				if c.Op == fault.DiskWrite && c.Err != nil {
					disk.Watch(nil)
					beside(t, disk)
				}
			})
			r, err := f.WriteFile(context.Background(), "/a/file", []byte("whole"), files.Create)
			if err == nil || r.Outcome != outcome {
				t.Errorf("the result is %v, %v; want %v and an error", r.Outcome, err, outcome)
			}
			if got, err := disk.ReadFile("/a/file"); string(got) != want || (err == nil) != (want != "") {
				t.Errorf("the file holds %q, %v; want %q", got, err, want)
			}
		})
	}
	check("no other", "", holdfast.OutcomeUntouched, func(t *testing.T, disk *fault.Disk) {})
	check("a file of the same size has the name", "foe", holdfast.OutcomePartial, func(t *testing.T, disk *fault.Disk) {
		if err := disk.RemoveAll("/a/file"); err != nil {
			t.Error(err)
		}
		if err := disk.WriteFile("/a/file", []byte("foe"), 0o644); err != nil {
			t.Error(err)
		}
	})
	check("the file has got more bytes", "whofoe", holdfast.OutcomePartial, func(t *testing.T, disk *fault.Disk) {
		dir, err := disk.OpenDir(sys.Name("/a\x00"))
		if err != nil {
			t.Fatal(err)
		}
		defer disk.Close(dir)
		fd, err := disk.OpenFile(dir, sys.Name("file\x00"), os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer disk.Close(fd)
		if _, err := disk.Write(fd, []byte("foe")); err != nil {
			t.Error(err)
		}
	})
}

// TestEmptiedFileIsNotUntouched fails the first write after the old bytes are gone.
func TestEmptiedFileIsNotUntouched(t *testing.T) {
	disk := fault.NewDisk(fault.DiskFault{Op: fault.DiskWrite, Path: "file", Err: syscall.EIO})
	if err := disk.MkdirAll("/a"); err != nil {
		t.Fatal(err)
	}
	if err := disk.WriteFile("/a/file", []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	f := onDisk(t, disk, files.Options{Policy: holdfast.Durable(), Retry: once})
	r, err := f.WriteFile(context.Background(), "/a/file", []byte("new"), files.Truncate)
	if got, _ := disk.ReadFile("/a/file"); len(got) != 0 {
		t.Fatalf("the file holds %q, so that nothing is tested", got)
	}
	if err == nil || r.Outcome != holdfast.OutcomePartial {
		t.Errorf("the old bytes are gone and the result is %v, %v; want %v and an error", r.Outcome, err, holdfast.OutcomePartial)
	}
}
