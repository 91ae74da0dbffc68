package filecopy

import (
	"errors"
	"os"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/durable"
	"github.com/holdfast-go/holdfast/internal/filetest"
)

// TestCopyKnowsOfASyncThatFailedElsewhere is the same for a copy.
func TestCopyKnowsOfASyncThatFailedElsewhere(t *testing.T) {
	directory := t.TempDir()
	if err := errors.Join(os.WriteFile(directory+"/from", []byte("x"), 0o644), os.Mkdir(directory+"/to", 0o755)); err != nil {
		t.Fatal(err)
	}
	totals, err := All(t.Context(), func(yield func(string, string) bool) {
		filetest.FailSync(t, directory+"/to")
		yield(directory+"/to/file", directory+"/from")
	}, Options{Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncClose}}, Each: func(r Result) {
		if r.Durable {
			t.Errorf("%s is durable", r.Destination)
		}
	}})
	if !errors.Is(err, durable.ErrDirLost) {
		t.Errorf("%+v, %v", totals, err)
	}
}

// TestSingleCopyKnowsOfASyncThatFailedElsewhere has that fail while the bytes are copied.
func TestSingleCopyKnowsOfASyncThatFailedElsewhere(t *testing.T) {
	directory := t.TempDir()
	if err := os.WriteFile(directory+"/from", make([]byte, 1<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, atomic := range []bool{false, true} {
		failed := sync.OnceFunc(func() { filetest.FailSync(t, directory) })
		r, err := File(t.Context(), directory+"/to", directory+"/from", Options{
			Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncClose}}, Atomic: atomic, Method: ReadWrite, Progress: func(Progress) { failed() }})
		if !errors.Is(err, durable.ErrDirLost) || r.Durable {
			t.Errorf("atomic %v: %+v", atomic, r)
		}
	}
	r, err := File(t.Context(), directory+"/to", directory+"/from", Options{Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncClose}}, Atomic: true})
	if err != nil || !r.Durable {
		t.Errorf("a later copy: %+v", r)
	}
}
