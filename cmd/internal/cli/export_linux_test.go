package cli

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-go/holdfast/internal/isolate"
)

// TestAFileThatCannotBeWrittenIsRemovedWhereItWasMade is -o, --emit-fio, --figures and --csv.
func TestAFileThatCannotBeWrittenIsRemovedWhereItWasMade(t *testing.T) {
	broken := errors.New("broken")
	isolate.Lured(t, "", func(l isolate.Lure, wait func()) {
		err := writeNew("-o", l.File, func(io.Writer) error { wait(); return broken })
		if !errors.Is(err, broken) {
			t.Error(err)
		}
	})
}

// TestDirectoriesAreMadeWhereNoStrangerLeadsThem makes some below one that is exchanged when
// it is made.
func TestDirectoriesAreMadeWhereNoStrangerLeadsThem(t *testing.T) {
	for _, remove := range []bool{false, true} {
		rounds, lost, exchanged := isolate.Shortened(isolate.AttackRounds), 0, 0
		for range rounds {
			parent, victim := isolate.Public(t, true), t.TempDir()
			link := filepath.Join(parent, "zz-link")
			if err := os.Symlink(victim, link); err != nil {
				t.Fatal(err)
			}
			stop := isolate.ExchangingAll(t, parent, link)
			held, err := HoldDirAll(filepath.Join(parent, "a", "b", "c", "d"), 0o755)
			if err == nil && remove {
				_ = held.Undo() // a may be under another name
			} else if err == nil {
				_ = held.Close()
			}
			exchanged += stop()
			if entries, err := os.ReadDir(victim); len(entries) > 0 || err != nil {
				lost++
			}
		}
		t.Logf("%d exchanges", exchanged)
		if lost > 0 || exchanged == 0 {
			t.Errorf("in %d of %d rounds, of %d exchanges, root has made something where a stranger led it", lost, rounds, exchanged)
		}
	}
}
