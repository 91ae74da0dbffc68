package isolate

import (
	"os"
	"path/filepath"
	"testing"
)

// TestDirInMemoryOfAKilledTestIsRemoved makes what a killed test leaves, and two that are in use.
func TestDirInMemoryOfAKilledTestIsRemoved(t *testing.T) {
	left, err := os.MkdirTemp(shared, inShared)
	if err != nil {
		t.Skip(err)
	}
	if err := os.WriteFile(filepath.Join(left, "file"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	first := DirInMemory(t)
	second := DirInMemory(t)
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("%s is there: %v", left, err)
		_ = os.RemoveAll(left)
	}
	for _, dir := range []string{first, second} {
		if _, err := os.Stat(dir); err != nil {
			t.Error(err)
		}
	}
}
