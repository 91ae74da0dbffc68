package dirent

import (
	"os"
	"path/filepath"
	"testing"
)

// TestNameIsSyncedOnce opens new files, with their directory and without. Their first sync makes
// the name durable, and leaves no directory open.
func TestNameIsSyncedOnce(t *testing.T) {
	for _, syncs := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "file")
		f, e, err := Open(path, syncs, os.O_WRONLY|os.O_CREATE, 0o666)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if open := e.Dir != nil; open != syncs || !e.Pending {
			t.Errorf("the directory is open: %v, want %v; the name waits: %v", open, syncs, e.Pending)
		}
		if err := e.Sync(); err != nil {
			t.Fatal(err)
		}
		if e.Dir != nil || e.Pending {
			t.Error("the name still waits, or its directory is open")
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}
