package report

import (
	"fmt"
	"math"

	"github.com/holdfast-go/holdfast/internal/lab/advise"
	"github.com/holdfast-go/holdfast/internal/lab/chart"
	"github.com/holdfast-go/holdfast/internal/lab/figure"
	"github.com/holdfast-go/holdfast/internal/lab/page"
)

// needPage shows a need and whether a policy meets it.
func needPage(r advise.Recommendation) page.Need {
	shown := r.Shown()
	n := page.Need{
		Text: r.Need.String(), Verdict: string(r.Verdict()),
		Table: page.Table{Name: "the need", Prose: true, Head: []string{"term", "found", "verdict", "how it is known"}},
	}
	switch r.Verdict() {
	case advise.Met:
		n.Says = fmt.Sprintf("The cheapest policy that meets it is `%v`, judged with %s.", shown.Policy, title(r.Load))
	case advise.NotMet:
		n.Says = fmt.Sprintf("No policy that was measured meets it. The nearest is `%v`, judged with %s.", shown.Policy, title(r.Load))
	default:
		n.Says = fmt.Sprintf("It is not known if a policy meets it. The nearest is `%v`, judged with %s.", shown.Policy, title(r.Load))
	}
	for _, f := range shown.Findings {
		n.Table.Rows = append(n.Table.Rows, page.Row{Cells: []string{f.Term.String(), f.Text(), string(f.Verdict), f.How}})
	}
	return n
}

// limits are what a need draws into the picture of cost against loss; nil draws nothing.
type limits []limit

type limit struct {
	need advise.Need
	load figure.Load // under which it was judged
}

// costs returns the largest cost at which the rate that is needed can be written at full
// speed: as many times the cheapest as that writes faster.
func (l limits) costs(g figure.Group) (lines []chart.Limit) {
	for _, one := range l {
		needed := one.need.Records(g.RecordBytes)
		if needed == 0 || one.load.Writers != g.Writers || one.load.RecordBytes != g.RecordBytes {
			continue
		}
		for _, r := range g.Rows {
			if most := r.Rate.Median / needed; r.Fastest && most > 0 && !math.IsInf(most, 0) {
				term, _ := one.need.Term(advise.Rate)
				lines = append(lines, chart.Limit{Value: most, Label: "need: " + term.String()})
			}
		}
	}
	return lines
}

// beyond returns what is written above a row if it is the first that loses more than is needed.
func (l limits) beyond(i int, policies []priced) string {
	for _, one := range l {
		term, ok := one.need.Term(advise.Loss)
		if ok && !one.need.Covers(policies[i].Cell.Policy) && (i == 0 || one.need.Covers(policies[i-1].Cell.Policy)) {
			return "need: " + term.String()
		}
	}
	return ""
}
