package plot

import (
	"image/color"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// The measures of a picture, in points.
const (
	width  = vg.Length(560)
	height = vg.Length(350)
	border = vg.Length(10)
)

// draw draws the whole panel: the notes at its foot, the legend at its right, the
// axes and what stands between them on what is left.
func (p Panel) draw(c draw.Canvas) {
	c.SetColor(color.White)
	c.Fill(c.Rectangle.Path())
	c = draw.Crop(c, border, -border, border, -border)
	axes := p.axes()
	c = draw.Crop(c, 0, 0, p.foot(c, axes), 0)
	legend := p.legend(axes)
	size := legend.Rectangle(c).Size()
	legend.Draw(draw.Crop(c, c.Size().X-size.X, 0, 0, -titleTall))
	axes.Draw(draw.Crop(c, 0, -size.X-border, 0, 0))
}

const titleTall = vg.Length(28) // the legend begins below the title

// sans is the font of all text. The pictures have its name; see [Panel.SVG].
func sans(size vg.Length) font.Font {
	return font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, size)
}

func (p Panel) axes() *plot.Plot {
	a := plot.New()
	a.Title.Text, a.X.Label.Text, a.Y.Label.Text = p.Title, p.form.x, p.form.y
	a.Title.Padding = 10
	a.Title.TextStyle.Font = sans(14)
	for _, axis := range []*plot.Axis{&a.X, &a.Y} {
		axis.Label.TextStyle.Font, axis.Tick.Label.Font = sans(11), sans(10)
		axis.Label.Padding, axis.Padding, axis.Tick.Length = 6, 0, 5
	}
	p.setX(&a.X)
	p.setY(&a.Y)
	grid := plotter.NewGrid()
	grid.Vertical.Width, grid.Horizontal = 0, draw.LineStyle{Color: color.Gray{0xcc}, Width: 0.5}
	a.Add(grid)
	for i, s := range p.series {
		a.Add(drawn{s, p.look(i), p.form})
	}
	return a
}

func (p Panel) dots() bool { return p.form.by == byBuffer }

func (p Panel) look(i int) look {
	l := lookOf(i, p.dots())
	if p.form.by == byTime { // the system's time and all of it are nearly the same: one is drawn on the other
		switch p.series[i].name {
		case nameSystem:
			l.color, l.dash, l.width, l.size = color.RGBA{0xe2, 0xa0, 0x58, 0xff}, nil, 3.2, 1.5
		case nameTotal:
			l.size = 0.7
		}
	}
	return l
}

// lookOf returns the look of the i-th series.
func lookOf(i int, dots bool) look {
	inks := []color.RGBA{
		{0x00, 0x00, 0x00, 0xff}, {0x1f, 0x5f, 0xa8, 0xff}, {0xc0, 0x4a, 0x00, 0xff}, {0x1b, 0x7f, 0x4b, 0xff}, {0x7a, 0x3e, 0x9d, 0xff},
		{0x6b, 0x4a, 0x2b, 0xff}, {0x0e, 0x76, 0x80, 0xff}, {0xb0, 0x30, 0x7a, 0xff},
	}
	dashes := [][]vg.Length{nil, {7, 3}, {2, 2}, {8, 2, 2, 2}, {12, 4}, {5, 2, 1, 2, 1, 2}, {1, 3}, {12, 2, 4, 2}}
	l := look{color: inks[i%len(inks)], dash: dashes[i%len(dashes)], mark: i % shapes, width: 1.1, size: 1}
	if dots {
		l.dash, l.tone = nil, i/shapes%2
	}
	return l
}

// manyNames is how many categories have room for their names side by side, and
// manyLetters how many letters, were all as long as the longest.
const manyNames, manyLetters = 8, 80

// isTurned reports whether the names of the categories have too little room side by side.
func (p Panel) isTurned() bool {
	longest := 0
	for _, name := range p.x {
		longest = max(longest, len(name))
	}
	return len(p.x) > manyNames || len(p.x)*longest > manyLetters
}

// setX puts the categories on the axis. If they are many or long it turns them, so that
// none touches its neighbour.
func (p Panel) setX(x *plot.Axis) {
	var ticks []plot.Tick
	for i, name := range p.x {
		if p.isTurned() {
			name += "  " // away from its tick, along the turned line
		}
		ticks = append(ticks, plot.Tick{Value: float64(i), Label: name})
	}
	x.Tick.Marker = plot.ConstantTicks(ticks)
	x.Min, x.Max = -0.5, float64(len(p.x))-0.5
	if p.isTurned() {
		x.Tick.Label.Rotation, x.Tick.Label.XAlign, x.Tick.Label.YAlign = math.Pi/4, draw.XRight, draw.YCenter
	}
}

func (p Panel) setY(y *plot.Axis) {
	low, high := bounds(p.series)
	var ticks []plot.Tick
	if p.form.logarithmic {
		y.Min, y.Max, ticks = logarithmic(low, high)
	} else {
		y.Min = 0
		y.Max, ticks = linear(high)
	}
	y.Tick.Marker = plot.ConstantTicks(ticks)
}

