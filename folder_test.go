package holdfast

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"testing/synctest"
)

func TestSplitPath(t *testing.T) {
	check := func(path, folder, base string) {
		t.Helper()
		if f, b := splitPath(path); f != folder || b != base {
			t.Errorf("%q: %q, %q", path, f, b)
		}
	}
	check("file", ".", "file")
	check("a/file", "a", "file")
	check("/file", "/", "file")
	check("/a/b/file", "/a/b", "file")
	check("../file", "..", "file")
	check("a//file", "a/", "file")
	check("a/", "a", "")
	check("/", "/", "")
	check("", ".", "")
}

func moveFolder(t *testing.T, from, to string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("an open folder can't be moved, and its identity is not told")
	}
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func TestAFolderThatWasReplacedIsNoticedInTheNextEra(t *testing.T) {
	h, disk, dir := newHandles(t, 8, "a")
	path := filepath.Join(dir, "a")
	old := useIn(t, h, 1, path)
	moveFolder(t, path, path+".old")
	if err := os.Mkdir(path, 0o777); err != nil {
		t.Fatal(err)
	}
	same := useIn(t, h, 1, path)
	if same != old {
		t.Error("it was looked up twice in one era")
	}
	h.rest(&same.handle)
	now := useIn(t, h, 2, path)
	if now == old || now.is.Inode == old.is.Inode {
		t.Error("the next era has the old folder")
	}
	if err := writeIn(h, old, "late"); err != nil {
		t.Errorf("who is at work in the old folder can't go on: %v", err)
	}
	if len(disk.closed) != 1 { // the file
		t.Errorf("closed: %v", disk.closed)
	}
	h.rest(&old.handle)
	if len(disk.closed) != 2 {
		t.Error("the old folder is kept")
	}
	h.rest(&now.handle)
	if again := useIn(t, h, 2, path); again != now {
		t.Error("the new folder was not kept")
	}
	h.rest(&now.handle)
	if want := (handleStats{hits: 2, misses: 2}); h.stats != want {
		t.Errorf("%+v, want %+v", h.stats, want)
	}
}

func TestAFolderThatIsGoneIsNoticedInTheNextEra(t *testing.T) {
	check := func(name string, change func(t *testing.T, path string)) {
		t.Run(name, func(t *testing.T) {
			h, disk, dir := newHandles(t, 4, "a")
			path := filepath.Join(dir, "a")
			h.rest(&useIn(t, h, 1, path).handle)
			change(t, path)
			if d, err := h.useFolder(path, 2); !errors.Is(err, fs.ErrNotExist) {
				t.Fatalf("%v, %v, want that there is none", d, err)
			}
			if h.open != 0 || len(disk.open) != 0 {
				t.Errorf("%d counted, %v open", h.open, disk.open)
			}
			if err := os.Mkdir(path, 0o777); err != nil {
				t.Fatal(err)
			}
			d := useIn(t, h, 2, path)
			defer h.rest(&d.handle)
			if err := writeIn(h, d, "file"); err != nil {
				t.Error(err)
			}
		})
	}
	check("moved", func(t *testing.T, path string) { moveFolder(t, path, path+".old") })
	check("removed", func(t *testing.T, path string) {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	})
}

func TestAFolderThatIsStillThereIsKeptThroughTheEras(t *testing.T) {
	h, _, dir := newHandles(t, 4, "a")
	d := useIn(t, h, 1, dir, "a")
	h.rest(&d.handle)
	for _, era := range []int64{2, 2, 3, 1} {
		if again := useIn(t, h, era, dir, "a"); again != d {
			t.Errorf("era %d: opened anew", era)
		}
		h.rest(&d.handle)
	}
	if d.looked != 3 {
		t.Errorf("looked up in era %d last", d.looked)
	}
}

func TestWhatIsNoFolderIsRefusedAndCountsForNothing(t *testing.T) {
	h, _, dir := newHandles(t, 4)
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"file", "none", "zero\x00byte"} {
		if _, err := h.useFolder(filepath.Join(dir, name), 1); err == nil || h.open != 0 {
			t.Errorf("%q: %v, %d counted", name, err, h.open)
		}
	}
}

func TestWhoOpensAFolderSecondClosesItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, disk, dir := newHandles(t, 8, "a")
		disk.hold = make(chan struct{})
		got := make(chan *folder)
		for range 2 {
			go func() { got <- useIn(t, h, 1, dir, "a") }()
		}
		synctest.Wait() // both have opened it
		close(disk.hold)
		x, y := <-got, <-got
		if x == y || len(disk.open) != 2 {
			t.Fatalf("there was no race: %v", disk.open)
		}
		h.rest(&x.handle)
		h.rest(&y.handle)
		if len(disk.open) != 1 || h.open != 1 {
			t.Errorf("%v are open, %d counted", disk.open, h.open)
		}
		kept := useIn(t, h, 1, dir, "a")
		defer h.rest(&kept.handle)
		if kept.gone || kept != x && kept != y {
			t.Error("neither was kept")
		}
	})
}

func TestAFolderThatIsBeingClosedIsNotGivenOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, disk, dir := newHandles(t, 4, "a")
		old := useIn(t, h, 1, dir, "a")
		drop, hold := old.drop, make(chan struct{})
		old.drop = func() {
			<-hold
			drop()
		}
		h.rest(&old.handle)
		go h.spare()
		synctest.Wait()
		now := useIn(t, h, 1, dir, "a")
		defer h.rest(&now.handle)
		close(hold)
		synctest.Wait()
		if now == old || len(disk.open) != 1 || h.folders[now.path] != now {
			t.Errorf("the same: %v; %v open, %v kept", now == old, disk.open, h.folders)
		}
	})
}
