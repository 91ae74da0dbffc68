package holdfast_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/holdfast-go/holdfast"
)

// callsOfWrite returns how many system calls one durable Write makes.
func callsOfWrite(t *testing.T, w *holdfast.Writer) int64 {
	t.Helper()
	before := w.Stats().SystemCalls
	if _, err := w.Write([]byte("a record\n")); err != nil {
		t.Fatal(err)
	}
	return w.Stats().SystemCalls - before
}

// TestFirstSyncMakesTheNameDurable counts calls. The first sync of a file that
// Create or Append opened makes one more than the second, for the directory.
// For a file that the caller opened it does not.
func TestFirstSyncMakesTheNameDurable(t *testing.T) {
	check := func(name string, open func(path string) (*holdfast.Writer, error), want int64) {
		w, err := open(filepath.Join(t.TempDir(), "file"))
		if err != nil {
			t.Fatal(err)
		}
		first, second := callsOfWrite(t, w), callsOfWrite(t, w)
		if first-second != want {
			t.Errorf("%s: the first Write made %d calls, the second %d; want %d more", name, first, second, want)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
	p := holdfast.Durable()
	check("Create", func(path string) (*holdfast.Writer, error) { return holdfast.Create(path, p) }, 1)
	check("Append", func(path string) (*holdfast.Writer, error) { return holdfast.Append(path, p) }, 1)
	check("New", func(path string) (*holdfast.Writer, error) {
		f, err := os.Create(path)
		if err != nil {
			return nil, err
		}
		return holdfast.New(f, p)
	}, 0)
}

// TestNameOfAnEmptyFileIsDurableToo closes without a byte.
func TestNameOfAnEmptyFileIsDurableToo(t *testing.T) {
	for _, p := range []holdfast.Policy{holdfast.Durable(), {Buffer: 4096, Sync: holdfast.Sync{Mode: holdfast.SyncClose}}} {
		w, err := holdfast.Create(filepath.Join(t.TempDir(), "file"), p)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil || w.Stats().Syncs != 1 {
			t.Errorf("%v: Close = %v after %d syncs, want one", p, err, w.Stats().Syncs)
		}
	}
}

// TestDirectoryMayMoveBeforeTheFirstSync renames the directory of a new file.
func TestDirectoryMayMoveBeforeTheFirstSync(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not rename a directory that holds an open file")
	}
	old := filepath.Join(t.TempDir(), "old")
	if err := os.Mkdir(old, 0o777); err != nil {
		t.Fatal(err)
	}
	w, err := holdfast.Create(filepath.Join(old, "file"), holdfast.Durable())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(old, old+"-moved"); err != nil {
		t.Fatal(err)
	}
	callsOfWrite(t, w)
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}
