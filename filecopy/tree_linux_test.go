package filecopy_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/filecopy"
	"github.com/holdfast-go/holdfast/internal/filetest"
	"github.com/holdfast-go/holdfast/internal/isolate"
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
func copyAll(t *testing.T, o filecopy.Options, dst, src string) filecopy.Totals {
	t.Helper()
	totals, err := filecopy.All(context.Background(), pairs(dst, src), o)
	if err != nil {
		t.Fatal(err)
	}
	return totals
}

// removable lets also an ordinary user remove at the end what is in a directory.
func removable(t *testing.T, dir string) {
	t.Cleanup(func() {
		filepath.WalkDir(dir, func(path string, d fs.DirEntry, _ error) error {
			if d.IsDir() {
				os.Chmod(path, 0o700)
			}
			return nil
		})
	})
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
	x.dir(root, 0)
	return x
}

// name is one that programs trip over.
func (x *treeOf) name(dir string) string {
	letters := []string{"a", "B", " ", "\n", "\xff", "ü", "*", "-", "'", `"`, "\\", "\t"}
	for {
		var b strings.Builder
		for range 1 + x.r.IntN(12) {
			b.WriteString(letters[x.r.IntN(len(letters))])
		}
		path := dir + "/" + b.String()
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

func (x *treeOf) dir(path string, depth int) {
	x.check(os.Mkdir(path, 0o755))
	x.made["directories"]++
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
		x.dir(path, depth+1)
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
	one := func() unix.Timespec { return unix.NsecToTimespec(x.r.Int64N(1<<31)*1e9 + x.r.Int64N(1e9)) }
	return []unix.Timespec{one(), one()}
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
	} else if both := a.Mode >> 3 & a.Mode & 7; a.Gid != b.Gid && a.Mode&unix.S_IFMT != unix.S_IFLNK {
		a.Mode = a.Mode&^0o77 | both<<3 | both
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
var copyPolicies = map[string]filecopy.Options{
	"never":       {},
	"each":        {Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncEach}}},
	"close":       {Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncClose}}},
	"atomic":      {Atomic: true},
	"atomic each": {Atomic: true, Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncEach}}},
}

func TestTreesAreTheSameWhenTheyAreCopied(t *testing.T) {
	isolate.Once(t, isolate.Ordinary) // as TestTreesAreTheSameForAnOrdinaryUser
	copyTreesTwice(t)
}

// TestTreesAreTheSameForAnOrdinaryUser has what root has not: directories that may not be
// written in.
func TestTreesAreTheSameForAnOrdinaryUser(t *testing.T) {
	isolate.Once(t, isolate.Race)
	isolate.User(t, copyTreesTwice)
}

// copyTreesTwice copies random trees, also over what is there.
func copyTreesTwice(t *testing.T) {
	for name, o := range copyPolicies {
		for _, archive := range []bool{false, true} {
			for seed := range uint64(2) {
				if seed == 0 && isolate.RaceEnabled { // a worker is alone
					continue
				}
				t.Run(fmt.Sprintf("%s,archive=%v,seed=%d", name, archive, seed), func(t *testing.T) {
					o := o
					o.Archive, o.Workers = archive, 1+int(seed)
					dir := filetest.MemoryDir(t)
					if seed == 0 {
						dir = t.TempDir()
					}
					removable(t, dir)
					x := randomTree(t, rand.New(rand.NewPCG(seed+1, 5)), dir+"/from", 80)
					reports, size, copied := 0, int64(0), int64(0)
					o.Each = func(r filecopy.Result) {
						reports, size, copied = reports+1, size+r.Size, copied+r.Copied
						durable := name != "never"
						if r.Err != nil || r.Durable != durable {
							t.Errorf("%q: durable %v, want %v: %v", r.Destination, r.Durable, durable, r.Err)
						}
					}
					totals := copyAll(t, o, dir+"/to", dir+"/from")
					sameTrees(t, dir+"/to", dir+"/from", archive)
					files, links := x.made["files"]+x.made["hard links"], x.made["links"]
					if archive {
						files, links = x.made["files"], links+x.made["hard links"]
					}
					if totals.Files != files || totals.Links != links || totals.Dirs != x.made["directories"] || reports != files+links+totals.Dirs {
						t.Errorf("totals %+v and %d reports, want %v", totals, reports, x.made)
					}
					if totals.Size != size || totals.Copied != copied || copied == 0 {
						t.Errorf("totals %+v, and the results add up to %d bytes, %d of them copied", totals, size, copied)
					}
					copyAll(t, o, dir+"/to", dir+"/from") // over what is there
					sameTrees(t, dir+"/to", dir+"/from", archive)
				})
			}
		}
	}
}

