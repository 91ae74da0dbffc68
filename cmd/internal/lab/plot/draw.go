package plot

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/chart"
)

// The measures of a panel, in units of [chart.Plot].
const width, height = 720, 440

// SVG returns the panel as a document. It has no fonts in it; it names fonts that are equally
// wide.
func (p Panel) SVG() string { return p.picture().Document() }

func (p Panel) dots() bool { return p.form.by == byBuffer }

func (p Panel) picture() chart.Plot {
	of := chart.Plot{
		ID: p.Name, Title: p.Title, Desc: p.description(), Heading: true,
		Width: width, Height: height, Legend: chart.Right,
		X: chart.Axis{Name: p.form.x, Categories: p.x}, Y: chart.Axis{Name: p.form.y}, Notes: p.notes,
	}
	if p.form.logarithmic {
		of.Y.Scale = chart.Log
	}
	for i, s := range p.series {
		of.Series = append(of.Series, p.drawn(i, s))
	}
	return of
}

// drawn is a series with its look. Its line is broken where a category has no value.
func (p Panel) drawn(i int, s series) chart.Series {
	of := chart.Series{Name: s.name, As: chart.Line | chart.Points, Look: i}
	if p.dots() {
		of.As = chart.Points
	}
	if p.form.by == byTime { // the system's time and all of it are nearly the same: one is drawn on the other
		switch s.name {
		case nameSystem:
			of.Class, of.Size = "broad", 1.5
		case nameTotal:
			of.Size = 0.7
		}
	}
	for j, at := range s.points {
		if j > 0 && at.x-s.points[j-1].x > 1 {
			of.Marks = append(of.Marks, chart.Mark{X: at.x, Y: math.NaN()})
		}
		of.Marks = append(of.Marks, chart.Mark{X: at.x, Y: at.y, Hollow: at.predicted, Title: p.words(s, at)})
	}
	return of
}

// words returns the text that is shown when a point is pointed at.
func (p Panel) words(s series, at point) string {
	text := fmt.Sprintf("%s, %s: %v s", s.name, p.x[int(math.Round(at.x))], at.y)
	if at.predicted {
		text += ", predicted"
	}
	return text
}

// description says what the panel shows, for readers who do not see it.
func (p Panel) description() string {
	var names []string
	low, high := math.Inf(1), math.Inf(-1)
	for _, s := range p.series {
		names = append(names, s.name)
		for _, at := range s.points {
			low, high = min(low, at.y), max(high, at.y)
		}
	}
	what := "A line"
	if p.dots() {
		what = "Marks"
	}
	text := fmt.Sprintf("%s for each of %s, by %s from %s to %s; values from %v to %v s.",
		what, strings.Join(names, ", "), p.form.x, p.x[0], p.x[len(p.x)-1], low, high)
	return strings.Join(append([]string{text}, p.notes...), " ")
}

// A Picture is an image as it was published: its panels in one file.
type Picture struct {
	Name   string // of its file, with its ending
	panels []Panel
}

// Pictures returns the published images that have all their panels, in their order.
func Pictures(panels []Panel) (pictures []Picture) {
	for _, p := range []struct {
		name   string
		panels []string
	}{
		{"Time_by_Buffer_Size_per_File_Size", []string{"elapsed-by-buffer-per-file-size", "total-cpu-by-buffer-per-file-size", "user-cpu-by-buffer-per-file-size", "system-cpu-by-buffer-per-file-size"}},
		{"Time_per_Buffer_Size_w_O_SYNC", []string{"time-by-buffer-with-o-sync"}},
		{"Elapsed_Time_by_Buffer_Size_per_FS", withZoomed("elapsed-by-buffer-per-file-system")},
		{"Elapsed_time_by_FS_per_Buffer_Size", withZoomed("elapsed-by-file-system-per-buffer")},
		{"Total_CPU_Time_by_Buffer_Size_per_FS", withZoomed("total-cpu-by-buffer-per-file-system")},
		{"User_CPU_Time_by_Buffer_Size_per_FS", withZoomed("user-cpu-by-buffer-per-file-system")},
		{"System_CPU_Time_by_Buffer_Size_per_FS", withZoomed("system-cpu-by-buffer-per-file-system")},
	} {
		of := Picture{Name: p.name + ".svg"}
		for _, name := range p.panels {
			if i := slices.IndexFunc(panels, func(panel Panel) bool { return panel.Name == name }); i >= 0 {
				of.panels = append(of.panels, panels[i])
			}
		}
		if len(of.panels) == len(p.panels) {
			pictures = append(pictures, of)
		}
	}
	return pictures
}

func withZoomed(name string) []string { return []string{name, name + "-zoomed"} }

// SVG returns the picture as a document: two panels side by side, and others below.
func (p Picture) SVG() string {
	var plots []chart.Plot
	for _, panel := range p.panels {
		plots = append(plots, panel.picture())
	}
	return chart.Together(strings.TrimSuffix(p.Name, ".svg"), min(len(plots), 2), plots)
}
