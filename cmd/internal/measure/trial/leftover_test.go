package trial

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast/internal/isolate"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/workdir"
)

// leave makes the files that a killed run leaves in parent.
func leave(t *testing.T, parent, name string, files ...string) string {
	t.Helper()
	dir := filepath.Join(parent, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(dir, f), []byte(f), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// skipWithoutLocks skips the test if a directory can't be locked.
func skipWithoutLocks(t *testing.T) {
	t.Helper()
	d := opened(t, t.TempDir())
	defer d.Close() // Windows removes no directory that is open
	if _, err := sys.TryLock(d.File()); err != nil {
		t.Skip("a directory can't be locked on", runtime.GOOS)
	}
}

func opened(t *testing.T, dir string) *workdir.Dir {
	t.Helper()
	d, err := workdir.Open(filepath.Dir(dir), filepath.Base(dir))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestRemoveLeftoverOfAKilledRun(t *testing.T) {
	skipWithoutLocks(t)
	parent := t.TempDir()
	leave(t, parent, "holdfast-bench-1", "1", "17", "memory-4095", "m-12", "s-104857600")
	if removed, err := RemoveLeftover(parent, "holdfast-bench-1"); !removed || err != nil {
		t.Errorf("removed: %v, %v", removed, err)
	}
	isEmpty(t, parent)
	leave(t, leave(t, parent, "holdfast-bench-1", "1", "read-by-all-17"), "2", "values-3", "check")
	if removed, err := RemoveLeftover(parent, "holdfast-bench-1"); !removed || err != nil {
		t.Errorf("removed with a trial's directory: %v, %v", removed, err)
	}
	isEmpty(t, parent)
	leave(t, leave(t, parent, "holdfast-bench-1", "1"), "holdfast-bench-2", "1", "m-12")
	if removed, err := RemoveLeftover(parent, "holdfast-bench-1"); !removed || err != nil {
		t.Errorf("removed with the directory of a second process: %v, %v", removed, err)
	}
	isEmpty(t, parent)
	if removed, err := RemoveLeftover(parent, "holdfast-bench-1"); removed || err != nil {
		t.Errorf("removed again: %v, %v", removed, err)
	}
}

// TestRemoveLeftoverTouchesNothingElse plants directories that are no leftovers, or not only.
func TestRemoveLeftoverTouchesNothingElse(t *testing.T) {
	skipWithoutLocks(t)
	check := func(name, sentence string, plant func(parent string)) {
		t.Helper()
		parent := t.TempDir()
		plant(parent)
		before := listing(t, parent)
		removed, err := RemoveLeftover(parent, name)
		if removed || err == nil || !strings.Contains(err.Error(), sentence) {
			t.Errorf("%s: removed: %v, %v; want …%s", name, removed, err, sentence)
		}
		if after := listing(t, parent); !slices.Equal(after, before) {
			t.Errorf("%s: %q before, %q after", name, before, after)
		}
	}
	dir := func(name string, files ...string) func(string) {
		return func(parent string) { leave(t, parent, name, files...) }
	}
	check("holdfast-bench-1", "it holds mine.txt, which no run makes", dir("holdfast-bench-1", "1", "mine.txt"))
	check("holdfast-bench-1", "it holds 1/2, which no run makes", func(parent string) {
		leave(t, leave(t, parent, "holdfast-bench-1", "3"), "1", "2")
	})
	check("holdfast-bench-1", "it holds memory-1, which no run makes", func(parent string) {
		leave(t, leave(t, parent, "holdfast-bench-1"), "memory-1")
	})
	check("holdfast-bench-1", "it holds 1/values-2, which no run makes", func(parent string) {
		leave(t, leave(t, leave(t, parent, "holdfast-bench-1"), "1"), "values-2", "values-3")
	})
	check("holdfast-bench-1", "it holds mine.txt, which no run makes", func(parent string) {
		leave(t, leave(t, parent, "holdfast-bench-1"), "holdfast-bench-2", "1", "mine.txt")
	})
	check("mine", `"mine" is not a name of a run's directory`, dir("mine", "1"))
	check("holdfast-bench-1x", "is not a name of a run's directory", dir("holdfast-bench-1x", "1"))
	check("../holdfast-bench-1", "is not a name of a run's directory", func(string) {})
	check("", "is not a name of a run's directory", func(string) {})
	check("holdfast-bench-1", "is no directory", func(parent string) {
		if err := os.WriteFile(filepath.Join(parent, "holdfast-bench-1"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	})
	check("holdfast-bench-1", "is no directory", func(parent string) {
		isolate.Symlink(t, leave(t, parent, "elsewhere", "1"), filepath.Join(parent, "holdfast-bench-1"))
	})
}

// listing returns the paths of all files below dir.
func listing(t *testing.T, dir string) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		paths = append(paths, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

func TestRemoveLeftoverLeavesALiveRunAlone(t *testing.T) {
	skipWithoutLocks(t)
	g := newWorkDir(t)
	path, err := g.fresh()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if removed, err := RemoveLeftover(filepath.Dir(g.Dir()), g.Name()); removed || !errors.Is(err, ErrAlive) {
		t.Errorf("removed: %v, %v", removed, err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}

// TestRemoveLeftoverWaitsForASecondProcess: one process outlives its run for a while, and one does not end.
func TestRemoveLeftoverWaitsForASecondProcess(t *testing.T) {
	skipWithoutLocks(t)
	for _, ends := range []bool{true, false} {
		parent := t.TempDir()
		second, err := OpenWorkDir(leave(t, parent, "holdfast-bench-1", "1"), true)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Test(t, func(t *testing.T) {
			var removed bool
			var err error
			done := make(chan struct{})
			go func() {
				defer close(done)
				removed, err = RemoveLeftover(parent, "holdfast-bench-1")
			}()
			synctest.Wait() // it sleeps
			if ends {
				if err := second.Close(); err != nil {
					t.Error(err)
				}
			}
			<-done
			if removed != ends || errors.Is(err, ErrAlive) == ends || ends && err != nil {
				t.Errorf("it ends is %v: removed %v, %v", ends, removed, err)
			}
		})
		if _, err := os.Stat(filepath.Join(parent, "holdfast-bench-1", "1")); ends != errors.Is(err, os.ErrNotExist) {
			t.Errorf("it ends is %v: %v", ends, err)
		}
		if !ends {
			if err := second.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestWhatIsBesideAWorkDirIsLookedAtOnly: beside it are a killed run's directory, a live run's, one
// with another file inside, and one that is no work directory.
func TestWhatIsBesideAWorkDirIsLookedAtOnly(t *testing.T) {
	skipWithoutLocks(t)
	g := newWorkDir(t)
	parent := filepath.Dir(g.Dir())
	alive, err := OpenWorkDir(parent, true)
	if err != nil {
		t.Fatal(err)
	}
	defer alive.Close()
	stale := leave(t, parent, "holdfast-bench-11111111111", "1") // longer than the names that runs choose
	mixed := leave(t, parent, "holdfast-bench-2", "notes")
	leave(t, parent, "mine")
	if err := os.WriteFile(filepath.Join(parent, "holdfast-bench-3"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	before := listing(t, parent)
	want := map[string]string{stale: "<nil>", mixed: "which no run makes", alive.Dir(): ErrAlive.Error()}
	for _, n := range g.Neighbours() {
		if text, ok := want[n.Dir]; !ok || !strings.Contains(fmt.Sprint(n.Err), text) {
			t.Errorf("%s: %v, want %q", n.Dir, n.Err, text)
		}
		delete(want, n.Dir)
	}
	if len(want) > 0 {
		t.Errorf("nothing is reported of %v", want)
	}
	if after := listing(t, parent); !slices.Equal(after, before) {
		t.Errorf("%q is there, and should be %q", after, before)
	}
}

func TestLeftoversAreThoseThatHaveNoOwner(t *testing.T) {
	skipWithoutLocks(t)
	parent := t.TempDir()
	alive, err := OpenWorkDir(parent, true)
	if err != nil {
		t.Fatal(err)
	}
	leave(t, parent, "holdfast-bench-1", "1")
	leave(t, parent, "holdfast-bench-x", "1")
	names, err := Leftovers(parent)
	if err != nil || !slices.Equal(names, []string{"holdfast-bench-1"}) {
		t.Errorf("left are %q (%v) beside %s", names, err, alive.Name())
	}
	if err := alive.Close(); err != nil {
		t.Error(err)
	}
}

// TestAWorkDirThatIsTakenForALeftoverIsNotOurs lets another process inspect or remove a directory
// before it is locked.
func TestAWorkDirThatIsTakenForALeftoverIsNotOurs(t *testing.T) {
	skipWithoutLocks(t)
	dir := t.TempDir()
	held, other := opened(t, dir), opened(t, dir)
	if !isLocked(held) {
		t.Fatal("a new directory is not ours")
	}
	if isLocked(other) {
		t.Error("what another has locked is ours")
	}
	if err := held.Remove(); err != nil {
		t.Fatal(err)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	if isLocked(other) {
		t.Error("what is not there any more is ours")
	}
	_ = other.Close()
}

// TestWorkDirsAreClaimedBesideALister lists leftovers all the time, which takes each lock for a moment.
func TestWorkDirsAreClaimedBesideALister(t *testing.T) {
	parent := t.TempDir()
	done := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				if _, err := Leftovers(parent); err != nil {
					t.Error(err)
					return
				}
			}
		}
	})
	for range 200 {
		g, err := OpenWorkDir(parent, true)
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}
	close(done)
	all.Wait()
	if left, err := os.ReadDir(parent); err != nil || len(left) > 0 {
		t.Errorf("%v is left; %v", left, err)
	}
}
