package trial

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/isolate"
	"github.com/holdfast-go/holdfast/internal/workdir"
)

// plantVictim makes a directory of root with the files of a work directory.
func plantVictim(t *testing.T) string {
	t.Helper()
	return leave(t, t.TempDir(), "victim", "1", "2", "3", "memory-4095")
}

// isVictim reports whether a victim is unchanged: each file contains its name.
func isVictim(t *testing.T, victim string) bool {
	t.Helper()
	names := []string{"1", "2", "3", "memory-4095"}
	for _, name := range names {
		if text, err := os.ReadFile(filepath.Join(victim, name)); err != nil || string(text) != name {
			return false
		}
	}
	return len(listing(t, victim)) == 1+len(names)
}

// led runs root's calls, in rounds, in a directory whose owner exchanges everything in it for a link to
// the victim. The exchange starts when the directory has been prepared.
func led(t *testing.T, prepare, do func(parent string)) {
	t.Helper()
	victim := plantVictim(t)
	lost, exchanged := 0, 0
	for range isolate.AttackRounds {
		parent := isolate.Public(t, true)
		link := filepath.Join(parent, "zz-link")
		if err := os.Symlink(victim, link); err != nil {
			t.Fatal(err)
		}
		prepare(parent)
		stop := isolate.ExchangingAll(t, parent, link)
		do(parent)
		exchanged += stop()
		if !isVictim(t, victim) {
			lost++
			victim = plantVictim(t)
		}
	}
	t.Logf("%d exchanges in %d rounds", exchanged, isolate.AttackRounds)
	if lost > 0 {
		t.Errorf("in %d of %d rounds root has changed what a stranger led it to", lost, isolate.AttackRounds)
	}
}

func TestAWorkDirIsWhereNoStrangerLeadsIt(t *testing.T) {
	opened := 0
	led(t, func(string) {}, func(parent string) {
		g, err := OpenWorkDir(parent, true)
		if err != nil {
			return // it had been exchanged before it was open
		}
		opened++
		for range 5 {
			path, err := g.fresh()
			if err == nil {
				err = os.WriteFile(path, nil, 0o600)
			}
			if err != nil {
				t.Error(err)
			}
		}
		_ = g.Close() // it may no longer be under its name
	})
	if opened == 0 {
		t.Error("no work directory could be opened")
	}
}

func TestALeftoverIsRemovedWhereNoStrangerLeadsIt(t *testing.T) {
	removed := 0
	led(t, func(parent string) { leave(t, parent, "holdfast-bench-1", "1", "2") }, func(parent string) {
		if ok, _ := RemoveLeftover(parent, "holdfast-bench-1"); ok {
			removed++
		}
	})
	if removed == 0 {
		t.Error("none was removed")
	}
}

// TestAWorkDirOfAStrangerIsNoLeftover: an unlocked directory of another user with all files of a run.
func TestAWorkDirOfAStrangerIsNoLeftover(t *testing.T) {
	parent := isolate.Public(t, false)
	dir := filepath.Join(parent, "holdfast-bench-1")
	isolate.AsStranger(t, func() error {
		return errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(filepath.Join(dir, "1"), nil, 0o644))
	})
	var foreign *workdir.ForeignError
	if names, err := Leftovers(parent); len(names) > 0 || !errors.As(err, &foreign) {
		t.Errorf("left are %q, %v", names, err)
	}
	if removed, err := RemoveLeftover(parent, "holdfast-bench-1"); removed || !errors.As(err, &foreign) || foreign.Dir != dir {
		t.Errorf("removed: %v, %v", removed, err)
	}
	if !slices.ContainsFunc(listing(t, parent), func(path string) bool { return strings.HasSuffix(path, "/1") }) {
		t.Error("it was emptied")
	}
}
