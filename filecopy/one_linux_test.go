package filecopy

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/isolate"
	"github.com/holdfast-go/holdfast/internal/permission"
	"github.com/holdfast-go/holdfast/internal/sys"
)

func everyCall(int, string) error { return nil }

// failing returns what makes the nth call of an operation fail.
func failing(op string, nth int, errno error) func(int, string) error {
	return func(_ int, name string) error {
		if name == op {
			nth--
		}
		if name == op && nth == 0 {
			return errno
		}
		return nil
	}
}

func TestADiskThatFillsUpLeavesOldOrNothing(t *testing.T) {
	isolate.Once(t, isolate.Race) // one goroutine copies
	for method, op := range map[Method]string{ReadWrite: "WriteAt", Splice: "Splice", CopyRange: "CopyRange"} {
		for _, errno := range []error{syscall.ENOSPC, syscall.EDQUOT} {
			for _, old := range []bool{false, true} {
				c := newCopyCase(t, Options{Method: method}, old)
				for _, at := range []string{op, "Allocate"} {
					_, r, err := c.run(t, t.Context(), failing(at, 1, errno))
					if at == "Allocate" && r.Err == nil {
						continue // nothing is allocated on this file system
					}
					var e *Error
					if !errors.As(err, &e) || !errors.Is(err, errno) || e.Offset != 0 {
						t.Errorf("%v of %s: %v", errno, at, err)
					}
					c.judge(t, r)
				}
				_, r, err := c.run(t, t.Context(), failing(op, 2, errno))
				var e *Error
				if !errors.As(err, &e) || !errors.Is(err, errno) || e.Offset <= 0 && op != "Splice" {
					t.Errorf("%v of the second %s: %v", errno, op, err)
				}
				c.judge(t, r)
			}
		}
	}
}

// A fullDisk has room for some bytes, as far as it says.
type fullDisk struct {
	stepDisk
	free int64
}

func (d *fullDisk) Free(int) (int64, error) { return d.free, nil }

func TestWhatHasNoRoomIsRefusedBeforeItIsWritten(t *testing.T) {
	dir := t.TempDir()
	dense, sparse, dst := filepath.Join(dir, "dense"), filepath.Join(dir, "sparse"), filepath.Join(dir, "dst")
	must(t, os.WriteFile(dense, make([]byte, 2<<20), 0o644))
	const end = 5 << 30 // more than 32 bits count
	h := holed{size: end, pieces: []piece{{sys.Range{At: 0, End: 5}, false}, {sys.Range{At: end - 7, End: end}, false}}}
	h.make(t, sparse, rand.New(rand.NewPCG(3, 4)))
	for _, c := range []struct {
		src  string
		free int64
		fits bool
	}{{dense, 2<<20 - 4096, false}, {dense, 2<<20 + 4096, true}, {sparse, 1 << 20, true}} {
		d := &fullDisk{stepDisk{before: everyCall}, c.free}
		r, err := copyOne(t.Context(), d, dst, c.src, Options{Method: ReadWrite})
		var e *Error
		if !c.fits && (!errors.As(err, &e) || e.Op != "allocate" || !errors.Is(err, syscall.ENOSPC) || slices.Contains(d.calls, "WriteAt")) {
			t.Errorf("%d bytes free: %v, %v", c.free, err, d.calls)
		}
		if c.fits && (err != nil || r.Copied > 3<<20) {
			t.Errorf("%d bytes free: %+v", c.free, r)
		}
		if _, err := os.Stat(dst); (err == nil) != c.fits {
			t.Errorf("%d bytes free: %v", c.free, err)
		}
	}
	f, err := os.Open(dst)
	must(t, err)
	defer f.Close()
	var tail [7]byte
	if _, err := f.ReadAt(tail[:], end-7); err != nil || bytes.IndexByte(tail[:], 0) >= 0 {
		t.Errorf("%q, %v", tail, err)
	}
}

// accessListOf is a list for the owner, user 1234, the group, the mask and others:
// linux/posix_acl_xattr.h.
func accessListOf(owner, named, group, mask, others byte) string {
	all := []byte{2, 0, 0, 0}
	for _, e := range [][3]byte{{0x01, owner}, {0x02, named, 1}, {0x04, group}, {0x10, mask}, {0x20, others}} {
		id := []byte{255, 255, 255, 255}
		if e[2] == 1 {
			id = []byte{0xd2, 0x04, 0, 0}
		}
		all = append(append(all, e[0], 0, e[1], 0), id...)
	}
	return string(all)
}

