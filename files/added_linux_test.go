package files_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// onJournal mounts an ext4 with a journal, in an image of 64 MiB on a tmpfs of size room, and returns it.
func onJournal(t *testing.T, room string) (at string, again func()) {
	t.Helper()
	below, at := t.TempDir(), t.TempDir()
	if err := unix.Mount("holdfast-test", below, "tmpfs", 0, "size="+room); err != nil {
		t.Skip(err)
	}
	image := filepath.Join(below, "image")
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(image, 64<<20); err != nil {
		t.Fatal(err)
	}
	mount := []string{"mount", "-o", "loop,errors=continue", image, at}
	for _, line := range [][]string{{"mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,nodiscard", "-J", "size=4", image}, mount} {
		if out, err := exec.Command(line[0], line[1:]...).CombinedOutput(); err != nil {
			t.Skipf("%s: %v\n%s", line[0], err, out)
		}
	}
	t.Cleanup(func() {
		unix.Unmount(at, 0)
		unix.Unmount(below, unix.MNT_DETACH)
	})
	return at, func() {
		if err := unix.Unmount(at, 0); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(mount[0], mount[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
}

// add writes files of some size and gives them to a batch.
func add(t *testing.T, b *files.Batch, at string, count, size int) {
	t.Helper()
	for i := range count {
		f, err := os.Create(filepath.Join(at, fmt.Sprint(i)))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(bytes.Repeat([]byte{byte('a' + i%26)}, size)); err != nil {
			t.Fatal(err)
		}
		if err := b.Add(f); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAddedFilesShareASync of their file system, and hold a bounded number of descriptors.
func TestAddedFilesShareASync(t *testing.T) {
	isolate.Once(t)
	isolate.Mounts(t, func(t *testing.T) {
		at, _ := onJournal(t, "80m")
		set, err := files.New(files.Options{Policy: holdfast.Durable(), Handles: 64})
		if err != nil {
			t.Fatal(err)
		}
		defer set.Close()
		descriptors := func() int {
			all, err := os.ReadDir("/proc/self/fd")
			if err != nil {
				t.Fatal(err)
			}
			return len(all)
		}
		before := descriptors()
		b := set.Begin()
		add(t, b, at, 100, 5000)
		if now := descriptors(); now > before+64+32 {
			t.Errorf("%d descriptors are open, and %d were before", now, before)
		}
		totals, err := b.Commit(t.Context())
		if err != nil || totals.Durable != 100 || totals.NoJournal != 0 {
			t.Errorf("%+v, %v", totals, err)
		}
		if n := set.Stats().Syncs; n > 30 { // where other programs leave much to be written each is synced
			t.Logf("%d syncs for 100 files: the machine is busy", n)
		}
		b = set.Begin()
		add(t, b, at, 20, 5000)
		if err := b.Discard(); err != nil {
			t.Error(err)
		}
		set.Close()
		if now := descriptors(); now > before {
			t.Errorf("%d descriptors are open, and %d were before", now, before)
		}
	})
}

// TestAddedFilesThatTheDiskLosesAreNotDurable: the image is on a file system that has no room for all of it.
func TestAddedFilesThatTheDiskLosesAreNotDurable(t *testing.T) {
	isolate.Once(t)
	isolate.Mounts(t, func(t *testing.T) {
		const count, size = 20, 1 << 20
		at, again := onJournal(t, "20m")
		set, err := files.New(files.Options{Policy: holdfast.Durable()})
		if err != nil {
			t.Fatal(err)
		}
		defer set.Close()
		b := set.Begin()
		add(t, b, at, count, size)
		totals, err := b.Commit(t.Context())
		if err == nil || totals.Durable == count {
			t.Fatalf("%+v, %v: the disk has no room for them", totals, err)
		}
		again()
		whole := 0
		for i := range count {
			data, err := os.ReadFile(filepath.Join(at, fmt.Sprint(i)))
			if err == nil && bytes.Equal(data, bytes.Repeat([]byte{byte('a' + i%26)}, size)) {
				whole++
			}
		}
		if whole < totals.Durable {
			t.Errorf("%d files are there, and %d were said to be durable", whole, totals.Durable)
		}
	})
}
