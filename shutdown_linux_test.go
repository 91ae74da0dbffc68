package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/apart"
	"github.com/holdfast-go/holdfast/internal/volume"
)

// TestDurableFilesSurviveTheStopOfTheirFileSystem has a real file system stop at once,
// without writing its journal or any page (FS_IOC_SHUTDOWN), and looks at what is there
// after it was mounted again: what the device had been given. It is a power cut but
// for the device's own cache. The process that mounts has a mount namespace of its
// own, so that nothing stays mounted whatever becomes of it.
func TestDurableFilesSurviveTheStopOfTheirFileSystem(t *testing.T) {
	onFileSystemsToStop(t, func(s *stopped) { s.stopWhileFilesAreDurable() })
}

// onFileSystemsToStop runs a test on file systems that it may stop, each in a process
// of its own, which runs the same test.
func onFileSystemsToStop(t *testing.T, test func(s *stopped)) {
	for _, kind := range []string{"ext4", "xfs"} {
		t.Run(kind, func(t *testing.T) {
			if err := volumeKind(t, kind).Can(); err != nil {
				t.Skip(err)
			}
			apart.Mounts(t, func(t *testing.T) { stopFileSystem(t, kind, test) })
		})
	}
}

func volumeKind(t *testing.T, name string) volume.Kind {
	t.Helper()
	kinds, err := volume.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	return kinds[0]
}

// A stopped is a file system of its own, which the test stops.
type stopped struct {
	t *testing.T
	*volume.Volume
}

func stopFileSystem(t *testing.T, kind string, test func(s *stopped)) {
	v, err := volume.Make(t.Context(), t.TempDir(), volumeKind(t, kind), 320<<20)
	if missing := (*volume.MissingError)(nil); errors.As(err, &missing) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	s := &stopped{t, v}
	defer func() { // which also checks that the journal has left nothing undone
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	}()
	unix.Sync() // with little left to be written, batches are synced as a whole
	test(s)
}

func (s *stopped) stopWhileFilesAreDurable() {
	for _, durable := range []holdfast.Policy{holdfast.Durable(), holdfast.EachDurable(), {Sync: holdfast.SyncClose}} {
		for _, mode := range []holdfast.Mode{holdfast.ModeCreate, holdfast.ModeReplace} {
			folder := filepath.Join(s.Dir(), fmt.Sprintf("%v,%v", durable, mode))
			s.after(func() { s.writeAll(durable, folder, mode) })
			s.holds(folder, killedPaths)
		}
	}
	folder := filepath.Join(s.Dir(), "streams")
	s.after(func() { s.appendAll(holdfast.Durable(), folder) })
	s.holds(folder, killedPaths)

	// That the file system forgets what was not synced shows that it was stopped.
	folder = filepath.Join(s.Dir(), "never")
	s.after(func() { s.writeAll(holdfast.Unbuffered(), folder, holdfast.ModeCreate) })
	s.holds(folder, 0)
}

// after stops the file system after do, and mounts it again.
func (s *stopped) after(do func()) {
	s.t.Helper()
	do()
	s.stop()
	s.again()
}

// stop has the file system stop.
func (s *stopped) stop() {
	s.t.Helper()
	d, err := os.Open(s.Dir())
	if err != nil {
		s.t.Fatal(err)
	}
	// FS_IOC_SHUTDOWN, with FS_SHUTDOWN_FLAGS_NOLOGFLUSH.
	if err := unix.IoctlSetPointerInt(int(d.Fd()), 0x8004587d, 2); err != nil {
		s.t.Fatal(err)
	}
	d.Close()
}

// again mounts the file system again after it was stopped.
func (s *stopped) again() {
	s.t.Helper()
	if err := s.Remount(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stopped) files(p holdfast.Policy) *holdfast.Files {
	f, err := holdfast.NewFiles(holdfast.FilesOptions{Policy: p, Handles: 16, Folders: true})
	if err != nil {
		s.t.Fatal(err)
	}
	return f
}

func (s *stopped) writeAll(p holdfast.Policy, folder string, mode holdfast.Mode) {
	s.t.Helper()
	f := s.files(p)
	defer f.Close()
	if _, err := f.WriteAll(context.Background(), func(yield func(holdfast.FileWrite) bool) {
		for i := range killedPaths {
			if !yield(holdfast.FileWrite{Path: pathIn(folder, i), Data: killedContent(uint64(i)), Mode: mode}) {
				return
			}
		}
	}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stopped) appendAll(p holdfast.Policy, folder string) {
	s.t.Helper()
	f := s.files(p)
	defer f.Close()
	for i := range killedPaths {
		if err := f.Append(context.Background(), pathIn(folder, i), killedContent(uint64(i))); err != nil {
			s.t.Fatal(err)
		}
	}
}

// holds checks that so many files are there, each with all its bytes.
func (s *stopped) holds(folder string, want int) {
	s.t.Helper()
	whole := 0
	for i := range killedPaths {
		if string(contentOf(s.t, pathIn(folder, i))) == string(killedContent(uint64(i))) {
			whole++
		}
	}
	if whole != want {
		s.t.Errorf("%s: %d of %d files are whole, want %d", filepath.Base(folder), whole, killedPaths, want)
	}
}
