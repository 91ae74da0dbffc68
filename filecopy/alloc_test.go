package filecopy_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/holdfast-go/holdfast/filecopy"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// The result, three names and the file's own state: its buffer is used again.
func TestASmallCopyAllocatesLittle(t *testing.T) {
	if isolate.RaceEnabled {
		t.Skip("the race detector allocates")
	}
	if runtime.GOOS == "windows" {
		t.Skip("each call of package os allocates: the number is Linux's")
	}
	dir := t.TempDir()
	src, dst := filepath.Join(dir, "src"), filepath.Join(dir, "dst")
	if err := os.WriteFile(src, make([]byte, 1<<10), 0o644); err != nil {
		t.Fatal(err)
	}
	copied := func() {
		if _, err := filecopy.File(t.Context(), dst, src, filecopy.Options{}); err != nil {
			t.Error(err)
		}
		if err := os.Remove(dst); err != nil {
			t.Error(err)
		}
	}
	if n := isolate.Least(5, func() float64 { return testing.AllocsPerRun(100, copied) }); n > 5 {
		t.Errorf("%v allocations, with one by Remove", n)
	}
}
