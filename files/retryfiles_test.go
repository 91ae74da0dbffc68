//go:build go1.25

package files_test

import (
	"errors"
	"os"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
)

// replacedLink returns a disk on which a.lnk leads to a, which another user owns.
func replacedLink(t *testing.T) *fault.Disk {
	t.Helper()
	d := fault.NewDisk()
	err := errors.Join(d.MkdirAll("logs"), d.WriteFile("logs/a", []byte("old"), 0o4750), d.Symlink("a", "logs/a.lnk"))
	if err != nil {
		t.Fatal(err)
	}
	dir, err := d.OpenDir("logs\x00")
	if err != nil {
		t.Fatal(err)
	}
	fd, err := d.OpenFile(dir, "a\x00", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(d.Chown(fd, 77, 77), d.Chmod(fd, 0o4750), d.Close(fd), d.Close(dir)); err != nil {
		t.Fatal(err)
	}
	return d
}

// TestEachCallOfAReplacementIsTriedAgain lets each call fail that the retry table
// has a pause for, once with a passing error and once with a lasting one.
func TestEachCallOfAReplacementIsTriedAgain(t *testing.T) {
	for _, op := range []fault.DiskOp{
		fault.DiskOpenDir, fault.DiskOpen, fault.DiskWrite, fault.DiskRename, fault.DiskStat, fault.DiskResolve, fault.DiskChown,
		fault.DiskChmod,
	} {
		for _, errno := range []syscall.Errno{syscall.EINTR, syscall.ENOMEM, syscall.EINVAL} {
			synctest.Test(t, func(t *testing.T) {
				d := replacedLink(t)
				d.Add(fault.DiskFault{Op: op, Times: 1, Err: errno})
				f := filesOn(t, d, files.Options{Perm: 0o600})
				r, err := f.WriteFile(t.Context(), "logs/a.lnk", []byte("new"), files.Replace)
				want, attempts := "new", int32(1)
				switch errno {
				case syscall.ENOMEM:
					attempts = 2
				case syscall.EINVAL:
					want = "old"
				}
				if got, _ := d.ReadFile("logs/a"); string(got) != want || (err == nil) != (want == "new") || r.Attempts != attempts {
					t.Errorf("%v %v: %q, %d attempts, %v (%d such calls)", op, errno, got, r.Attempts, err, d.Count(op))
				}
			})
		}
	}
}
