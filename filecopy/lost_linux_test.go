package filecopy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/isolate"
	"github.com/holdfast-go/holdfast/internal/sys"
)

func TestNothingIsDurableBelowADirectoryThatLostAName(t *testing.T) {
	dir := dirInMemory(t)
	must(t, os.MkdirAll(dir+"/from/sub/deeper", 0o755))
	must(t, os.WriteFile(dir+"/from/sub/deeper/file", []byte("text"), 0o644))
	must(t, os.Mkdir(dir+"/to", 0o755))
	d := &forgetfulDisk{nth: 2} // the first name is to, the second sub
	o := Options{Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncEach}}, KeepGoing: true, Workers: 1}
	o.Each = func(r Result) {
		if r.Durable || r.Outcome != holdfast.OutcomeUncertain || !errors.Is(r.Err, syscall.EIO) {
			t.Errorf("%+v", r)
		}
	}
	totals, err := copyTrees(t.Context(), d, onePair(dir+"/to", dir+"/from"), o)
	if !errors.Is(err, syscall.EIO) || d.dir != dir+"/to" || totals.Failed != 4 {
		t.Errorf("%+v, %v; %s was not synced", totals, err, d.dir)
	}
}

// TestTheNameOfADirectoryThatIsThereBecomesDurable: a copy that was killed may have made it.
func TestTheNameOfADirectoryThatIsThereBecomesDurable(t *testing.T) {
	for _, mode := range []holdfast.SyncMode{holdfast.SyncEach, holdfast.SyncClose} {
		dir := dirInMemory(t)
		must(t, errors.Join(os.Mkdir(dir+"/from", 0o755), os.Mkdir(dir+"/to", 0o755)))
		must(t, os.WriteFile(dir+"/from/file", []byte("text"), 0o644))
		d := &forgetfulDisk{nth: 1, dir: dir} // several are synced at once
		o := Options{Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: mode}}, Workers: 1}
		if _, err := copyTrees(t.Context(), d, onePair(dir+"/to", dir+"/from"), o); !errors.Is(err, syscall.EIO) {
			t.Errorf("%v: %v; the name of to was not synced", mode, err)
		}
	}
}

// TestALinkToACopyThatFailedIsCopiedItself has another name of a file whose copy does
// not get its name: what is there is no copy to link to.
func TestALinkToACopyThatFailedIsCopiedItself(t *testing.T) {
	for _, o := range []Options{{}, {Atomic: true}, {Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncEach}}}, {Atomic: true, Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncEach}}}} {
		dir := dirInMemory(t)
		must(t, errors.Join(os.Mkdir(dir+"/from", 0o755), os.Mkdir(dir+"/to", 0o755)))
		must(t, os.WriteFile(dir+"/from/a", []byte("text"), 0o644))
		must(t, os.Link(dir+"/from/a", dir+"/from/b"))
		for _, name := range []string{"a", "b"} {
			must(t, os.WriteFile(dir+"/to/"+name, []byte("old"), 0o644))
		}
		d := &failingDisk{op: "rename", calls: map[string]int{}, noAll: true}
		o.Archive, o.KeepGoing, o.Workers = true, true, 1
		if _, err := copyTrees(t.Context(), d, onePair(dir+"/to", dir+"/from"), o); !errors.Is(err, syscall.EIO) {
			t.Errorf("%+v: %v", o, err)
		}
		var has []string
		for _, name := range []string{"a", "b"} {
			text, err := os.ReadFile(dir + "/to/" + name)
			must(t, err)
			has = append(has, string(text))
		}
		if slices.Sort(has); !slices.Equal(has, []string{"old", "text"}) {
			t.Errorf("%+v: %q", o, has)
		}
	}
}