// namesIn returns how many names are below a directory, and itself.
func namesIn(dir string) (n int) {
	filepath.WalkDir(dir, func(string, fs.DirEntry, error) error { n++; return nil })
	return n
}

func TestCopyAllRefusesWhatWouldEndInItself(t *testing.T) {
	dir := t.TempDir()
	from := dir + "/from"
	filetest.MustWrite(t, from+"/sub/file", "text")
	filetest.MustWrite(t, dir+"/file", "text")
	filetest.MustWrite(t, dir+"/other/file", "text")
	if err := os.Symlink(from+"/sub", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	before := namesIn(dir)
	check := func(want string, names ...string) {
		t.Helper()
		for i := range names {
			names[i] = dir + "/" + names[i]
		}
		totals, err := filecopy.All(context.Background(), pairs(names...), filecopy.Options{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: err = %v, want %q", names, err, want)
		}
		if totals.Failed != 1 || namesIn(dir) != before {
			t.Errorf("%q: %+v, and %d names are there, want %d", names, totals, namesIn(dir), before)
		}
	}
	check("copied into itself", "from/new", "from")
	check("copied into itself", "from/sub/new", "from")
	check("copied into itself", "from/sub", "from")
	check("copied into itself", "link/new", "from")
	check("copied into itself", "link", "from")
	check("are one directory", "from", "from")
	check("are one directory", "from/", "from/.")
	check("are one directory", "link", "from/sub")
	check("are one file", "file", "file")
	check("a file is where the directory must be", "file", "from")
	check("a directory is where the file must be", "other", "file")
	check("no such file", "new", "missing")
	check("no such file", "missing/new", "from")
}

func TestCopyAllRefusesTheSecondOfOneDestination(t *testing.T) {
	dir := t.TempDir()
	filetest.MustWrite(t, dir+"/a", "first")
	filetest.MustWrite(t, dir+"/b", "second")
	filetest.MustWrite(t, dir+"/to/old", "")
	totals, err := filecopy.All(context.Background(),
		pairs(dir+"/to/x", dir+"/a", dir+"/to/../to/x", dir+"/b"), filecopy.Options{KeepGoing: true})
	if err == nil || !strings.Contains(err.Error(), dir+"/a is copied there already") || totals.Files != 1 || totals.Failed != 1 {
		t.Errorf("%+v, %v", totals, err)
	}
	if text, _ := os.ReadFile(dir + "/to/x"); string(text) != "first" {
		t.Errorf("it holds %q", text)
	}
}

func TestSpecialFilesAreRefusedAndTheRestIsCopied(t *testing.T) {
	dir := t.TempDir()
	filetest.MustWrite(t, dir+"/from/a", "a")
	filetest.MustWrite(t, dir+"/from/z/z", "z")
	if err := unix.Mkfifo(dir+"/from/pipe", 0o600); err != nil {
		t.Fatal(err)
	}
	var refused []string
	totals, err := filecopy.All(context.Background(), pairs(dir+"/to", dir+"/from"), filecopy.Options{
		Each: func(r filecopy.Result) {
			if r.Err != nil {
				refused = append(refused, r.Source)
			}
		},
	})
	if totals.Refused != 1 || totals.Failed != 0 || totals.Files != 2 || len(refused) != 1 || refused[0] != dir+"/from/pipe" {
		t.Errorf("%+v, refused %q", totals, refused)
	}
	var failed *filecopy.Error
	if !errors.As(err, &failed) || failed.Op != "refuse" || !strings.Contains(err.Error(), "a named pipe") {
		t.Errorf("err = %v", err)
	}
}

func TestDirectoriesAreMergedAndLinksReplaced(t *testing.T) {
	dir := t.TempDir()
	filetest.MustWrite(t, dir+"/from/both/new", "new")
	filetest.MustWrite(t, dir+"/from/file", "new")
	filetest.MustWrite(t, dir+"/to/both/old", "old")
	filetest.MustWrite(t, dir+"/to/file", "old")
	filetest.MustWrite(t, dir+"/elsewhere", "elsewhere")
	for _, link := range [][2]string{{"new", "from/link"}, {"old", "to/link"}, {"from", "src"}} {
		if err := os.Symlink(link[0], dir+"/"+link[1]); err != nil {
			t.Fatal(err)
		}
	}
	copyAll(t, filecopy.Options{}, dir+"/to", dir+"/src")
	for name, want := range map[string]string{"both/new": "new", "both/old": "old", "file": "new"} {
		if text, err := os.ReadFile(dir + "/to/" + name); string(text) != want {
			t.Errorf("%s holds %q, want %q: %v", name, text, want, err)
		}
	}
	if to, _ := os.Readlink(dir + "/to/link"); to != "new" {
		t.Errorf("the link leads to %q", to)
	}
}

func TestADirectoryIsNotMergedIntoALinkOrAFile(t *testing.T) {
	dir := t.TempDir()
	filetest.MustWrite(t, dir+"/from/a/file", "new")
	filetest.MustWrite(t, dir+"/from/b/file", "new")
	filetest.MustWrite(t, dir+"/from/c", "new")
	filetest.MustWrite(t, dir+"/to/b", "old")
	filetest.MustWrite(t, dir+"/to/c/file", "old")
	filetest.MustWrite(t, dir+"/elsewhere/old", "old")
	if err := os.Symlink("../elsewhere", dir+"/to/a"); err != nil {
		t.Fatal(err)
	}
	totals, err := filecopy.All(context.Background(), pairs(dir+"/to", dir+"/from"), filecopy.Options{KeepGoing: true})
	if totals.Failed != 3 || err == nil {
		t.Errorf("%+v, %v", totals, err)
	}
	for _, want := range []string{"a symbolic link is where the directory must be", "a file is where the directory must be"} {
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("err = %v, want %q", err, want)
		}
	}
	if namesIn(dir+"/elsewhere") != 2 {
		t.Error("something was written where the link leads")
	}
}

func TestDeepAndWideTreesTakeFewDescriptors(t *testing.T) {
	if testing.Short() {
		t.Skip("it makes thousands of directories")
	}
	dir := filetest.MemoryDir(t)
	const levels, wide = 1000, 1500
	at, err := unix.Open(dir, unix.O_DIRECTORY, 0)
	for i := 0; i < levels && err == nil; i++ {
		name := "from"
		if i > 0 {
			name = strings.Repeat("deep", 10)
		}
		if err = unix.Mkdirat(at, name, 0o755); err == nil {
			var fd int
			fd, err = unix.Openat(at, name, unix.O_DIRECTORY, 0)
			unix.Close(at)
			at = fd
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(at)
	fd, err := unix.Openat(at, "bottom", unix.O_CREAT|unix.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(fd)
	for i := range wide {
		if err := os.Mkdir(fmt.Sprintf("%s/from/%d", dir, i), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, workers := range []int{3} {
		to := fmt.Sprintf("%s/to%d", dir, workers)
		most := 0
		o := filecopy.Options{Workers: workers}
		reports := 0
		o.Each = func(filecopy.Result) {
			if reports++; reports%100 == 0 {
				if fds, err := os.ReadDir("/proc/self/fd"); err == nil {
					most = max(most, len(fds))
				}
			}
		}
		totals := copyAll(t, o, to, dir+"/from")
		if totals.Dirs != levels+wide || totals.Files != 1 {
			t.Errorf("%+v", totals)
		}
		if most > 700 { // 9 for each of 64 that may wait for the disk, 32 that wait to be read on, and the tests' own
			t.Errorf("%d descriptors were open", most)
		}
	}
}

func TestOneFailingFileStopsOnlyACallThatDoesNotKeepGoing(t *testing.T) {
	dir := filetest.MemoryDir(t)
	const files = 300
	for i := range files {
		filetest.MustWrite(t, fmt.Sprintf("%s/from/%03d", dir, i), "text")
	}
	filetest.MustWrite(t, dir+"/to/007/old", "a directory is where a file must be")
	for _, keep := range []bool{true, false} {
		var failed []string
		totals, err := filecopy.All(context.Background(), pairs(dir+"/to", dir+"/from"), filecopy.Options{
			KeepGoing: keep, Workers: 2,
			Each: func(r filecopy.Result) {
				if r.Err != nil {
					failed = append(failed, r.Destination)
				}
			},
		})
		if err == nil || totals.Failed != 1 || len(failed) != 1 || failed[0] != dir+"/to/007" {
			t.Errorf("keep=%v: %+v, failed %q, %v", keep, totals, failed, err)
		}
		if keep && totals.Files != files-1 || !keep && totals.Files >= files-1 {
			t.Errorf("keep=%v: %d files", keep, totals.Files)
		}
	}
}

func TestManyFailuresAreCountedAndSomeAreReported(t *testing.T) {
	dir := filetest.MemoryDir(t)
	for i := range 130 {
		if err := os.MkdirAll(dir+"/from", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mkfifo(fmt.Sprintf("%s/from/%d", dir, i), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	totals, err := filecopy.All(context.Background(), pairs(dir+"/to", dir+"/from"), filecopy.Options{})
	lines := strings.Split(fmt.Sprint(err), "\n")
	if totals.Refused != 130 || len(lines) != 10 || lines[9] != "and 121 more" {
		t.Errorf("%d refused, %d lines, the last %q", totals.Refused, len(lines), lines[len(lines)-1])
	}
	if all, ok := err.(interface{ Unwrap() []error }); !ok || len(all.Unwrap()) != 100 {
		t.Errorf("%T has not 100 errors", err)
	}
}

func TestACancelledCopyLeavesWholeFilesAndItsDirectories(t *testing.T) {
	dir := filetest.MemoryDir(t)
	for i := range 400 {
		filetest.MustWrite(t, fmt.Sprintf("%s/from/%d/%d", dir, i%7, i), strings.Repeat("text", i))
	}
	goroutines := runtime.NumGoroutine()
	for seed := range uint64(5) {
		for name, o := range copyPolicies {
			to := fmt.Sprintf("%s/to-%s-%d", dir, name, seed)
			ctx, cancel := context.WithCancelCause(context.Background())
			stopped := errors.New("stopped")
			after := rand.New(rand.NewPCG(seed, 9)).IntN(300)
			reports := 0
			o.Workers = 3
			o.Each = func(filecopy.Result) {
				if reports++; reports == after {
					cancel(stopped)
				}
			}
			if name == "close" || name == "atomic" {
				go func() { // before any is reported
					for range after * 10 {
						os.Lstat(to)
					}
					cancel(stopped)
				}()
			}
			_, err := filecopy.All(ctx, pairs(to, dir+"/from"), o)
			if err != nil && !errors.Is(err, stopped) {
				t.Errorf("%s: err = %v", name, err)
			}
			cancel(nil)
			filepath.WalkDir(to, func(path string, d fs.DirEntry, err error) error {
				if err == nil && d.Type().IsRegular() {
					has, _ := os.ReadFile(path)
					if want, err := os.ReadFile(dir + "/from" + strings.TrimPrefix(path, to)); err != nil || string(has) != string(want) {
						t.Errorf("%s: %s holds %d bytes, want %d: %v", name, path, len(has), len(want), err)
					}
				}
				return nil
			})
		}
	}
	for start := time.Now(); runtime.NumGoroutine() > goroutines+12; runtime.Gosched() {
		if time.Since(start) > time.Minute {
			t.Fatalf("%d goroutines, at first %d", runtime.NumGoroutine(), goroutines)
		}
	}
}

func TestProgressReachesTheTotals(t *testing.T) {
	dir := filetest.MemoryDir(t)
	var bytes int64
	for i := range 200 {
		filetest.MustWrite(t, fmt.Sprintf("%s/from/%d/%d", dir, i%3, i), strings.Repeat("x", i))
		bytes += int64(i)
	}
	filetest.MustWrite(t, dir+"/single", "12345")
	var last filecopy.Progress
	calls := 0
	start := time.Now()
	_, err := filecopy.All(context.Background(), pairs(dir+"/to", dir+"/from", dir+"/other", dir+"/single"),
		filecopy.Options{Progress: func(p filecopy.Progress) {
			if p.Bytes > p.BytesTotal || p.Files > p.FilesTotal || p.Bytes < last.Bytes || p.BytesTotal < last.BytesTotal {
				t.Errorf("%+v after %+v", p, last)
			}
			last = p
			calls++
		}})
	if err != nil {
		t.Fatal(err)
	}
	if last.Files != 201 || last.Bytes != bytes+5 || !last.Listed || last.FilesTotal != 201 || last.BytesTotal != bytes+5 {
		t.Errorf("%+v", last)
	}
	if most := int(time.Since(start)/(50*time.Millisecond)) + 2; calls < 1 || calls > most {
		t.Errorf("reported %d times, want 1 to %d", calls, most)
	}
}

func TestVerifyComparesEveryFileOfATree(t *testing.T) {
	dir := t.TempDir() // of a disk: what is only in memory can't be read back
	for i := range 20 {
		filetest.MustWrite(t, fmt.Sprintf("%s/from/%d/%d", dir, i%3, i), strings.Repeat("x", 1+i))
	}
	verified := 0
	totals, err := filecopy.All(context.Background(), pairs(dir+"/to", dir+"/from"), filecopy.Options{
		Verify: true,
		Each: func(r filecopy.Result) {
			if r.Verified {
				verified++
			}
		},
	})
	if err != nil && strings.Contains(err.Error(), "page cache") {
		t.Skipf("files can't be evicted here: %v", err)
	}
	if err != nil || verified != 20 || totals.Files != 20 {
		t.Errorf("%d verified, %+v, %v", verified, totals, err)
	}
}