func TestArchiveKeepsTheSourcesAccessListAndNoOther(t *testing.T) {
	dir := t.TempDir()
	listed, plain, to := filepath.Join(dir, "listed"), filepath.Join(dir, "plain"), filepath.Join(dir, "to")
	list, given := accessListOf(6, 4, 4, 6, 0), accessListOf(7, 7, 7, 7, 7)
	for _, name := range []string{listed, plain} {
		must(t, os.WriteFile(name, []byte("data"), 0o640))
	}
	must(t, os.Mkdir(to, 0o755))
	if err := unix.Setxattr(listed, permission.AccessList, []byte(list), 0); err != nil {
		t.Skip("no access control lists here: ", err)
	}
	must(t, unix.Setxattr(to, "system.posix_acl_default", []byte(given), 0))
	has := func(path string) string {
		buf := make([]byte, 200)
		n, err := unix.Getxattr(path, permission.AccessList, buf)
		if errors.Is(err, unix.ENODATA) {
			return ""
		}
		must(t, err)
		return string(buf[:n])
	}
	for _, c := range []struct {
		src     string
		archive bool
		want    string
	}{{listed, true, list}, {plain, true, ""}, {plain, false, accessListOf(6, 7, 7, 4, 0)}} {
		dst := filepath.Join(to, "dst")
		os.Remove(dst)
		if _, err := File(t.Context(), dst, c.src, Options{Archive: c.archive}); err != nil {
			t.Fatal(err)
		}
		if got := has(dst); got != c.want {
			t.Errorf("%s, archive %v: %q, want %q", filepath.Base(c.src), c.archive, got, c.want)
		}
		sameFile(t, dst, c.src)
	}
}

func TestUmaskTakesNoPermissionsFromACopy(t *testing.T) {
	dir := t.TempDir()
	src, dst := filepath.Join(dir, "src"), filepath.Join(dir, "dst")
	must(t, os.WriteFile(src, []byte("data"), 0o600))
	must(t, os.Chmod(src, 0o757))
	defer syscall.Umask(syscall.Umask(0o077))
	if _, err := File(t.Context(), dst, src, Options{}); err != nil {
		t.Fatal(err)
	}
	sameFile(t, dst, src)
}

// A boastfulDisk reports more bytes than can be read, as some of
// /sys are.
type boastfulDisk struct{ sys.Disk }

func (d boastfulDisk) StatFile(fd int) (sys.FileStat, error) {
	is, err := d.Disk.StatFile(fd)
	is.Size += 4 << 20
	is.Blocks = -1
	return is, err
}

func (boastfulDisk) Clone(int, int) error { return errors.ErrUnsupported }

func (boastfulDisk) SeekHole(int, int64) (int64, error) { return 0, errors.ErrUnsupported }

func TestACopyThatEndsEarlyHasNoRoomLeftOver(t *testing.T) {
	dir := t.TempDir()
	src, dst := filepath.Join(dir, "src"), filepath.Join(dir, "dst")
	must(t, os.WriteFile(src, bytes.Repeat([]byte("7bytes\n"), 1<<18), 0o644))
	for _, method := range allMethods {
		if method == Reflink {
			continue
		}
		r, err := copyOne(t.Context(), boastfulDisk{}, dst, src, Options{Method: method})
		if err != nil || r.Size != 7<<18 {
			t.Errorf("%v: %+v", method, r)
		}
		sameFile(t, dst, src)
		if got, want := blocksOf(t, dst), blocksOf(t, src); got > want+64 {
			t.Errorf("%v: %d blocks, want %d", method, got, want)
		}
	}
}

func TestTheSameFileByABindMountIsRefused(t *testing.T) {
	dir := t.TempDir()
	one, other := filepath.Join(dir, "one"), filepath.Join(dir, "other")
	must(t, os.Mkdir(one, 0o755))
	must(t, os.Mkdir(other, 0o755))
	must(t, os.WriteFile(filepath.Join(one, "file"), []byte("data"), 0o644))
	if err := unix.Mount(one, other, "", unix.MS_BIND, ""); err != nil {
		t.Skip("only root may mount: ", err)
	}
	t.Cleanup(func() { must(t, unix.Unmount(other, 0)) })
	_, err := File(t.Context(), filepath.Join(other, "file"), filepath.Join(one, "file"), Options{})
	if err == nil || !strings.Contains(err.Error(), "same file") {
		t.Error(err)
	}
}

func TestACopyThatWasStoppedBeforeTouchesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, old := range []bool{false, true} {
		c := newCopyCase(t, Options{}, old)
		d, r, err := c.run(t, ctx, everyCall)
		if !errors.Is(err, context.Canceled) || len(d.calls) > 0 {
			t.Errorf("%v, %v", err, d.calls)
		}
		c.judge(t, r)
	}
}