func TestALinkThatDoesNotGetItsNameLeavesNothing(t *testing.T) {
	dir := dirInMemory(t)
	must(t, errors.Join(os.Mkdir(dir+"/from", 0o755), os.Mkdir(dir+"/to", 0o755)))
	must(t, errors.Join(os.Symlink("nowhere", dir+"/from/link"), os.WriteFile(dir+"/to/link", []byte("old"), 0o644)))
	d := &failingDisk{op: "rename", calls: map[string]int{}}
	_, err := copyTrees(t.Context(), d, onePair(dir+"/to", dir+"/from"), Options{Workers: 1})
	if entries, _ := os.ReadDir(dir + "/to"); !errors.Is(err, syscall.EIO) || len(entries) != 1 || !entries[0].Type().IsRegular() {
		t.Errorf("%v; %v", err, entries)
	}
}

// TestALinkThatIsThereAlreadyIsLeftAsItIs has two names of one file, which become one
// name: a link to itself can't be renamed over it.
func TestALinkThatIsThereAlreadyIsLeftAsItIs(t *testing.T) {
	for _, o := range []Options{{}, {Atomic: true}} {
		dir := dirInMemory(t)
		must(t, errors.Join(os.MkdirAll(dir+"/from/a", 0o755), os.Mkdir(dir+"/other", 0o755), os.Mkdir(dir+"/to", 0o755)))
		must(t, os.WriteFile(dir+"/from/a/file", []byte("text"), 0o644))
		must(t, os.Link(dir+"/from/a/file", dir+"/other/file"))
		pairs := func(yield func(string, string) bool) {
			_ = yield(dir+"/to", dir+"/from") && yield(dir+"/to/a", dir+"/other")
		}
		o.Archive, o.Workers = true, 1
		totals, err := copyTrees(t.Context(), sys.Disk{}, pairs, o)
		entries, _ := os.ReadDir(dir + "/to/a")
		if err != nil || totals.Files != 1 || totals.Links != 1 || len(entries) != 1 {
			t.Errorf("%+v: %+v, %v; %v", o, totals, err, entries)
		}
	}
}

// A sharingDisk shares whatever it is asked to, as far as it says.
type sharingDisk struct{ sys.Disk }

func (sharingDisk) IsCold(int) bool      { return true }
func (sharingDisk) Clone(int, int) error { return nil }

// A treeDisk is of a file system that shares small files faster, as btrfs does.
type treeDisk struct{ stepDisk }

func (d *treeDisk) SharesFaster(int, uint64) bool { return true }

func (d *treeDisk) IsCold(int) bool {
	d.calls = append(d.calls, "IsCold")
	return false
}

func (d *treeDisk) Clone(to, _ int) error {
	_, err := d.Disk.WriteAt(to, []byte("text"), 0)
	return err
}

// TestASmallFileIsSharedWithoutAQuestion: whether it is in memory, and where it has holes, changes
// nothing where it is shared anyway.
func TestASmallFileIsSharedWithoutAQuestion(t *testing.T) {
	dir := t.TempDir()
	src, dst := filepath.Join(dir, "src"), filepath.Join(dir, "dst")
	must(t, os.WriteFile(src, []byte("text"), 0o644))
	d := &treeDisk{stepDisk{before: everyCall}}
	r, err := copyOne(t.Context(), d, dst, src, Options{})
	if got, _ := os.ReadFile(dst); err != nil || string(got) != "text" || r.Method != Reflink || slices.Contains(d.calls, "IsCold") || slices.Contains(d.calls, "SeekHole") {
		t.Errorf("%q, %v, %v; %+v", got, err, d.calls, r)
	}
}

func TestWhatSaysThatItIsEmptyIsNotShared(t *testing.T) {
	dst := filepath.Join(t.TempDir(), "dst")
	r, err := copyOne(t.Context(), sharingDisk{}, dst, "/proc/version", Options{})
	if text, _ := os.ReadFile(dst); err != nil || len(text) == 0 || r.Method == Reflink {
		t.Errorf("%q; %+v", text, r)
	}
}

// A grownDisk shares a file that has grown since it was looked at.
type grownDisk struct{ stepDisk }

func (d *grownDisk) Clone(to, _ int) error {
	_, err := d.Disk.WriteAt(to, []byte("text and more"), 0)
	return err
}

