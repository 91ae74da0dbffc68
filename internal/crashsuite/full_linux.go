//go:build go1.25

package crashsuite

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/isolate"
)

// onFull runs a test on a small file system of its own, which another file fills.
func onFull(t *testing.T, test func(t *testing.T, dir string, fill, empty func() error)) {
	isolate.Mounts(t, func(t *testing.T) {
		dir := t.TempDir()
		if err := unix.Mount("holdfast-test", dir, "tmpfs", 0, "size=8m"); err != nil {
			t.Skip("no file system of its own: ", err)
		}
		defer unix.Unmount(dir, unix.MNT_DETACH)
		if err := os.Mkdir(filepath.Join(dir, "log"), 0o777); err != nil {
			t.Fatal(err)
		}
		ballast := filepath.Join(dir, "ballast")
		fill := func() error {
			f, err := os.Create(ballast)
			if err != nil {
				return err
			}
			for page := make([]byte, 4096); err == nil; {
				_, err = f.Write(page)
			}
			if errors.Is(err, syscall.ENOSPC) {
				err = nil
			}
			return errors.Join(err, f.Close())
		}
		test(t, dir, fill, func() error { return os.Remove(ballast) })
	})
}
