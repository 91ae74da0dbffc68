package lines

import (
	"fmt"
	"slices"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

// A costModel has the costs of a round on this machine, in nanoseconds.
type costModel struct{ line, call, copied, sync float64 }

// modelled are the arms that the costs come from: their predictions would show themselves.
var modelled = []string{equalFormat, equalWrite, equalBufio16, groupEqual + "/write, sync each"}

// modelOf derives the costs from four arms of a round. They are: a line made; a write call
// with the few bytes of a line; a byte through a buffer into the kernel; a sync.
func modelOf(arms [4]result.Trial) (m costModel) {
	format, write, buffered, each := arms[0], arms[1], arms[2], arms[3]
	m.line = study.PerRecord(format)
	m.call = max(0, study.PerRecord(write)-m.line) // noise may take it below
	m.copied = max(0, study.Elapsed(buffered)-m.line*float64(buffered.Records)-m.call*writeCalls(buffered)) / float64(buffered.Size)
	m.sync = max(0, study.PerRecord(each)-m.line-m.call)
	return m
}

// of predicts a trial's time, part by part. A write call alone copies its line too.
func (m costModel) of(t result.Trial) (lines, calls, copied, syncs float64) {
	lines, calls, syncs = m.line*float64(t.Records), m.call*writeCalls(t), m.sync*study.Value(syncsMade)(t)
	if writeCalls(t) < float64(t.Records) {
		copied = m.copied * float64(t.Size)
	}
	return lines, calls, copied, syncs
}

// lineModel is the document's mathematics with the costs of this machine. For each way it has the
// summed cost of its calls, bytes and syncs, beside the measured time.
func lineModel(e study.Evidence) study.Table {
	t := study.Table{
		Title: "The mathematics of buffering, with the costs of this machine",
		Head:  []string{"Way", "Lines", "Calls", "Bytes copied", "Syncs", "Predicted", "Measured", "Measured to predicted"},
		Rows: [][]string{
			{"published, unbuffered", study.Dash, "100,000: 280ms", study.Dash, "0", "280ms", "~280ms", "1x"},
			{"published, buffered", study.Dash, "~30: 0.084ms", "100,000: 14ms", "0", "14ms", "~14ms", "1x"},
		},
	}
	if !e.Have(modelled...) {
		return study.Table{Title: t.Title, Head: t.Head}
	}
	rounds := e.Rounds()
	var models []costModel
	for round := range rounds {
		var from [4]result.Trial
		for i, arm := range modelled {
			trials := e.Trials(arm)
			if round >= len(trials) {
				return study.Table{Title: t.Title, Head: t.Head}
			}
			from[i] = trials[round]
		}
		models = append(models, modelOf(from))
	}
	median := func(of func(costModel) float64) float64 {
		var all []float64
		for _, m := range models {
			all = append(all, of(m))
		}
		return stat.Quantile(all, 0.5)
	}
	for _, c := range cellsOf(e, groupEqual) {
		arm := c.Name
		trials := e.Trials(arm)
		if slices.Contains(modelled, arm) || len(trials) != rounds {
			continue
		}
		var parts [5][]float64
		var ratios []float64
		for round, trial := range trials {
			lines, calls, copied, syncs := models[round].of(trial)
			sum := lines + calls + copied + syncs
			for i, part := range []float64{lines, calls, copied, syncs, sum} {
				parts[i] = append(parts[i], part)
			}
			ratios = append(ratios, study.Elapsed(trial)/sum)
		}
		part := func(i int, of study.Metric) string {
			return fmt.Sprintf("%s: %s", study.Whole(e.Median(arm, of)), study.Duration(stat.Quantile(parts[i], 0.5)))
		}
		t.Rows = append(t.Rows, []string{
			study.Short(arm), part(0, func(t result.Trial) float64 { return float64(t.Records) }), part(1, writeCalls),
			part(2, func(t result.Trial) float64 { return float64(t.Size) }), part(3, study.Value(syncsMade)),
			study.Duration(stat.Quantile(parts[4], 0.5)), study.Duration(e.Median(arm, study.Elapsed)), study.Median(stat.Summarize(ratios), study.Times),
		})
	}
	cost := func(of func(costModel) float64) string {
		if ns := median(of); ns > 0 {
			return study.Duration(ns)
		}
		return "less than the noise"
	}
	t.Notes = []string{
		fmt.Sprintf("From the arms write, bufio 16KiB and write, sync each: making a line takes %s, a write call %s, a byte through a buffer %s, a sync %s.",
			cost(func(m costModel) float64 { return m.line }), cost(func(m costModel) float64 { return m.call }),
			cost(func(m costModel) float64 { return m.copied }), cost(func(m costModel) float64 { return m.sync })),
		"Each cell: the number of operations, and their cost by these figures; where each line has its own call, the call copies the line.",
		"A sync of many bytes takes longer than a sync of one line, and goroutines that share a sync wait less: there the sum is wrong, and the last column says by how much.",
	}
	return t
}
