package copying

import (
	"cmp"
	"math"
	"slices"

	"github.com/holdfast-go/holdfast/cmd/internal/lab/timing"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

// Timings returns what a run of the study copy has measured, a row for each buffer, file
// size, form and file system. A row has the seconds of the whole file, the median of the
// whole rounds; [Averages] has their averages instead. A row that was measured by a
// shorter copy is marked Predicted; where none can be predicted there is no row. User and
// System part the CPU time as it was parted over all rounds, and are NaN where it can't be
// parted. Where no CPU time is known, CPU, User and System are 0.
//
// Rows are in the order of file system as in the run, then of form ([timing.Forms]),
// file size and buffer. FileSystem is always set: in a run on its directory alone it is
// that directory's, or "unknown". So part C is the rows of form Copy and size 100 MiB, and part A
// the rows of form Copy and any size. Part B is the rows of 1 MiB and the three forms of syncing.
// Exercise 13-2 is those whose form writes alone. A run of another study, or without a whole round,
// has none. The caller owns the slice; it may be called concurrently.
func Timings(run result.Run) []timing.Row {
	return timings(run, func(w wholeTimes) (elapsed, cpu float64) { return w.elapsed.Median, w.cpu.Median })
}

// Averages returns the rows of [Timings] with the averages of the rounds, as the
// repetition published them.
func Averages(run result.Run) []timing.Row {
	return timings(run, func(w wholeTimes) (elapsed, cpu float64) { return w.averageElapsed, w.averageCPU })
}

func timings(run result.Run, of func(wholeTimes) (elapsed, cpu float64)) (rows []timing.Row) {
	if run.Header.Study != Study().Name {
		return nil
	}
	all := study.EvidenceOn(run)
	if len(all) == 0 {
		all = []study.Evidence{study.EvidenceOf(run)}
	}
	for _, e := range all {
		rows = append(rows, rowsOf(e, of)...)
	}
	return rows
}

// timingsOf returns the rows of one file system, which are medians.
func timingsOf(e study.Evidence) []timing.Row {
	return rowsOf(e, func(w wholeTimes) (elapsed, cpu float64) { return w.elapsed.Median, w.cpu.Median })
}

func rowsOf(e study.Evidence, of func(wholeTimes) (elapsed, cpu float64)) (rows []timing.Row) {
	// Whole nanoseconds, so that the text of one has nine decimals at most.
	inSeconds := func(ns float64) float64 { return math.Round(ns) / 1e9 }
	for _, c := range copyCells(e) {
		w := wholeOf(e, c)
		elapsed, cpu := of(w)
		if math.IsNaN(elapsed) {
			continue
		}
		row := timing.Row{
			FileSystem: placeOf(e), FileSize: c.size, Form: c.form, Buffer: int(c.buffer),
			Elapsed: inSeconds(elapsed), Predicted: w.predicted,
		}
		if cpu > 0 {
			user := cpu * userPart(e, c.name())
			row.CPU, row.User, row.System = inSeconds(cpu), inSeconds(user), inSeconds(cpu-user)
		}
		rows = append(rows, row)
	}
	order := func(f timing.Form) int { return slices.Index(timing.Forms(), f) }
	slices.SortStableFunc(rows, func(a, b timing.Row) int {
		return cmp.Or(order(a.Form)-order(b.Form), cmp.Compare(a.FileSize, b.FileSize), a.Buffer-b.Buffer)
	})
	return rows
}

// placeOf is the file system that the evidence is of.
func placeOf(e study.Evidence) string { return cmp.Or(e.FileSystem, e.Fact("file system"), "unknown") }
