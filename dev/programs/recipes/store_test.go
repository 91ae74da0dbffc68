package recipes

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/provetest"
)

// A Store stands for yours. Three functions are enough: open, put, get. `go test` kills it, lets its system calls fail and cuts its power.
// What it acknowledged must be there.
type Store struct{ dir string }

func OpenStore(dir string) (*Store, error) { return &Store{dir}, nil }

func (s *Store) Put(key, value string) error {
	return files.WriteFile(filepath.Join(s.dir, key), []byte(value), 0o644)
}

func (s *Store) Get(key string) (string, error) {
	value, err := os.ReadFile(filepath.Join(s.dir, key))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // there is none
	}
	return string(value), err
}

func TestStoreSurvivesCrashes(t *testing.T) {
	provetest.Test(t, provetest.Store(OpenStore, (*Store).Put, (*Store).Get))
}
