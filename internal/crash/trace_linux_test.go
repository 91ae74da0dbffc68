package crash

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestAKilledProgramsDescriptorIsNoError(t *testing.T) {
	there := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(there, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{"/proc/0/fd/3": true, there: false} {
		if got := ofKilled(&fs.PathError{Op: "stat", Path: path, Err: syscall.EACCES}); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
	if ofKilled(syscall.EIO) || !ofKilled(syscall.ESRCH) || !ofKilled(fs.ErrNotExist) {
		t.Error("what is no file's is judged by its kind")
	}
}
