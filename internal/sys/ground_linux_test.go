package sys

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestDiskAsksForTheFileSystemOnce: what is kept of a descriptor is of the file that has the number, and of a file that others
// have opened nothing is kept.
func TestDiskAsksForTheFileSystemOnce(t *testing.T) {
	const other = unix.TMPFS_MAGIC + 1 // no file system's
	dir := openDir(t, t.TempDir())
	fd := openFile(t, dir, "file", os.O_WRONLY|os.O_CREATE, 0o666)
	is := fileSystem(fd)
	kept := func() uint32 {
		if g := groundOf(fd); g != nil {
			return g.kind.Load()
		}
		return 0
	}
	for name, sync := range map[string]func() error{
		"Sync":     func() error { return Disk{}.Sync(fd) },
		"Datasync": func() error { return Disk{}.Datasync(fd) },
		"WriteAtDurably": func() error {
			_, err := Disk{}.WriteAtDurably(fd, []byte("x"), 0)
			return err
		},
	} {
		opened(fd)
		if err := sync(); err != nil || kept() != is {
			t.Errorf("%s: %v; of the file system %#x is kept, want %#x", name, err, kept(), is)
		}
		groundOf(fd).kind.Store(other)
		if err := sync(); err != nil || kept() != other {
			t.Errorf("%s asks again: %v, %#x", name, err, kept())
		}
	}
	if err := (Disk{}).Close(fd); err != nil || kept() != 0 {
		t.Errorf("after Close %#x is kept: %v", kept(), err)
	}
	again := openFile(t, dir, "other", os.O_WRONLY|os.O_CREATE, 0o666) // the same number
	if again != fd || kept() != 0 {
		t.Skipf("another goroutine has taken descriptor %d", fd)
	}
	if err := (Disk{}).Datasync(fd); err != nil || kept() != is {
		t.Errorf("the next file of the number: %v, %#x is kept, want %#x", err, kept(), is)
	}
	if err := (Disk{}).Close(fd); err != nil {
		t.Error(err)
	}
	f, err := os.Create(t.TempDir() + "/theirs")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := (Disk{}).Datasync(int(f.Fd())); err != nil || groundOf(int(f.Fd())) != nil {
		t.Errorf("of a file of package os something is kept: %v", err)
	}
	if groundOf(-1) != nil || groundOf(1<<30) != nil {
		t.Error("there is something of no descriptor")
	}
}
