package report

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/isolate"
)

// TestPicturesAreRemovedWhereTheyWereMade is --figures and --csv.
func TestPicturesAreRemovedWhereTheyWereMade(t *testing.T) {
	isolate.Lured(t, "", func(l isolate.Lure, _ func()) {
		err := writeDir("--csv", l.Dir, []rendered{{"file", nil}, {"no/file", nil}})
		if err == nil {
			t.Error("it made a file in no directory")
		}
	})
}
