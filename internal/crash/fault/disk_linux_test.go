package fault_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/crash/fault"
)

// A world is a Disk and a real directory in which the same calls are made.
type world struct {
	t     *testing.T
	d     *fault.Disk
	root  int // of the disk, and the real one
	dir   int
	files [][2]int // files that are open in both
}

// same checks that both say the same.
func (w *world) same(what string, disk, real error) bool {
	w.t.Helper()
	var one, two syscall.Errno
	errors.As(disk, &one)
	errors.As(real, &two)
	if one != two {
		w.t.Errorf("%s: %v, and really %v", what, disk, real)
	}
	return real == nil
}

var worldNames = []string{"x", "y", "s", "t", "s/x", "s/y", "s/t", "l", "dangling", "s/up", "s/..", ".", "loop", "x/y", "none/x", "l/x", "s/up/x"}

// step makes one call.
func (w *world) step(r *rand.Rand) {
	pick := func() string { return worldNames[r.IntN(len(worldNames))] }
	a, b := pick(), pick()
	switch r.IntN(8) {
	case 0, 1:
		w.open(a, []int{0, os.O_EXCL, os.O_TRUNC, os.O_APPEND}[r.IntN(4)]|[]int{0, os.O_CREATE, os.O_CREATE}[r.IntN(3)]|os.O_WRONLY)
	case 2, 3:
		w.write(r)
	case 4, 5:
		w.same("rename "+a+" "+b, w.d.Rename(w.root, name(a), name(b)), unix.Renameat(w.dir, a, w.dir, b))
	case 6:
		w.same("remove "+a, w.d.Remove(w.root, name(a)), unix.Unlinkat(w.dir, a, 0))
	case 7:
		w.same("mkdir "+a, w.d.Mkdir(name(below+a), 0o777), unix.Mkdirat(w.dir, a, 0o777))
	}
}

func (w *world) open(path string, flag int) {
	one, err := w.d.OpenFile(w.root, name(path), flag, 0o666)
	two, realErr := unix.Openat(w.dir, path, flag|unix.O_CLOEXEC, 0o666)
	if !w.same(fmt.Sprintf("open %s %#x", path, flag), err, realErr) {
		return
	}
	w.files = append(w.files, [2]int{one, two})
	if len(w.files) > 5 {
		w.close()
	}
}

func (w *world) close() {
	w.same("close", w.d.Close(w.files[0][0]), unix.Close(w.files[0][1]))
	w.files = w.files[1:]
}

// write writes to an open file, or cuts it.
func (w *world) write(r *rand.Rand) {
	if len(w.files) == 0 {
		return
	}
	f := w.files[r.IntN(len(w.files))]
	if r.IntN(4) == 0 {
		size := int64(r.IntN(20))
		w.same("truncate", w.d.Truncate(f[0], size), unix.Ftruncate(f[1], size))
		return
	}
	p := []byte("0123456789"[:1+r.IntN(9)])
	_, err := w.d.Write(f[0], p)
	_, realErr := unix.Write(f[1], p)
	w.same("write", err, realErr)
}

// compare checks that both show the same.
func (w *world) compare(dir string) {
	for _, path := range worldNames {
		one, err := w.d.Stat(w.root, name(path))
		var two unix.Stat_t
		realErr := unix.Fstatat(w.dir, path, &two, unix.AT_SYMLINK_NOFOLLOW)
		if !w.same("stat "+path, err, realErr) {
			continue
		}
		if one.Mode&unix.S_IFMT != two.Mode&unix.S_IFMT {
			w.t.Errorf("%s has mode %o, and really %o", path, one.Mode, two.Mode)
		}
		if two.Mode&unix.S_IFMT == unix.S_IFDIR {
			continue // its size and its links are the file system's own affair
		}
		if one.Size != two.Size || one.Links != uint64(two.Nlink) {
			w.t.Errorf("%s: %+v, and really %d bytes, %d links", path, one, two.Size, two.Nlink)
		}
		data, err := w.d.ReadFile(below + path)
		really, realErr := os.ReadFile(dir + path)
		if (err == nil) != (realErr == nil) || string(data) != string(really) {
			w.t.Errorf("%s holds %q, %v, and really %q, %v", path, data, err, really, realErr)
		}
	}
	for _, f := range w.files {
		one, err := w.d.StatFD(f[0])
		var two unix.Stat_t
		if w.same("fstat", err, unix.Fstat(f[1], &two)) && (one.Size != two.Size || one.Links != uint64(two.Nlink)) {
			w.t.Errorf("an open file: %+v, and really %d bytes, %d links", one, two.Size, two.Nlink)
		}
	}
}

// below is where the calls are made: as deep as symbolic links to ".." may lead up.
const below = "/w/w/w/"

// newWorld makes the same files in both.
func newWorld(t *testing.T, dir string) *world {
	d := fault.NewDisk()
	must(t, d.MkdirAll(below+"s"))
	must(t, os.MkdirAll(dir+"s", 0o777))
	for path, target := range map[string]string{"l": "s/x", "dangling": "s/new", "loop": "loop", "s/up": ".."} {
		must(t, d.Symlink(target, below+path))
		must(t, os.Symlink(target, dir+path))
	}
	must(t, d.WriteFile(below+"x", []byte("abc"), 0o644))
	must(t, os.WriteFile(dir+"x", []byte("abc"), 0o644))
	must(t, d.Link(below+"x", below+"s/x"))
	must(t, os.Link(dir+"x", dir+"s/x"))
	directory, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	must(t, err)
	return &world{t: t, d: d, root: openDir(t, d, below), dir: directory}
}

func TestDiskAnswersAsTheKernelDoes(t *testing.T) {
	for seed := range uint64(30) {
		dir := t.TempDir() + below
		w := newWorld(t, dir)
		r := rand.New(rand.NewPCG(seed, 0))
		for step := 0; step < 100 && !t.Failed(); step++ {
			w.step(r)
			w.compare(dir)
		}
		for len(w.files) > 0 {
			w.close()
		}
		must(t, unix.Close(w.dir))
		if v := w.d.Violations(); len(v) > 0 {
			t.Errorf("violations %s", strings.Join(v, "; "))
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}
