package files

import (
	"errors"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/fault"
)

// TestNameBehindALinkDoesNotAnswerForTheLinksDirectory makes /p/new, and /q/x through a
// link in /p, durable in one step, in which only the sync of /p fails. A step takes its
// streams and directories in no order: so it is made often.
func TestNameBehindALinkDoesNotAnswerForTheLinksDirectory(t *testing.T) {
	for range 20 {
		disk := fault.NewDisk(fault.DiskFault{Op: fault.DiskSync, Path: "/p", Err: syscall.EIO})
		if err := errors.Join(disk.MkdirAll("/p"), disk.MkdirAll("/q"), disk.Symlink("/q/x", "/p/link")); err != nil {
			t.Fatal(err)
		}
		f := onDisk(t, disk, Options{Policy: holdfast.Policy{Buffer: holdfast.KiB, Sync: holdfast.Sync{Mode: holdfast.SyncClose}}, Handles: 64})
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
