package costs

import (
	"context"
	"math"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/studytest"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

// turnsOf returns the times of the turns: about ns, up and down by the jitter.
func turnsOf(ns, jitter float64) (times []float64) {
	for i := range turns {
		times = append(times, ns+jitter*float64(i%5-2))
	}
	return times
}

func TestCostIsWhatTheLoopTakesLonger(t *testing.T) {
	const perTurn = 1000
	check := func(with, without []float64, want float64, wantBelow bool) {
		t.Helper()
		cost, below := costOf(with, without, perTurn)
		if math.Abs(cost-want) > 1e-9 || below != wantBelow {
			t.Errorf("cost %v, below %v; want %v, %v", cost, below, want, wantBelow)
		}
	}
	check(turnsOf(1300, 0), turnsOf(300, 0), 1, false)
	check(turnsOf(1300, 10), turnsOf(300, 0), 1, false)
	check(turnsOf(300+250, 10), turnsOf(300, 0), 0.25, false)

	// The operation is the loop itself: nothing is left, and no cost below nothing.
	check(turnsOf(300, 0), turnsOf(300, 0), 0.001, true)
	check(turnsOf(300, 20), turnsOf(300, 0), 0.02, true)
	check(turnsOf(290, 0), turnsOf(300, 0), 0.001, true)
	check(turnsOf(290, 20), turnsOf(300, 0), 0.01, true)
}

func TestOneLongTurnDoesNotCount(t *testing.T) {
	with := turnsOf(1300, 1)
	with[3], with[9] = 4e6, 8e6 // another process had the CPU
	if cost, below := costOf(with, turnsOf(300, 1), 1000); math.Abs(cost-1) > 0.01 || below {
		t.Errorf("cost %v, below %v", cost, below)
	}
}

func TestTheLoopItselfCostsNothing(t *testing.T) {
	m := studytest.RunOnce(t, work(1_000_000, difference{with: emptyLoop, without: emptyLoop}), 1)
	if each := study.PerRecord(result.Trial{Measurement: m}); !(each > 0) || math.IsInf(each, 0) || m.Records != 1_000_000 {
		t.Errorf("%v a pass, %d records", each, m.Records)
	}
	if below := m.Values[belowResolution]; below != 0 && below != 1 {
		t.Errorf("below resolution: %v", below)
	}
	t.Logf("a pass is reported as %v of %v ns, below resolution %v", study.PerRecord(result.Trial{Measurement: m}), m.Values[bareNs], m.Values[belowResolution])
}

func TestADifferenceDoesWhatItSays(t *testing.T) {
	with, without := 0, 0
	d := difference{
		with:    func(n int) error { with += 8 * n; return nil },
		without: func(n int) error { without += 4 * n; return nil },
		each:    4,
	}
	m := studytest.RunOnce(t, work(turns*4*10, d), 1)
	if with != 2*turns*4*10 || without != turns*4*10 || m.Records != turns*4*10 {
		t.Errorf("with %d, without %d, %d records", with, without, m.Records)
	}
}

func TestTheFirstErrorEndsADifference(t *testing.T) {
	g := studytest.WorkDir(t)
	calls := 0
	fails := func(int) error { calls++; return context.Canceled }
	for _, d := range []difference{{with: fails, without: emptyLoop}, {with: emptyLoop, without: fails}} {
		calls = 0
		if _, err := work(100, d).Run(context.Background(), g, trial.NotCounting, 1, 0); err == nil || calls != 1 {
			t.Errorf("err = %v after %d calls", err, calls)
		}
	}
}
