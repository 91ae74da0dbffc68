package fault_test

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast/internal/crash/fault"
	"github.com/holdfast-go/holdfast/internal/sys"
)

func name(path string) sys.Name {
	n, err := sys.NewName(path)
	if err != nil {
		panic(err)
	}
	return n
}

// must ends the test on an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func openDir(t *testing.T, d *fault.Disk, path string) int {
	t.Helper()
	fd, err := d.OpenDir(name(path))
	must(t, err)
	return fd
}

const appending = os.O_WRONLY | os.O_APPEND | os.O_CREATE

func openFile(t *testing.T, d *fault.Disk, dir int, base string, flag int) int {
	t.Helper()
	fd, err := d.OpenFile(dir, name(base), flag, 0o666)
	must(t, err)
	return fd
}

func put(t *testing.T, d *fault.Disk, fd int, p string) {
	t.Helper()
	if n, err := d.Write(fd, []byte(p)); n != len(p) || err != nil {
		t.Fatalf("Write(%q) = %d, %v", p, n, err)
	}
}

func holds(t *testing.T, d *fault.Disk, path, want string) {
	t.Helper()
	if got, err := d.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s holds %q, %v; want %q", path, got, err, want)
	}
}

func TestOpenFlagsDoWhatTheySay(t *testing.T) {
	d := fault.NewDisk()
	must(t, d.WriteFile("/old", []byte("abc"), 0o644))
	root := openDir(t, d, ".")
	check := func(base string, flag int, p, want string) {
		t.Helper()
		fd := openFile(t, d, root, base, flag)
		put(t, d, fd, p)
		must(t, d.Close(fd))
		holds(t, d, base, want)
	}
	check("old", os.O_WRONLY|os.O_APPEND, "d", "abcd")
	check("old", os.O_WRONLY, "x", "xbcd")
	check("old", os.O_WRONLY|os.O_TRUNC, "y", "y")
	check("new", os.O_WRONLY|os.O_CREATE|os.O_EXCL, "n", "n")
	refused := func(base string, flag int, want error) {
		t.Helper()
		if fd, err := d.OpenFile(root, name(base), flag, 0o666); fd != -1 || !errors.Is(err, want) {
			t.Errorf("OpenFile(%s) = %d, %v; want %v", base, fd, err, want)
		}
	}
	refused("new", os.O_WRONLY|os.O_CREATE|os.O_EXCL, syscall.EEXIST)
	refused("none", os.O_WRONLY, syscall.ENOENT)
	refused(".", os.O_WRONLY, syscall.EISDIR)
	must(t, d.Close(root))
	if n := d.Open(); n != 0 || d.MostOpen() != 2 || len(d.Violations()) != 0 {
		t.Errorf("%d open, %d at most, violations %q", n, d.MostOpen(), d.Violations())
	}
}

func fails(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("err = %v, want %v", err, want)
	}
}
