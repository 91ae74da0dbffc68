package gen

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/probe"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// TestSparseFileHasNoBlocks: a file system that makes a hole takes no room for it.
func TestSparseFileHasNoBlocks(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x")
	if err := genRun(t.Context(), []string{"gen", file, "1GiB", "--kind", "sparse"}, nil, io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if blocks := info.Sys().(*syscall.Stat_t).Blocks; info.Size() != 1<<30 || blocks != 0 {
		t.Errorf("%d bytes in %d blocks", info.Size(), blocks)
	}
}

// unnamed makes a file without a name, which can be named and not be synced.
func unnamed(t *testing.T, path string) *genFile {
	t.Helper()
	f, err := probe.CreateUnnamed(filepath.Dir(path), 0o666)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { f.Close() })
	fd, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	return &genFile{File: f, path: path, held: os.NewFile(uintptr(fd), path)}
}

func TestANewNameIsSyncedIfItsFileIs(t *testing.T) {
	for synced, want := range map[bool]error{false: nil, true: unix.EBADF} {
		path := filepath.Join(t.TempDir(), "x")
		g := unnamed(t, path)
		if _, _, err := g.publish(false, synced); !errors.Is(err, want) {
			t.Errorf("synced %v: %v", synced, err)
		}
		if _, err := os.Stat(path); err != nil || g.held != nil {
			t.Errorf("synced %v: %v, and it still holds %v", synced, err, g.held)
		}
	}
}

// TestGenLeavesOthersFilesWhereAllNamesAreTaken has as many gens of a path as can be distinguished
// from leftovers.
func TestGenLeavesOthersFilesWhereAllNamesAreTaken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	all := []string{path}
	for i := range genSlots {
		all = append(all, slot(path, i))
	}
	for _, name := range all {
		if err := os.WriteFile(name, []byte("another's"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	g := unnamed(t, path)
	if _, _, err := g.publish(true, false); err != nil {
		t.Error(err)
	}
	g, err := createNamed(path)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if strings.HasPrefix(filepath.Base(g.temporary), ".holdfast-gen-") {
		t.Errorf("%s identifies a path", g.temporary)
	}
	g.discard()
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != len(all) {
		t.Errorf("%v", entries)
	}
}

// TestWithoutLocksAGenHasANamedTemporary forbids flock(2) to one thread: it answers as of
// a file that has no locks.
func TestWithoutLocksAGenHasANamedTemporary(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	why := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with its goroutine
		defer close(why)
		if err := isolate.Forbid(unix.SYS_FLOCK, unix.EBADF, 0); err != nil {
			why <- err
			return
		}
		g, err := createFor(path)
		if err != nil || g.temporary != slot(path, 0) || g.held != nil {
			t.Errorf("%+v, %v", g, err)
			return
		}
		if err := errors.Join(g.Close(), publishError(g.publish(false, true))); err != nil {
			t.Error(err)
		}
	}()
	if err := <-why; err != nil {
		t.Skip("no filter of system calls: ", err)
	}
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
		t.Errorf("%v", entries)
	}
}
