package isolate

import (
	"errors"
	"iter"
	"os"
	"path/filepath"
	"testing"
)

// A Lure is a directory of a stranger. Each time that it, or something in it, is opened, the
// stranger exchanges it for a link to a directory of root. Both have a file of the same name.
type Lure struct{ Dir, File, Victim string }

// Mine is what the victim has in its file.
const Mine = "mine"

// Shortened is a tenth of the rounds for a short test.
func Shortened(rounds int) int {
	if testing.Short() {
		return rounds / 10
	}
	return rounds
}

// Exchanges counts rounds in which a stranger is to exchange a directory: so many, and more until
// it did in half as many. On a busy machine a round may be over before the stranger runs.
func Exchanges(t *testing.T, rounds int, exchanged *int) iter.Seq[int] {
	return func(yield func(int) bool) {
		i := 0
		for ; i < rounds || *exchanged < rounds/2 && i < 30*rounds; i++ {
			if !yield(i) {
				return
			}
		}
		t.Logf("%d exchanges in %d rounds", *exchanged, i)
		if *exchanged < rounds/2 {
			t.Error("the directory was seldom exchanged")
		}
	}
}

// Lured runs do in rounds, each with a lure of its own; wait returns when the directory was
// exchanged again. The victim's file must not change.
func Lured(t *testing.T, theirs string, do func(l Lure, wait func())) {
	t.Helper()
	rounds, lost, exchanged := Shortened(AttackRounds), 0, 0
	for range Exchanges(t, rounds, &exchanged) {
		parent := Public(t, false)
		l := Lure{Dir: filepath.Join(parent, "dir"), Victim: filepath.Join(t.TempDir(), "victim")}
		link := filepath.Join(parent, "zz-link")
		l.File = filepath.Join(l.Dir, "file")
		if err := errors.Join(os.Mkdir(l.Victim, 0o700), os.WriteFile(filepath.Join(l.Victim, "file"), []byte(Mine), 0o600)); err != nil {
			t.Fatal(err)
		}
		AsStranger(t, func() error {
			err := errors.Join(os.Mkdir(l.Dir, 0o777), os.Chmod(l.Dir, 0o777), os.Symlink(l.Victim, link))
			if err == nil && theirs != "" {
				err = errors.Join(os.WriteFile(l.File, []byte(theirs), 0o666), os.Chmod(l.File, 0o666))
			}
			return err
		})
		again := make(chan bool, 1)
		stop := Exchanging(t, l.Dir, link, func() {
			select {
			case again <- true:
			default:
			}
		}, l.Dir)
		do(l, func() { <-again })
		exchanged += stop()
		text, err := os.ReadFile(filepath.Join(l.Victim, "file"))
		if entries, _ := os.ReadDir(l.Victim); err != nil || string(text) != Mine || len(entries) != 1 {
			lost++
		}
	}
	if lost > 0 {
		t.Errorf("in %d rounds root has changed what a stranger led it to", lost)
	}
}

const AttackRounds = 200
