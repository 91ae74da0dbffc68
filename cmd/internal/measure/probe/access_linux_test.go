package probe

import (
	"github.com/holdfast-go/holdfast/internal/isolate"
	"github.com/holdfast-go/holdfast/internal/sys"
	"os"
	"path/filepath"
	"testing"
)

// TestRandomAccessReadsNoPageAhead reads one byte of a file that is not cached.
func TestRandomAccessReadsNoPageAhead(t *testing.T) {
	path := filepath.Join(isolate.OnDisk(t), "file")
	const pages = 256
	written := isolate.NewFile(t, path, pages*os.Getpagesize())
	read := func(a Access) int64 {
		t.Helper()
		if err := sys.Evict(written); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := AdviseAccess(f, a); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		r, err := sys.PageCache(f)
		if err != nil {
			t.Skipf("what was read ahead can't be seen: %v", err)
		}
		return r.Resident
	}
	random, normal, sequential := read(Random), read(Normal), read(Sequential)
	if random != 1 || random > normal || normal > sequential {
		t.Errorf("%d pages after a byte read at random, %d normally, %d in sequence", random, normal, sequential)
	}
}

func TestClosedFileTakesNoAdvice(t *testing.T) {
	f := isolate.NewFile(t, filepath.Join(t.TempDir(), "file"), 1)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := AdviseAccess(f, Random); err == nil {
		t.Error("a closed file takes advice")
	}
}
