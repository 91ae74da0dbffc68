package report

import (
	"fmt"
	"math"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/advise"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/chart"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/page"
)

// needs are the recommendations for a need, one for each load; nil: no need was stated.
type needs []advise.Recommendation

// page says whether a policy meets the need.
func (all needs) page() (said []page.Need) {
	for _, r := range all {
		says := "with %s: `%v` is the cheapest policy that meets it."
		switch r.Verdict() {
		case advise.NotMet:
			says = "with %s: no policy that was measured meets it; `%v` is the nearest."
		case advise.NotKnown:
			says = "with %s: what was measured does not tell; `%v` is the nearest."
		case advise.Met:
		}
		said = append(said, page.Need{Text: r.Need.String(), Verdict: string(r.Verdict()), Says: fmt.Sprintf(says, title(r.Load), r.Shown().Policy)})
	}
	return said
}

// terms shows how the need was judged, term by term.
func (all needs) terms() []page.Section {
	if len(all) == 0 {
		return nil
	}
	s := page.Section{Title: "The need, term by term"}
	for _, r := range all {
		t := page.Table{Title: title(r.Load), Name: "the need, " + title(r.Load), Prose: true, Head: []string{"term", "found", "verdict", "how it is known"}, Text: fmt.Sprintf("Of `%v`.", r.Shown().Policy)}
		for _, f := range r.Shown().Findings {
			t.Rows = append(t.Rows, page.Row{Cells: []string{f.Term.String(), f.Text(), string(f.Verdict), f.How}})
		}
		s.Tables = append(s.Tables, t)
	}
	return []page.Section{s}
}

// costs returns the largest cost at which full speed reaches the needed rate. If the cheapest
// policy writes x times that rate, the largest cost is x times the cheapest one's.
func (all needs) costs(g figure.Group) (lines []chart.Limit) {
	for _, one := range all {
		needed := one.Need.Records(g.RecordBytes)
		if needed == 0 || one.Load.Writers != g.Writers || one.Load.RecordBytes != g.RecordBytes {
			continue
		}
		for _, r := range g.Rows {
			if most := r.Rate.Median / needed; r.Fastest && most > 0 && !math.IsInf(most, 0) {
				term, _ := one.Need.Term(advise.Rate)
				lines = append(lines, chart.Limit{Value: most, Label: "need: " + term.String()})
			}
		}
	}
	return lines
}

// limit returns the text of the line above row i if policies begin there, or cease, to promise the needed
// loss. This may occur several times: a size stands above a time, and only the time may be within the need.
func (all needs) limit(i int, policies []figure.Priced) string {
	for _, one := range all {
		term, ok := one.Need.Term(advise.Loss)
		promised := one.Need.Covers(policies[i].Cell.Policy)
		switch before := i == 0 || one.Need.Covers(policies[i-1].Cell.Policy); {
		case !ok || promised == before:
		case promised:
			return "need: " + term.String() + ", promised below"
		default:
			return "need: " + term.String() + ", not promised below"
		}
	}
	return ""
}
