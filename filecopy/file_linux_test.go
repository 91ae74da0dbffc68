package filecopy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/isolate"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// A holed file is made of pieces of data, of holes and of room that was never written.
type holed struct {
	size   int64
	pieces []piece
}

type piece struct {
	sys.Range
	unwritten bool
}

// newHoled draws a file: of a size at and around the edges of blocks, buffers and small
// copies, with few or many pieces.
func newHoled(r *rand.Rand) holed {
	sizes := []int64{0, 1, 511, 4095, 4096, 4097, smallCopy - 1, smallCopy, smallCopy + 1, worthAllocating, copyBuffer*3 + 5}
	h := holed{size: sizes[r.IntN(len(sizes))] + r.Int64N(3)*4096}
	for at := int64(0); at < h.size; {
		end := min(h.size, at+1+r.Int64N(1<<(10+r.IntN(11))))
		if r.IntN(2) == 0 {
			end = min(h.size, (end+4095)&^4095)
		}
		switch r.IntN(4) {
		case 0:
		case 1:
			h.pieces = append(h.pieces, piece{sys.Range{At: at, End: end}, true})
		default:
			h.pieces = append(h.pieces, piece{sys.Range{At: at, End: end}, false})
		}
		at = end
	}
	if r.IntN(4) == 0 {
		h.size += 1 << 20 // a hole at the end
	}
	return h
}

func (h holed) make(t *testing.T, path string, r *rand.Rand) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	must(t, f.Truncate(h.size))
	for _, p := range h.pieces {
		if p.unwritten {
			if err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, p.At, p.End-p.At); err != nil && !cannot(err) {
				t.Fatal(err)
			}
			continue
		}
		data := make([]byte, p.End-p.At)
		for i := range data {
			data[i] = byte(r.Uint32()) | 1
		}
		if _, err := f.WriteAt(data, p.At); err != nil {
			t.Fatal(err)
		}
	}
	must(t, f.Sync())
}

// evict writes a file to the disk and drops its pages.
func evict(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return errors.Join(f.Sync(), unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED))
}

// dataMap is where a file's data is, as the system reports it.
func dataMap(t *testing.T, path string) (all []sys.Range) {
	t.Helper()
	f, err := os.Open(path)
	must(t, err)
	defer f.Close()
	for at := int64(0); ; {
		begin, err := unix.Seek(int(f.Fd()), at, unix.SEEK_DATA)
		if errors.Is(err, syscall.ENXIO) {
			return all
		}
		must(t, err)
		at, err = unix.Seek(int(f.Fd()), begin, unix.SEEK_HOLE)
		must(t, err)
		all = append(all, sys.Range{At: begin, End: at})
	}
}

func blocksOf(t *testing.T, path string) int64 {
	t.Helper()
	f, err := os.Open(path)
	must(t, err)
	defer f.Close()
	must(t, f.Sync())
	is, err := sys.Disk{}.StatFile(int(f.Fd()))
	must(t, err)
	return is.Blocks
}

// reportsRoom reports whether a file's system reports where room is that was never
// written; tmpfs does not.
func reportsRoom(t *testing.T, path string) bool {
	t.Helper()
	f, err := os.Open(path)
	must(t, err)
	defer f.Close()
	_, _, err = sys.Disk{}.Unwritten(int(f.Fd()), 0, nil)
	return err == nil
}

// sameFile holds a copy against its source.
func sameFile(t *testing.T, dst, src string) {
	t.Helper()
	want, err := os.ReadFile(src)
	must(t, err)
	got, err := os.ReadFile(dst)
	must(t, err)
	if !bytes.Equal(got, want) {
		t.Errorf("%d bytes, not the %d of the source: they differ at %d", len(got), len(want), differAt(got, want))
	}
	from, err := os.Stat(src)
	must(t, err)
	to, err := os.Stat(dst)
	must(t, err)
	if from.Mode() != to.Mode() || !from.ModTime().Equal(to.ModTime()) {
		t.Errorf("%v %v, want %v %v", to.Mode(), to.ModTime(), from.Mode(), from.ModTime())
	}
}

var allMethods = []Method{Auto, Reflink, CopyRange, Splice, ReadWrite}

func TestCopyKeepsBytesHolesAndRoom(t *testing.T) {
	isolate.Once(t, isolate.Race) // one goroutine copies
	copiesKeepAll(t, t.TempDir(), 60)
}

