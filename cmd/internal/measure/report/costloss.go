package report

import (
	"fmt"
	"math"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/chart"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/page"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

// costAgainstLoss draws a picture for each load. It has bands of policies that lose the same at a
// power cut, the least above, and in them the cost of each. The path joins the frontier. No policy
// that loses no more costs less than one of these.
func (s sheet) costAgainstLoss(need needs) []page.Section {
	var pictures []page.Chart
	for _, g := range s.Groups {
		if g.Open() || g.Group != "" {
			continue
		}
		policies := s.Priced(g)
		d := chart.Dots{
			Title:  fmt.Sprintf("what a policy costs a writer, against what a power cut takes: %s", title(g.Load)),
			Scale:  study.Times,
			Series: []string{"times the cheapest, at full speed", "paced, times no sync"},
			Limits: need.costs(g),
		}
		cheapest, band := math.Inf(1), ""
		for i, p := range policies {
			row := chart.Row{Label: p.Cell.Policy.String(), Marked: s.advises(p.Row)}
			if row.Marked {
				row.Label += "  ◀ advised"
			}
			if loses := p.Cell.Policy.Loss().Power.String(); loses != band {
				row.Band, band = "a power cut takes "+loses, loses
			}
			row.Limit = need.limit(i, policies)
			point := chart.Point{Value: p.Cost.Ratio, Low: p.Cost.Low, High: p.Cost.High, Key: p.Cell.Name}
			if p.Paced {
				point.Series = 1
			}
			row.Points = []chart.Point{point}
			d.Rows = append(d.Rows, row)
			if p.Cost.Ratio < cheapest {
				cheapest = p.Cost.Ratio
				d.Path = append(d.Path, i)
			}
		}
		if picture := d.SVG(); picture != "" {
			pictures = append(pictures, page.Chart{Title: title(g.Load), Picture: picture})
		}
	}
	if len(pictures) == 0 {
		return nil
	}
	pictures[0].Caption = "The further to the left, the less a writer pays; the higher, the less a power cut takes. The broken line joins the " +
		"policies to choose from: nothing that loses no more has a lower median cost. A bar is the 95 % interval. The cost of a policy whose period is " +
		"longer than a burst comes from trials at a steady pace, against the same buffer without a sync."
	return []page.Section{{Title: "Cost against loss", Charts: pictures}}
}
