package prove

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-go/holdfast/internal/isolate"
	"golang.org/x/sys/unix"
)

// TestNotesOfAFullDiskAreRefused: without room, a note in the mapped file would end the process by SIGBUS.
func TestNotesOfAFullDiskAreRefused(t *testing.T) {
	isolate.Mounts(t, func(t *testing.T) {
		dir := t.TempDir()
		if err := unix.Mount("none", dir, "tmpfs", 0, "size=1m"); err != nil {
			t.Fatal(err)
		}
		defer unix.Unmount(dir, unix.MNT_DETACH)
		path := filepath.Join(dir, "notes")
		notes, err := ShareNotes(path)
		if err == nil {
			notes.End(0)
			t.Fatal("notes are shared on a disk without room for them")
		}
		var of *os.PathError
		if !errors.Is(err, unix.ENOSPC) || !errors.As(err, &of) || of.Path != path {
			t.Errorf("ShareNotes: %v, and not the name with ENOSPC", err)
		}
	})
}
