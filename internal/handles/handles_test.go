//go:build go1.25

package handles

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// A tallyDisk is the real one, and counts the descriptors that are open.
type tallyDisk struct {
	sys.Disk
	mu     sync.Mutex
	open   map[int]string // open files, by the last element of the path
	most   int            // at any time
	closed []string       // in order
	hold   chan struct{}  // if not nil, OpenDir waits for it before it returns
	noStat error          // of StatFD
	noRead error          // of OpenDir
}

func (d *tallyDisk) StatFD(fd int) (sys.Stat, error) {
	if d.noStat != nil {
		return sys.Stat{}, d.noStat
	}
	return d.Disk.StatFD(fd)
}

func (d *tallyDisk) add(fd int, path sys.Name) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open == nil {
		d.open = map[int]string{}
	}
	d.open[fd] = filepath.Base(path.String())
	d.most = max(d.most, len(d.open))
}

func (d *tallyDisk) OpenForNames(path sys.Name) (int, error) {
	fd, err := d.Disk.OpenForNames(path)
	if err == nil {
		d.add(fd, path)
	}
	return fd, err
}

func (d *tallyDisk) OpenDir(path sys.Name) (int, error) {
	if d.noRead != nil {
		return -1, d.noRead
	}
	fd, err := d.Disk.OpenDir(path)
	if err == nil {
		d.add(fd, path)
	}
	if d.hold != nil {
		<-d.hold
	}
	return fd, err
}

func (d *tallyDisk) OpenFile(dir int, name sys.Name, flag int, perm uint32) (int, error) {
	fd, err := d.Disk.OpenFile(dir, name, flag, perm)
	if err == nil {
		d.add(fd, name)
	}
	return fd, err
}

func (d *tallyDisk) Close(fd int) error {
	d.mu.Lock()
	d.closed = append(d.closed, d.open[fd])
	delete(d.open, fd)
	d.mu.Unlock() // before the kernel gives the number to somebody else
	return d.Disk.Close(fd)
}

