package sys

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestHandleAsksForTheFileSystemOnce: its answer is kept, and decides how links are counted. Where removed files are hidden,
// another link stands for the hidden name.
func TestHandleAsksForTheFileSystemOnce(t *testing.T) {
	check := func(kind uint32, removed bool, want uint64) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "file")
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := os.Link(path, path+".hidden"); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(map[bool]string{true: path, false: path + ".hidden"}[removed]); err != nil {
			t.Fatal(err)
		}
		h, err := NewHandle(f)
		if err != nil {
			t.Fatal(err)
		}
		if kind == 0 {
			kind = fileSystem(int(f.Fd()))
		} else {
			h.ground.kind.Store(kind)
			was, known := hiding.Swap(mountOf(t, f), true)
			defer func() {
				if hiding.Delete(mountOf(t, f)); known {
					hiding.Store(mountOf(t, f), was)
				}
			}()
		}
		links, err := h.Links()
		if links != want || err != nil || h.Datasync() != nil || h.ground.kind.Load() != kind {
			t.Errorf("%#x, removed %v: %d links, %v, of a file system %#x; want %d", kind, removed, links, err, h.ground.kind.Load(), want)
		}
	}
	check(0, false, 1)
	check(0, true, 1) // the other link counts
	check(unix.EXT4_SUPER_MAGIC, true, 1)
	check(unix.FUSE_SUPER_MAGIC, true, 0)
	check(unix.NFS_SUPER_MAGIC, false, 1)
}

// BenchmarkBehindASync times the calls that follow each fdatasync(2) of a Writer.
func BenchmarkBehindASync(b *testing.B) {
	f, err := os.Create(filepath.Join(b.TempDir(), "file"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	h, err := NewHandle(f)
	if err != nil {
		b.Fatal(err)
	}
	run := func(name string, call func() error) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := call(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	run("links", func() error { _, err := h.Links(); return err })
	run("refusal", func() error { return refusal(int(f.Fd())) })
	run("fstatfs", func() error { fileSystem(int(f.Fd())); return nil })
	run("StatFD", func() error { _, err := Disk{}.StatFD(int(f.Fd())); return err })
}
