package sys

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/isolate"
)

// TestSyncsAskTheKernel has a filter answer each call that makes something durable. A
// sync that is counted but not made, or made by half, does not see the answer.
func TestSyncsAskTheKernel(t *testing.T) {
	check := func(name string, number uint32, sync func(f, dir *os.File) error) {
		t.Run(name, func(t *testing.T) {
			isolate.Process(t, func(t *testing.T) {
				dir, err := os.Open(t.TempDir())
				if err != nil {
					t.Fatal(err)
				}
				f, err := os.Create(filepath.Join(dir.Name(), "file"))
				if err != nil {
					t.Fatal(err)
				}
				const answer = unix.EDOM // no file system's
				if err := sync(f, dir); err != nil {
					t.Fatalf("without the filter: %v", err)
				}
				if err := isolate.Forbid(number, answer, unix.SECCOMP_FILTER_FLAG_TSYNC); err != nil {
					t.Skipf("no filter: %v", err)
				}
				if err := sync(f, dir); !errors.Is(err, answer) {
					t.Errorf("the kernel's answer was %v, and it returned %v", answer, err)
				}
			})
		})
	}
	check("Handle.Datasync", unix.SYS_FDATASYNC, func(f, _ *os.File) error {
		h, err := NewHandle(f)
		if err != nil {
			return err
		}
		return h.Datasync()
	})
	check("SyncDir", unix.SYS_FSYNC, func(_, dir *os.File) error { return SyncDir(dir) })
	check("Disk.Sync", unix.SYS_FSYNC, func(f, _ *os.File) error { return Disk{}.Sync(int(f.Fd())) })
	check("Disk.Datasync", unix.SYS_FDATASYNC, func(f, _ *os.File) error { return Disk{}.Datasync(int(f.Fd())) })
	check("Disk.SyncAll, the file system", unix.SYS_SYNCFS, func(_, dir *os.File) error { return Disk{}.SyncAll(int(dir.Fd())) })
	check("Disk.SyncAll, the directory behind it", unix.SYS_FSYNC, func(_, dir *os.File) error { return Disk{}.SyncAll(int(dir.Fd())) })
	check("Evict", unix.SYS_FDATASYNC, func(f, _ *os.File) error { return Evict(f) })
}

// TestInterruptedCloseIsOver has a filter interrupt every close. The number is free by then, and
// may be another goroutine's file, so it is not closed again.
func TestInterruptedCloseIsOver(t *testing.T) {
	isolate.Process(t, func(t *testing.T) {
		f, err := os.Create(filepath.Join(t.TempDir(), "file"))
		if err != nil {
			t.Fatal(err)
		}
		if err := isolate.Forbid(unix.SYS_CLOSE, unix.EINTR, unix.SECCOMP_FILTER_FLAG_TSYNC); err != nil {
			t.Skipf("no filter: %v", err)
		}
		if err := (Disk{}).Close(int(f.Fd())); err != nil {
			t.Errorf("an interrupted close is reported as %v", err)
		}
	})
}

// TestDiskOpensWithoutWaiting looks at how a file was opened: with O_NONBLOCK, without which a pipe
// that no process reads would block.
func TestDiskOpensWithoutWaiting(t *testing.T) {
	dir := openDir(t, t.TempDir())
	fd := openFile(t, dir, "file", os.O_WRONLY|os.O_CREATE, 0o666)
	defer Disk{}.Close(fd)
	if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0); err != nil || flags&unix.O_NONBLOCK == 0 {
		t.Errorf("opened with %#o, %v; want O_NONBLOCK among these", flags, err)
	}
}

// TestOnlyKnownFileSystemsAreSyncedAsAWhole mounts two that syncfs says nothing for: an
// overlay hands it to another file system, and one in memory has nothing to sync.
func TestOnlyKnownFileSystemsAreSyncedAsAWhole(t *testing.T) {
	isolate.Mounts(t, func(t *testing.T) {
		dir := t.TempDir()
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, ""); err != nil {
			t.Skipf("no tmpfs: %v", err)
		}
		defer unix.Unmount(dir, unix.MNT_DETACH)
		at := map[string]string{}
		for _, name := range []string{"lower", "upper", "work", "both"} {
			at[name] = filepath.Join(dir, name)
			supported(t, os.Mkdir(at[name], 0o777))
		}
		is := func(path string) bool {
			f, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			return Disk{}.SyncsAll(int(f.Fd()))
		}
		if is(dir) {
			t.Error("a tmpfs is reported to be synced as a whole")
		}
		options := "lowerdir=" + at["lower"] + ",upperdir=" + at["upper"] + ",workdir=" + at["work"]
		if err := unix.Mount("overlay", at["both"], "overlay", 0, options); err != nil {
			t.Skipf("no overlay: %v", err)
		}
		defer unix.Unmount(at["both"], unix.MNT_DETACH)
		if is(at["both"]) {
			t.Error("an overlay is reported to be synced as a whole")
		}
	})
}
