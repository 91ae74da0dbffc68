package figure_test

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
)

// TestTimesAreThoseOfTheFigures writes a run with all kinds of cells, reads its times alone, and wants
// the same times as in the figures.
func TestTimesAreThoseOfTheFigures(t *testing.T) {
	empty, open, arm := cell("empty"), under(t, "open", "sync=group"), cell("arm")
	empty.Empty, open.Rate, arm.Group = true, 100, "arms"
	run := planted(plant{cell: cell("never"), ms: steps(1000, 12)}, plant{cell: under(t, "close", "buffer=64KiB,sync=close"), ms: steps(900, 12)},
		plant{cell: under(t, "each", "sync=each"), ms: steps(800, 12)}, plant{cell: twinOf("never"), ms: steps(1000, 12)}, plant{cell: empty, ms: steps(3, 12)},
		plant{cell: open, ms: steps(700, 12)}, plant{cell: arm, ms: steps(600, 12)}, plant{cell: under(t, "turns", "sync=each"), ms: steps(500, 12)})
	for i := range run.Trials {
		trial := run.Trials[i]
		trial.Write, trial.Sync, trial.Flush, trial.Close = trial.Elapsed*6/10, trial.Elapsed*2/10, trial.Elapsed/10, trial.Elapsed/10
		h := result.NewHistogram()
		for n := range 100 {
			result.Record(h, time.Duration(20_000+n))
		}
		latency, err := result.NewLatency(h, func(int64, float64) bool { return true })
		if err != nil {
			t.Fatal(err)
		}
		if trial.Latency = latency; trial.Cell == "open" {
			trial.Service = &latency
		}
		if trial.Cell == "turns" {
			trial.Turns = []time.Duration{trial.Write / 4, trial.Write / 2, trial.Write / 4}
		}
	}
	var file bytes.Buffer
	if err := result.Write(&file, run); err != nil {
		t.Fatal(err)
	}
	lean, err := result.ReadTimes(&file)
	if err != nil {
		t.Fatal(err)
	}
	if lean.Trials[0].Latency.Histogram != "" || lean.Complete() != run.Complete() || lean.Spent() != run.Spent() {
		t.Errorf("%+v", lean.Trials[0])
	}
	times, doubts, err := figure.Times(lean)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]figure.Summary{}
	f := of(t, run)
	for _, g := range f.Groups {
		for _, r := range g.Rows {
			want[r.Cell.Name] = r.Net.Write
			if r.Net.Durable.N > 0 {
				want[r.Cell.Name] = r.Net.Durable
			}
			if g.Open() {
				want[r.Cell.Name] = r.Net.Service
			}
		}
	}
	for _, c := range times {
		if !reflect.DeepEqual(c.Record, want[c.Cell.Name]) {
			t.Errorf("%s: %+v, want %+v", c.Cell.Name, c.Record, want[c.Cell.Name])
		}
		delete(want, c.Cell.Name)
	}
	if len(want) > 0 {
		t.Errorf("there are no times of %v", want)
	}
	var warned []figure.Warning
	for _, w := range f.Warnings {
		if w.Code == "fast-sync" {
			warned = append(warned, w)
		}
	}
	if len(doubts) != 1 || !reflect.DeepEqual(doubts, warned) {
		t.Errorf("doubts %+v, want %+v", doubts, warned)
	}
	if _, _, err := figure.Times(result.Run{}); !errors.Is(err, figure.ErrNoRound) {
		t.Error(err)
	}
}
