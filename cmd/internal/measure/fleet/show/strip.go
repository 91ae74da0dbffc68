package show

import (
	"fmt"
	"math"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/chart"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/fleet"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/page"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

// strips draws each group: a row for each score, and a point for each host. Outliers have their names.
func strips(f fleet.Fleet) (charts []page.Chart) {
	for _, g := range f.Groups {
		p := chart.Plot{
			Title:  fmt.Sprintf("scores of the hosts of group %s, as multiples of the group's median", g.Name),
			X:      chart.Axis{Name: "times the group's median", Scale: chart.Log, Low: 0.5, High: 2, Format: func(x float64) string { return study.Times(x) }},
			Y:      chart.Axis{Categories: []string{}},
			Series: []chart.Series{{Name: "no outlier", As: chart.Points}, {Name: "outlier", As: chart.Points, Look: 1, Size: 1.5, Class: "chosen"}},
		}
		row := map[fleet.Part]int{}
		for _, h := range f.Hosts {
			if h.Group != g.Name {
				continue
			}
			for _, s := range h.Scores {
				at, known := row[s.Part]
				if !known {
					at = len(p.Y.Categories)
					row[s.Part] = at
					p.Y.Categories = append(p.Y.Categories, string(s.Part))
				}
				x := float64(s.Ratio)
				if !(x > 0) || math.IsInf(x, 0) {
					continue
				}
				apart := 0.07 * float64(len(p.Series[0].Marks)%7-3) // equal hosts would lie on each other
				m := chart.Mark{X: x, Y: float64(at) + apart, Title: fmt.Sprintf("%s, %s: %s", h.Name, s.Part, study.Times(x))}
				of := &p.Series[0]
				if s.Word != "" {
					of, m.Label = &p.Series[1], h.Name
				}
				of.Marks = append(of.Marks, m)
			}
		}
		if len(p.Series[1].Marks) == 0 {
			p.Series = p.Series[:1]
		}
		if svg := p.SVG(); svg != "" {
			charts = append(charts, page.Chart{Title: "Group " + g.Name, Picture: svg, Caption: "Each point is a host: 1 is the median of its group, and points to the right are slower. Outliers have their names."})
		}
	}
	return charts
}
