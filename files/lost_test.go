//go:build go1.25

package files_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
)

// TestCloseSaysHowManyBytesAreLost appends to a path at which no file can be made
// until there is one.
func TestCloseSaysHowManyBytesAreLost(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "taken")
	if err := os.Mkdir(path, 0o777); err != nil {
		t.Fatal(err)
	}
	f, err := files.New(files.Options{Policy: holdfast.Buffered(4 * holdfast.KiB)})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, filepath.Join(dir, "free"), path} {
		if err := f.Append(t.Context(), name, []byte("12345678")); err != nil {
			t.Fatal(err)
		}
	}
	err = f.Close()
	var lost []files.Error
	for _, e := range joinedErrors(err) {
		var file *files.Error
		if errors.As(e, &file) && file.Lost > 0 {
			lost = append(lost, *file)
		}
	}
	if len(lost) != 1 || !isPath(lost[0].Path, path) || lost[0].Lost != 16 {
		t.Errorf("Close says %v, and of lost bytes %+v", err, lost)
	}
}

func joinedErrors(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	return joined.Unwrap()
}
