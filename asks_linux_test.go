package holdfast_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// TestSyncsOfAWriterReachTheKernel has a filter answer one system call: whoever needs
// it sees the answer. The Writer's own counts can't know whether a call was made.
func TestSyncsOfAWriterReachTheKernel(t *testing.T) {
	check := func(name string, number uint32, use func(path string) error) {
		t.Run(name, func(t *testing.T) {
			isolate.Process(t, func(t *testing.T) {
				dir := t.TempDir()
				if err := use(filepath.Join(dir, "before")); err != nil {
					t.Fatalf("without the filter: %v", err)
				}
				const answer = unix.EDOM // no file system's
				if err := isolate.Forbid(number, answer, unix.SECCOMP_FILTER_FLAG_TSYNC); err != nil {
					t.Skipf("no filter: %v", err)
				}
				if err := use(filepath.Join(dir, "after")); !errors.Is(err, answer) {
					t.Errorf("the kernel's answer was %v, and it returned %v", answer, err)
				}
			})
		})
	}
	written := func(p holdfast.Policy, end func(*holdfast.Writer) error) func(path string) error {
		return func(path string) error {
			w, err := holdfast.Create(path, p)
			if err != nil {
				return err
			}
			if _, err := w.Write([]byte("a record\n")); err != nil {
				return errors.Join(err, w.Close())
			}
			return end(w)
		}
	}
	empty := func(p holdfast.Policy) func(path string) error {
		return func(path string) error {
			w, err := holdfast.Create(path, p)
			if err != nil {
				return err
			}
			return w.Close()
		}
	}
	atClose := holdfast.Policy{Buffer: 4096, Sync: holdfast.Sync{Mode: holdfast.SyncClose}}
	check("bytes, group", unix.SYS_FDATASYNC, written(holdfast.Durable(), (*holdfast.Writer).Close))
	check("bytes, each", unix.SYS_FDATASYNC, written(holdfast.EachDurable(), (*holdfast.Writer).Close))
	check("bytes, close", unix.SYS_FDATASYNC, written(atClose, (*holdfast.Writer).Close))
	check("bytes, Sync", unix.SYS_FDATASYNC, written(holdfast.Buffered(4096), func(w *holdfast.Writer) error {
		return errors.Join(w.Sync(), w.Close())
	}))
	check("name of an empty file, group", unix.SYS_FSYNC, empty(holdfast.Durable()))
	check("name of an empty file, close", unix.SYS_FSYNC, empty(atClose))
	var open *holdfast.Writer // from before the filter: a file without names then is never looked at again
	check("look at the number of names", unix.SYS_STATX, func(path string) (err error) {
		if open == nil {
			open, err = holdfast.Create(path, holdfast.Durable())
			return err
		}
		_, err = open.Write([]byte("a record\n"))
		return errors.Join(err, open.Close())
	})
}

// TestWhereThereIsNoFdatasyncFsyncIsAsked has the kernel know no fdatasync, and then fail
// the fsync that is made in its place.
func TestWhereThereIsNoFdatasyncFsyncIsAsked(t *testing.T) {
	isolate.Process(t, func(t *testing.T) {
		file, err := os.Create(filepath.Join(t.TempDir(), "file"))
		if err != nil {
			t.Fatal(err)
		}
		w, err := holdfast.New(file, holdfast.Buffered(4096))
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		forbid := func(number uint32, answer unix.Errno) {
			if err := isolate.Forbid(number, answer, unix.SECCOMP_FILTER_FLAG_TSYNC); err != nil {
				t.Skipf("no filter: %v", err)
			}
		}
		forbid(unix.SYS_FDATASYNC, unix.EOPNOTSUPP)
		forbid(unix.SYS_FSYNC, unix.EDOM)
		if _, err := w.Write([]byte("a record\n")); err != nil {
			t.Fatal(err)
		}
		if err := w.Sync(); !errors.Is(err, unix.EDOM) {
			t.Errorf("Sync = %v, want what fsync answered", err)
		}
	})
}

// TestCloseClosesTheDirectoryThatNoSyncReached has the file's own sync fail first.
func TestCloseClosesTheDirectoryThatNoSyncReached(t *testing.T) {
	isolate.Process(t, func(t *testing.T) {
		if err := isolate.Forbid(unix.SYS_FDATASYNC, unix.EIO, unix.SECCOMP_FILTER_FLAG_TSYNC); err != nil {
			t.Skipf("no filter: %v", err)
		}
		descriptors := func() int {
			open, err := os.ReadDir("/proc/self/fd")
			if err != nil {
				t.Fatal(err)
			}
			return len(open)
		}
		life := func() {
			w, err := holdfast.Create(filepath.Join(t.TempDir(), "file"), holdfast.Durable())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write([]byte("a record\n")); !errors.Is(err, unix.EIO) {
				t.Errorf("Write = %v, want what fdatasync answered", err)
			}
			w.Close()
		}
		life() // opens what the runtime keeps
		before := descriptors()
		life()
		if after := descriptors(); after != before {
			t.Errorf("%d descriptors are open after Close, %d before", after, before)
		}
	})
}
