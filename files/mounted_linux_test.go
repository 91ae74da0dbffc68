package files

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast"
)

// A container's single file is a mount: no rename replaces it.
func TestAMountedFileIsWrittenInPlaceIfThatIsAsked(t *testing.T) {
	dir := t.TempDir()
	path, outside := filepath.Join(dir, "config"), filepath.Join(dir, "outside")
	for _, name := range []string{path, outside} {
		if err := os.WriteFile(name, []byte("the old one, which is longer"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mount(outside, path, "", unix.MS_BIND, ""); err != nil {
		t.Skipf("no mount: %v", err)
	}
	defer unix.Unmount(path, unix.MNT_DETACH)
	check := func(effort holdfast.Effort, want string) {
		t.Helper()
		f, err := New(Options{Policy: holdfast.Durable(), Effort: effort, Retry: Retry{Attempts: 1}})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		p, err := f.Pending(path)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = p.Write([]byte("new")) // Commit tells
		err = p.Commit(t.Context())
		if (effort == holdfast.Strict) != errors.Is(err, syscall.EBUSY) || content(t, outside) != want {
			t.Errorf("%v: %v, %q", effort, err, content(t, outside))
		}
		if names, _ := os.ReadDir(dir); len(names) != 2 {
			t.Errorf("%v: left %v", effort, names)
		}
	}
	check(holdfast.Strict, "the old one, which is longer")
	check(holdfast.Best, "new")
}
