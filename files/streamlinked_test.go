//go:build go1.25

package files_test

import (
	"errors"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// TestNameBehindALinkDoesNotAnswerForTheLinksDirectory makes /p/new, and /q/x through a
// link in /p, durable in one step, in which only the sync of /p fails. A step takes its
// streams and directories in no order: so it is made often.
func TestNameBehindALinkDoesNotAnswerForTheLinksDirectory(t *testing.T) {
	needsNoFollow(t)
	for range 20 {
		disk := fault.NewDisk(fault.DiskFault{Op: fault.DiskSync, Path: "/p", Err: syscall.EIO})
		if err := errors.Join(disk.MkdirAll("/p"), disk.MkdirAll("/q"), disk.Symlink("/q/x", "/p/link")); err != nil {
			t.Fatal(err)
		}
		f := onDisk(t, disk, files.Options{Policy: holdfast.Policy{Buffer: holdfast.KiB, Sync: holdfast.Sync{Mode: holdfast.SyncClose}}, Handles: 64})
		for _, path := range []string{"/p/new", "/p/link", "/q/other"} {
			mustAppend(t, f, path, "x")
		}
		err := f.Sync(noContext)
		failureOf(t, err, "/p/new", syscall.EIO)
		if isOf(err, "/p/link") || isOf(err, "/q/other") {
			t.Errorf("Sync says %v, though /q was synced", err)
		}
		wantSafe(t, disk, err, "/p/new", "/q/x", "/q/other")
	}
}

// A numberless disk reports no inodes, as some systems do.
type numberless struct{ *fault.Disk }

func withoutNumber(is sys.Stat, err error) (sys.Stat, error) {
	is.Device, is.Inode = 0, 0
	return is, err
}

func (d numberless) StatFD(fd int) (sys.Stat, error) { return withoutNumber(d.Disk.StatFD(fd)) }
func (d numberless) StatPath(name sys.Name) (sys.Stat, error) {
	return withoutNumber(d.Disk.StatPath(name))
}
func (d numberless) Stat(dir int, name sys.Name) (sys.Stat, error) {
	return withoutNumber(d.Disk.Stat(dir, name))
}

// TestAppendFindsAFileThatWasReplacedWithoutInodes: no number says that the name is another file's by now.
func TestAppendFindsAFileThatWasReplacedWithoutInodes(t *testing.T) {
	disk := fault.NewDisk()
	f := newSet(numberless{disk}, files.Options{Policy: holdfast.Buffered(holdfast.KiB)})
	mustAppend(t, f, "/log", "old ")
	if _, err := f.WriteFile(noContext, "/log", []byte("new "), files.Replace); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, f, "/log", "last")
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if got, _ := disk.ReadFile("/log"); string(got) != "new last" {
		t.Errorf("the file has %q", got)
	}
}
