package sys

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/isolate"
)

// bothWays asks cachestat and mincore for the same file.
func bothWays(t *testing.T, f *os.File, want Residency) {
	t.Helper()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	for source, ask := range map[string]func(int, int64) (Residency, error){fromCachestat: byCachestat, fromMincore: byMincore} {
		got, err := ask(int(f.Fd()), info.Size())
		if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
			t.Logf("%s is not to be had: %v", source, err)
			continue
		}
		want.Source = source
		if err != nil || got != want {
			t.Errorf("%d bytes: %+v, %v; want %+v", info.Size(), got, err, want)
		}
	}
}

func TestPageCacheBeforeAndAfterEviction(t *testing.T) {
	dir := isolate.OnDisk(t)
	page := os.Getpagesize()
	for size, pages := range map[int]int64{1: 1, page: 1, page + 1: 2, 7*page + 100: 8, 300*page - 1: 300} {
		path := filepath.Join(dir, "file")
		f := isolate.NewFile(t, path, size)
		bothWays(t, f, Residency{Pages: pages, Resident: pages})
		if err := Evict(f); err != nil {
			t.Fatal(err)
		}
		bothWays(t, f, Residency{Pages: pages})
		if r, err := PageCache(f); err != nil || r.Pages != pages || r.Resident != 0 {
			t.Errorf("after eviction: %+v, %v", r, err)
		}
		if got, err := os.ReadFile(path); err != nil || len(got) != size {
			t.Errorf("read %d bytes of %d: %v", len(got), size, err)
		}
		bothWays(t, f, Residency{Pages: pages, Resident: pages})
		os.Remove(path)
	}
}

func TestPageCacheOfAnEmptyFile(t *testing.T) {
	f := isolate.NewFile(t, filepath.Join(t.TempDir(), "file"), 0)
	bothWays(t, f, Residency{})
	if err := Evict(f); err != nil {
		t.Error(err)
	}
}

func TestPageCacheOfAHoleIsEmpty(t *testing.T) {
	f := isolate.NewFile(t, filepath.Join(isolate.OnDisk(t), "file"), 0)
	if err := f.Truncate(int64(5 * os.Getpagesize())); err != nil {
		t.Fatal(err)
	}
	bothWays(t, f, Residency{Pages: 5})
}

func TestPageCacheSeesAPageBehindTheFirstWindow(t *testing.T) {
	f := isolate.NewFile(t, filepath.Join(isolate.OnDisk(t), "file"), 0)
	if _, err := f.WriteAt([]byte("x"), mincoreWindow+10); err != nil {
		t.Fatal(err)
	}
	bothWays(t, f, Residency{Pages: mincoreWindow/int64(os.Getpagesize()) + 1, Resident: 1})
}

func TestPageCacheInMemoryStays(t *testing.T) {
	const dir = "/dev/shm"
	if info, err := os.Stat(dir); err != nil || !info.IsDir() || !isolate.InMemory(t, dir) {
		t.Skipf("no tmpfs on %s", dir)
	}
	temp, err := os.MkdirTemp(dir, "holdfast")
	if err != nil {
		t.Skip(err)
	}
	defer os.RemoveAll(temp)
	f := isolate.NewFile(t, filepath.Join(temp, "file"), 3*os.Getpagesize())
	if err := Evict(f); err != nil {
		t.Fatal(err)
	}
	bothWays(t, f, Residency{Pages: 3, Resident: 3})
}

func TestPageCacheRefuses(t *testing.T) {
	check := func(open func() (*os.File, error), want string) {
		t.Helper()
		f, err := open()
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		if _, err := PageCache(f); err == nil {
			t.Errorf("%s: closed, and no error", f.Name())
		}
		f, err = open()
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := PageCache(f); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", f.Name(), err, want)
		}
	}
	check(func() (*os.File, error) { return os.Open(t.TempDir()) }, "not a regular file")
	check(func() (*os.File, error) { return os.Open("/dev/null") }, "not a regular file")
}

func TestMincoreNeedsAReader(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	isolate.NewFile(t, path, 10)
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := byMincore(int(f.Fd()), 10); err == nil || !strings.Contains(err.Error(), "for reading") {
		t.Errorf("err = %v, want that the file is to be opened for reading", err)
	}
}

// Without the right to write, mincore would call every page resident.
func TestPageCacheOfAForeignFileIsAnError(t *testing.T) {
	const nobody = 65534
	if os.Geteuid() == 0 {
		asUser(t, nobody)
		return
	}
	f, err := os.Open("/etc/passwd")
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	if _, err := byMincore(int(f.Fd()), 1); err == nil || !strings.Contains(err.Error(), "owner") {
		t.Errorf("mincore: err = %v, want one that names the owner", err)
	}
	// The kernels before 6.13 have cachestat answer every user.
	if r, err := PageCache(f); err == nil && r.Source != fromCachestat {
		t.Errorf("PageCache = %+v of a file that is not ours", r)
	}
}

// asUser runs this test in a child process of another user.
func asUser(t *testing.T, id uint32) {
	t.Helper()
	binary := filepath.Join(os.TempDir(), filepath.Base(t.TempDir())+filepath.Base(os.Args[0]))
	text, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(binary, text, 0o755); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(binary)
	child := exec.Command(binary, isolate.OnlyThis(t), "-test.v")
	child.Dir = "/"
	child.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: id, Gid: id}}
	out, err := child.CombinedOutput()
	if errors.Is(err, os.ErrPermission) {
		t.Skipf("no process of user %d: %v", id, err)
	}
	if err != nil {
		t.Fatalf("as user %d: %v\n%s", id, err, out)
	}
	if strings.Contains(string(out), "--- SKIP") {
		t.Skipf("as user %d:\n%s", id, out)
	}
}

// Without mount, the overlay's own pages would be counted: none, always.
func TestPageCacheOnOverlay(t *testing.T) {
	isolate.Mounts(t, func(t *testing.T) {
		dir := isolate.OnDisk(t)
		var at [4]string
		for i, name := range []string{"lower", "upper", "work", "all"} {
			at[i] = filepath.Join(dir, name)
			if err := os.Mkdir(at[i], 0o777); err != nil {
				t.Fatal(err)
			}
		}
		options := "lowerdir=" + at[0] + ",upperdir=" + at[1] + ",workdir=" + at[2]
		if err := unix.Mount("overlay", at[3], "overlay", 0, options); err != nil {
			t.Skipf("no overlay: %v", err)
		}
		defer unix.Unmount(at[3], unix.MNT_DETACH)
		f := isolate.NewFile(t, filepath.Join(at[3], "file"), 5*os.Getpagesize())
		want := Residency{Pages: 5, Resident: 5, Source: fromMincore}
		if r, err := PageCache(f); err != nil || r != want {
			t.Errorf("%+v, %v; want %+v", r, err, want)
		}
		if err := Evict(f); err != nil {
			t.Fatal(err)
		}
		want.Resident = 0
		if r, err := PageCache(f); err != nil || r != want {
			t.Errorf("after eviction: %+v, %v; want %+v", r, err, want)
		}
	})
}
