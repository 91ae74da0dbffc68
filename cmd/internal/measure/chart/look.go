package chart

import (
	"fmt"
	"math"
	"strings"
)

// Looks is the number of series that can be told apart in a picture without colour. Lines differ by
// dash and shape, points alone by shape and filling.
const Looks = 20

// dashes and shapes have different lengths: a look takes its number modulo the length from each.
var dashes = [...]string{"", "7 3", "2 2", "8 2 2 2", "12 4", "5 2 1 2 1 2", "1 3", "12 2 4 2"}

const colours, shapes = 8, 10

func (s Series) class() string {
	return joined("series", fmt.Sprintf("s%d", s.Look%colours), s.Class)
}

func (s Series) dash() string {
	if dash := dashes[s.Look%len(dashes)]; dash != "" {
		return ` stroke-dasharray="` + dash + `"`
	}
	return ""
}

// point draws the shape of a point.
func (s Series) point(to *sheet, x, y float64, hollow bool) {
	size := s.Size
	if size == 0 {
		size = 1
	}
	class := "point"
	switch {
	case hollow:
		class += " hollow"
	case s.As&(Line|Steps) == 0 && s.Look/shapes%2 == 1:
		class += " pale"
	}
	corners := corners(s.Look % shapes)
	if corners == nil {
		to.add(`<circle class="%s" cx="%v" cy="%v" r="%v"/>`, class, num(x), num(y), num(3.6*size))
		return
	}
	var d strings.Builder
	for i, c := range corners {
		fmt.Fprintf(&d, "%c%v %v", "ML"[min(i, 1)], num(x+4.4*size*c[0]), num(y-4.4*size*c[1]))
	}
	to.add(`<path class="%s" d="%sZ"/>`, class, d.String())
}

// corners returns the corners of a shape around the origin, within a circle of radius 1; nil is the
// circle.
func corners(shape int) [][2]float64 {
	switch shape {
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

// regular returns n corners, beginning at an angle. Their distances from the middle alternate.
func regular(n int, from, outer, inner float64) (points [][2]float64) {
	for i := range n {
		r := outer
		if i%2 == 1 {
			r = inner
		}
		points = append(points, polar(r, from+2*math.Pi*float64(i)/float64(n)))
	}
	return points
}

// cross returns the corners of a cross with arms as wide as they are long.
func cross(turn float64) (points [][2]float64) {
	for i := range 4 {
		arm := turn + float64(i)*math.Pi/2
		points = append(points, polar(1.05, arm-0.34), polar(1.05, arm+0.34), polar(0.5, arm+math.Pi/4))
	}
	return points
}

func polar(r, angle float64) [2]float64 {
	sin, cos := math.Sincos(angle)
	return [2]float64{r * cos, r * sin}
}