// linear returns the upper end of an axis that begins at 0, and its marks: about
// five, at round numbers.
func linear(high float64) (end float64, ticks []plot.Tick) {
	if high <= 0 {
		high = 1
	}
	step := roundUp(high/5, 1, 2, 2.5, 5)
	digits := max(0, -int(math.Floor(math.Log10(step)+1e-9)))
	if step*math.Pow10(digits) != math.Trunc(step*math.Pow10(digits)) {
		digits++ // 2.5
	}
	n := math.Ceil(high/step - 1e-9)
	for i := range int(n) + 1 {
		value := float64(i) * step
		ticks = append(ticks, plot.Tick{Value: value, Label: strconv.FormatFloat(value, 'f', digits, 64)})
	}
	return n * step, ticks
}

// bounds returns the least and the greatest value of the series.
func bounds(all []series) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, s := range all {
		for _, p := range s.points {
			low, high = min(low, p.y), max(high, p.y)
		}
	}
	return low, high
}

func (p Panel) legend(axes *plot.Plot) plot.Legend {
	l := plot.NewLegend()
	l.TextStyle.Font = sans(10)
	l.Top, l.Left, l.Padding, l.ThumbnailWidth = true, true, 5, 34
	if p.dots() {
		l.ThumbnailWidth = 14
	}
	l.TextStyle.Handler = axes.TextHandler
	for i, s := range p.series {
		l.Add(s.name, drawn{s, p.look(i), p.form})
	}
	return l
}

// foot writes the notes along the lower edge, and returns how much room they take.
func (p Panel) foot(c draw.Canvas, axes *plot.Plot) vg.Length {
	style := axes.X.Tick.Label
	style.Font, style.Rotation, style.XAlign, style.YAlign = sans(8.5), 0, draw.XLeft, draw.YBottom
	style.Color = color.Gray{0x44}
	lines := wrap(p.notes, func(line string) bool { return style.Width(line) <= c.Size().X })
	const leading = 11
	for i, line := range lines {
		c.FillText(style, vg.Point{X: c.Min.X, Y: c.Min.Y + vg.Length(len(lines)-1-i)*leading}, line)
	}
	if len(lines) == 0 {
		return 0
	}
	return vg.Length(len(lines))*leading + 6
}

// wrap joins notes to lines that fit.
func wrap(notes []string, fits func(string) bool) (lines []string) {
	for _, note := range notes {
		if n := len(lines); n > 0 && fits(lines[n-1]+"; "+note) {
			lines[n-1] += "; " + note
			continue
		}
		lines = append(lines, note)
	}
	return lines
}

// drawn is a series with its look.
type drawn struct {
	series
	look
	form form
}

func (d drawn) dots() bool { return d.form.by == byBuffer }

// value is where a time stands on the axis.
func (d drawn) value(seconds float64) float64 {
	if d.form.logarithmic {
		return math.Log10(seconds)
	}
	return seconds
}

// Plot draws the line, broken where a category has no value, and the marks over
// it.
func (d drawn) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	var points []vg.Point
	for _, p := range d.points {
		points = append(points, vg.Point{X: x(p.x), Y: y(d.value(p.y))})
	}
	for i := range points {
		if !d.dots() && i > 0 && d.points[i].x-d.points[i-1].x == 1 {
			continue
		}
		end := i + 1
		for !d.dots() && end < len(points) && d.points[end].x-d.points[end-1].x == 1 {
			end++
		}
		if end-i > 1 {
			c.StrokeLines(d.line(), points[i:end])
		}
	}
	for i, at := range points {
		d.draw(&c, at, d.points[i].predicted)
	}
}

// Thumbnail draws the sample of the legend.
func (d drawn) Thumbnail(c *draw.Canvas) {
	middle := c.Center()
	if !d.dots() {
		c.StrokeLine2(d.line(), c.Min.X, middle.Y, c.Max.X, middle.Y)
	}
	d.draw(c, middle, false)
}

// logarithmic returns the ends of an axis that encloses low and high, both more
// than 0, and its marks: powers of ten, and 2 and 5 of them if they are few. All
// values are exponents of ten, for a linear axis: the library puts the name of a
// logarithmic one in the wrong place.
func logarithmic(low, high float64) (begin, end float64, ticks []plot.Tick) {
	begin, end = 1/roundUp(1/low, 1, 2, 5), roundUp(high, 1, 2, 5)
	if begin >= end {
		begin, end = begin/2, end*2
	}
	few := end/begin < 50
	for exponent := int(math.Floor(math.Log10(begin) + 1e-9)); exponent <= int(math.Floor(math.Log10(end)+1e-9)); exponent++ {
		for digit := 1; digit < 10; digit++ {
			value, err := strconv.ParseFloat(strconv.Itoa(digit)+"e"+strconv.Itoa(exponent), 64)
			if err != nil || value < begin*(1-1e-9) || value > end*(1+1e-9) {
				continue
			}
			t := plot.Tick{Value: math.Log10(value)}
			if digit == 1 || few && (digit == 2 || digit == 5) {
				t.Label = strconv.FormatFloat(value, 'f', -1, 64)
			}
			ticks = append(ticks, t)
		}
	}
	return math.Log10(begin), math.Log10(end), ticks
}

// roundUp returns the least of the multiples of a power of ten that is not less
// than x. The multiples ascend from 1.
func roundUp(x float64, multiples ...float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(x)))
	for _, m := range append(multiples, 10) {
		if m*unit >= x*(1-1e-9) {
			return m * unit
		}
	}
	return 100 * unit
}
