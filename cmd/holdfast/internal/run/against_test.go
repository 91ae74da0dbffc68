package run

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/lab/result"
)

// asRecorder names the file in which this program notes that it ran a plan.
const asRecorder = "HOLDFAST_TEST_RECORDER"

// record is bench --from for a program that measures nothing: it notes its name and the seed of the plan.
func record(args []string, log string) error {
	after := func(flag string) string { return args[slices.Index(args, flag)+1] }
	f, err := os.Open(after("--from"))
	if err != nil {
		return err
	}
	defer f.Close()
	plan, err := result.Read(f)
	if err != nil {
		return err
	}
	out, err := result.Create(after("-o"), plan.Header)
	if err != nil {
		return err
	}
	for _, c := range plan.Header.Cells {
		if err := out.Trial(result.Trial{Cell: c.Name, Round: 1, Position: 1, Measurement: result.Measurement{Records: 1, Elapsed: 1}}); err != nil {
			return err
		}
	}
	if err := out.Close(result.End{State: result.Complete, Rounds: 1}); err != nil {
		return err
	}
	notes, err := os.OpenFile(log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer notes.Close()
	name := "B"
	if strings.HasPrefix(filepath.Base(args[0]), "A") {
		name = "A"
	}
	_, err = fmt.Fprintf(notes, "%s%d ", name, plan.Header.Seed)
	return err
}

// TestAgainstAlternates: both programs run each pair's plan, and in turn each is the first.
func TestAgainstAlternates(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	other, log := filepath.Join(dir, "A"+filepath.Ext(self)), filepath.Join(dir, "log")
	if err := os.Symlink(self, other); err != nil {
		t.Skipf("no link can be made: %v", err)
	}
	t.Setenv(asRecorder, log)
	cells := []result.Cell{{Name: "a", Policy: holdfast.Unbuffered(), RecordBytes: 128, Writers: 1, Records: 1, LatencyStride: 1}}
	plan := result.Header{SchemaVersion: result.SchemaVersion, Cells: cells}
	a := &alternation{program: other, dir: dir, own: dir, plan: plan, a: result.Run{Header: plan}, b: result.Run{Header: plan}}
	for pair := 1; pair <= 4; pair++ {
		if err := a.pair(context.Background(), pair); err != nil {
			t.Fatal(err)
		}
	}
	notes, err := os.ReadFile(log)
	if want := "A1 B1 B2 A2 A3 B3 B4 A4 "; err != nil || string(notes) != want {
		t.Errorf("%q, %v; want %q", notes, err, want)
	}
	for i, run := range []result.Run{a.a, a.b} {
		if rounds := run.Rounds(); rounds != 4 || len(run.Trials) != 4 {
			t.Errorf("side %d has %d rounds", i, rounds)
		}
	}
}
