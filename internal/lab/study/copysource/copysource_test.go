package copysource

import (
	"bytes"
	"path/filepath"
	"testing"
)

// TestNamesFitIntoABfs holds the longest name of a source to what bfs_fs.h allows.
func TestNamesFitIntoABfs(t *testing.T) {
	if name := Name(1 << 39); len(name) > 14 {
		t.Errorf("%s is too long", name)
	}
}

func TestSourceIsOfTheSeed(t *testing.T) {
	one, two := New(1), New(2)
	if bytes.Equal(one.Block(100), two.Block(100)) || !bytes.Equal(one.Block(100), New(1).Block(100)) {
		t.Error("the bytes of a source do not follow its seed")
	}
	dir := t.TempDir()
	for _, name := range []string{"1", "2"} {
		if err := one.Make(filepath.Join(dir, name), 5000); err != nil {
			t.Fatal(err)
		}
		if err := Holds(Of(filepath.Join(dir, name), 5000), one.Sum(5000)); err != nil {
			t.Errorf("the source of trial %s: %v", name, err)
		}
	}
}
