package bench

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/studytest"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// asRecorder names the file in which this program notes that it ran a cell.
const asRecorder = "HOLDFAST_TEST_RECORDER"

// record is a second process that measures nothing: it notes its name for each cell that it is to run. After
// the first its trials take 5, 3, 1, 4 ns and more.
func record(args []string, log string) error {
	notes, err := os.OpenFile(log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer notes.Close()
	name := "B"
	if strings.HasPrefix(filepath.Base(args[0]), "A") {
		name = "A"
	}
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for _, took := range []time.Duration{0, 5, 3, 1, 4, 2, 6, 7, 8, 9, 8, 7, 6, 5, 4, 3} {
		var asked struct{ Cell *result.Cell }
		if err := in.Decode(&asked); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if _, err := notes.WriteString(name); err != nil {
			return err
		}
		if err := out.Encode(map[string]any{"measurement": result.Measurement{Records: 1, Elapsed: took}}); err != nil {
			return err
		}
	}
	return nil
}

// TestAgainstAlternates: both programs run each pair's cells, and in turn each is the first. The least trial of each
// counts.
func TestAgainstAlternates(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	other, log := filepath.Join(dir, "A"+filepath.Ext(self)), filepath.Join(dir, "log")
	isolate.Symlink(t, self, other)
	t.Setenv(asRecorder, log)
	cell := result.Cell{Name: "a", Policy: holdfast.Unbuffered(), RecordBytes: 128, Writers: 1, Records: 1, LatencyStride: 1}
	header := result.Header{SchemaVersion: result.SchemaVersion, Cells: []result.Cell{cell}}
	a := &alternation{program: other, ground: studytest.WorkDir(t), cells: []trial.Cell{{Cell: cell}}, patience: time.Hour, a: result.Run{Header: header}, b: result.Run{Header: header}}
	for pair := 1; pair <= 3; pair++ {
		if err := a.pair(t.Context(), pair); err != nil {
			t.Fatal(err)
		}
	}
	a.cells[0].Estimate = 2 * longTurn
	if err := a.pair(t.Context(), 4); err != nil {
		t.Fatal(err)
	}
	notes, err := os.ReadFile(log)
	inTurn := func(one, two string) string {
		return one + two + strings.Repeat(one+two+two+one, againstTurns/2) + one + two
	} // the first of each is in no figure
	if want := inTurn("A", "B") + inTurn("B", "A") + inTurn("A", "B") + "BABA"; err != nil || string(notes) != want {
		t.Errorf("%q, %v; want %q", notes, err, want)
	}
	for i, run := range []result.Run{a.a, a.b} {
		if rounds := run.Rounds(); rounds != 4 || len(run.Trials) != 4 {
			t.Errorf("side %d has %d rounds", i, rounds)
		}
		for _, one := range run.Trials {
			if one.Elapsed != 1 && one.Round < 4 {
				t.Errorf("side %d, pair %d: a trial of %d counts, and 1 is the least", i, one.Round, one.Elapsed)
			}
		}
	}
}
