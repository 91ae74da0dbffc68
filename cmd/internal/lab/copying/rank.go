package copying

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/cmd/internal/lab/timing"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

// A ranked file system has its time of one cell.
type ranked struct {
	name    string
	elapsed stat.Summary
}

// ranking returns the file systems that have measured the cell, the fastest first.
func ranking(all []study.Evidence, c copyCell) []ranked {
	var order []ranked
	for _, e := range all {
		if s := wholeOf(e, c).elapsed; e.Have(c.name()) && !math.IsNaN(s.Median) {
			order = append(order, ranked{placeOf(e), s})
		}
	}
	slices.SortFunc(order, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(a.elapsed.Median, b.elapsed.Median), strings.Compare(a.name, b.name))
	})
	return order
}

// rankText joins the names: "=" stands between two neighbours whose intervals overlap,
// or if one has none, and "<" between two that differ.
func rankText(order []ranked) string {
	var b strings.Builder
	for i, p := range order {
		if i > 0 {
			sign := " = "
			if order[i-1].elapsed.High < p.elapsed.Low {
				sign = " < "
			}
			b.WriteString(sign)
		}
		b.WriteString(p.name)
	}
	return b.String()
}

// trend is the order in which two tables put the same buffers, as Spearman's rank
// correlation, over the buffers that both have. A table that has 16384 and no 16284, as the book's,
// is read with 16384 in its place.
func trend(a, b []timing.Row) (rho float64, buffers int) {
	var x, y []float64
	for _, r := range a {
		if other, ok := sameBuffer(b, r.Buffer); ok {
			x, y = append(x, r.Elapsed), append(y, other.Elapsed)
		}
	}
	return stat.Spearman(x, y), len(x)
}

func sameBuffer(rows []timing.Row, buffer int) (timing.Row, bool) {
	i := slices.IndexFunc(rows, func(r timing.Row) bool { return r.Buffer == buffer })
	if i < 0 {
		return timing.Row{}, false
	}
	return rows[i], true
}

func trendWord(rho float64) string {
	// Trends are called the same from where at most neighbours have changed places.
	const sameTrend, likeTrend = 0.95, 0.8
	switch {
	case rho >= sameTrend:
		return "the same"
	case rho >= likeTrend:
		return "much the same"
	}
	return "another"
}
