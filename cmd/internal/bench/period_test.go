package bench

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/studytest"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/sweep"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// A keeper keeps the trials of a run.
type keeper struct{ run *result.Run }

func (k keeper) Begin(trial.Step) {}

func (k keeper) Done(t result.Trial) error {
	k.run.Trials = append(k.run.Trials, &t)
	return nil
}

// measured runs policies beside each other on a real disk.
func measured(t *testing.T, c study.Choice, policies ...string) figure.Figures {
	t.Helper()
	for _, text := range policies {
		p, err := holdfast.ParsePolicy(text)
		if err != nil {
			t.Fatal(err)
		}
		c.Policies = append(c.Policies, p)
	}
	c.Preset, c.Writers, c.Seed = study.Default(), []int{1}, 7
	g := studytest.WorkDir(t)
	m, plan, err := sweep.Policy().Prepare(t.Context(), g, c, func(int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	run := result.Run{Header: result.Header{SchemaVersion: result.SchemaVersion, Plan: plan, Seed: c.Seed}}
	for _, cell := range m.Cells {
		run.Header.Cells = append(run.Header.Cells, cell.Cell)
	}
	if _, _, err := m.Run(t.Context(), g, keeper{&run}); err != nil {
		t.Fatal(err)
	}
	f, err := figure.Of(run)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// row returns a policy's row in a group.
func row(t *testing.T, g figure.Group, policy string) figure.Row {
	t.Helper()
	i := slices.IndexFunc(g.Rows, func(r figure.Row) bool { return r.Cell.Policy.String() == policy })
	if i < 0 {
		t.Fatalf("no %s in %+v", policy, g.Load)
	}
	return g.Rows[i]
}

// onceOfThree measures up to three times, until judge finds nothing wrong: a busy machine gives
// wrong figures now and then.
func onceOfThree(t *testing.T, c study.Choice, judge func(figure.Figures) string, policies ...string) {
	t.Helper()
	if isolate.RaceEnabled {
		t.Skip("it measures, and the race detector takes most of the time")
	}
	wrong := ""
	for range 3 {
		if wrong = judge(measured(t, c, policies...)); wrong == "" {
			return
		}
		t.Log(wrong)
	}
	t.Errorf("three times: %s", wrong)
}

// TestPeriodOfAnHourCostsNothing: to write, sync=1h is sync=never within the noise. Its sync
// at the end is in the time until all is durable, and nowhere else.
func TestPeriodOfAnHourCostsNothing(t *testing.T) {
	t.Parallel()
	onceOfThree(t, study.Choice{Rounds: 8, Budget: 2 * time.Second}, func(f figure.Figures) string {
		hour := row(t, f.Groups[0], "buffer=64KiB,sync=1h0m0s")
		if hour.Period.Judged() || hour.Cost.Verdict != stat.NotProven || hour.Fastest {
			t.Errorf("%+v is judged, %q", hour.Period, hour.Cost.Verdict)
		}
		if !hour.Cost.HasInterval() || !f.Noises[0].Floor.Known() {
			t.Skip("the machine is so busy that the harness took as long as what it measured")
		}
		// 1 is in the interval, or as near as two runs of the same cell differ.
		noise := 1.1 * (1 + max(0.1, float64(f.Noises[0].Floor)))
		if c := hour.Cost; !(c.Low < noise && c.High > 1/noise) {
			return fmt.Sprintf("it costs %.2fx (%.2f-%.2f), the noise is %.2f", c.Ratio, c.Low, c.High, noise)
		}
		if d, w := hour.Net.Durable.Median, hour.Net.Write.Median; !(d > w) {
			return fmt.Sprintf("until durable takes %v, to write %v", d, w)
		}
		return ""
	}, "buffer=64KiB,sync=never", "buffer=64KiB,sync=1h")
}

// TestShortPeriodFallsDue: at least three times in each paced trial, and the bytes not yet durable
// were nearly as old as the period.
func TestShortPeriodFallsDue(t *testing.T) {
	t.Parallel()
	onceOfThree(t, study.Choice{Rounds: 2, Budget: 20 * time.Second}, func(f figure.Figures) string {
		if len(f.Groups) != 2 || !f.Groups[1].Paced {
			t.Fatalf("groups %+v", f.Groups)
		}
		if never := row(t, f.Groups[1], "buffer=64KiB,sync=never"); !never.Control || never.SyncsWriting != 0 {
			t.Errorf("the control is %+v", never)
		}
		paced := row(t, f.Groups[1], "buffer=64KiB,sync=50ms")
		if !paced.Period.Reached || paced.SyncsWriting < 3 || paced.Oldest < 40*time.Millisecond {
			return fmt.Sprintf("%+v, %v syncs, and the oldest byte was %v old", paced.Period, paced.SyncsWriting, paced.Oldest)
		}
		return ""
	}, "buffer=64KiB,sync=never", "buffer=64KiB,sync=50ms")
}
