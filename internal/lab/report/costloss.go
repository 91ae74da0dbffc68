package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/lab/chart"
	"github.com/holdfast-go/holdfast/internal/lab/figure"
	"github.com/holdfast-go/holdfast/internal/lab/page"
)

// A priced policy is what the picture of cost against loss shows of one.
type priced struct {
	figure.Row
	paced bool
}

// costAgainstLoss draws a picture for each load: bands of policies that lose the same at a power
// cut, the least above, and in them the cost of each. The path joins the frontier: policies
// such that none that loses no more costs less.
func (s sheet) costAgainstLoss(need needs) []page.Section {
	var pictures []page.Chart
	for _, g := range s.Groups {
		if g.Open() || g.Group != "" {
			continue
		}
		policies := s.pricedOf(g)
		d := chart.Dots{
			Title:  fmt.Sprintf("what a policy costs a writer, against what a power cut takes: %s", title(g.Load)),
			Scale:  func(x float64) string { return tick(x) + "x" },
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
			row.Limit = need.beyond(i, policies)
			point := chart.Point{Value: p.Cost.Ratio, Low: p.Cost.Low, High: p.Cost.High, Key: p.Cell.Name}
			if p.paced {
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

// pricedOf returns the policies of a load whose cost is known, those that lose least first. The
// cost of a policy with a period comes from paced trials where the burst was too short for it.
func (s sheet) pricedOf(g figure.Group) []priced {
	var policies []priced
	add := func(r figure.Row, paced bool) {
		known := slices.ContainsFunc(policies, func(p priced) bool { return p.Cell.Policy == r.Cell.Policy })
		if !known && r.Period.Judged() && r.Cost.Ratio > 0 {
			policies = append(policies, priced{Row: r, paced: paced})
		}
	}
	for _, r := range g.Rows {
		add(r, false)
	}
	for _, other := range s.Groups {
		if other.Paced && other.RecordBytes == g.RecordBytes && other.FileSystem == g.FileSystem {
			for _, r := range other.Rows {
				if !r.Control {
					add(r, true)
				}
			}
		}
	}
	slices.SortStableFunc(policies, func(a, b priced) int {
		return cmp.Or(cmp.Compare(a.loses(), b.loses()), cmp.Compare(a.Cost.Ratio, b.Cost.Ratio))
	})
	return policies
}

// loses returns how long a writer was at what a power cut takes, at worst. Bytes are so many
// by the rate at which they were written here.
func (p priced) loses() time.Duration {
	loses, most := p.Cell.Policy.Loss().Power, time.Duration(math.MaxInt64)
	if loses.Time != holdfast.Unlimited {
		most = loses.Time
	}
	if loses.Bytes != holdfast.Unlimited && p.Throughput > 0 {
		most = min(most, time.Duration(float64(loses.Bytes)/float64(p.Throughput)*float64(time.Second)))
	}
	return most
}
