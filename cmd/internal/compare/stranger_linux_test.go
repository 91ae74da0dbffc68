package compare

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// TestABaselineIsKeptInOneDirectory keeps it while its directory is exchanged, in place of one
// that the victim has.
func TestABaselineIsKeptInOneDirectory(t *testing.T) {
	run := result.Run{Header: result.Header{SchemaVersion: result.SchemaVersion, Cells: []result.Cell{{Name: "a"}}, Plan: result.Plan{Rounds: 1}},
		Trials: []*result.Trial{{Cell: "a", Round: 1, Position: 1}}, End: &result.End{State: result.Complete, Rounds: 1}}
	kept := 0
	isolate.Lured(t, "", func(l isolate.Lure, wait func()) {
		if err := os.Rename(filepath.Join(l.Victim, "file"), filepath.Join(l.Victim, "file"+baselineExt)); err != nil {
			t.Fatal(err)
		}
		b := Baseline{Save: "file", dir: l.Dir}
		err := b.Prepare(false)
		if err == nil {
			wait()
			err = b.Keep(run)
		}
		b.Close()
		if err == nil {
			kept++
		}
		_ = os.Rename(filepath.Join(l.Victim, "file"+baselineExt), filepath.Join(l.Victim, "file"))
	})
	if rounds := isolate.Shortened(isolate.AttackRounds); kept != rounds {
		t.Errorf("%d of %d were kept", kept, rounds)
	}
}