// copiesKeepAll copies drawn files within a directory, in all ways, and returns how many
// copies were reflinks.
func copiesKeepAll(t *testing.T, directory string, files uint64) (reflinks int) {
	t.Helper()
	for seed := range files {
		r := rand.New(rand.NewPCG(seed, 7))
		dir := filepath.Join(directory, fmt.Sprint(seed))
		must(t, os.Mkdir(dir, 0o700))
		src, dst := filepath.Join(dir, "src"), filepath.Join(dir, "dst")
		newHoled(r).make(t, src, r)
		must(t, os.Chmod(src, os.FileMode(0o400|r.IntN(0o400))))
		must(t, os.Chtimes(src, time.Unix(1e9, 123456789), time.Unix(1e9+5, 987654321)))
		before := dataMap(t, src)
		o := Options{Method: allMethods[r.IntN(len(allMethods))], Atomic: r.IntN(4) == 0, Resume: r.IntN(4) == 0}
		if o.Method == Reflink {
			o.Resume = false
		}
		if r.IntN(3) == 0 {
			must(t, os.WriteFile(dst, []byte("what was here before"), 0o644))
		}
		result, err := File(t.Context(), dst, src, o)
		if o.Method == Reflink && errors.Is(err, errors.ErrUnsupported) {
			continue // not on this file system
		}
		if err != nil {
			t.Fatalf("seed %d, %v: %v", seed, o, err)
		}
		got := dataMap(t, dst) // before it is read: then pages of unwritten room count as data
		sameFile(t, dst, src)
		if !reflect.DeepEqual(got, before) && result.Size > smallCopy {
			// A large folio counts as data when a part of it was written: look at the disk.
			must(t, evict(dst))
			if got = dataMap(t, dst); !reflect.DeepEqual(got, before) {
				t.Errorf("data at %v, want %v", got, before)
			}
		}
		if got, want := blocksOf(t, dst), blocksOf(t, src); result.Size > smallCopy && reportsRoom(t, src) && (got-want > 2048 || want-got > 64) { // the map of the file takes some, and xfs allocates ahead
			t.Errorf("%d blocks, want %d", got, want)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) > 0 {
			t.Errorf("%v is left", left)
		}
		if o.Method != Auto && result.Copied > 0 && result.Method != o.Method {
			t.Errorf("by %v, not by %v", result.Method, o.Method)
		}
		if t.Failed() {
			t.Fatalf("seed %d, %+v: %+v", seed, o, result)
		}
		if result.Method == Reflink {
			reflinks++
		}
	}
	return reflinks
}

func TestCopyOfHolesTakesNoReading(t *testing.T) {
	dir := t.TempDir()
	src, dst := filepath.Join(dir, "src"), filepath.Join(dir, "dst")
	must(t, os.WriteFile(src, []byte("begin"), 0o644))
	must(t, os.Truncate(src, 4<<30))
	r, err := File(t.Context(), dst, src, Options{Method: ReadWrite})
	if err != nil || r.Size != 4<<30 || r.Copied > smallCopy {
		t.Fatalf("%+v", r)
	}
	if is, err := os.Stat(dst); err != nil || is.Size() != 4<<30 || blocksOf(t, dst) > 64 {
		t.Errorf("%v, %v", is, err)
	}
}

func TestCopyTakesWhatCanBeReadOfAFileWithoutSize(t *testing.T) {
	dst := filepath.Join(t.TempDir(), "dst")
	r, err := File(t.Context(), dst, "/proc/self/mountinfo", Options{})
	if err != nil || r.Size == 0 || r.Method != ReadWrite {
		t.Fatalf("%+v", r)
	}
	want, _ := os.ReadFile("/proc/self/mountinfo")
	if got, err := os.ReadFile(dst); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
}

