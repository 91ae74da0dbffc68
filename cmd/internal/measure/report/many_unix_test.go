//go:build unix

package report_test

import (
	"fmt"
	"io"
	"math"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/report"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// many is a run with the given number of cells and complete rounds: a load has 98 policies, a twin and
// an empty cell.
func many(t testing.TB, cells, rounds int) result.Run {
	t.Helper()
	const load = 100
	run := result.Run{Header: result.Header{SchemaVersion: result.SchemaVersion, Study: "policy", Question: "what is it worth", Seed: 42, Plan: result.Plan{Rounds: rounds}}}
	for i := range cells {
		n := i % load
		p := holdfast.Policy{Buffer: holdfast.Size(n+1) << 10}
		c := result.Cell{Name: fmt.Sprint("cell ", i), Policy: p, RecordBytes: 128, Writers: 1 + i/load, Records: 10000, LatencyStride: 31}
		switch n {
		case 0:
			c.Empty, c.Policy = true, holdfast.Policy{}
		case load - 1:
			c.Twin, c.Policy = run.Header.Cells[i-1].Name, run.Header.Cells[i-1].Policy
		}
		run.Header.Cells = append(run.Header.Cells, c)
	}
	for round := range rounds + 1 {
		for i, c := range run.Header.Cells {
			one := plantedTrial(t, c, i%8, round)
			one.Write = one.Elapsed
			run.Trials = append(run.Trials, one)
		}
	}
	run.End = &result.End{State: result.Complete, Rounds: rounds, Elapsed: time.Hour}
	return run
}

// TestWorkGrowsWithTheCells: eight times the cells take some eight times the work, and not 64 times. It compares CPU
// times of this process, on which other processes have little effect.
func TestWorkGrowsWithTheCells(t *testing.T) {
	isolate.Once(t)
	took := func(cells int) float64 {
		run := many(t, cells, 4)
		for i := range run.Trials {
			run.Trials[i].Latency = result.Latency{} // decoding histograms is most of the work, and grows with the trials alone
		}
		before := userTime(t)
		if err := report.HTML(io.Discard, nil, run, report.More{}); err != nil {
			t.Fatal(err)
		}
		return (userTime(t) - before).Seconds()
	}
	const few, times, most = 500, 8, 20
	ratio := math.Inf(1)
	for n := 0; n < 3 && ratio > most; n++ {
		small := min(took(few), took(few), took(few))
		ratio = min(ratio, took(times*few)/small)
	}
	t.Logf("%d times the cells take %.1f times the work", times, ratio)
	if ratio > most {
		t.Errorf("%d times the cells take %.1f times the work: something looks at all cells or trials for each cell", times, ratio)
	}
}

func userTime(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano())
}

// BenchmarkPageOfManyCells makes the page of 1,000 cells.
func BenchmarkPageOfManyCells(b *testing.B) {
	run := many(b, 1000, 12)
	for b.Loop() {
		if err := report.HTML(io.Discard, nil, run, report.More{}); err != nil {
			b.Fatal(err)
		}
	}
}
