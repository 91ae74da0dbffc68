package chart

import (
	_ "embed"
	"fmt"
	"html"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// CSS is the style of a [Plot]: colours as custom properties of the root, light and dark, and
// rules of all classes. A style sheet that follows it can set other colours.
//
//go:embed style.css
var CSS string

// A Plot is a picture of marks between two axes. The same values give the same bytes.
//
// Its element has the class plot. A series is a group with the classes series and s0, s1 … (its look),
// and the attribute data-series (its number). The entry of the legend has the class key and the same
// data-series. A mark with a Title or Data is a group with the class mark.
type Plot struct {
	ID      string // unique in a page: title and description get their ids from it
	Title   string // read out by screen readers; drawn too with Heading
	Desc    string // a description for readers who can't see the picture
	Heading bool
	Focus   bool // the keyboard reaches each mark with a Title

	Width, Height float64 // in units; text is 12 of them high. 0: the default, or the height of the categories of Y
	Legend        Place
	X, Y          Axis
	Regions       []Region
	Series        []Series
	Stacked       bool     // the bars of a category stand on each other, else side by side
	Beside        bool     // the names of the categories of Y stand left of their marks, else above them
	Notes         []string // at the foot
}

// A Place is where the legend stands.
type Place int

// The places of a legend.
const (
	Above Place = iota
	Right
	Nowhere
)

// A Region is the range between two values of an axis, shaded from edge to edge of the picture. If both
// values are the same it is a line.
type Region struct {
	OnY      bool // else on X
	From, To float64
	Label    string
	Class    string // besides region
}

// A Form is a way to draw a series. Forms are combined with |.
type Form int

// The forms.
const (
	Points Form = 1 << iota // a point each, with its intervals as whiskers
	Line                    // a line from mark to mark
	Steps                   // a line that keeps the value of a mark until the next one
	Band                    // the intervals of Y as an area, in place of whiskers
	Bars                    // a bar each; they lie where Y has the categories
)

// A Series is a list of marks that look alike.
type Series struct {
	Name  string // in the legend; without a name it is not there
	As    Form
	Look  int     // colour, dash and shape, usually the number of the series
	Size  float64 // of points; 0 is 1
	Class string  // a class besides series and s0, s1 …
	Marks []Mark
}

// A Mark is a point, a corner of a line or a bar. An interval is drawn if Low < High. A mark that is
// not finite or has no place on its axis is not drawn, and a line is broken there.
type Mark struct {
	X, Y        float64
	Low, High   float64 // of Y
	XLow, XHigh float64 // of X
	Hollow      bool
	Label       string // beside a point, or in a bar, where there is room
	Title       string // shown by a browser when the pointer is on the mark
	Class       string
	Data        []Attr
}

// An Attr is a data- attribute. Its name has small letters and hyphens only.
type Attr struct{ Name, Value string }

// SVG returns the picture as an element of a page that has the rules of [CSS], or nothing if it
// has no mark to show.
func (p Plot) SVG() string { return p.draw(false) }

// Document returns the picture as a file that needs no other, or nothing if it has no mark to
// show. The file is light or dark by the reader's setting.
func (p Plot) Document() string { return p.draw(true) }

// The measures of a picture, in units.
const (
	usualWidth, usualHeight = 640, 380

	textTall    = 12
	lineTall    = 18  // a line of text with its room
	noteTall    = 15  // a line of a note
	headTall    = 26  // the heading
	edge        = 10  // free at each edge
	swatch      = 26  // of a legend's entry
	categoryGap = 6   // between the names of categories
	rowHigh     = 44  // a category of Y: its name, and its marks below
	rowText     = 15  // from the top of such a row to the foot of its name
	rowMarks    = 30  // and to the middle of its marks
	bandHigh    = 30  // the heading of categories of Y
	barTall     = 16  // of the bars of such a row, together
	barPart     = 0.8 // part of a category of X that its bars cover
)

// A frame is the layout of a picture: the rectangle between the axes, and the axes.
type frame struct {
	Plot
	x, y                     axis
	left, right, top, bottom float64
	keys                     [][]int // lines of the legend above: series by number
	foot                     []string
	turned                   bool      // the names of the categories of X
	tops                     []float64 // of the categories of Y, from the frame's top
}

func (p Plot) draw(alone bool) string {
	f, ok := p.frame()
	if !ok {
		return ""
	}
	var s sheet
	f.open(&s, alone)
	f.grid(&s)
	f.regions(&s)
	f.marks(&s)
	f.names(&s)
	f.legend(&s)
	s.add("</svg>\n")
	return s.String()
}

// frame lays the picture out: the foot, the heading and the legend take their room first, then
// the texts of the axes.
func (p Plot) frame() (f frame, ok bool) {
	f = frame{Plot: p}
	if f.Width == 0 {
		f.Width = usualWidth
	}
	ends, ok := p.ends()
	if !ok {
		return f, false
	}
	f.x, f.y = p.X.laid(ends[0], ends[1]), p.Y.laid(ends[2], ends[3])
	f.foot = wrapped(p.Notes, "; ", (f.Width-2*edge)/(textTall-1))
	f.top, f.right = edge, f.Width-edge
	if p.Heading {
		f.top += headTall
	}
	switch p.Legend {
	case Above:
		f.keys = f.keyLines()
		f.top += float64(len(f.keys)) * lineTall
	case Right:
		f.right -= f.keyWidth()
	}
	if p.Y.Name != "" {
		f.top += lineTall
	}
	f.top += textTall / 2
	f.left = edge
	const wider = 1.1 // names have more wide letters than numbers, so em is too small for them
	switch {
	case !f.rows():
		f.left += f.y.widest()*textTall + 10
	case f.Beside:
		f.left += f.y.widest()*textTall*wider + 10
	}
	below := 4.0 + lineTall
	if p.X.Categories != nil && f.x.closest((f.right-f.left)/float64(len(f.x.ticks))) < categoryGap {
		f.turned = true
		below = 12 + f.x.widest()*textTall*math.Sqrt2/2
	}
	if p.X.Name != "" {
		below += lineTall
	}
	below += float64(len(f.foot))*noteTall + edge/2
	switch {
	case f.rows():
		f.Height = f.top + f.stack() + below
	case p.Height == 0:
		f.Height = usualHeight
	}
	f.bottom = f.Height - below
	return f, f.bottom > f.top && f.right > f.left
}

// stack places the categories of Y below each other, and returns their total height.
func (f *frame) stack() (tall float64) {
	for i := range f.Y.Categories {
		if f.Y.Bands[i] != "" {
			tall += bandHigh
		}
		f.tops = append(f.tops, tall)
		tall += f.rowTall()
	}
	return tall
}

// rowTall returns the height of a category of Y.
func (p Plot) rowTall() float64 {
	if p.Beside {
		return rowLow
	}
	return rowHigh
}

// rowMiddle returns the distance from a category's top to its marks.
func (p Plot) rowMiddle() float64 {
	if p.Beside {
		return rowLow / 2
	}
	return rowMarks
}

// rows reports whether the categories are below each other.
func (p Plot) rows() bool { return p.Y.Categories != nil }

// ends returns the least and the greatest value on X, and on Y.
func (p Plot) ends() (ends [4]float64, ok bool) {
	inf := math.Inf(1)
	ends = [4]float64{inf, -inf, inf, -inf}
	take := func(low int, a Axis, values ...float64) {
		for _, v := range values {
			if a.has(v) {
				ends[low], ends[low+1] = min(ends[low], v), max(ends[low+1], v)
			}
		}
	}
	for _, s := range p.stacked() {
		for _, m := range s.marks {
			if !p.X.has(m.X) || !p.Y.has(m.Y) {
				continue
			}
			ok = true
			take(0, p.X, m.X)
			take(2, p.Y, m.Y)
			if m.XLow < m.XHigh {
				take(0, p.X, m.XLow, m.XHigh)
			}
			if m.Low < m.High {
				take(2, p.Y, m.Low, m.High)
			}
		}
	}
	return ends, ok
}

// A placed mark knows where its bar begins, and its number among the bars beside each other.
type placed struct {
	Mark
	base     float64
	nth, all int
}

type placedSeries struct {
	Series
	marks []placed
}

// stacked returns the series with the bars stacked, or side by side.
func (p Plot) stacked() (all []placedSeries) {
	reached, bars := map[float64]float64{}, 0
	for _, s := range p.Series {
		if s.As&Bars != 0 {
			bars++
		}
	}
	nth := 0
	for _, s := range p.Series {
		of := placedSeries{Series: s}
		for _, m := range s.Marks {
			at := placed{Mark: m, nth: nth, all: bars}
			if s.As&Bars != 0 && p.Stacked {
				category, value := &at.X, &at.Y
				if p.rows() {
					category, value = value, category
				}
				at.base, at.nth, at.all = reached[*category], 0, 1
				if finite(*value) {
					*value += at.base
					reached[*category] = *value
				}
			}
			of.marks = append(of.marks, at)
		}
		if s.As&Bars != 0 {
			nth++
		}
		all = append(all, of)
	}
	return all
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// atX and atY return the position of a value.
func (f frame) atX(v float64) float64 { return f.left + f.x.part(v)*(f.right-f.left) }

func (f frame) atY(v float64) float64 {
	if f.rows() {
		row := min(max(0, int(math.Round(v))), len(f.tops)-1)
		return f.top + f.tops[row] + f.rowMiddle() + (v-float64(row))*f.rowTall()
	}
	return f.bottom - f.y.part(v)*(f.bottom-f.top)
}

// A sheet gathers the text of a picture.
type sheet struct{ strings.Builder }

func (s *sheet) add(format string, args ...any) { fmt.Fprintf(s, format, args...) }

// num is a coordinate, to a tenth of a unit.
type num float64

func (n num) String() string {
	return strconv.FormatFloat(math.Round(float64(n)*10)/10+0, 'f', -1, 64)
}

// safe escapes a text for XML. It drops control characters, which XML does not allow.
func safe(text string) string {
	return html.EscapeString(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == 0xfffe || r == 0xffff {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(text, "\ufffd")))
}

func (f frame) open(s *sheet, alone bool) {
	role := "img"
	if f.Focus {
		role = "group"
	}
	s.add(`<svg class="plot" viewBox="0 0 %v %v" role="%s"`, num(f.Width), num(f.Height), role)
	if f.ID == "" {
		s.add(` aria-label="%s"`, safe(f.Title))
	} else {
		s.add(` aria-labelledby="%[1]s-title" aria-describedby="%[1]s-desc"`, safe(f.ID))
	}
	if alone {
		s.add(` xmlns="http://www.w3.org/2000/svg" width="%v" height="%v" font-family="Liberation Sans,Arial,Helvetica,sans-serif"`, num(f.Width), num(f.Height))
	}
	s.add(">\n")
	for _, t := range []struct{ name, text string }{{"title", f.Title}, {"desc", f.Desc}} {
		switch {
		case f.ID != "":
			s.add(`<%[1]s id="%[2]s-%[1]s">%[3]s</%[1]s>`+"\n", t.name, safe(f.ID), safe(t.text))
		case t.text != "":
			s.add("<%[1]s>%[2]s</%[1]s>\n", t.name, safe(t.text))
		}
	}
	if alone {
		s.add("<style>\n%s</style>\n<rect class=\"paper\" width=\"%v\" height=\"%v\"/>\n", CSS, num(f.Width), num(f.Height))
	}
}

// grid draws the lines of the axes with their numbers, or the names of their categories.
func (f frame) grid(s *sheet) {
	s.add("<g class=\"axis\">\n")
	free := math.Inf(-1)
	for _, t := range f.x.ticks {
		x := f.atX(t.at)
		if f.X.Categories == nil && t.label != "" {
			s.add(`<path class="grid" d="M%v %vV%v"/>`+"\n", num(x), num(f.top), num(f.bottom))
		}
		s.add(`<path class="frame" d="M%v %vv%v"/>`+"\n", num(x), num(f.bottom), t.long())
		half := em(t.label) * textTall / 2
		switch {
		case t.label == "":
		case f.turned:
			s.add(`<text class="tick" transform="translate(%v %v) rotate(-45)" text-anchor="end">%s</text>`+"\n", num(x+4), num(f.bottom+14), safe(t.label))
		case x-half >= free:
			middle := max(half+2, min(x, f.Width-half-2))
			s.add(`<text class="tick" x="%v" y="%v" text-anchor="middle">%s</text>`+"\n", num(middle), num(f.bottom+lineTall), safe(t.label))
			free = x + half + categoryGap
		}
	}
	for i, t := range f.y.ticks {
		if f.rows() {
			s.add(`<path class="grid" d="M%v %vH%v"/>`+"\n", num(f.left), num(f.atY(float64(i))), num(f.right))
			continue
		}
		y := f.atY(t.at)
		s.add(`<path class="frame" d="M%v %vh-%v"/>`, num(f.left), num(y), t.long())
		if t.label != "" {
			s.add(`<path class="grid" d="M%v %vH%v"/>`, num(f.left), num(y), num(f.right))
			s.add(`<text class="tick" x="%v" y="%v" text-anchor="end">%s</text>`, num(f.left-8), num(y+4), safe(t.label))
		}
		s.add("\n")
	}
	s.add(`<path class="frame" d="M%v %vV%vH%v"/>`+"\n</g>\n", num(f.left), num(f.top), num(f.bottom), num(f.right))
}

// regions shades the regions and writes their labels.
func (f frame) regions(s *sheet) {
	for _, r := range f.Regions {
		class := "region"
		if r.Class != "" {
			class += " " + safe(r.Class)
		}
		x1, x2, y1, y2 := f.left, f.right, f.top, f.bottom
		if r.OnY {
			y1, y2 = f.bottom-f.y.within(r.To)*(f.bottom-f.top), f.bottom-f.y.within(r.From)*(f.bottom-f.top)
		} else {
			x1, x2 = f.left+f.x.within(r.From)*(f.right-f.left), f.left+f.x.within(r.To)*(f.right-f.left)
		}
		if r.From == r.To {
			s.add(`<path class="%s rule" d="M%v %vL%v %v"/>`, class, num(x1), num(y1), num(x2), num(y2))
		} else {
			s.add(`<rect class="%s" x="%v" y="%v" width="%v" height="%v"/>`, class, num(x1), num(y1), num(x2-x1), num(y2-y1))
		}
		if r.Label != "" {
			x, y, anchor := x1+4, y1+textTall, "start"
			if r.OnY {
				if y = y1 - 4; y < f.top+textTall {
					y = y2 + textTall
				}
			} else if x+em(r.Label)*textTall > f.right {
				x, anchor = x1-4, "end"
			}
			s.add(`<text class="note" x="%v" y="%v" text-anchor="%s">%s</text>`, num(x), num(y), anchor, safe(r.Label))
		}
		s.add("\n")
	}
}

// names writes the heading, the titles of the axes, and the notes at the foot.
func (f frame) names(s *sheet) {
	if f.Heading {
		s.add(`<text class="heading" x="%v" y="%v">%s</text>`+"\n", num(edge), num(edge+15), safe(f.Title))
	}
	if f.Y.Name != "" {
		s.add(`<text class="name" x="%v" y="%v">%s</text>`+"\n", num(edge), num(f.top-textTall/2-4), safe(f.Y.Name))
	}
	if f.rows() { // above lines that cross them
		for i, name := range f.Y.Categories {
			y := f.atY(float64(i)) - f.rowMiddle()
			if band := f.Y.Bands[i]; band != "" {
				s.add(`<text class="band-name" x="%v" y="%v">%s</text>`+"\n", num(f.left+4), num(y-8), safe(band))
			}
			if f.Beside {
				s.add(`<text class="row" x="%v" y="%v" text-anchor="end">%s</text>`+"\n", num(f.left-8), num(y+rowLow/2+4), safe(name))
				continue
			}
			s.add(`<text class="row" x="%v" y="%v">%s</text>`+"\n", num(f.left+4), num(y+rowText), safe(name))
		}
	}
	foot := f.Height - edge/2 - float64(len(f.foot))*noteTall
	if f.X.Name != "" {
		s.add(`<text class="name" x="%v" y="%v" text-anchor="middle">%s</text>`+"\n", num((f.left+f.right)/2), num(foot-4), safe(f.X.Name))
	}
	for i, line := range f.foot {
		s.add(`<text class="note" x="%v" y="%v">%s</text>`+"\n", num(edge), num(foot+float64(i+1)*noteTall-4), safe(line))
	}
}

// keyed returns the numbers of the series in the legend.
func (p Plot) keyed() (keyed []int) {
	for i, s := range p.Series {
		if s.Name != "" {
			keyed = append(keyed, i)
		}
	}
	return keyed
}

// keyWidth returns the width of the legend at the right.
func (f frame) keyWidth() float64 {
	widest := 0.0
	for _, i := range f.keyed() {
		widest = max(widest, em(f.Series[i].Name))
	}
	return widest*textTall + swatch + 2*edge
}

// keyRoom returns the width of an entry in the legend above.
func (f frame) keyRoom(i int) float64 { return em(f.Series[i].Name)*textTall + swatch + 20 }

func (f frame) keyLines() (lines [][]int) {
	x := f.Width
	for _, i := range f.keyed() {
		if x += f.keyRoom(i); x > f.Width-edge {
			lines, x = append(lines, nil), edge+f.keyRoom(i)
		}
		lines[len(lines)-1] = append(lines[len(lines)-1], i)
	}
	return lines
}

// legend draws an entry for each series with a name.
func (f frame) legend(s *sheet) {
	if f.Legend == Right {
		for n, i := range f.keyed() {
			f.key(s, i, f.right+2*edge, f.top+float64(n)*lineTall+textTall/2)
		}
		return
	}
	y := float64(edge) + lineTall/2
	if f.Heading {
		y += headTall
	}
	for _, line := range f.keys {
		x := float64(edge)
		for _, i := range line {
			f.key(s, i, x, y)
			x += f.keyRoom(i)
		}
		y += lineTall
	}
}

func (f frame) key(s *sheet, i int, x, y float64) {
	of := f.Series[i]
	s.add(`<g class="key" data-series="%d"><g class="%s">`, i, of.class())
	middle := x + swatch/2 - 3
	switch {
	case of.As&Bars != 0:
		s.add(`<rect class="bar" x="%v" y="%v" width="14" height="10"/>`, num(middle-7), num(y-5))
	case of.As&(Line|Steps) != 0:
		if of.As&Band != 0 {
			s.add(`<rect class="band" x="%v" y="%v" width="20" height="8"/>`, num(x), num(y-4))
		}
		s.add(`<path class="line" fill="none"%s d="M%v %vh20"/>`, of.dash(), num(x), num(y))
	}
	if of.As&Points != 0 {
		of.point(s, middle, y, false)
	}
	s.add("</g>")
	if of.Name != "" {
		s.add(`<text x="%v" y="%v">%s</text>`, num(x+swatch), num(y+4), safe(of.Name))
	}
	s.add("</g>\n")
}

// Key returns the small picture that stands beside the series' name in a legend. A page can thus have one legend for
// many pictures that have none of their own.
func (s Series) Key() string {
	f := frame{Plot: Plot{Series: []Series{s}}}
	f.Series[0].Name = ""
	var to sheet
	to.add(`<svg class="plot" viewBox="0 0 %d 12" aria-hidden="true">`, swatch-4)
	f.key(&to, 0, 0, 6)
	to.add("</svg>")
	return to.String()
}

// wrapped joins texts into lines of width most, in heights of a letter; a text that is longer is broken
// between its words.
func wrapped(texts []string, between string, most float64) (lines []string) {
	for _, text := range texts {
		if n := len(lines); n > 0 && em(lines[n-1]+between+text) <= most {
			lines[n-1] += between + text
			continue
		}
		line := ""
		for _, word := range strings.Fields(text) {
			if line != "" && em(line+" "+word) > most {
				lines, line = append(lines, line), ""
			}
			line = strings.TrimSpace(line + " " + word)
		}
		lines = append(lines, line)
	}
	return lines
}

// em returns the approximate width of a text, in heights of its letters: fonts without serifs differ
// little.
func em(text string) (width float64) {
	for _, r := range text {
		switch {
		case strings.ContainsRune("ijlI.,:;'|! ", r):
			width += 0.29
		case strings.ContainsRune("ftr()-/[]", r):
			width += 0.36
		case strings.ContainsRune("mwMW@%", r):
			width += 0.86
		case r >= 'A' && r <= 'Z':
			width += 0.7
		case r < 0x1100:
			width += 0.57
		default:
			width++
		}
	}
	return width
}

// joined returns the classes that are not empty.
func joined(classes ...string) string {
	return safe(strings.Join(slices.DeleteFunc(classes, func(c string) bool { return c == "" }), " "))
}

// Together returns pictures of one size as a document, with `columns` pictures beside each other.
func Together(title string, columns int, plots []Plot) string {
	var s sheet
	var wide, tall float64
	for i, p := range plots {
		f, ok := p.frame()
		if !ok {
			continue
		}
		x, y := float64(i%columns)*f.Width, float64(i/columns)*f.Height
		wide, tall = max(wide, x+f.Width), max(tall, y+f.Height)
		s.add(`<svg x="%v" y="%v" width="%v" height="%v">%s</svg>`+"\n", num(x), num(y), num(f.Width), num(f.Height), p.SVG())
	}
	if s.Len() == 0 {
		return ""
	}
	all := frame{Plot: Plot{Title: title, Width: wide, Height: tall}}
	var whole sheet
	all.open(&whole, true)
	whole.add("%s</svg>\n", s.String())
	return whole.String()
}

// marks draws the series: areas and bars first, then lines, then points, so that nothing hides a
// smaller element. Labels come last.
func (f frame) marks(s *sheet) {
	all := f.stacked()
	for _, layer := range []struct {
		of   Form
		draw func(*sheet, placedSeries)
	}{{Band, f.band}, {Bars, f.bars}, {Line | Steps, f.line}, {Points, f.points}} {
		for i, of := range all {
			if of.As&layer.of == 0 {
				continue
			}
			s.add(`<g class="%s" data-series="%d">`+"\n", of.class(), i)
			layer.draw(s, of)
			s.add("</g>\n")
		}
	}
	f.labels(s, all)
}

// closest returns the least room between the names of two neighbours, for a distance of apart between
// neighbours.
func (a axis) closest(apart float64) float64 {
	least := math.Inf(1)
	for i := range len(a.ticks) - 1 {
		least = min(least, apart-(em(a.ticks[i].label)+em(a.ticks[i+1].label))/2*textTall)
	}
	return least
}

func (f frame) bars(s *sheet, of placedSeries) {
	for _, m := range of.marks {
		if !f.shows(m) {
			continue
		}
		end, b := f.mark(s, m), f.bar(m)
		class := "bar"
		if m.Hollow {
			class += " hollow"
		}
		s.add(`<rect class="%s" x="%v" y="%v" width="%v" height="%v"/>`, class, num(b.x1), num(b.y1), num(b.x2-b.x1), num(b.y2-b.y1))
		switch {
		case f.Stacked: // its interval is not the stack's
		case f.rows():
			f.whiskers(s, m, f.atX(m.X), (b.y1+b.y2)/2)
		default:
			f.whiskers(s, m, (b.x1+b.x2)/2, f.atY(m.Y))
		}
		s.add("%s", end)
	}
}

func (f frame) points(s *sheet, of placedSeries) {
	for _, m := range of.marks {
		if !f.shows(m) {
			continue
		}
		end := f.mark(s, m)
		if of.As&Band == 0 {
			f.whiskers(s, m, f.atX(m.X), f.atY(m.Y))
		}
		of.point(s, f.atX(m.X), f.atY(m.Y), m.Hollow)
		s.add("%s", end)
	}
}

func (f frame) line(s *sheet, of placedSeries) {
	for _, run := range f.runs(of.marks, f.shows) {
		if len(run) < 2 {
			continue
		}
		var d strings.Builder
		for i, m := range run {
			x, y := num(f.atX(m.X)), num(f.atY(m.Y))
			switch {
			case i > 0 && of.As&Steps != 0:
				fmt.Fprintf(&d, "H%vV%v", x, y)
			default:
				fmt.Fprintf(&d, "%c%v %v", "ML"[min(i, 1)], x, y)
			}
		}
		s.add(`<path class="line" fill="none"%s d="%s"/>`+"\n", of.dash(), d.String())
	}
}

func (f frame) band(s *sheet, of placedSeries) {
	for _, run := range f.runs(of.marks, f.hasInterval) {
		var there, back strings.Builder
		for i, m := range run {
			fmt.Fprintf(&there, "%c%v %v", "ML"[min(i, 1)], num(f.atX(m.X)), num(f.atY(m.High)))
			m = run[len(run)-1-i]
			fmt.Fprintf(&back, "L%v %v", num(f.atX(m.X)), num(f.atY(m.Low)))
		}
		s.add(`<path class="band" d="%s%sZ"/>`+"\n", there.String(), back.String())
	}
}
