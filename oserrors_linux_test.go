package holdfast_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-go/holdfast/internal/isolate"
)

func TestErrorsOfPermissionAreKnownToPackageOs(t *testing.T) {
	closed := t.TempDir()
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	calls := entries(t)
	isolate.AsStranger(t, func() error {
		for name, open := range calls {
			if err := open(filepath.Join(closed, "file")); !os.IsPermission(err) {
				t.Errorf("%s: %T %v", name, err, err)
			}
		}
		return nil
	})
}