func TestAReflinkOfAFileThatGrewIsCutAndNotAskedForRoom(t *testing.T) {
	dir := t.TempDir()
	src, dst := filepath.Join(dir, "src"), filepath.Join(dir, "dst")
	must(t, os.WriteFile(src, []byte("text"), 0o644))
	d := &grownDisk{stepDisk{before: everyCall}}
	r, err := copyOne(t.Context(), d, dst, src, Options{Method: Reflink})
	if got, _ := os.ReadFile(dst); err != nil || string(got) != "text" || slices.Contains(d.calls, "Unwritten") {
		t.Errorf("%q, %v; %+v", got, d.calls, r)
	}
}

// TestASparseFileThatGrewIsCopiedAsItWas: what came is left out of the size, too.
func TestASparseFileThatGrewIsCopiedAsItWas(t *testing.T) {
	const size = 256 << 10
	dir := t.TempDir()
	src, dst := filepath.Join(dir, "src"), filepath.Join(dir, "dst")
	file, err := os.Create(src)
	must(t, err)
	defer file.Close()
	_, err = file.WriteAt(bytes.Repeat([]byte("x"), 4<<10), size-4<<10)
	must(t, err)
	d := &stepDisk{before: func(_ int, op string) error {
		if op == "SeekData" {
			_, err := file.WriteAt(bytes.Repeat([]byte("y"), 64<<10), size)
			must(t, err)
		}
		return nil
	}}
	r, err := copyOne(t.Context(), d, dst, src, Options{Method: ReadWrite})
	is, statErr := os.Stat(dst)
	must(t, statErr)
	if err != nil || !r.Changed || r.Size != size || is.Size() != size || !slices.Contains(d.calls, "SeekData") {
		t.Errorf("%d bytes; %+v", is.Size(), r)
	}
}

// TestADirectoryThatWasNotReadToItsEndIsNotCopied has the context end with the last name that was
// read. Whether there are more is not known.
func TestADirectoryThatWasNotReadToItsEndIsNotCopied(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "src"), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "src", "file"), []byte("text"), 0o644))
	ctx, cancel := context.WithCancel(t.Context())
	totals, err := All(ctx, onePair(filepath.Join(dir, "dst"), filepath.Join(dir, "src")), Options{Each: func(Result) { cancel() }})
	if !errors.Is(err, context.Canceled) || totals.Files != 1 || totals.Dirs != 0 {
		t.Errorf("%+v, %v", totals, err)
	}
}

func TestADeviceIsAskedOnceWhetherItShares(t *testing.T) {
	var a deviceAnswer
	asked := 0
	for _, device := range []uint64{0, 1, 2, 1, 2, 0} {
		if yes := a.of(device, func() bool { asked++; return device == 1 }); yes != (device == 1) {
			t.Errorf("device %d: %v", device, yes)
		}
	}
	if asked != 2 {
		t.Errorf("asked %d times", asked)
	}
}

// A spaciousDisk writes faster into room that it has given before.
type spaciousDisk struct {
	sys.Disk
	grown []bool
}

func (*spaciousDisk) AllocatesFaster(int) bool { return true }

func (d *spaciousDisk) Allocate(_ int, _, _ int64, grow bool) error {
	d.grown = append(d.grown, grow)
	return nil
}

// TestACopyGrowsBeforeItIsWrittenUnderAnotherName: a kill would leave a file of the full size there, and one that may be
// resumed counts its bytes by its size.
func TestACopyGrowsBeforeItIsWrittenUnderAnotherName(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "src"), []byte(strings.Repeat("7bytes\n", 1<<18)), 0o644))
	for _, o := range []Options{{}, {Resume: true}, {Atomic: true}} {
		d := &spaciousDisk{}
		o.Method = ReadWrite
		if r, err := copyOne(t.Context(), d, filepath.Join(dir, "dst"), filepath.Join(dir, "src"), o); err != nil || !slices.Equal(d.grown, []bool{o.Atomic}) {
			t.Errorf("%+v: it grew: %v; %+v", o, d.grown, r)
		}
	}
}

