package volumes

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// TestCleanReportsOfStrangersInOneLine has many directories that look like leftovers, with names
// of all kinds of runs.
func TestCleanReportsOfStrangersInOneLine(t *testing.T) {
	parent := isolate.Public(t, false)
	isolate.AsStranger(t, func() (err error) {
		for n := range 30 {
			err = errors.Join(err, os.Mkdir(filepath.Join(parent, fmt.Sprint("holdfast-bench-", n)), 0o755))
		}
		return errors.Join(err, os.Mkdir(filepath.Join(parent, "holdfast-volume-000000070155ac0f"), 0o755))
	})
	code, stderr := cleanIn(t.Context(), parent)
	if code != cli.ExitOK || strings.Count(stderr, "\n") != 2 || !strings.Contains(stderr, "and 30 more; its owner can") || !strings.Contains(stderr, "no leftovers of killed runs") {
		t.Errorf("exit code %d:\n%s", code, stderr)
	}
	if entries, err := os.ReadDir(parent); err != nil || len(entries) != 31 {
		t.Errorf("%d are left, %v", len(entries), err)
	}
}
