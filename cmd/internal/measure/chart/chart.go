// Package chart draws series as small pictures: SVG to be put into an HTML page, and
// lines of text for a terminal.
//
// It does not know the meaning of the numbers. Colours and fonts come from the page's style sheet by
// the classes that [Dots] names, so that a page can be light or dark. The picture scales with its
// width.
//
// Start with [Dots].
package chart

import (
	"fmt"
	"html"
	"math"
	"strings"
	"unicode/utf8"
)

// Dots is a dot plot on a logarithmic scale. Each row has a line, and each of its points a dot,
// with its interval as a bar.
//
// Classes: chart on the picture, grid on the lines of the scale, s0, s1 … on the dots
// and bars of each series. The heading of a band has band, the path frontier, and the label of
// a row that is marked chosen. A limit has limit, and a dot with a Key the attribute data-key.
type Dots struct {
	Title  string // read out instead of the picture
	Rows   []Row
	Scale  func(float64) string // the text of a number on the scale
	Series []string             // their names, for the legend
	Path   []int                // rows whose first dots are joined by steps, from top to bottom
	Limits []Limit              // lines from top to bottom
	Beside bool                 // the labels stand left of the plot, in a picture that is wide
}

// A Limit is an upper or lower limit that the reader wants, drawn as a line.
type Limit struct {
	Value float64
	Label string
}

// A Row is a labelled line of the picture. With a Band it begins a band: rows that have something in
// common, under a heading.
type Row struct {
	Label  string
	Band   string
	Limit  string // text of the limit line above the row; empty: no line
	Marked bool
	Points []Point
}

// A Point is a value with its interval; without an interval Low and High are NaN. Only the bar from Low
// to High is drawn if the value is not positive and finite. Later points lie on top.
type Point struct {
	Series           int
	Value, Low, High float64

	AtMost bool // the value is no more than this

	Key string // the page finds the dot's data by it; empty: it is not looked up
}

// The measures of the picture, in units. A row's label stands above its line, because policies' names are long and
// telephones narrow. A picture with labels beside the plot is wider.
const (
	narrow   = 640
	wide     = 1000
	margin   = 24
	rowTall  = 40
	rowLow   = 26  // with its label beside it; of a Plot too
	gap      = 14  // from a label to the plot
	bandTop  = 30  // height of a band's heading
	limitTop = 26  // height of a limit's line
	labelUp  = 10  // from a line up to the foot of its label
	legend   = 22  // height of a series in the legend
	top      = 34  // room for the labels of limits below the legend
	bottom   = 28  // scale
	radius   = 5   // of a dot
	advance  = 8.5 // of a character
)

// top returns where the scale begins, below the legend and the labels of limits. Each series has a line of its own in
// the legend, because text is larger on a telephone; in a wide picture they share one line.
func (d Dots) top() int {
	switch {
	case !d.Beside:
		return top + legend*max(1, len(d.Series))
	case len(d.Limits) == 0:
		return top/2 + legend
	}
	return top + legend
}

