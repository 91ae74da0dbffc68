package uml

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/isolate"
	"github.com/holdfast-go/holdfast/internal/workdir"
)

// plantVictim makes a directory of root with one file, of a name that a guest's has.
func plantVictim(t *testing.T) string {
	t.Helper()
	victim := t.TempDir()
	if err := os.WriteFile(filepath.Join(victim, outcomeName), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	return victim
}

// isVictim reports whether a victim is as it was made.
func isVictim(t *testing.T, victim string) bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(victim, outcomeName))
	entries, listErr := os.ReadDir(victim)
	return err == nil && listErr == nil && string(text) == "{}" && len(entries) == 1
}

// led runs a guest beside a stranger that exchanges all that comes into a directory of
// theirs for a link to the victim. The directory is the share, which is root's, or what
// is made in it if theirs is set.
func led(t *testing.T, k Kernel, g Guest, victim string, theirs bool) (exchanged int, err error) {
	t.Helper()
	parent := isolate.Public(t, true)
	g.Share = parent
	var share *workdir.Dir
	if !theirs {
		if share, err = workdir.Make(parent, "share"); err != nil {
			t.Fatal(err)
		}
		defer share.Close()
		g.Share = share.Path()
	}
	link := filepath.Join(parent, "zz-link")
	if err := os.Symlink(victim, link); err != nil {
		t.Fatal(err)
	}
	stop := isolate.ExchangingAll(t, parent, link)
	if _, err := os.ReadDir(parent); err != nil { // from here on they exchange it all the time
		t.Fatal(err)
	}
	err = k.Run(t.Context(), g)
	exchanged = stop()
	if theirs {
		return exchanged, err
	}
	var names []string
	entries, listErr := share.Entries()
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if wrote := err == nil; listErr != nil || wrote != slices.Contains(names, "written") || !wrote && len(names) > 0 {
		t.Errorf("in the share are %q, %v", names, listErr)
	}
	return exchanged, err
}

// TestAGuestsDirectoryIsWhereNoStrangerLeadsIt starts, in place of a kernel, a program that
// ends at once.
func TestAGuestsDirectoryIsWhereNoStrangerLeadsIt(t *testing.T) {
	modules := t.TempDir()
	for _, name := range []string{"modules.dep", "modules.builtin"} {
		if err := os.WriteFile(filepath.Join(modules, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	k := Kernel{Program: "/bin/true", Modules: modules}
	rounds := isolate.Shortened(isolate.AttackRounds)
	for _, theirs := range []bool{false, true} {
		victim, lost, exchanged, started := plantVictim(t), 0, 0, 0
		for range rounds {
			n, err := led(t, k, Guest{Command: guestWord}, victim, theirs)
			var crash *CrashError
			if errors.As(err, &crash) {
				started++
			}
			exchanged += n
			if !isVictim(t, victim) {
				lost++
				victim = plantVictim(t)
			}
		}
		t.Logf("%d exchanges in %d rounds, %d guests started", exchanged, rounds, started)
		if exchanged == 0 || started == 0 {
			t.Errorf("%d exchanges, and %d guests started", exchanged, started)
		}
		if lost > 0 {
			t.Errorf("in %d of %d rounds root has changed what a stranger led it to", lost, rounds)
		}
	}
}

// TestAGuestWritesWhereNoStrangerLeadsIt boots one.
func TestAGuestWritesWhereNoStrangerLeadsIt(t *testing.T) {
	k, victim := kernel(t), plantVictim(t)
	exchanged, err := led(t, k, Guest{Command: guestWord, Limit: time.Minute, Task: task(t, chore{Does: "write"})}, victim, false)
	if err != nil || exchanged == 0 {
		t.Errorf("%d exchanges, %v", exchanged, err)
	}
	if !isVictim(t, victim) {
		t.Error("it has changed what a stranger led it to")
	}
}
