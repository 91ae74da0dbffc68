// Package panel draws tables of times as the pictures that were published with
// them: one panel each, as SVG and as PNG, and a page of all.
//
// Which panels there are is in published.go; what was measured where, and how, is
// nobody's business here. A panel can be read in black and white: series differ by
// their dashes and marks, and not by colour alone. The same rows give the same
// bytes.
//
// Start with [All].
package panel

import "github.com/holdfast-go/holdfast/internal/timing"

// A Panel is one picture, with at least one point in it.
type Panel struct {
	Name  string // of its files, without their ending
	Title string
	Group string // a heading for it and its neighbours

	form   form
	x      []string // the categories, from left to right
	series []series
	notes  []string // what a reader must know, without a full stop
}

// An Omitted is a panel that could not be drawn.
type Omitted struct {
	Name, Why string
}

// All returns the panels that there are rows for, in the order in which they were
// published, and why there are no others. Of two rows for the same point the later
// is drawn. Rows of User-Mode Linux (see [InUML]) have panels of their own.
func All(rows []timing.Row) (panels []Panel, left []Omitted) {
	for _, f := range published() {
		drawn, why := f.panels(rows)
		if len(drawn) == 0 {
			left = append(left, Omitted{f.name, why})
		}
		panels = append(panels, drawn...)
	}
	return panels, left
}

// A series is a line of a panel, or the dots of one colour.
type series struct {
	name   string
	points []point
}

// A point is a value at a category of the axis.
type point struct {
	x         float64
	y         float64
	predicted bool
}
