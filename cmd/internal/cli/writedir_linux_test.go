package cli

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/isolate"
)

// TestPicturesAreRemovedWhereTheyWereMade is every directory of files.
func TestPicturesAreRemovedWhereTheyWereMade(t *testing.T) {
	isolate.Lured(t, "", func(l isolate.Lure, _ func()) {
		err := WriteDir("-o", l.Dir, []File{{"file", nil}, {"no/file", nil}})
		if err == nil {
			t.Error("it made a file in no directory")
		}
	})
}
