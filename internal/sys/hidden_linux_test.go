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
		was, known := hiding.Swap(statDevice(t, f), hides)
		defer func() {
			if known {
				hiding.Store(statDevice(t, f), was)
			} else {
				hiding.Delete(statDevice(t, f))
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

func statDevice(t *testing.T, f *os.File) uint64 {
	t.Helper()
	is, err := stat(int(f.Fd()), "", unix.AT_EMPTY_PATH)
	if err != nil {
		t.Fatal(err)
	}
	return is.Device
}
