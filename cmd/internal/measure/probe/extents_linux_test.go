package probe

import (
	"os"
	"path/filepath"
	"testing"
)

// TestExtentsOfHolesAreCounted: two pieces with a hole between them are no single extent.
func TestExtentsOfHolesAreCounted(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for at := range int64(3) {
		if _, err := f.WriteAt(make([]byte, 64<<10), at<<20); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	n, err := Extents(f)
	if err != nil {
		t.Skipf("this file system does not say: %v", err)
	}
	if n < 3 {
		t.Errorf("%d extents of three pieces", n)
	}
	if block, err := BlockBytes(f); err != nil || block < 512 || block&(block-1) != 0 {
		t.Errorf("blocks of %d bytes, %v", block, err)
	}
}
