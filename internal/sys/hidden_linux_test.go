package sys

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// The temporary directory is taken for a mount that hides removed files. Such a file has a name
// then, which another link stands for here.
func TestARemovedFileThatIsHiddenHasNoName(t *testing.T) {
	if _, err := os.Readlink("/proc/self/fd/0"); err != nil {
		t.Skipf("no /proc: %v", err)
	}
	dir := t.TempDir()
	check := func(name string, hides bool, remove bool, want uint64) {
		t.Helper()
		path := filepath.Join(dir, name)
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := os.Link(path, path+".hidden"); err != nil {
			t.Fatal(err)
		}
		if remove {
			err = os.Remove(path)
		} else {
			err = os.Remove(path + ".hidden")
		}
		if err != nil {
			t.Fatal(err)
		}
		was, known := hiding.Swap(mountOf(t, f), hides)
		defer func() {
			if known {
				hiding.Store(mountOf(t, f), was)
			} else {
				hiding.Delete(mountOf(t, f))
			}
		}()
		if is, err := (Disk{}).StatFD(int(f.Fd())); err != nil || is.Links != want {
			t.Errorf("%s, hides %v, removed %v: %d links, %v; want %d", name, hides, remove, is.Links, err, want)
		}
	}
	check("kept", true, false, 1)
	check("removed", true, true, 0)
	check("known", false, true, 1)
	check("named (deleted)", true, false, 1)
	check(".nfs000000000a", true, false, 0)
}

// mountOf returns the number of a file's mount, which no other ever gets.
func mountOf(t *testing.T, f *os.File) uint64 {
	t.Helper()
	var s unix.Statx_t
	if err := unix.Statx(int(f.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_MNT_ID_UNIQUE, &s); err != nil || s.Mask&unix.STATX_MNT_ID_UNIQUE == 0 {
		t.Skipf("before Linux 6.8 a mount's number is given again: %v", err)
	}
	return s.Mnt_id
}

// TestWhatHidesIsAskedOfEachMount: the number of a mounted device is the next one's too.
func TestWhatHidesIsAskedOfEachMount(t *testing.T) {
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	was, known := hiding.Swap(uint64(0), true)
	if known {
		t.Errorf("of a mount without a number it was noted that it hides: %v", was)
	}
	defer hiding.Delete(uint64(0))
	mount := mountOf(t, f)
	hiding.Delete(mount)
	if _, err := (Disk{}).StatFD(int(f.Fd())); err != nil {
		t.Fatal(err)
	}
	if hides, known := hiding.Load(mount); !known || hides.(bool) {
		t.Errorf("noted: %v, hides: %v", known, hides)
	}
}