// newHandles returns handles and a directory with these directories in it. All must be
// closed when the test ends.
func newHandles(t testing.TB, limit int, dirs ...string) (*Cache, *tallyDisk, string) {
	t.Helper()
	dir := t.TempDir()
	for _, f := range dirs {
		if err := os.Mkdir(filepath.Join(dir, f), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	d, h := &tallyDisk{}, &Cache{}
	h.Init(d, limit)
	t.Cleanup(func() {
		h.CloseAll()
		if h.open != 0 || len(d.open) != 0 || len(h.Dirs) != 0 || d.most > limit {
			t.Errorf("at the end %d descriptors are counted, %v are open, %v kept; %d were, of %d",
				h.open, d.open, h.Dirs, d.most, limit)
		}
	})
	return h, d, dir
}

func useIn(t testing.TB, h *Cache, era int64, path ...string) *Dir {
	t.Helper()
	d, err := h.UseDir(filepath.Join(path...), era)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// A keptFile is a file that stays open for appending.
type keptFile struct {
	Handle
	using sync.Mutex // it is used by one at a time
	isOff bool       // guarded by using
}

// A keeper appends to files that it keeps open, as the streams of a Set do.
type keeper struct {
	h     *Cache
	files map[string]*keptFile // guarded by h.mu
}

func (k *keeper) append(d *Dir, name string) error {
	k.h.Mu.Lock()
	x := k.files[name]
	if x == nil || x.Gone {
		x = &keptFile{isOff: true}
		x.Drop = func() {
			if !x.isOff {
				k.h.disk.Close(x.Fd)
				k.h.Release()
			}
		}
		x.Users = 1
		k.files[name] = x
	} else {
		k.h.UseLocked(&x.Handle)
	}
	k.h.Mu.Unlock()
	defer k.h.Rest(&x.Handle)
	x.using.Lock()
	defer x.using.Unlock()
	if x.isOff {
		fd, err := createIn(k.h, d, name)
		if err != nil {
			return err
		}
		x.Fd, x.isOff = fd, false
	}
	_, err := k.h.disk.Write(x.Fd, []byte("Hello, world\n"))
	return err
}

func createIn(h *Cache, d *Dir, name string) (fd int, err error) {
	n, err := sys.NewName(name)
	if err != nil {
		return 0, err
	}
	h.Reserve()
	fd, err = h.disk.OpenFile(d.Fd, n, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		h.Release()
	}
	return fd, err
}

// writeIn writes a file that is not kept.
func writeIn(h *Cache, d *Dir, name string) error {
	fd, err := createIn(h, d, name)
	if err != nil {
		return err
	}
	defer h.Release()
	_, err = h.disk.Write(fd, []byte("Hello, world\n"))
	return errors.Join(err, h.disk.Close(fd))
}

// turn is one goroutine's use of one file.
func (k *keeper) turn(dir string, rng *rand.Rand) error {
	if err := k.h.Begin(context.Background()); err != nil {
		return err
	}
	defer k.h.End()
	n := rng.IntN(10)
	d, err := k.h.UseDir(filepath.Join(dir, fmt.Sprint(n)), int64(rng.IntN(5)))
	if err != nil {
		return err
	}
	defer k.h.Rest(&d.Handle)
	switch rng.IntN(3) {
	case 0:
		return k.append(d, fmt.Sprint("kept", n, rng.IntN(5)))
	case 1:
		k.h.Spare()
	}
	return writeIn(k.h, d, fmt.Sprint("whole", rng.IntN(5)))
}

// The bubble ends at once with a panic if all wait for each other.
func TestTheLimitIsNeverExceededAndNoWaitIsForever(t *testing.T) {
	dirs := []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}
	for _, limit := range []int{LeastHandles, LeastHandles + 1, 7, 16, 100} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, d, dir := newHandles(t, limit, dirs...)
				k := &keeper{h: h, files: map[string]*keptFile{}}
				var all sync.WaitGroup
				for range ErrseqDescriptors { // each keeps a directory as long as its batch lasts
					all.Go(func() {
						w := useIn(t, h, 1, dir)
						defer h.Rest(&w.Handle)
						k.turns(t, dir, 20)
					})
				}
				for range 100 {
					all.Go(func() { k.turns(t, dir, 20) })
				}
				all.Wait()
				if h.waiting != 0 || len(h.turns) != 0 {
					t.Errorf("%d wait, %d have a turn", h.waiting, len(h.turns))
				}
				if limit < 10 && (h.Stats.Evictions == 0 || d.most != limit) {
					t.Errorf("%d evictions, %d open: the limit of %d was not reached", h.Stats.Evictions, d.most, limit)
				}
			})
		})
	}
}

func (k *keeper) turns(t *testing.T, dir string, turns int) {
	rng := rand.New(rand.NewPCG(rand.Uint64(), 0))
	for range turns {
		if err := k.turn(dir, rng); err != nil {
			t.Error(err)
			return
		}
	}
}

func TestWhatHasBeenIdleForLongestIsClosedFirst(t *testing.T) {
	h, d, dir := newHandles(t, 8, "a", "b", "c", "d")
	used := map[string]*Dir{}
	for _, f := range []string{"a", "b", "c", "d"} {
		used[f] = useIn(t, h, 1, dir, f)
	}
	if h.Spare() {
		t.Fatal("one in use was closed")
	}
	for _, f := range []string{"b", "d", "a", "c"} {
		h.Rest(&used[f].Handle)
	}
	h.Rest(&useIn(t, h, 1, dir, "d").Handle)
	again := useIn(t, h, 1, dir, "a")
	for h.Spare() {
	}
	h.Rest(&again.Handle)
	h.Spare()
	if want := []string{"b", "c", "d", "a"}; !slices.Equal(d.closed, want) {
		t.Errorf("closed %v, want %v", d.closed, want)
	}
	if want := (HandleStats{Hits: 2, Misses: 4, Evictions: 4}); h.Stats != want {
		t.Errorf("%+v, want %+v", h.Stats, want)
	}
}

