package report

import (
	"fmt"
	"math"

	"github.com/holdfast-go/holdfast/internal/lab/advise"
	"github.com/holdfast-go/holdfast/internal/lab/chart"
	"github.com/holdfast-go/holdfast/internal/lab/figure"
	"github.com/holdfast-go/holdfast/internal/lab/page"
)

// needPage says whether a policy meets a need under a load.
func needPage(r advise.Recommendation) page.Need {
	says := "with %s: `%v` is the cheapest policy that meets it."
	switch r.Verdict() {
	case advise.NotMet:
		says = "with %s: no policy that was measured meets it; `%v` is the nearest."
	case advise.NotKnown:
		says = "with %s: what was measured does not tell; `%v` is the nearest."
	case advise.Met:
	}
	return page.Need{Text: r.Need.String(), Verdict: string(r.Verdict()), Says: fmt.Sprintf(says, title(r.Load), r.Shown().Policy)}
}

// needTerms shows how a need was judged, term by term.
func needTerms(all []advise.Recommendation) []page.Section {
	if len(all) == 0 {
		return nil
	}
	s := page.Section{Title: "The need, term by term"}
	for _, r := range all {
		t := page.Table{Title: title(r.Load), Prose: true, Head: []string{"term", "found", "verdict", "how it is known"}, Text: fmt.Sprintf("Of `%v`.", r.Shown().Policy)}
		for _, f := range r.Shown().Findings {
			t.Rows = append(t.Rows, page.Row{Cells: []string{f.Term.String(), f.Text(), string(f.Verdict), f.How}})
		}
		s.Tables = append(s.Tables, t)
	}
	return []page.Section{s}
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