func TestAPartOfACopyThatIsAnothersIsNotGoneOnWith(t *testing.T) {
	c := newCopyCase(t, Options{Resume: true}, false)
	partial := c.in(".dst" + partialSuffix)
	begin := c.content[:1<<16]
	must(t, os.WriteFile(partial, begin, 0o600))
	if err := os.Chown(partial, 4242, -1); err != nil {
		t.Skip("only root can give files away: ", err)
	}
	_, r, err := c.run(t, t.Context(), everyCall)
	if err == nil || !strings.Contains(err.Error(), "belongs to user 4242") || r.Outcome != holdfast.OutcomeUntouched {
		t.Errorf("%+v", r)
	}
	if got, err := os.ReadFile(partial); err != nil || !bytes.Equal(got, begin) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// A cloningDisk shares what was written, and nothing else: as xfs does.
type cloningDisk struct{ sys.Disk }

func (d cloningDisk) Clone(to, from int) error {
	is, err := d.StatFile(from)
	if err != nil {
		return err
	}
	p := make([]byte, cloned)
	if _, err := d.ReadAt(from, p, 0); err != nil {
		return err
	}
	if _, err := d.WriteAt(to, p, 0); err != nil {
		return err
	}
	return d.Truncate(to, is.Size)
}

const cloned = 128 << 10

func TestAReflinkKeepsRoomThatWasNeverWritten(t *testing.T) {
	dir := t.TempDir()
	src, dst := filepath.Join(dir, "src"), filepath.Join(dir, "dst")
	h := holed{size: 8 << 20, pieces: []piece{{sys.Range{At: 0, End: cloned}, false}, {sys.Range{At: 1 << 20, End: 3 << 20}, true}, {sys.Range{At: 6 << 20, End: 9 << 20}, true}}}
	h.make(t, src, rand.New(rand.NewPCG(3, 4)))
	if blocksOf(t, src) < 4<<20/512 || !reportsRoom(t, src) {
		t.Skip("no room can be allocated here, or is reported")
	}
	r, err := copyOne(t.Context(), cloningDisk{}, dst, src, Options{})
	if err != nil || r.Method != Reflink {
		t.Fatalf("%+v", r)
	}
	if got, want := blocksOf(t, dst)*512, int64(cloned+4<<20); got < want || got > want+1<<16 {
		t.Errorf("%d bytes on the disk, want %d", got, want)
	}
	sameFile(t, dst, src)
}

func TestACopyNeedsNoPipe(t *testing.T) {
	c := newCopyCase(t, Options{}, false)
	_, r, err := c.run(t, t.Context(), func(_ int, op string) error {
		return map[string]error{"Clone": syscall.EOPNOTSUPP, "Pipe": syscall.EMFILE}[op]
	})
	if err != nil || r.Method != ReadWrite {
		t.Errorf("%+v", r)
	}
	c.judge(t, r)
	c.o.Method = Splice
	if _, r, err := c.run(t, t.Context(), failing("Pipe", 1, syscall.EMFILE)); !errors.Is(err, syscall.EMFILE) {
		t.Errorf("%+v", r)
	}
}

func TestReadOnlyFileIsReplaced(t *testing.T) {
	c := newCopyCase(t, Options{}, false)
	must(t, os.WriteFile(c.in("dst"), []byte("old"), 0o400))
	r, err := File(t.Context(), c.in("dst"), c.in("src"), Options{})
	must(t, err)
	c.judge(t, r)
}

// A keptDisk has pages in the page cache that it does not give up at first.
type keptDisk struct {
	stepDisk
	tries int
}

func (d *keptDisk) Evict(fd int) error {
	d.tries--
	return d.stepDisk.Evict(fd)
}

func (d *keptDisk) Cached(int, int64) (int64, error) { return int64(max(0, d.tries)), nil }

func TestVerifyReadsOnlyWhatHasLeftThePageCache(t *testing.T) {
	c := newCopyCase(t, Options{}, false)
	for tries, fine := range map[int]bool{1: true, evictTries: true, evictTries + 1: false} {
		os.Remove(c.in("dst"))
		r, err := copyOne(t.Context(), &keptDisk{stepDisk{before: everyCall}, tries}, c.in("dst"), c.in("src"), Options{Verify: true})
		var e *Error
		if r.Verified != fine || fine && err != nil || !fine && (!errors.As(err, &e) || e.Op != "verify") {
			t.Errorf("after %d times: %+v", tries, r)
		}
		c.judge(t, r)
	}
}

func TestRoomAroundBytesThatAreNotOnTheDiskYetIsKept(t *testing.T) {
	dir := t.TempDir()
	src, dst := filepath.Join(dir, "src"), filepath.Join(dir, "dst")
	f, err := os.Create(src)
	must(t, err)
	defer f.Close()
	const size = 8 << 20
	if err := unix.Fallocate(int(f.Fd()), 0, 0, size); err != nil {
		t.Skip("no room can be allocated here: ", err)
	}
	if !reportsRoom(t, src) {
		t.Skip("room that was never written is not reported here")
	}
	_, err = f.WriteAt(bytes.Repeat([]byte("data"), 1<<14), size/2)
	must(t, err)
	_, err = File(t.Context(), dst, src, Options{Method: ReadWrite})
	must(t, err)
	if got := blocksOf(t, dst) * 512; got < size {
		t.Errorf("%d bytes on the disk, not %d", got, size)
	}
	sameFile(t, dst, src)
}
