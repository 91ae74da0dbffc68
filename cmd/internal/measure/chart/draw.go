package chart

func (f frame) shows(m placed) bool { return f.X.has(m.X) && f.Y.has(m.Y) }

// runs splits marks at each mark that has no place on the axes.
func (f frame) runs(marks []placed, shows func(placed) bool) (runs [][]placed) {
	broken := true
	for _, m := range marks {
		switch {
		case !shows(m):
			broken = true
			continue
		case broken:
			runs = append(runs, nil)
		}
		broken = false
		runs[len(runs)-1] = append(runs[len(runs)-1], m)
	}
	return runs
}

func (f frame) hasInterval(m placed) bool {
	return f.shows(m) && m.Low < m.High && f.Y.has(m.Low) && f.Y.has(m.High)
}

// mark opens the element of a mark, and returns its closing tag. A mark without attributes has no
// element.
func (f frame) mark(s *sheet, m placed) (end string) {
	if m.Title == "" && m.Class == "" && len(m.Data) == 0 {
		return "\n"
	}
	s.add(`<g class="%s"`, joined("mark", m.Class))
	for _, a := range m.Data {
		s.add(` data-%s="%s"`, a.Name, safe(a.Value))
	}
	if f.Focus && m.Title != "" {
		s.add(` tabindex="0" role="img" aria-label="%s"`, safe(m.Title))
	}
	s.add(">")
	if m.Title != "" {
		s.add("<title>%s</title>", safe(m.Title))
	}
	return "</g>\n"
}

// whiskers draws the intervals of a mark at a position.
func (f frame) whiskers(s *sheet, m placed, x, y float64) {
	if f.hasInterval(m) {
		s.add(`<path class="whisker" d="M%v %vV%v"/>`, num(x), num(f.atY(m.Low)), num(f.atY(m.High)))
	}
	if m.XLow < m.XHigh && f.X.has(m.XLow) && f.X.has(m.XHigh) {
		s.add(`<path class="whisker" d="M%v %vH%v"/>`, num(f.atX(m.XLow)), num(y), num(f.atX(m.XHigh)))
	}
}

// A box is a rectangle.
type box struct{ x1, y1, x2, y2 float64 }

func (b box) touches(o box) bool { return b.x1 < o.x2 && o.x1 < b.x2 && b.y1 < o.y2 && o.y1 < b.y2 }

// bar returns the rectangle of a mark's bar.
func (f frame) bar(m placed) box {
	beside := func(room float64) (from, to float64) {
		wide := room / float64(m.all)
		return -room/2 + float64(m.nth)*wide, -room/2 + float64(m.nth+1)*wide
	}
	if f.rows() {
		from, to := beside(barTall)
		x1, x2, y := f.left+f.x.within(m.base)*(f.right-f.left), f.atX(m.X), f.atY(m.Y)
		return box{min(x1, x2), y + from, max(x1, x2), y + to}
	}
	from, to := beside(barPart * (f.right - f.left) / float64(max(1, len(f.X.Categories))))
	y1, y2, x := f.bottom-f.y.within(m.base)*(f.bottom-f.top), f.atY(m.Y), f.atX(m.X)
	return box{x + from, min(y1, y2), x + to, max(y1, y2)}
}

// labels writes the labels of points beside the points, and the labels of bars into the bars. A label
// that finds no room is left out.
func (f frame) labels(s *sheet, all []placedSeries) {
	var taken []box
	for _, of := range all {
		for _, m := range of.marks {
			if of.As&Points != 0 && f.shows(m) {
				x, y := f.atX(m.X), f.atY(m.Y)
				taken = append(taken, box{x - 5, y - 5, x + 5, y + 5})
			}
		}
	}
	for _, of := range all {
		for _, m := range of.marks {
			if m.Label == "" || !f.shows(m) {
				continue
			}
			wide := em(m.Label) * textTall
			if of.As&Bars != 0 {
				if b := f.bar(m); b.x2-b.x1 > wide+4 && b.y2-b.y1 >= textTall {
					s.add(`<text class="%s" x="%v" y="%v" text-anchor="middle">%s</text>`+"\n", joined("inside", m.Class), num((b.x1+b.x2)/2), num((b.y1+b.y2)/2+4), safe(m.Label))
				}
				continue
			}
			x, y := f.atX(m.X), f.atY(m.Y)
			from, to := x, x // of its interval
			if m.XLow < m.XHigh && f.X.has(m.XLow) && f.X.has(m.XHigh) {
				from, to = min(x, f.atX(m.XLow)), max(x, f.atX(m.XHigh))
			}
			for _, at := range []struct {
				x, y   float64
				anchor string
			}{{to + 8, y + 4, "start"}, {from - 8, y + 4, "end"}, {x, y - 9, "middle"}, {x, y + 18, "middle"}, {x + 6, y - 8, "start"}, {x + 6, y + 16, "start"}, {x - 6, y - 8, "end"}, {x - 6, y + 16, "end"}} {
				left := at.x - wide*map[string]float64{"start": 0, "middle": 0.5, "end": 1}[at.anchor]
				b := box{left, at.y - textTall + 2, left + wide, at.y + 2}
				if b.x1 < f.left || b.x2 > f.right || b.y1 < f.top-4 || b.y2 > f.bottom {
					continue
				}
				if free(taken, b) {
					taken = append(taken, b)
					s.add(`<text class="%s" x="%v" y="%v" text-anchor="%s">%s</text>`+"\n", joined("label", m.Class), num(at.x), num(at.y), at.anchor, safe(m.Label))
					break
				}
			}
		}
	}
}

func free(taken []box, b box) bool {
	for _, other := range taken {
		if b.touches(other) {
			return false
		}
	}
	return true
}
