package sweep

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/studytest"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

func TestMain(m *testing.M) {
	roles := maps.Clone(Roles)
	answers := func(a reply) study.Role {
		return func(_ context.Context, _ []string, _ io.Reader, stdout io.Writer) error {
			return json.NewEncoder(stdout).Encode(a)
		}
	}
	roles["spoilt"] = answers(reply{Failed: "spoilt", Content: &trial.ContentError{Offset: 7, Reason: "stands another"}})
	roles["full"] = answers(reply{Failed: "write", Errno: syscall.ENOSPC})
	roles["failing"] = answers(reply{Failed: "it can't"})
	roles["dying"] = func(context.Context, []string, io.Reader, io.Writer) error { return errors.New("it died") }
	roles["silent"] = func(_ context.Context, _ []string, stdin io.Reader, _ io.Writer) error {
		_, err := io.Copy(io.Discard, stdin)
		return err
	}
	studytest.Main(m, roles)
}

func TestUnknownCommandIsRefused(t *testing.T) { isolate.RefusesUnknownCommand(t) }

// A keeper records the calls of a matrix.
type keeper struct {
	trials   []result.Trial
	controls []result.Control
	begun    func(trial.Step)
}

func (k *keeper) Begin(s trial.Step) {
	if k.begun != nil {
		k.begun(s)
	}
}

func (k *keeper) Done(t result.Trial) error {
	k.trials = append(k.trials, t)
	return nil
}

func (k *keeper) control(c result.Control) error {
	k.controls = append(k.controls, c)
	return nil
}

// fewRounds is a matrix of cells that take almost no time.
func fewRounds(rounds int) trial.Matrix {
	m := trial.Matrix{Rounds: rounds, Seed: 3}
	for _, w := range []Workload{
		{Policy: holdfast.Buffered(4096), RecordBytes: 128, Writers: 2},
		{Policy: holdfast.Durable(), RecordBytes: 128, Writers: 2},
		{Policy: holdfast.Unbuffered(), RecordBytes: 128, Writers: 2, Empty: true},
	} {
		m.Cells = append(m.Cells, Cell(w.cell(6), 0, trial.NotCounting))
	}
	return m
}

func TestEachRoundHasAProcessOfItsOwn(t *testing.T) {
	g := studytest.WorkDir(t)
	started, byRound := 0, map[int]int{}
	g.Second = func(ctx context.Context, args ...string) *exec.Cmd {
		started++
		return studytest.SecondTest(ctx, args...)
	}
	k := &keeper{begun: func(s trial.Step) { byRound[s.Round] = started }}
	b := InBlocks(fewRounds(leastBlocks), g, k.control)
	rounds, _, err := b.Matrix.Run(t.Context(), g, k)
	if err := errors.Join(err, b.Close()); err != nil || rounds != leastBlocks {
		t.Fatalf("%d rounds, %v", rounds, err)
	}
	for round := range leastBlocks + 1 {
		if byRound[round] != round { // the warm-up stays in this process
			t.Errorf("round %d is in process %d", round, byRound[round])
		}
	}
	for i, c := range k.controls {
		if c.Round != i+1 || c.Write <= 0 || c.Fdatasync <= 0 {
			t.Errorf("control %d: %+v", i, c)
		}
	}
	if len(k.controls) != leastBlocks || len(k.trials) != 3*(leastBlocks+1) {
		t.Errorf("%d controls, %d trials", len(k.controls), len(k.trials))
	}
	for _, one := range k.trials {
		wrote := int64(6 * 128)
		if one.Records != 6 || one.Size != wrote || one.Elapsed <= 0 || !strings.HasPrefix(one.Cell, "empty") && one.Writer.Writes != 6 {
			t.Errorf("%+v", one)
		}
	}
	if left, err := os.ReadDir(g.Inside()); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestNoBlocks: with cells that must stay in one process, and with too few rounds.
func TestNoBlocks(t *testing.T) {
	g := studytest.WorkDir(t)
	check := func(what string, want bool, change func(*trial.Matrix)) {
		t.Helper()
		m := fewRounds(leastBlocks)
		change(&m)
		if b := InBlocks(m, g, nil); (b.Matrix.Fresh != nil) != want {
			t.Errorf("%s: in blocks is %v", what, !want)
		}
	}
	check("rounds", true, func(*trial.Matrix) {})
	check("few rounds", false, func(m *trial.Matrix) { m.Rounds-- })
	check("few that are left", false, func(m *trial.Matrix) { m.Whole++ })
	check("few at first", true, func(m *trial.Matrix) { m.Rounds, m.Settled = 1, func() bool { return true } })
	check("a page cache", false, func(m *trial.Matrix) { m.Cells[1].Cache = result.Cold })
	check("a new file", true, func(m *trial.Matrix) { m.Cells[1].Cache = result.NewFile })
	check("a file system", false, func(m *trial.Matrix) { m.Cells[1].FileSystem = "xfs" })
	check("long trials", false, func(m *trial.Matrix) { m.Cells[1].Steady = true })
	g.Second = nil
	check("no second process", false, func(*trial.Matrix) {})
}

// TestFailuresOfAProcessKeepTheirKind: the command finds its exit code and its hint by it.
func TestFailuresOfAProcessKeepTheirKind(t *testing.T) {
	run := func(ctx context.Context, role string, started func()) error {
		g := studytest.WorkDir(t)
		g.Second = func(ctx context.Context, args ...string) *exec.Cmd {
			started()
			return studytest.SecondTest(ctx, role)
		}
		k := &keeper{}
		b := InBlocks(fewRounds(leastBlocks), g, k.control)
		_, _, err := b.Matrix.Run(ctx, g, k)
		_ = b.Close() // the process may have failed
		if len(k.trials) != 3 || slices.ContainsFunc(k.trials, func(one result.Trial) bool { return one.Round > 0 }) {
			t.Errorf("%s: %d trials", role, len(k.trials))
		}
		return err
	}
	nothing := func() {}
	var content *trial.ContentError
	if err := run(t.Context(), "spoilt", nothing); !errors.As(err, &content) || content.Offset != 7 {
		t.Errorf("wrong bytes: %v", err)
	}
	if err := run(t.Context(), "full", nothing); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a full disk: %v", err)
	}
	if err := run(t.Context(), "failing", nothing); err == nil || err.Error() != "it can't" {
		t.Errorf("any failure: %v", err)
	}
	if err := run(t.Context(), "dying", nothing); err == nil || !strings.Contains(err.Error(), "it died") {
		t.Errorf("a process that dies: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := run(ctx, "silent", func() { go cancel() }); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}
