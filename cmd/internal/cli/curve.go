package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/chart"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

// curves draws the figures of a run in text: a line for each policy or arm, on a
// logarithmic scale, with its interval. It draws in lines of at most about width characters. A run without a whole round has
// [figure.ErrNoRound].
func curves(run result.Run, width int) (string, error) {
	systems := run.FileSystems()
	if len(systems) == 0 {
		return draw(run, "", width)
	}
	var all strings.Builder
	for _, name := range systems {
		text, err := draw(run.On(name), name+": ", width)
		if err != nil {
			return "", err
		}
		all.WriteString(text)
	}
	return all.String(), nil
}

func draw(run result.Run, prefix string, width int) (string, error) {
	f, err := figure.Of(run)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for _, d := range append(sweeps(f), arms(f)...) {
		if picture := d.Text(width); picture != "" {
			fmt.Fprintf(&text, "\n%s%s\n%s", prefix, d.Title, picture)
		}
	}
	return text.String(), nil
}

// sweeps draws a picture for each size of record: a line for each policy, a series for each number of
// writers. Paced cells write at a rate of ours, and are left out.
func sweeps(f figure.Figures) (pictures []chart.Dots) {
	var sizes []int64
	for _, g := range f.Groups {
		if g.Group == "" && !g.Paced && !slices.Contains(sizes, g.RecordBytes) {
			sizes = append(sizes, g.RecordBytes)
		}
	}
	for _, size := range sizes {
		d := chart.Dots{Title: fmt.Sprintf("records of %v a second, by policy", holdfast.Size(size)), Scale: chart.Count}
		at := map[holdfast.Policy]int{}
		for _, g := range f.Groups {
			if g.Group != "" || g.Paced || g.RecordBytes != size {
				continue
			}
			d.Series = append(d.Series, series(g.Load))
			for _, r := range g.Rows {
				i, ok := at[r.Cell.Policy]
				if !ok {
					i = len(d.Rows)
					at[r.Cell.Policy] = i
					d.Rows = append(d.Rows, chart.Row{Label: r.Cell.Policy.String()})
				}
				d.Rows[i].Points = append(d.Rows[i].Points, point(len(d.Series)-1, r.Rate))
			}
		}
		pictures = append(pictures, d)
	}
	return pictures
}

// series names what the loads of one picture differ in.
func series(l figure.Load) string {
	name := "1 writer"
	if l.Writers != 1 {
		name = fmt.Sprintf("%d writers", l.Writers)
	}
	if l.Open() {
		name += fmt.Sprintf(" at %v/s", l.Rate)
	}
	if l.Cache != "" && l.Cache != result.NewFile {
		name += ", " + string(l.Cache)
	}
	return name
}

// arms draws a study's arms, below a heading for each group.
func arms(f figure.Figures) []chart.Dots {
	d := chart.Dots{Title: "time of a record, by arm", Scale: study.Duration, Series: []string{"median, and its 95 % interval"}}
	for _, g := range f.Groups {
		if g.Group == "" {
			continue
		}
		band := g.Group
		for _, r := range g.Rows {
			d.Rows = append(d.Rows, chart.Row{Label: r.Cell.Name, Band: band, Points: []chart.Point{point(0, r.Time)}})
			band = ""
		}
	}
	return []chart.Dots{d}
}

func point(series int, s figure.Summary) chart.Point {
	return chart.Point{Series: series, Value: s.Median, Low: s.Low, High: s.High}
}
