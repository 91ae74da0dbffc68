package filecopy

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// A repeatingDisk lists each name of a directory twice, as readdir(3) may list one that is
// replaced while the directory is read.
type repeatingDisk struct{ sys.Disk }

func (d repeatingDisk) ReadNames(fd int, buf []byte, to []sys.DirEntry) ([]sys.DirEntry, error) {
	all, err := d.Disk.ReadNames(fd, buf, to)
	return append(all, all[len(to):]...), err
}

// TestANameThatIsListedTwiceIsCopiedWhole replaces a file by two copies of one call. The
// temporary of the first waits for its name, and the second must not take it for a stale
// one.
func TestANameThatIsListedTwiceIsCopiedWhole(t *testing.T) {
	dir := dirInMemory(t)
	for path, text := range map[string]string{"from": "new", "to": "old"} {
		if err := os.Mkdir(filepath.Join(dir, path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, path, "file"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	o := Options{Workers: 1, Atomic: true}
	if _, err := copyTrees(context.Background(), repeatingDisk{}, onePair(dir+"/to", dir+"/from"), o); err != nil {
		t.Error(err)
	}
	entries, err := os.ReadDir(dir + "/to")
	if err != nil || len(entries) != 1 {
		t.Errorf("there are %v, %v", entries, err)
	}
	if text, err := os.ReadFile(dir + "/to/file"); string(text) != "new" {
		t.Errorf("it is %q, %v", text, err)
	}
}
