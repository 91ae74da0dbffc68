package chart

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// The characters of a picture in text. Each series has its own dot, so that no colour is needed.
const (
	dotMarks  = "●○◆◇▲△"
	rangeMark = '░' // a bar without a dot
	barMark   = '─' // a dot's interval
	gridMark  = '┊'
	tickMark  = '┴'
	axisMark  = '─'
)

// leastPlot is the least number of columns for the part with the dots, even in a narrower picture.
const leastPlot = 16

const labelGap = 2 // columns between a label and its dots

// Text returns the picture in lines of at most about width characters, the last with a
// new line. It returns nothing if the picture has no point to show. A label that takes
// more than half of the width is cut.
func (d Dots) Text(width int) string {
	low, high, ok := d.bounds()
	if !ok {
		return ""
	}
	p := textPlot{low: low, high: high, labels: min(d.longestLabel(), width/2)}
	p.columns = max(leastPlot, width-p.labels-labelGap)
	var b strings.Builder
	for _, r := range d.Rows {
		if r.Band != "" {
			b.WriteString(r.Band + "\n")
		}
		p.line(&b, r.Label, p.row(r))
	}
	p.line(&b, "", p.axis())
	p.line(&b, "", p.numbers(d.Scale))
	for _, line := range d.textLegend(p.labels+labelGap, width) {
		b.WriteString(line + "\n")
	}
	return b.String()
}

func (d Dots) longestLabel() int {
	longest := 0
	for _, r := range d.Rows {
		longest = max(longest, utf8.RuneCountInString(r.Label))
	}
	return longest
}

// A textPlot is the part of a text picture that has the dots: `columns` columns from low to high, after
// the labels.
type textPlot struct {
	low, high       float64
	labels, columns int
}

func (p textPlot) line(b *strings.Builder, label string, cells []rune) {
	text := fmt.Sprintf("%-*s%s", p.labels+labelGap, cut(label, p.labels), string(cells))
	b.WriteString(strings.TrimRight(text, " ") + "\n")
}

// cut shortens a text to at most `most` characters.
func cut(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:max(0, most-1)]) + "…"
}

func (p textPlot) column(value float64) int {
	part := math.Log(value/p.low) / math.Log(p.high/p.low)
	return int(math.Round(part * float64(p.columns-1)))
}

// decades returns the powers of ten on the scale.
func (p textPlot) decades() (values []float64) {
	for value := p.low; value <= p.high*1.001; value *= 10 {
		values = append(values, value)
	}
	return values
}

func (p textPlot) blank(fill rune) []rune { return slices.Repeat([]rune{fill}, p.columns) }

func (p textPlot) row(r Row) []rune {
	cells := p.blank(' ')
	for _, value := range p.decades() {
		cells[p.column(value)] = gridMark
	}
	for _, point := range r.Points {
		p.draw(cells, point)
	}
	return cells
}

func (p textPlot) draw(cells []rune, point Point) {
	if point.hasBar() {
		mark := barMark
		if !point.hasDot() {
			mark = rangeMark
		}
		for x := p.column(point.Low); x <= p.column(point.High); x++ {
			cells[x] = mark
		}
	}
	if point.hasDot() {
		cells[p.column(point.Value)] = dotMark(point.Series)
	}
}

func dotMark(series int) rune {
	marks := []rune(dotMarks)
	return marks[series%len(marks)]
}

func (p textPlot) axis() []rune {
	cells := p.blank(axisMark)
	for _, value := range p.decades() {
		cells[p.column(value)] = tickMark
	}
	return cells
}

// numbers writes the numbers under their ticks, the outermost within the plot. It leaves out a number
// that would touch the one before it.
func (p textPlot) numbers(scale func(float64) string) []rune {
	cells, free := p.blank(' '), 0
	for _, value := range p.decades() {
		number := []rune(scale(value))
		at := min(p.column(value)-len(number)/2, p.columns-len(number))
		if at = max(0, at); at < free {
			continue
		}
		copy(cells[at:], number)
		free = at + len(number) + 1
	}
	return cells
}

// textLegend names the series by their marks, below the dots if the text fits into the width. Otherwise
// each series has a line of its own.
func (d Dots) textLegend(below, width int) []string {
	var names []string
	for i, name := range d.Series {
		mark := rangeMark
		if d.hasDots(i) {
			mark = dotMark(i)
		}
		names = append(names, string(mark)+" "+name)
	}
	if line := strings.Join(names, "   "); below+utf8.RuneCountInString(line) <= width {
		names = []string{line}
	}
	for _, name := range names {
		below = max(0, min(below, width-utf8.RuneCountInString(name)))
	}
	for i, name := range names {
		names[i] = strings.Repeat(" ", below) + name
	}
	return names
}

func (d Dots) hasDots(series int) bool {
	return slices.ContainsFunc(d.Rows, func(r Row) bool {
		return slices.ContainsFunc(r.Points, func(p Point) bool { return p.Series == series && p.hasDot() })
	})
}