// SVG returns the picture, or nothing if it has no point to show.
func (d Dots) SVG() string {
	low, high, ok := d.bounds()
	if !ok {
		return ""
	}
	s := d.scale(low, high)
	lines, tall := d.lines()
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="chart" viewBox="0 0 %d %d" role="img" aria-label="%s">`+"\n", int(s.wide), tall, text(d.Title))
	d.legend(&b)
	d.grid(&b, s, tall)
	d.limits(&b, s, tall)
	d.path(&b, s, lines)
	for i, r := range d.Rows {
		r.draw(&b, s, lines[i], d.Scale, d.Beside)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// lines returns where the line of each row is, and how tall the picture is.
func (d Dots) lines() (lines []float64, tall int) {
	tall = d.top()
	for _, r := range d.Rows {
		if r.Limit != "" {
			tall += limitTop
		}
		if r.Band != "" {
			tall += bandTop
		}
		if d.Beside {
			lines = append(lines, float64(tall)+rowLow/2)
			tall += rowLow
			continue
		}
		lines = append(lines, float64(tall)+rowTall*0.75)
		tall += rowTall
	}
	return lines, tall + bottom
}

// path joins dots by steps: horizontally to the next dot's value, then down to it.
func (d Dots) path(b *strings.Builder, s scale, lines []float64) {
	var steps strings.Builder
	for _, row := range d.Path {
		p := d.Rows[row].Points
		if len(p) == 0 || !p[0].hasDot() {
			continue
		}
		if x, y := s.x(p[0].Value), lines[row]; steps.Len() == 0 {
			fmt.Fprintf(&steps, "M%.1f %.1f", x, y)
		} else {
			fmt.Fprintf(&steps, "H%.1fV%.1f", x, y)
		}
	}
	if steps.Len() > 0 {
		fmt.Fprintf(b, `<path class="frontier" fill="none" d="%s"/>`+"\n", steps.String())
	}
}

// limits draws the lines of values. A label stands at the side with more room.
func (d Dots) limits(b *strings.Builder, s scale, tall int) {
	for _, l := range d.Limits {
		if !(l.Value >= s.low && l.Value <= s.high) {
			continue
		}
		x, anchor, aside := s.x(l.Value), "start", 6.0
		if x > (s.left+s.right)/2 {
			anchor, aside = "end", -6
		}
		fmt.Fprintf(b, `<line class="limit" x1="%.1f" x2="%.1f" y1="%d" y2="%d"/><text class="limit" x="%.1f" y="%d" text-anchor="%s">%s</text>`+"\n",
			x, x, d.top()-8, tall-bottom, x+aside, d.top()-10, anchor, text(l.Label))
	}
}

// text escapes a text for SVG.
func text(s string) string { return html.EscapeString(s) }

// bounds returns the powers of ten that enclose all points.
func (d Dots) bounds() (low, high float64, ok bool) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, r := range d.Rows {
		for _, p := range r.Points {
			if p.hasDot() {
				low, high = min(low, p.Value), max(high, p.Value)
			}
			if p.hasBar() {
				low, high = min(low, p.Low), max(high, p.High)
			}
		}
	}
	if low > high {
		return 0, 0, false
	}
	low, high = math.Pow(10, math.Floor(math.Log10(low))), math.Pow(10, math.Ceil(math.Log10(high)))
	if low == high {
		high = low * 10
	}
	return low, high, true
}

func (p Point) hasDot() bool { return p.Value > 0 && !math.IsInf(p.Value, 0) }

func (p Point) hasBar() bool { return p.Low > 0 && p.High >= p.Low && !math.IsInf(p.High, 0) }

// A scale maps values to positions between left and right, in a picture of width wide.
type scale struct{ low, high, left, right, wide float64 }

func (d Dots) scale(low, high float64) scale {
	if !d.Beside {
		return scale{low, high, margin, narrow - margin, narrow}
	}
	longest := 0
	for _, r := range d.Rows {
		longest = max(longest, utf8.RuneCountInString(r.Label))
	}
	return scale{low, high, margin + gap + min(wide/2, advance*float64(longest)), wide - margin, wide}
}

func (s scale) x(value float64) float64 {
	part := math.Log(value/s.low) / math.Log(s.high/s.low)
	return s.left + part*(s.right-s.left)
}

func (d Dots) legend(b *strings.Builder) {
	x, y := margin, 16
	for i, name := range d.Series {
		fmt.Fprintf(b, `<circle class="s%d" cx="%d" cy="%d" r="5"/><text x="%d" y="%d">%s</text>`+"\n", i, x+5, y, x+16, y+5, text(name))
		if d.Beside {
			x += 16 + int(advance*float64(utf8.RuneCountInString(name))) + 2*margin
		} else {
			y += legend
		}
	}
}

func (d Dots) grid(b *strings.Builder, s scale, tall int) {
	for value := s.low; value <= s.high*1.001; value *= 10 {
		x := s.x(value)
		fmt.Fprintf(b, `<line class="grid" x1="%.1f" x2="%.1f" y1="%d" y2="%d"/>`, x, x, d.top()-8, tall-bottom)
		at, anchor, label := x, "middle", d.Scale(value)
		if x+advance*float64(len(label))/2 > s.wide { // 10,000x at the right edge
			at, anchor = s.wide, "end"
		}
		fmt.Fprintf(b, `<text class="tick" x="%.1f" y="%d" text-anchor="%s">%s</text>`+"\n", at, tall-8, anchor, text(label))
	}
}

func (r Row) draw(b *strings.Builder, s scale, y float64, number func(float64) string, beside bool) {
	above := y - rowTall
	if beside {
		above = y - rowLow/2 - 6
	}
	if r.Band != "" {
		fmt.Fprintf(b, `<text class="band" x="%d" y="%.1f">%s</text>`+"\n", margin, above, text(r.Band))
		above -= bandTop
	}
	if r.Limit != "" {
		fmt.Fprintf(b, `<line class="limit" x1="%d" x2="%.0f" y1="%.1f" y2="%.1f"/><text class="limit" x="%.0f" y="%.1f" text-anchor="end">%s</text>`+"\n",
			margin, s.right, above+8, above+8, s.right, above+3, text(r.Limit))
	}
	class := ""
	if r.Marked {
		class = ` class="chosen"`
	}
	if beside {
		fmt.Fprintf(b, `<text%s x="%.1f" y="%.1f" text-anchor="end">%s</text>`+"\n", class, s.left-gap, y+5, text(r.Label))
	} else {
		fmt.Fprintf(b, `<text%s x="%d" y="%.1f">%s</text>`+"\n", class, margin, y-labelUp, text(r.Label))
	}
	fmt.Fprintf(b, `<line class="grid" x1="%.0f" x2="%.0f" y1="%.1f" y2="%.1f"/>`+"\n", s.left, s.right, y, y)
	for _, p := range r.Points {
		from, to := s.x(p.Low), s.x(p.High)
		if !p.hasDot() && p.hasBar() && to-from < 2*radius { // too narrow to be seen
			p.Value = math.Sqrt(p.Low * p.High)
		}
		if p.hasBar() {
			fmt.Fprintf(b, `<line class="s%d" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>`, p.Series, from, to, y, y)
		}
		if p.hasDot() {
			key := ""
			if p.Key != "" {
				key = fmt.Sprintf(` data-key="%s" data-label="%s"`, text(p.Key), text(r.Label))
			}
			fmt.Fprintf(b, `<circle class="s%d"%s cx="%.1f" cy="%.1f" r="%d"><title>%s</title></circle>`+"\n", p.Series, key, s.x(p.Value), y, radius, text(p.words(number)))
		}
	}
}

// words are the text that a browser shows when the pointer is on a dot.
func (p Point) words(number func(float64) string) string {
	switch {
	case p.AtMost:
		return "at most " + number(p.Value)
	case !p.hasBar():
		return number(p.Value)
	}
	return fmt.Sprintf("%s (%s-%s)", number(p.Value), number(p.Low), number(p.High))
}
