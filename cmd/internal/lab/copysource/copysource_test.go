package copysource

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestNamesFitIntoABfs compares the longest name of a source with the limit in bfs_fs.h.
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

// TestSourceIsTheFileThatIsGiven: also where it has become shorter, or is gone.
func TestSourceIsTheFileThatIsGiven(t *testing.T) {
	dir := t.TempDir()
	s := New(1)
	s.File = filepath.Join(dir, "given")
	if err := os.WriteFile(s.File, bytes.Repeat([]byte("holdfast "), 1000), 0o666); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "trial")
	for range 2 { // the second finds it
		if err := s.Make(path, 5000); err != nil {
			t.Fatal(err)
		}
	}
	if err := Holds(Of(path, 5000), s.Sum(5000)); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(Of(path, 5000)); err != nil || !bytes.HasPrefix(got, []byte("holdfast holdfast ")) || len(got) != 5000 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if err := s.Make(path, 10_000); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("more than the file has: %v", err)
	}
	if _, err := os.Stat(Of(path, 10_000)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a part of a source is left: %v", err)
	}
	if err := os.Remove(s.File); err != nil {
		t.Fatal(err)
	}
	if err := Holds(Of(path, 5000), s.Sum(4000)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a sum of a file that is gone: %v", err)
	}
}
