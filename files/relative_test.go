//go:build go1.25

package files_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
)

// TestRelativePathIsOfTheWorkingDirectoryAtTheCall though the bytes are written later, and the
// directory is another one then.
func TestRelativePathIsOfTheWorkingDirectoryAtTheCall(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	f := openFiles(t, files.Options{Policy: holdfast.Buffered(holdfast.KiB)})
	add := func(dir, text string) {
		t.Helper()
		t.Chdir(dir)
		if err := f.Append(t.Context(), "log", []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	add(first, "a")
	add(second, "b")
	add(first, "c")
	t.Chdir(second)
	// It goes behind what was appended there, and not elsewhere.
	if _, err := f.WriteFile(t.Context(), "log", []byte("d"), files.Append); err != nil {
		t.Fatal(err)
	}
	holdsText(t, filepath.Join(second, "log"), "bd")
	if err := f.Release(t.Context(), "log"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(first, "log")); err == nil {
		t.Error("Release of one directory's file has written the other's")
	}
	if err := os.Mkdir("d", 0o755); err != nil {
		t.Fatal(err)
	}
	err := f.Append(t.Context(), "d", make([]byte, 2*holdfast.KiB))
	var failed *files.Error
	var refused *fs.PathError // of Windows, which gives no other reason than that access is denied
	if !(errors.As(err, &failed) && failed.Path == "d" || runtime.GOOS == "windows" && errors.As(err, &refused) && refused.Path == "d") {
		t.Errorf("a directory: %v", err)
	}
	t.Chdir(first)
	if err := f.Release(t.Context(), "log"); err != nil {
		t.Fatal(err)
	}
	holdsText(t, filepath.Join(first, "log"), "ac")
}

// TestErrorsNameTheLibraryOnce, also errors of calls that never reach the system.
func TestErrorsNameTheLibraryOnce(t *testing.T) {
	f, err := files.New(files.Options{Policy: holdfast.Buffered(holdfast.KiB)})
	if err != nil {
		t.Fatal(err)
	}
	check := func(err error) {
		t.Helper()
		if err == nil || strings.Count(err.Error(), "holdfast:") != 1 {
			t.Errorf("%v", err)
		}
	}
	for range 2 {
		for _, path := range []string{"", "a\x00b"} {
			check(f.Append(t.Context(), path, []byte("x")))
			_, err := f.WriteFile(t.Context(), path, []byte("x"), files.Replace)
			check(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	check(f.Append(t.Context(), filepath.Join(t.TempDir(), "late"), []byte("x")))
	check(f.Flush(t.Context()))
}
