package figure_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// A simulation gives times: a record of each cell takes so many nanoseconds, with lognormal noise.
type simulation struct {
	cells []result.Cell
	times []float64
	noise []float64
	r     *rand.Rand
}

// simulated makes a simulation of policies with these times, the second half under another load. The first is run twice, and each load
// has a cell that writes nothing.
func simulated(seed uint64, times, noise []float64) *simulation {
	m := &simulation{r: rand.New(rand.NewPCG(seed, 39))}
	add := func(c result.Cell, time, noise float64) {
		m.cells, m.times, m.noise = append(m.cells, c), append(m.times, time), append(m.noise, noise)
	}
	for i := range times {
		c := cell(fmt.Sprint("cell", i))
		c.Policy = holdfast.Buffered(holdfast.Size(i+1) * holdfast.KiB)
		if c.Writers = 1; i >= (len(times)+1)/2 {
			c.Writers = 64
		}
		add(c, times[i], noise[i])
	}
	twin := m.cells[0]
	twin.Name, twin.Twin = "again", twin.Name
	add(twin, times[0], noise[0])
	for _, writers := range []int{1, 64} {
		empty := cell(fmt.Sprint("empty", writers))
		empty.Empty, empty.Writers = true, writers
		add(empty, 8, 0.03)
	}
	return m
}

// measure runs rounds as a session does, until enough is known or the trials are that many.
func (m *simulation) measure(t *testing.T, width float64, mostTrials int, rests bool) (run result.Run, enough bool) {
	t.Helper()
	run = result.Run{Header: result.Header{SchemaVersion: result.SchemaVersion, Study: "policy", Cells: m.cells}}
	for round := 1; len(run.Trials) < mostTrials; round++ {
		for i, c := range m.cells {
			if run.Resting(c.Name, round) {
				continue
			}
			took := time.Duration(float64(c.Records) * 1000 * m.times[i] * math.Exp(m.noise[i]*m.r.NormFloat64()))
			measured := result.Measurement{Records: 1000 * c.Records, Size: 1000 * c.Records * c.RecordBytes, Elapsed: took, Write: took}
			run.Trials = append(run.Trials, &result.Trial{Cell: c.Name, Round: round, Measurement: measured})
		}
		needs, ok := figure.Needs(run, width)
		if ok && len(needs) == 0 {
			return run, true
		}
		if names := figure.AtRest(run, needs); ok && rests && len(names) > 0 {
			run.Rests = append(run.Rests, result.Rest{Round: round, Cells: names})
		}
	}
	return run, false
}

// TestTheRoundsThatAreLeftAreTheUncertainOnes: one of eight cells is loud. The others rest as soon as enough is known of them, and
// the run knows of each cell what was asked with less than half of the trials that it takes if all go on.
func TestTheRoundsThatAreLeftAreTheUncertainOnes(t *testing.T) {
	isolate.Once(t)
	const width = 0.10
	times := []float64{50, 300, 1000, 90_000, 50, 300, 1000, 90_000}
	noise := []float64{0.04, 0.04, 0.30, 0.04, 0.04, 0.04, 0.04, 0.04}
	with, without := 0, 0
	for seed := range uint64(20) {
		run, ok := simulated(seed, times, noise).measure(t, width, 3000, true)
		if !ok {
			t.Fatalf("seed %d: not enough is known after %d trials", seed, len(run.Trials))
		}
		f := of(t, run)
		for _, g := range f.Groups {
			for _, r := range g.Rows {
				if !(r.Net.Write.Width() <= width) {
					t.Errorf("seed %d: %s is known to ±%v", seed, r.Cell.Name, r.Net.Write.Width())
				}
				if !r.Fastest && r.Cost.Verdict != stat.Slower {
					t.Errorf("seed %d: %s is %q", seed, r.Cell.Name, r.Cost.Verdict)
				}
			}
		}
		if loud, calm := len(f.Rounded("cell2")), len(f.Rounded("cell5")); loud <= 2*calm {
			t.Errorf("seed %d: the loud cell has %d rounds, a calm one of the other load %d", seed, loud, calm)
		}
		with += len(run.Trials)
		all, ok := simulated(seed, times, noise).measure(t, width, 3000, false)
		if without += len(all.Trials); !ok {
			t.Fatalf("seed %d: not enough is known after %d trials of all cells", seed, len(all.Trials))
		}
	}
	t.Logf("%d trials, %d if no cell rests", with/20, without/20)
	if 2*with > without {
		t.Errorf("%d trials, and %d if no cell rests", with, without)
	}
}

// TestRestingCellsAreNoFalseWord: eight cells of the same code each rest when their word is decided. At most one run of twenty has a
// false word, as where all go on.
func TestRestingCellsAreNoFalseWord(t *testing.T) {
	isolate.Once(t)
	const runs = 60
	for _, noise := range []float64{0.03, 0.10, 0.25} {
		wrong, trials := 0, 0
		for seed := range uint64(runs) {
			same, loud := make([]float64, 8), make([]float64, 8)
			for i := range same {
				same[i], loud[i] = 100, noise*(0.5+float64(i%4)/3)
			}
			run, _ := simulated(seed, same, loud).measure(t, 0.10, 400, true)
			trials += len(run.Trials)
			for _, g := range of(t, run).Groups {
				if slices.ContainsFunc(g.Rows, func(r figure.Row) bool { return r.Cost.Verdict == stat.Slower || r.Cost.Verdict == stat.Faster }) {
					wrong++
					break
				}
			}
		}
		t.Logf("noise of %.0f %%: %d of %d runs have a false word; %d trials", noise*100, wrong, runs, trials/runs)
		if 20*wrong > runs {
			t.Errorf("noise of %.0f %%: %d of %d runs have a false word", noise*100, wrong, runs)
		}
	}
}

// TestWhatACellIsComparedWithStaysAwake: with the cell of a need go the fastest of its load, the twins of its kind and the cell that
// writes nothing; nothing of another load does.
func TestWhatACellIsComparedWithStaysAwake(t *testing.T) {
	m := simulated(1, []float64{50, 300, 1000, 50, 300, 1000}, []float64{0.01, 0.01, 0.01, 0.01, 0.01, 0.01})
	run, _ := m.measure(t, 10, 11*len(m.cells), false)
	check := func(need string, want ...string) {
		t.Helper()
		at := slices.IndexFunc(m.cells, func(c result.Cell) bool { return c.Name == need })
		if got := figure.AtRest(run, []figure.Need{{Cell: m.cells[at]}}); !slices.Equal(got, want) {
			t.Errorf("for %s rest %v, want %v", need, got, want)
		}
	}
	check("cell5", "cell1", "cell2", "cell4", "empty1")
	check("cell2", "cell1", "cell3", "cell4", "cell5", "empty64")
	run.Rests = []result.Rest{{Round: 11, Cells: []string{"cell1", "cell4"}}}
	check("cell5", "cell2", "empty1")
}
