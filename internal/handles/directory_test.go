//go:build go1.25

package handles

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"testing/synctest"
)

// skipWithoutMoves is called before a directory is opened: what is open can't be removed by the test's end either.
func skipWithoutMoves(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("an open directory can't be moved, and its identity is not known")
	}
}

func moveDir(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func TestADirectoryThatWasReplacedIsNoticedInTheNextEra(t *testing.T) {
	skipWithoutMoves(t)
	h, disk, dir := newHandles(t, 8, "a")
	path := filepath.Join(dir, "a")
	old := useIn(t, h, 1, path)
	moveDir(t, path, path+".old")
	if err := os.Mkdir(path, 0o777); err != nil {
		t.Fatal(err)
	}
	same := useIn(t, h, 1, path)
	if same != old {
		t.Error("it was looked up twice in one era")
	}
	h.Rest(&same.Handle)
	now := useIn(t, h, 2, path)
	if now == old || now.Is.Inode == old.Is.Inode {
		t.Error("the next era has the old directory")
	}
	if err := writeIn(h, old, "late"); err != nil {
		t.Errorf("a goroutine at work in the old directory can't go on: %v", err)
	}
	if len(disk.closed) != 1 { // the file
		t.Errorf("closed: %v", disk.closed)
	}
	h.Rest(&old.Handle)
	if len(disk.closed) != 2 {
		t.Error("the old directory is kept")
	}
	h.Rest(&now.Handle)
	if again := useIn(t, h, 2, path); again != now {
		t.Error("the new directory was not kept")
	}
	h.Rest(&now.Handle)
	if want := (HandleStats{Hits: 2, Misses: 2}); h.Stats != want {
		t.Errorf("%+v, want %+v", h.Stats, want)
	}
}

func TestADirectoryThatIsGoneIsNoticedInTheNextEra(t *testing.T) {
	skipWithoutMoves(t)
	check := func(name string, change func(t *testing.T, path string)) {
		t.Run(name, func(t *testing.T) {
			h, disk, dir := newHandles(t, 4, "a")
			path := filepath.Join(dir, "a")
			h.Rest(&useIn(t, h, 1, path).Handle)
			change(t, path)
			if d, err := h.UseDir(path, 2); !errors.Is(err, fs.ErrNotExist) {
				t.Fatalf("%v, %v, want that there is none", d, err)
			}
			if h.open != 0 || len(disk.open) != 0 {
				t.Errorf("%d counted, %v open", h.open, disk.open)
			}
			if err := os.Mkdir(path, 0o777); err != nil {
				t.Fatal(err)
			}
			d := useIn(t, h, 2, path)
			defer h.Rest(&d.Handle)
			if err := writeIn(h, d, "file"); err != nil {
				t.Error(err)
			}
		})
	}
	check("moved", func(t *testing.T, path string) { moveDir(t, path, path+".old") })
	check("removed", func(t *testing.T, path string) {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	})
}

func TestADirectoryThatIsStillThereIsKeptThroughTheEras(t *testing.T) {
	h, _, dir := newHandles(t, 4, "a")
	d := useIn(t, h, 1, dir, "a")
	h.Rest(&d.Handle)
	for _, era := range []int64{2, 2, 3, 1} {
		if again := useIn(t, h, era, dir, "a"); again != d {
			t.Errorf("era %d: opened anew", era)
		}
		h.Rest(&d.Handle)
	}
	if d.looked != 3 {
		t.Errorf("looked up in era %d last", d.looked)
	}
}

func TestWhatIsNoDirectoryIsRefusedAndCountsForNothing(t *testing.T) {
	h, _, dir := newHandles(t, 4)
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"file", "none", "zero\x00byte"} {
		if _, err := h.UseDir(filepath.Join(dir, name), 1); err == nil || h.open != 0 {
			t.Errorf("%q: %v, %d counted", name, err, h.open)
		}
	}
}

func TestADirectoryThatCannotBeLookedAtIsClosed(t *testing.T) {
	h, disk, dir := newHandles(t, 4)
	disk.noStat = fs.ErrPermission
	if _, err := h.UseDir(dir, 1); !errors.Is(err, fs.ErrPermission) || h.open != 0 || len(disk.open) != 0 {
		t.Errorf("%v, %d counted, open are %v", err, h.open, disk.open)
	}
}