func TestTheLimitClosesWhatIsIdle(t *testing.T) {
	h, d, dir := newHandles(t, 4, "a", "b", "c", "d", "e")
	for _, f := range []string{"a", "b"} {
		defer h.Rest(&useIn(t, h, 1, dir, f).Handle)
	}
	for _, f := range []string{"c", "d", "e"} {
		h.Rest(&useIn(t, h, 1, dir, f).Handle)
	}
	if want := []string{"c"}; !slices.Equal(d.closed, want) || h.open != 4 {
		t.Errorf("closed %v, want %v; %d open", d.closed, want, h.open)
	}
}

func TestADirectoryUsedTwiceIsIdleAfterTheLastUse(t *testing.T) {
	h, _, dir := newHandles(t, 4, "a")
	x, y := useIn(t, h, 1, dir, "a"), useIn(t, h, 1, dir, "a")
	if x != y {
		t.Fatal("it was opened twice")
	}
	h.Rest(&x.Handle)
	if h.Spare() {
		t.Error("it was closed while in use")
	}
	h.Rest(&y.Handle)
	if !h.Spare() {
		t.Error("it was not idle")
	}
}

func TestReserveWaitsUntilThereIsRoom(t *testing.T) {
	check := func(name string, room func(h *Cache, inUse *Handle)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, _, dir := newHandles(t, 4, "a")
				inUse := useIn(t, h, 1, dir, "a")
				for range 3 {
					h.Reserve()
				}
				has := make(chan struct{})
				go func() {
					h.Reserve()
					close(has)
				}()
				synctest.Wait()
				select {
				case <-has:
					t.Error("a fifth descriptor")
				default:
				}
				room(h, &inUse.Handle)
				<-has
				if inUse.Users > 0 {
					h.Rest(&inUse.Handle)
				}
				for h.open > len(h.Dirs) {
					h.Release()
				}
			})
		})
	}
	check("closed", func(h *Cache, _ *Handle) { h.Release() })
	check("idle", (*Cache).Rest)
}

func TestATurnEndsItsWaitWithTheContext(t *testing.T) {
	h, _, _ := newHandles(t, LeastHandles)
	if err := h.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	why := errors.New("why")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if err := h.Begin(ctx); err != why {
		t.Errorf("%v, want the cause", err)
	}
	h.End()
	if err := h.Begin(t.Context()); err != nil {
		t.Error(err)
	}
}

// One goroutine may rest a handle while another evicts it.
func TestAHandleIsDroppedOnce(t *testing.T) {
	h, _, _ := newHandles(t, LeastHandles)
	for range 2000 {
		drops, both := 0, sync.WaitGroup{}
		x := &Handle{Users: 1, Drop: func() { drops++ }}
		both.Go(func() { h.Rest(x) })
		both.Go(func() {
			for !h.Spare() {
			}
		})
		both.Wait()
		if drops != 1 {
			t.Fatalf("dropped %d times", drops)
		}
	}
}

// A use's cost must not grow with the number of kept handles.
func BenchmarkHandle(b *testing.B) {
	for _, kept := range []int{10, 100_000} {
		b.Run(fmt.Sprintf("kept=%d", kept), func(b *testing.B) {
			var h Cache
			h.Init(sys.Disk{}, kept)
			all := make([]Handle, kept)
			for i := range all {
				h.Idle.Add(&all[i])
			}
			for i := 0; b.Loop(); i++ {
				x := &all[i*7919%kept]
				h.Mu.Lock()
				h.UseLocked(x)
				h.Mu.Unlock()
				h.Rest(x)
			}
		})
	}
}
