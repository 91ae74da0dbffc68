package plot

import (
	"image/color"
	"math"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// A look is how a series is drawn. No two of the first [looks] are alike in black
// and white.
type look struct {
	color color.RGBA
	dash  []vg.Length // nil: solid
	mark  int         // of shapes
	tone  int         // of the inside of a mark: 0 the colour itself, 1 light
	width vg.Length   // of the line
	size  vg.Length   // of the mark, 1 is usual
}

// looks is how many series of a panel can be distinguished without colour: lines by
// dash and mark, dots by mark and tone.
const looks = 20

// shapes is how many marks there are: corners returns those of each.
const shapes = 10

// corners returns the corners of a mark around the origin, within a circle of
// radius 1; none is the circle.
func corners(mark int) []vg.Point {
	switch mark {
	case 1: // a square
		return regular(4, math.Pi/4, 1, 1)
	case 2: // triangles: up, …
		return regular(3, math.Pi/2, 1, 1)
	case 3: // a diamond
		return regular(4, 0, 1, 1)
	case 4: // … down, …
		return regular(3, -math.Pi/2, 1, 1)
	case 5: // a star
		return regular(10, math.Pi/2, 1.15, 0.5)
	case 6: // a cross
		return cross(0)
	case 7: // … left, …
		return regular(3, math.Pi, 1, 1)
	case 8: // a cross that leans
		return cross(math.Pi / 4)
	case 9: // … right
		return regular(3, 0, 1, 1)
	}
	return nil
}

// regular returns n corners from an angle on. Their distances from the middle alternate.
func regular(n int, from, outer, inner float64) (points []vg.Point) {
	for i := range n {
		r := []float64{outer, inner}[i%2]
		points = append(points, polar(r, from+2*math.Pi*float64(i)/float64(n)))
	}
	return points
}

// cross returns the corners of a cross with arms as wide as they are long.
func cross(turn float64) (points []vg.Point) {
	for i := range 4 {
		arm := turn + float64(i)*math.Pi/2
		points = append(points, polar(1.05, arm-0.34), polar(1.05, arm+0.34), polar(0.5, arm+math.Pi/4))
	}
	return points
}

func polar(r, angle float64) vg.Point {
	sin, cos := math.Sincos(angle)
	return vg.Point{X: vg.Length(r * cos), Y: vg.Length(r * sin)}
}

const radius = vg.Length(3.2) // of a mark, in points

// inside is the colour of the inside of a mark.
func (l look) inside(predicted bool) color.Color {
	switch {
	case predicted:
		return color.White
	case l.tone > 0:
		return color.Gray{0xb8}
	}
	return l.color
}

// draw draws the mark of a point.
func (l look) draw(c *draw.Canvas, at vg.Point, predicted bool) {
	path := l.outline(at)
	c.SetColor(l.inside(predicted))
	c.Fill(path)
	c.SetLineStyle(draw.LineStyle{Color: l.color, Width: 0.8})
	c.Stroke(path)
}

// outline is the mark's at a place. The circle is a little smaller, to look as large.
func (l look) outline(at vg.Point) (path vg.Path) {
	unit := corners(l.mark)
	if unit == nil {
		r := 0.9 * radius * l.size
		path.Move(vg.Point{X: at.X + r, Y: at.Y})
		path.Arc(at, r, 0, 2*math.Pi)
	}
	for i, p := range unit {
		corner := at.Add(p.Scale(1.1 * radius * l.size))
		if i == 0 {
			path.Move(corner)
		} else {
			path.Line(corner)
		}
	}
	path.Close()
	return path
}

func (l look) line() draw.LineStyle {
	return draw.LineStyle{Color: l.color, Width: l.width, Dashes: l.dash}
}
