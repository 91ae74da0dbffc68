//go:build go1.25

package renameio_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-go/holdfast/adapters/renameio"
)

// rooted returns the root of a directory that has another name by now, and that directory; beside it is
// one that no link may lead to.
func rooted(t *testing.T) (root *os.Root, dir, outside string) {
	t.Helper()
	top := t.TempDir()
	first := filepath.Join(top, "first")
	dir, outside = filepath.Join(top, "dir"), filepath.Join(top, "outside")
	if err := errors.Join(os.Mkdir(first, 0o777), os.Mkdir(outside, 0o777)); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(first)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	if err := errors.Join(os.Rename(first, dir), os.Mkdir(filepath.Join(dir, "below"), 0o777), os.Symlink(outside, filepath.Join(dir, "away"))); err != nil {
		t.Fatal(err)
	}
	return root, dir, outside
}

func TestARootKeepsTheFileInside(t *testing.T) {
	root, dir, outside := rooted(t)
	for _, text := range []string{"first", "second"} {
		if err := renameio.WriteFile("below/file", []byte(text), 0o640, renameio.WithRoot(root)); err != nil {
			t.Fatal(err)
		}
		holds(t, filepath.Join(dir, "below"), text, "file")
		if perm := permOf(t, filepath.Join(dir, "below", "file")); perm != 0o640 {
			t.Errorf("%v", perm)
		}
	}
	p, err := renameio.NewPendingFile("below/other", renameio.WithRoot(root), renameio.WithTempDir(outside))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(p, "half")
	if err := errors.Join(p.Cleanup(), p.Cleanup()); err != nil {
		t.Error(err)
	}
	holds(t, filepath.Join(dir, "below"), "second", "file")
	for _, path := range []string{"away/file", "../outside/file"} {
		if err := renameio.WriteFile(path, nil, 0o640, renameio.WithRoot(root)); err == nil {
			t.Errorf("%s was written", path)
		}
		if err := renameio.SymlinkRoot(root, "to", path); err == nil {
			t.Errorf("%s was linked", path)
		}
	}
	holds(t, outside, "")
}

func TestALinkInARootIsReplaced(t *testing.T) {
	root, dir, _ := rooted(t)
	for _, to := range []string{"first", "second"} {
		if err := renameio.SymlinkRoot(root, to, "below/link"); err != nil {
			t.Fatal(err)
		}
		if got, err := os.Readlink(filepath.Join(dir, "below", "link")); err != nil || got != to {
			t.Errorf("%q, %v", got, err)
		}
	}
	if entries, err := os.ReadDir(filepath.Join(dir, "below")); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}
