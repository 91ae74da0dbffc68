package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast"
)

// pairs gives what is to be copied: destination, source, destination, source, and so on.
func pairs(names ...string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for i := 0; i < len(names); i += 2 {
			if !yield(names[i], names[i+1]) {
				return
			}
		}
	}
}

// copyAll copies one pair, and fails the test on an error.
func copyAll(t *testing.T, o holdfast.CopyOptions, dst, src string) holdfast.CopyTotals {
	t.Helper()
	totals, err := holdfast.CopyAll(context.Background(), pairs(dst, src), o)
	if err != nil {
		t.Fatal(err)
	}
	return totals
}

// A treeOf makes a random tree.
type treeOf struct {
	t     *testing.T
	r     *rand.Rand
	files []string
	made  map[string]int
	left  int
}

func randomTree(t *testing.T, r *rand.Rand, root string, names int) *treeOf {
	x := &treeOf{t: t, r: r, made: map[string]int{}, left: names}
	x.folder(root, 0)
	return x
}

// name is one that programs trip over.
func (x *treeOf) name(folder string) string {
	letters := []string{"a", "B", " ", "\n", "\xff", "ü", "*", "-", "'", `"`, "\\", "\t"}
	for {
		var b strings.Builder
		for range 1 + x.r.IntN(12) {
			b.WriteString(letters[x.r.IntN(len(letters))])
		}
		path := folder + "/" + b.String()
		if _, err := os.Lstat(path); err != nil {
			return path
		}
	}
}

func (x *treeOf) check(err error) {
	x.t.Helper()
	if err != nil {
		x.t.Fatal(err)
	}
}

func (x *treeOf) folder(path string, depth int) {
	x.check(os.Mkdir(path, 0o755))
	x.made["folders"]++
	for range x.r.IntN(14) {
		if x.left--; x.left < 0 {
			break
		}
		x.thing(x.name(path), depth)
	}
	x.dress(path, []fs.FileMode{0o755, 0o700, 0o500, 0o555, 0o775 | fs.ModeSticky})
}

func (x *treeOf) thing(path string, depth int) {
	switch kind := x.r.IntN(10); {
	case kind < 3 && depth < 6:
		x.folder(path, depth+1)
	case kind == 3:
		x.check(os.Symlink(x.name(x.t.TempDir()), path))
		x.check(unix.UtimesNanoAt(unix.AT_FDCWD, path, x.times(), unix.AT_SYMLINK_NOFOLLOW))
		x.made["links"]++
	case kind == 4 && len(x.files) > 0:
		x.check(os.Link(x.files[x.r.IntN(len(x.files))], path))
		x.made["hard links"]++
	default:
		x.file(path)
	}
}

func (x *treeOf) times() []unix.Timespec {
	return []unix.Timespec{{Sec: x.r.Int64N(1 << 31), Nsec: x.r.Int64N(1e9)}, {Sec: x.r.Int64N(1 << 31), Nsec: x.r.Int64N(1e9)}}
}

func (x *treeOf) file(path string) {
	f, err := os.Create(path)
	x.check(err)
	defer f.Close()
	for range x.r.IntN(4) {
		p := make([]byte, x.r.IntN(9000))
		for i := range p {
			p[i] = byte(x.r.Uint32())
		}
		_, err = f.WriteAt(p, x.r.Int64N(200_000)) // with holes before it
		x.check(err)
	}
	x.made["files"]++
	x.files = append(x.files, path)
	x.dress(path, []fs.FileMode{0o644, 0o600, 0o444, 0o755, 0o755 | fs.ModeSetuid})
}

func (x *treeOf) dress(path string, modes []fs.FileMode) {
	if os.Geteuid() == 0 && x.r.IntN(3) == 0 {
		x.check(os.Chown(path, 1000+x.r.IntN(3), 1000+x.r.IntN(3)))
	}
	if x.r.IntN(4) == 0 {
		if err := unix.Setxattr(path, "user.colour", []byte{byte(x.r.Uint32()), 0, 1}, 0); err != nil && err != unix.ENOTSUP {
			x.check(err)
		}
	}
	x.check(os.Chmod(path, modes[x.r.IntN(len(modes))]))
	x.check(unix.UtimesNanoAt(unix.AT_FDCWD, path, x.times(), 0))
}