// TestARemovedWorkingDirectoryIsNoticed: its path "." leads to it though it is gone.
func TestARemovedWorkingDirectoryIsNoticed(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("not every system removes or finds a working directory so")
	}
	h, _, dir := newHandles(t, 4, "a")
	t.Chdir(filepath.Join(dir, "a"))
	h.Rest(&useIn(t, h, 1, ".").Handle)
	if err := os.Remove(filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	d := useIn(t, h, 2, ".") // it can be opened, and nothing can be made in it
	defer h.Rest(&d.Handle)
	if h.Stats.Misses != 2 {
		t.Errorf("a directory that is gone was taken for what it was: %+v", h.Stats)
	}
}

func TestADirectoryWhoseSyncFailedIsNotUsedAgain(t *testing.T) {
	h, _, dir := newHandles(t, 4, "a")
	d := useIn(t, h, 1, dir, "a")
	h.Lost(d)
	if !h.IsLost(d) {
		t.Error("it is not lost")
	}
	now := useIn(t, h, 1, dir, "a")
	if now == d || h.IsLost(now) {
		t.Error("the descriptor is used again")
	}
	h.Rest(&now.Handle)
	h.Rest(&d.Handle)
}

func TestSecondDescriptorOfADirectoryIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, disk, dir := newHandles(t, 8, "a")
		disk.hold = make(chan struct{})
		got := make(chan *Dir)
		for range 2 {
			go func() { got <- useIn(t, h, 1, dir, "a") }()
		}
		synctest.Wait() // both have opened it
		close(disk.hold)
		x, y := <-got, <-got
		if x == y || len(disk.open) != 2 {
			t.Fatalf("there was no race: %v", disk.open)
		}
		h.Rest(&x.Handle)
		h.Rest(&y.Handle)
		if len(disk.open) != 1 || h.open != 1 {
			t.Errorf("%v are open, %d counted", disk.open, h.open)
		}
		kept := useIn(t, h, 1, dir, "a")
		defer h.Rest(&kept.Handle)
		if kept.Gone || kept != x && kept != y {
			t.Error("neither was kept")
		}
	})
}

func TestADirectoryThatIsBeingClosedIsNotGivenOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, disk, dir := newHandles(t, 4, "a")
		old := useIn(t, h, 1, dir, "a")
		drop, hold := old.Drop, make(chan struct{})
		old.Drop = func() {
			<-hold
			drop()
		}
		h.Rest(&old.Handle)
		go h.Spare()
		synctest.Wait()
		now := useIn(t, h, 1, dir, "a")
		defer h.Rest(&now.Handle)
		close(hold)
		synctest.Wait()
		if now == old || len(disk.open) != 1 || h.Dirs[now.Path] != now {
			t.Errorf("the same: %v; %v open, %v kept", now == old, disk.open, h.Dirs)
		}
	})
}

// TestADirectoryThatGivesItsFilesOtherRightsIsLookedAtAnew: what was seen of its first file holds
// no longer.
func TestADirectoryThatGivesItsFilesOtherRightsIsLookedAtAnew(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("directories have no such modes and groups")
	}
	check := func(name string, change func(path string) error) {
		t.Run(name, func(t *testing.T) {
			h, _, dir := newHandles(t, 4, "a")
			path := filepath.Join(dir, "a")
			old := useIn(t, h, 1, path)
			h.Rest(&old.Handle)
			if err := change(path); err != nil {
				t.Skipf("it can't be changed here: %v", err)
			}
			d := useIn(t, h, 2, path)
			defer h.Rest(&d.Handle)
			if d == old {
				t.Error("it is used as it was")
			}
		})
	}
	check("mode", func(path string) error { return os.Chmod(path, 0o700|os.ModeSetgid) })
	check("group", func(path string) error { return os.Chown(path, -1, 4321) })
}

// TestADirectoryThatCannotBeReadIsOpenedForNamesAlone, and is closed where its names must be synced.
func TestADirectoryThatCannotBeReadIsOpenedForNamesAlone(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux opens a directory that can't be read")
	}
	for _, syncs := range []bool{false, true} {
		h, disk, dir := newHandles(t, 4)
		h.Syncs, disk.noRead = syncs, fs.ErrPermission
		d, err := h.UseDir(dir, 1)
		switch {
		case syncs:
			if !errors.Is(err, fs.ErrPermission) || h.open != 0 || len(disk.open) != 0 {
				t.Errorf("%v, %d counted, open are %v", err, h.open, disk.open)
			}
		case err != nil || !d.NamesOnly:
			t.Errorf("%+v, %v", d, err)
		default:
			h.Rest(&d.Handle)
		}
	}
}
