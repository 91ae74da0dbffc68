// Package stoptest stops a test's own file systems, as a power cut does. It is for tests only.
package stoptest

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/isolate"
	"github.com/holdfast-go/holdfast/internal/volume"
)

// Each runs a test on each kind of file system, in a process of its own that runs the same test and
// may stop the file system.
func Each(t *testing.T, test func(s *FileSystem)) {
	for _, kind := range []string{"ext4", "xfs"} {
		t.Run(kind, func(t *testing.T) {
			if err := Kind(t, kind).Can(); err != nil {
				t.Skip(err)
			}
			isolate.Mounts(t, func(t *testing.T) { stopFileSystem(t, kind, test) })
		})
	}
}

func Kind(t *testing.T, name string) volume.Kind {
	t.Helper()
	kinds, err := volume.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	return kinds[0]
}

// A FileSystem is a file system for one test, which may stop it.
type FileSystem struct {
	T *testing.T
	*volume.Volume
}

func stopFileSystem(t *testing.T, kind string, test func(s *FileSystem)) {
	v, err := volume.Make(t.Context(), t.TempDir(), Kind(t, kind), 320<<20)
	if missing := (*volume.MissingError)(nil); errors.As(err, &missing) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	s := &FileSystem{t, v}
	defer func() { // this also checks that the journal was replayed
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	}()
	unix.Sync() // with few dirty pages, batches use syncfs
	test(s)
}

// After stops the file system after do, and mounts it again.
func (s *FileSystem) After(do func()) {
	s.T.Helper()
	do()
	s.Stop()
	s.Again()
}

// Stop stops the file system.
func (s *FileSystem) Stop() {
	s.T.Helper()
	d, err := os.Open(s.Dir())
	if err != nil {
		s.T.Fatal(err)
	}
	// FS_IOC_SHUTDOWN, with FS_SHUTDOWN_FLAGS_NOLOGFLUSH.
	if err := unix.IoctlSetPointerInt(int(d.Fd()), 0x8004587d, 2); err != nil {
		s.T.Fatal(err)
	}
	d.Close()
}

// Again mounts the file system again after it was stopped.
func (s *FileSystem) Again() {
	s.T.Helper()
	if err := s.Remount(s.T.Context()); err != nil {
		s.T.Fatal(err)
	}
}