func TestCopyRefusesBeforeAnythingIsTouched(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	must(t, os.WriteFile(in("file"), []byte("data"), 0o644))
	must(t, os.Link(in("file"), in("hard")))
	must(t, os.Symlink("file", in("soft")))
	must(t, os.Mkdir(in("directory"), 0o755))
	must(t, unix.Mkfifo(in("pipe"), 0o644))
	must(t, unix.Mknod(in("socket"), unix.S_IFSOCK|0o644, 0))
	check := func(dst, src, want string, o Options) {
		t.Helper()
		r, err := File(t.Context(), in(dst), in(src), o)
		var e *Error
		if !errors.As(err, &e) || e.Op != "refuse" || !strings.Contains(err.Error(), want) || r.Outcome != holdfast.OutcomeUntouched {
			t.Errorf("%s to %s: %v, %v", src, dst, err, r.Outcome)
		}
	}
	for _, o := range []Options{{}, {Atomic: true}, {Resume: true}, {Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncEach}}}} {
		check("file", "file", "same file", o)
		check("hard", "file", "same file", o)
		check("soft", "file", "same file", o)
		check("directory/../file", "soft", "same file", o)
		check("directory", "file", "is a directory; name a file in it", o)
		check("new", "directory", "All", o)
		check("new", "pipe", "a named pipe", o)
		check("pipe", "file", "a named pipe", o)
		check("new", "socket", "a socket", o)
	}
	check("new", "file", "there is no method 9", Options{Method: 9})
	check("new", "file", "there is no method -1", Options{Method: -1})
	check("new", "file", "workers=-1", Options{Workers: -1})
	check("new", "file", "workers=65537", Options{Workers: mostWorkers + 1})
	check("new", "file", "can't be resumed", Options{Resume: true, Method: Reflink})
	if got, err := os.ReadFile(in("file")); err != nil || string(got) != "data" {
		t.Errorf("%q, %v", got, err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 6 {
		t.Error(left)
	}
}

func TestCopyFollowsLinksAtBothEnds(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	must(t, os.WriteFile(in("file"), []byte("data"), 0o644))
	must(t, os.Mkdir(in("other"), 0o755))
	must(t, os.WriteFile(in("other/old"), []byte("old"), 0o644))
	for link, target := range map[string]string{"from": "file", "to": "other/old", "dangling": "other/new"} {
		must(t, os.Symlink(target, in(link)))
	}
	for _, o := range []Options{{}, {Atomic: true}, {Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncEach}}}} {
		for _, link := range []string{"to", "dangling"} {
			if r, err := File(t.Context(), in(link), in("from"), o); err != nil || r.Durable != (o.Atomic || o.Policy.Sync.Mode == holdfast.SyncEach) {
				t.Errorf("%+v", r)
			}
		}
		for _, name := range []string{"other/old", "other/new"} {
			if got, err := os.ReadFile(in(name)); err != nil || string(got) != "data" {
				t.Errorf("%s: %q, %v", name, got, err)
			}
		}
		must(t, os.WriteFile(in("other/old"), []byte("old"), 0o644))
		must(t, os.Remove(in("other/new")))
	}
}

func TestArchiveKeepsOwnersAttributesAndBits(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	dir := t.TempDir()
	src, dst := filepath.Join(dir, "src"), filepath.Join(dir, "dst")
	must(t, os.WriteFile(src, []byte("data"), 0o644))
	must(t, os.Chown(src, 1234, 4321))
	must(t, unix.Chmod(src, 0o6751))
	attributes := map[string]string{"user.note": "a note", "security.capability": "\x01\x00\x00\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"}
	for name, value := range attributes {
		if err := unix.Setxattr(src, name, []byte(value), 0); err != nil {
			t.Skip("no such attributes here: ", err)
		}
	}
	if _, err := File(t.Context(), dst, src, Options{Archive: true}); err != nil {
		t.Fatal(err)
	}
	is, err := sys.Disk{}.StatPath(sys.Name(dst + "\x00"))
	if err != nil || is.UID != 1234 || is.GID != 4321 || is.Mode&vfs.PermMask != 0o6751 {
		t.Errorf("%+v, %v", is, err)
	}
	for name, want := range attributes {
		buf := make([]byte, 100)
		if n, err := unix.Getxattr(dst, name, buf); err != nil || string(buf[:n]) != want {
			t.Errorf("%s: %q, %v", name, buf[:max(n, 0)], err)
		}
	}
	must(t, os.Remove(dst))
	if _, err := File(t.Context(), dst, src, Options{}); err != nil {
		t.Fatal(err)
	}
	if is, err := (sys.Disk{}).StatPath(sys.Name(dst + "\x00")); err != nil || is.UID != 0 || is.Mode&vfs.PermMask != 0o711 {
		t.Errorf("%+v, %v", is, err)
	}
}

func TestVerifyReadsBack(t *testing.T) {
	dir := t.TempDir()
	src, dst := filepath.Join(dir, "src"), filepath.Join(dir, "dst")
	must(t, os.WriteFile(src, bytes.Repeat([]byte("0123456789abcde\n"), 1<<17), 0o644))
	r, err := File(t.Context(), dst, src, Options{Verify: true})
	if err != nil && strings.Contains(err.Error(), "page cache") {
		t.Skip("a file system in memory: ", err)
	}
	if err != nil || !r.Verified {
		t.Fatalf("%+v", r)
	}
	d := &wrongDisk{Disk: sys.Disk{}, at: 1<<20 + 5}
	r, err = copyOne(t.Context(), d, dst, src, Options{Verify: true, Method: ReadWrite})
	var e *Error
	if !errors.As(err, &e) || e.Op != "verify" || e.Offset != d.at || r.Verified {
		t.Fatalf("%+v", r)
	}
	sameFile(t, dst, src) // the first copy
}

