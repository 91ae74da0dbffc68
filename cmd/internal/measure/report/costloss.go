package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/advise"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/chart"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/page"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

// costAgainstLoss draws a picture for each load. Its bands are policies with the same loss at a power
// cut, the smallest loss on top, and each band shows the costs of its policies. The path joins the
// frontier: every policy with no more loss than one on the path costs at least as much.
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
			row := chart.Row{Label: advise.Name(p.Cell.Policy), Marked: s.advises(p.Row)}
			if row.Marked {
				row.Label += "  ◀ advised"
			}
			if loses := p.Cell.Policy.Loss().Power.String(); loses != band {
				row.Band, band = "a power cut takes "+loses, loses
			}
			row.Limit = need.limit(i, policies)
			point := chart.Point{Value: p.Times(), Low: p.Cost.Low, High: p.Cost.High, Key: p.Cell.Name}
			if most, ok := p.AtMost(); ok {
				point.Value, point.Low, point.High, point.AtMost = most, 1, most, true
			}
			if p.Paced {
				point.Series = 1
			}
			row.Points = []chart.Point{point}
			if !p.Paced && p.Cost.Ratio < cheapest { // paced costs have a scale of their own
				cheapest = p.Cost.Ratio
				d.Path = append(d.Path, len(d.Rows))
			}
			d.Rows = append(d.Rows, row)
		}
		if !slices.ContainsFunc(d.Rows, func(r chart.Row) bool { return r.Points[0].Series == 1 }) {
			d.Series = d.Series[:1]
		}
		const mostBroad = 4 // in a run with hundreds of loads, only the first have two forms
		slim := withoutKeys(d).SVG()
		if d.Beside = len(pictures) < mostBroad; !d.Beside {
			slim = ""
		}
		if picture := d.SVG(); picture != "" {
			pictures = append(pictures, page.Chart{Title: title(g.Load), Picture: picture, Slim: slim})
		}
	}
	if len(pictures) == 0 {
		return nil
	}
	for i := range pictures {
		pictures[i].Caption = "The further to the left, the less a writer pays; the higher, the less a power cut takes. The broken line joins the " +
			"policies to choose from: nothing that loses no more has a lower median cost. A bar is the 95 % interval. The cost of a policy whose period is " +
			"longer than a burst comes from trials at a steady pace, against the same buffer without a sync."
	}
	return []page.Section{{Title: "Cost against loss", Switch: "the load", Charts: pictures}}
}

// withoutKeys returns a picture without keys for its dots: if a picture has two forms, only one is
// looked up.
func withoutKeys(d chart.Dots) chart.Dots {
	d.Rows = slices.Clone(d.Rows)
	for i, r := range d.Rows {
		d.Rows[i].Points = slices.Clone(r.Points)
		for n := range r.Points {
			d.Rows[i].Points[n].Key = ""
		}
	}
	return d
}

// tiles are the advice's figures.
func (s sheet) tiles() []page.Tile {
	if len(s.briefTables()) == 0 {
		return nil
	}
	table := s.briefTables()[0]
	of := table.loads[0]
	if !s.advised {
		return s.unadvised(table)
	}
	var cost page.Tile
	for _, g := range s.Groups {
		if g.Load == of {
			text, marks := s.briefCost(g, s.advice.Policy)
			cost = page.Tile{Label: "What a record costs", Value: text, Note: "times the fastest, " + title(of)}
			if strings.Contains(marks, byPace) {
				cost.Note = "times the same buffer without a sync, at a steady pace"
			}
			switch {
			case strings.HasPrefix(s.advice.Costs, "no "):
				cost.Value, cost.Note = "no cost seen", text+" "+cost.Note
			case strings.Contains(marks, unproven):
				cost.Note += "; the difference is within the noise"
			}
		}
	}
	loss := s.advice.Policy.Loss()
	power, rests, _ := strings.Cut(strings.TrimPrefix(s.advice.Brief().Loses, "a power cut loses "), " (")
	promise := "the policy promises: " + loss.Power.String()
	if rests != "" {
		promise = strings.TrimSuffix(rests, ")") + "; " + promise
	}
	process, note, _ := strings.Cut(loss.Process.String(), ", ")
	return []page.Tile{
		cost,
		{Label: "Lost at a power cut", Value: power, Note: promise},
		{Label: "Lost when the process dies", Value: process, Note: note},
	}
}

// unadvised are the figures of a table without advice: from the cheapest policy to the safest.
func (s sheet) unadvised(t briefTable) []page.Tile {
	at := slices.IndexFunc(s.Groups, func(g figure.Group) bool { return g.Load == t.loads[0] })
	if at < 0 || len(t.policies) == 0 {
		return nil
	}
	g := s.Groups[at]
	cheapest := slices.IndexFunc(g.Rows, func(r figure.Row) bool { return r.Fastest })
	safest := slices.IndexFunc(g.Rows, func(r figure.Row) bool { return r.Cell.Policy == t.policies[0] })
	if cheapest < 0 || safest < 0 {
		return nil
	}
	tile := func(label string, r figure.Row) page.Tile {
		took := r.Net.Write
		if g.Open() {
			took = r.Net.Service
		}
		return page.Tile{Label: label, Value: positive(took.Median) + " a record", Note: fmt.Sprintf("`%s`, %s", advise.Name(r.Cell.Policy), title(g.Load))}
	}
	loss := g.Rows[safest].Cell.Policy.Loss()
	if len(t.policies) == 1 {
		return []page.Tile{
			tile("What a record costs", g.Rows[safest]),
			{Label: "Lost at a power cut", Value: loss.Power.String()},
			{Label: "Lost when the process dies", Value: loss.Process.String()},
		}
	}
	least := "Loses least at a power cut: " + loss.Power.String()
	if loss.Power.None() {
		least = "Loses nothing at a power cut"
	}
	tiles := []page.Tile{
		tile("The fastest; a power cut takes "+g.Rows[cheapest].Cell.Policy.Loss().Power.String(), g.Rows[cheapest]),
		tile(least, g.Rows[safest]),
	}
	if safest != cheapest {
		text, _ := s.briefCost(g, t.policies[0])
		tiles = append(tiles, page.Tile{Label: "From one to the other", Value: text, Note: "no policy is advised; `holdfast advise --need` finds one for your need"})
	}
	return tiles
}

// policiesPage is the table of the terminal's answer, with the loss at the death of the process.
func (s sheet) policiesPage() (sections []page.Section) {
	const most = 4 // tables of a run with hundreds of loads
	tables := s.briefTables()
	for _, t := range tables[:min(most, len(tables))] {
		section := page.Section{Title: "Policies, by what a power cut takes", Notes: t.Notes, Folded: true, Printed: true}
		if len(tables) > 1 {
			section.Title += ": " + title(t.loads[0])
		}
		table := page.Table{Name: section.Title, Head: slices.Insert(slices.Clone(t.Head), 2, "lost when the process dies")}
		table.Head[0] = "policy"
		for i, row := range t.Rows {
			marked := strings.HasPrefix(row[0], ">")
			cells := slices.Insert(slices.Clone(row), 2, t.policies[i].Loss().Process.String())
			cells[0] = strings.TrimLeft(row[0], "> ")
			for n := range cells {
				cells[n] = strings.TrimSpace(cells[n])
			}
			table.Rows = append(table.Rows, page.Row{Marked: marked, Cells: cells})
		}
		section.Tables = []page.Table{table}
		sections = append(sections, section)
	}
	return sections
}
