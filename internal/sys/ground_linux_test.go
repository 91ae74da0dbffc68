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
		opened(fd, 0)
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

// TestNewFileIsOfItsDirectorysFileSystem: what is known of a directory is known of a file that is made in it, and of no other.
func TestNewFileIsOfItsDirectorysFileSystem(t *testing.T) {
	const other = unix.TMPFS_MAGIC + 1 // no file system's
	dir := openDir(t, t.TempDir())
	groundOf(dir).kind.Store(other)
	check := func(name string, flag int, want uint32) {
		t.Helper()
		fd := openFile(t, dir, name, os.O_WRONLY|flag, 0o666)
		if got := groundOf(fd).kind.Load(); got != want {
			t.Errorf("%s, flags %#x: %#x is kept, want %#x", name, flag, got, want)
		}
	}
	check("made", os.O_CREATE|os.O_EXCL, other)
	check("made", os.O_CREATE, 0) // it is there, and may be a mount
	check("./below", os.O_CREATE|os.O_EXCL, 0)
}

// TestJournalIsLookedForOncePerMount: files.WriteFile opens its directory each time, and reads nothing of /sys again.
func TestJournalIsLookedForOncePerMount(t *testing.T) {
	f, err := os.Create(t.TempDir() + "/file")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fd, mount := int(f.Fd()), mountOf(t, f)
	if fileSystem(fd) != unix.EXT4_SUPER_MAGIC {
		t.Skip("the temporary directory is not on ext4")
	}
	lacks := Disk{}.LacksJournal(fd)
	if kept, known := journalless.Load(mount); !known || kept.(bool) != lacks {
		t.Errorf("kept: %v, %v; want %v", known, kept, lacks)
	}
	journalless.Store(mount, !lacks)
	defer journalless.Store(mount, lacks)
	if (Disk{}).LacksJournal(fd) == lacks {
		t.Error("it is looked for again")
	}
}