func TestVerifyFindsACopyThatIsTooShort(t *testing.T) {
	dir := t.TempDir()
	src, dst := filepath.Join(dir, "src"), filepath.Join(dir, "dst")
	const size = 3 << 20
	must(t, os.WriteFile(src, bytes.Repeat([]byte("data"), size/4), 0o644))
	d := &stepDisk{before: func(n int, op string) error {
		if op == "Evict" {
			return os.Truncate(dst, size-5)
		}
		return nil
	}}
	r, err := copyOne(t.Context(), d, dst, src, Options{Verify: true})
	var e *Error
	if !errors.As(err, &e) || e.Op != "verify" || e.Offset != size-5 || r.Verified {
		t.Errorf("%+v, %v", r, err)
	}
}

// A wrongDisk writes a wrong byte.
type wrongDisk struct {
	sys.Disk
	at int64
}

func (d *wrongDisk) WriteAt(fd int, p []byte, at int64) (int, error) {
	if i := d.at - at; i >= 0 && i < int64(len(p)) {
		p = bytes.Clone(p)
		p[i]++
	}
	return d.Disk.WriteAt(fd, p, at)
}

func TestCopyReportsThatTheSourceChanged(t *testing.T) {
	dir := t.TempDir()
	src, dst := filepath.Join(dir, "src"), filepath.Join(dir, "dst")
	const size = 3 << 20
	changing := func(change func()) *stepDisk {
		must(t, os.WriteFile(src, make([]byte, size), 0o644))
		must(t, os.Chtimes(src, time.Unix(1, 0), time.Unix(1, 0)))
		return &stepDisk{before: func(n int, op string) error {
			if op == "WriteAt" && change != nil {
				change()
				change = nil
			}
			return nil
		}}
	}
	run := func(change func()) (Result, error) {
		return copyOne(context.Background(), changing(change), dst, src, Options{Method: ReadWrite})
	}
	if r, err := run(func() {}); err != nil || r.Changed {
		t.Errorf("unchanged: %+v", r)
	}
	grow := func() { must(t, os.Truncate(src, size*2)) }
	if r, err := run(grow); err != nil || !r.Changed || r.Size != size {
		t.Errorf("grown: %+v", r)
	}
	if totals, err := copyTrees(t.Context(), changing(grow), onePair(dst, src), Options{Method: ReadWrite}); err != nil || totals.Changed != 1 {
		t.Errorf("totals: %+v, %v", totals, err)
	}
	// Its old time is put back, until the kernel's clock has gone on: that sets the time of the change.
	rewrite := func() {
		var before unix.Stat_t
		must(t, unix.Stat(src, &before))
		for now := before; now.Ctim == before.Ctim; {
			must(t, os.WriteFile(src, bytes.Repeat([]byte{1}, size), 0o644))
			must(t, os.Chtimes(src, time.Unix(1, 0), time.Unix(1, 0)))
			must(t, unix.Stat(src, &now))
		}
	}
	if r, err := run(rewrite); err != nil || !r.Changed || r.Size != size {
		t.Errorf("rewritten: %+v", r)
	}
	// All of it was read before: what differs is of the writer, and the disk is not to blame.
	r, err := copyOne(t.Context(), changing(rewrite), dst, src, Options{Method: ReadWrite, Verify: true})
	if err == nil || !r.Changed || r.Verified || !strings.Contains(err.Error(), "written to meanwhile; copy it again") {
		t.Errorf("verified: %+v, %v", r, err)
	}
	must(t, os.Remove(dst))
	r, err = run(func() { must(t, os.Truncate(src, 5)) })
	if err == nil || !r.Changed || !strings.Contains(err.Error(), "shrank") {
		t.Errorf("shrunk: %+v", r)
	}
	if _, err := os.Stat(dst); err == nil {
		t.Error("a part of it is left")
	}
}

func TestCopyReportsProgressAndResult(t *testing.T) {
	dir := t.TempDir()
	src, dst := filepath.Join(dir, "src"), filepath.Join(dir, "dst")
	must(t, os.WriteFile(src, make([]byte, 3<<20), 0o644))
	var progress []Progress
	var results []Result
	r, err := File(t.Context(), dst, src, Options{
		Each:     func(r Result) { results = append(results, r) },
		Progress: func(p Progress) { progress = append(progress, p) },
	})
	if err != nil || len(results) != 1 || results[0] != r {
		t.Errorf("%+v, %+v", r, results)
	}
	if len(progress) == 0 || progress[0].BytesTotal != 3<<20 || progress[0].Bytes == 0 || progress[0].Source != src {
		t.Errorf("%+v", progress)
	}
}

func ExampleFile() {
	dir, err := os.MkdirTemp("", "copy")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	src, dst := filepath.Join(dir, "notes"), filepath.Join(dir, "notes.bak")
	if err := os.WriteFile(src, []byte("to be kept\n"), 0o644); err != nil {
		fmt.Println(err)
		return
	}
	r, err := File(context.Background(), dst, src, Options{Atomic: true})
	fmt.Println(r.Size, r.Outcome, err)
	// Output: 11 durable <nil>
}