// sameTrees compares all that a copy is to keep.
func sameTrees(t *testing.T, dst, src string, archive bool) {
	t.Helper()
	groups := map[[2]uint64]string{}
	seen := map[[2]uint64]string{}
	count := 0
	err := filepath.WalkDir(src, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		count++
		sameFile(t, dst+strings.TrimPrefix(path, src), path, archive)
		if archive && d.Type().IsRegular() {
			var a, b unix.Stat_t
			if unix.Lstat(path, &a) != nil || unix.Lstat(dst+strings.TrimPrefix(path, src), &b) != nil {
				return nil
			}
			from, to := [2]uint64{a.Dev, a.Ino}, [2]uint64{b.Dev, b.Ino}
			if other, ok := groups[from]; ok != (seen[to] != "") || ok && seen[to] != other {
				t.Errorf("%q: hard links were not kept", path)
			}
			groups[from] = path
			seen[to] = path
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	there := 0
	filepath.WalkDir(dst, func(string, fs.DirEntry, error) error { there++; return nil })
	if there != count {
		t.Errorf("%d names are there, want %d", there, count)
	}
}

func sameFile(t *testing.T, dst, src string, archive bool) {
	t.Helper()
	var a, b unix.Stat_t
	if err := unix.Lstat(src, &a); err != nil {
		t.Fatal(err)
	}
	if err := unix.Lstat(dst, &b); err != nil {
		t.Errorf("%q: %v", dst, err)
		return
	}
	bits := uint32(unix.S_IFMT | 0o777)
	if archive {
		bits |= 0o7000
	}
	if a.Mode&bits != b.Mode&bits {
		t.Errorf("%q: mode %o, want %o", dst, b.Mode, a.Mode)
	}
	if a.Mtim != b.Mtim {
		t.Errorf("%q: changed at %v, want %v", dst, b.Mtim, a.Mtim)
	}
	if archive && (a.Uid != b.Uid || a.Gid != b.Gid) {
		t.Errorf("%q: of %d:%d, want %d:%d", dst, b.Uid, b.Gid, a.Uid, a.Gid)
	}
	switch a.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		x, _ := os.Readlink(src)
		if y, err := os.Readlink(dst); x != y {
			t.Errorf("%q leads to %q, want %q: %v", dst, y, x, err)
		}
		return
	case unix.S_IFREG:
		x, _ := os.ReadFile(src)
		if y, err := os.ReadFile(dst); string(x) != string(y) {
			t.Errorf("%q: the bytes differ: %v", dst, err)
		}
	}
	if archive {
		x, y := make([]byte, 8), make([]byte, 8)
		n, _ := unix.Getxattr(src, "user.colour", x)
		m, _ := unix.Getxattr(dst, "user.colour", y)
		if n != m || n > 0 && string(x[:n]) != string(y[:m]) {
			t.Errorf("%q: its attribute is not kept", dst)
		}
	}
}

// copyPolicies is every way in which a tree is made durable, or not.
var copyPolicies = map[string]holdfast.CopyOptions{
	"never":       {},
	"each":        {Policy: holdfast.Policy{Sync: holdfast.SyncEach}},
	"close":       {Policy: holdfast.Policy{Sync: holdfast.SyncClose}},
	"atomic":      {Atomic: true},
	"atomic each": {Atomic: true, Policy: holdfast.Policy{Sync: holdfast.SyncEach}},
}

func TestTreesAreTheSameWhenTheyAreCopied(t *testing.T) {
	for name, o := range copyPolicies {
		for _, archive := range []bool{false, true} {
			for seed := range uint64(3) {
				t.Run(fmt.Sprintf("%s,archive=%v,seed=%d", name, archive, seed), func(t *testing.T) {
					o := o
					o.Archive, o.Workers = archive, 1+int(seed)
					folder := t.TempDir()
					x := randomTree(t, rand.New(rand.NewPCG(seed, 5)), folder+"/from", 120)
					told := 0
					o.Each = func(r holdfast.CopyResult) {
						told++
						durable := name != "never"
						if r.Err != nil || r.Durable != durable {
							t.Errorf("%q: durable %v, want %v: %v", r.Destination, r.Durable, durable, r.Err)
						}
					}
					totals := copyAll(t, o, folder+"/to", folder+"/from")
					sameTrees(t, folder+"/to", folder+"/from", archive)
					files, links := x.made["files"]+x.made["hard links"], x.made["links"]
					if archive {
						files, links = x.made["files"], links+x.made["hard links"]
					}
					if totals.Files != files || totals.Links != links || totals.Folders != x.made["folders"] || told != files+links+totals.Folders {
						t.Errorf("totals %+v and %d told, want %v", totals, told, x.made)
					}
					copyAll(t, o, folder+"/to", folder+"/from") // over what is there
					sameTrees(t, folder+"/to", folder+"/from", archive)
				})
			}
		}
	}
}

var _ = errors.Is
var _ = syscall.EIO
var _ = time.Now
