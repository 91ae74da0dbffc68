package holdfast_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-go/holdfast"
)

// TestCloseSaysHowManyBytesAreLost appends to a path at which no file can be made
// until there is one.
func TestCloseSaysHowManyBytesAreLost(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "taken")
	if err := os.Mkdir(path, 0o777); err != nil {
		t.Fatal(err)
	}
	f, err := holdfast.NewFiles(holdfast.FilesOptions{Policy: holdfast.Buffered(4 * holdfast.KiB)})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, filepath.Join(folder, "free"), path} {
		if err := f.Append(t.Context(), name, []byte("12345678")); err != nil {
			t.Fatal(err)
		}
	}
	err = f.Close()
	var lost []holdfast.FileError
	for _, e := range joinedErrors(err) {
		var file *holdfast.FileError
		if errors.As(e, &file) && file.Lost > 0 {
			lost = append(lost, *file)
		}
	}
	if len(lost) != 1 || lost[0].Path != path || lost[0].Lost != 16 {
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