// An endingDisk reads files that end before they say they do.
type endingDisk struct {
	sys.Disk
	end int64
}

func (d endingDisk) ReadAt(fd int, p []byte, at int64) (int, error) {
	return d.Disk.ReadAt(fd, p[:max(0, min(int64(len(p)), d.end-at))], at)
}

func TestASparseCopyThatEndsEarlyEndsThere(t *testing.T) {
	dir := t.TempDir()
	src, dst := filepath.Join(dir, "src"), filepath.Join(dir, "dst")
	h := holed{size: 1 << 20, pieces: []piece{{sys.Range{At: 0, End: 1 << 16}, false}, {sys.Range{At: 1 << 19, End: 1<<19 + 1<<16}, false}}}
	h.make(t, src, rand.New(rand.NewPCG(7, 8)))
	const end = 1<<19 + 4097
	r, err := copyOne(t.Context(), endingDisk{end: end}, dst, src, Options{Method: ReadWrite})
	is, failed := os.Stat(dst)
	if err != nil || failed != nil || r.Size != end || is.Size() != end {
		t.Errorf("%+v; %d bytes, %v", r, is.Size(), failed)
	}
}

func TestOfASmallFileNoRoomIsAsked(t *testing.T) {
	dir := t.TempDir()
	for _, size := range []int{1, worthLooking - 1} {
		src := filepath.Join(dir, fmt.Sprint(size))
		must(t, os.WriteFile(src, make([]byte, size), 0o644))
		d := &fullDisk{stepDisk{before: everyCall}, 0}
		if r, err := copyOne(t.Context(), d, filepath.Join(dir, "dst"), src, Options{Method: ReadWrite}); err != nil {
			t.Errorf("%+v", r)
		}
	}
}

// A closingDisk does not let a directory be opened again once its first names were read.
type closingDisk struct {
	sys.Disk
	name   string
	opened atomic.Int32
}

func (*closingDisk) SyncsAll(int) bool { return false }

func (d *closingDisk) OpenDirIn(dir int, name sys.Name) (int, error) {
	if name.String() == d.name && d.opened.Add(1) > 2 { // source and destination
		return -1, syscall.EACCES
	}
	return d.Disk.OpenDirIn(dir, name)
}

// TestNothingIsDurableInADirectoryThatCanNotBeOpenedToSyncIt has more directories wait for their
// sync than may stay open, so some are closed meanwhile; one of them can't be opened again.
func TestNothingIsDurableInADirectoryThatCanNotBeOpenedToSyncIt(t *testing.T) {
	isolate.Once(t, isolate.Race) // one worker copies
	isolate.Process(t, func(t *testing.T) {
		dir := dirInMemory(t)
		for i := range 60 {
			sub := fmt.Sprintf("%s/from/d%d", dir, i)
			must(t, errors.Join(os.MkdirAll(sub, 0o755), os.WriteFile(sub+"/file", []byte("text"), 0o644)))
		}
		must(t, os.Mkdir(dir+"/to", 0o755))
		must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 64, Max: 64}))
		refused := 0
		for i := range 60 {
			d := &closingDisk{name: fmt.Sprintf("d%d", i)}
			o := Options{Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncClose}}, KeepGoing: true, Workers: 1}
			o.Each = func(r Result) {
				in := r.Destination == dir+"/to/"+d.name || strings.HasPrefix(r.Destination, dir+"/to/"+d.name+"/")
				if d.opened.Load() > 2 && in && r.Durable {
					t.Errorf("%s is durable, and %s was not opened to sync it", r.Destination, d.name)
				}
			}
			_, err := copyTrees(t.Context(), d, onePair(dir+"/to", dir+"/from"), o)
			if d.opened.Load() > 2 {
				refused++
				if !errors.Is(err, syscall.EACCES) {
					t.Errorf("%s: %v", d.name, err)
				}
			}
		}
		if refused == 0 {
			t.Error("no directory had to be opened again")
		}
	})
}
