package figure

import (
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
)

// A CellTime is the net time of a record in one cell.
type CellTime struct {
	Cell result.Cell
	Load Load

	// Record is the time until all is durable if the policy syncs and the load is a closed loop; else
	// it is the cost of [Load.Costs].
	Record Summary
}

// Times returns the times of all compared cells, and a warning if a sync is too fast. It serves many
// runs at once: it computes nothing else, decodes only the histograms of open loops, and accepts the
// runs of [result.ReadTimes]. Like [Of], it returns ErrNoRound.
func Times(run result.Run) (times []CellTime, doubts []Warning, err error) {
	if run.Rounds() == 0 {
		return nil, nil, ErrNoRound
	}
	x := index(run)
	f := Figures{Run: run, run: x, Groups: []Group{{}}}
	empty := map[string][]*result.Trial{} // by the name of the empty cell
	for _, c := range compared(run) {
		trials, load, of := x.Rounded(c.Name), LoadOf(c), LoadOf(c).Costs
		staged := !slices.ContainsFunc(trials, func(t *result.Trial) bool { return t.Write == 0 })
		if c.Group == "" && !load.Open() && staged && c.Policy.Sync.Mode != holdfast.SyncNever {
			of = untilDurable
		}
		harness := summarize([]float64{0})
		if e, ok := emptyOf(x, load); ok {
			if _, has := empty[e.Name]; !has {
				empty[e.Name] = x.Rounded(e.Name)
			}
			harness = summarize(of(empty[e.Name]))
		}
		times = append(times, CellTime{Cell: c, Load: load, Record: netOf(of(trials), harness)})

		row := Row{Cell: c, Stages: Stages{Sync: median(trials, func(t *result.Trial) float64 { return float64(t.Sync) })}}
		row.Latency.P50 = time.Duration(median(trials, func(t *result.Trial) float64 {
			if t.Service != nil {
				return float64(t.Service.P50)
			}
			return float64(t.Latency.P50)
		}))
		f.Groups[0].Rows = append(f.Groups[0].Rows, row)
	}
	return times, f.warnOfSync(), nil
}
