//go:build go1.25

package files_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/internal/filetest"
)

// TestTemporariesOfALiveSetAreNotStale has a batch wait with temporary files, while its Set replaces
// another file there, and is done with that. A second Set, as another process has, looks for stale files
// then.
func TestTemporariesOfALiveSetAreNotStale(t *testing.T) {
	for _, given := range [][]string{{"a", "b"}, {"a", "other/b"}} {
		replaceBesideABatch(t, given)
	}
}

func replaceBesideABatch(t *testing.T, given []string) {
	dir, ctx := t.TempDir(), context.Background()
	open := func() *files.Set {
		f, err := files.New(files.Options{Policy: holdfast.Durable()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	if err := os.Mkdir(filepath.Join(dir, "other"), 0o777); err != nil {
		t.Fatal(err)
	}
	first, second := open(), open()
	replace := func(f *files.Set, name string) {
		if _, err := f.WriteFile(ctx, filepath.Join(dir, name), []byte("new"), files.Replace); err != nil {
			t.Error(err)
		}
	}
	results, err := first.WriteAll(ctx, func(yield func(files.Write) bool) {
		for _, name := range given {
			if !yield(files.Write{Path: filepath.Join(dir, name), Data: []byte("new"), Mode: files.Replace}) {
				return
			}
		}
		replace(first, "c")
		replace(second, "d")
		if n := len(filetest.LeftIn(dir)); n != 2 {
			t.Errorf("the batch has 2 temporary files, and %d are there", n)
		}
	})
	if err != nil || results.Totals().Durable != 2 {
		t.Error(results, err)
	}
}
