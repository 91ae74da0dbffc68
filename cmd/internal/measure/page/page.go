// Package page writes a report as one HTML page that needs no other file and no network. Its style, its
// script and the results that it was made from are inside.
//
// It does not know the meaning of the figures. All of its input is text and is escaped; only pictures
// are markup. The whole page can be read without the script, which sorts, filters, compares and saves
// its content.
//
// Start with [Page] and [Extract].
package page

import (
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"io"
	"slices"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/chart"
)

// A Page is the content of a report, from top to bottom.
type Page struct {
	Title    string
	Question string
	Mark     string   // missing parts of the run; empty: none
	Answer   []string // sentences
	Tiles    []Tile   // the answer's figures, large
	Sure     string   // a sentence about the certainty of the answer
	Needs    []Need   // the stated needs; one for each load
	Sections []Section
	Results  []Results // the results that the page was made from
}

// A Tile is one large figure of the answer.
type Tile struct{ Label, Value, Note string }

// A Need is a stated need, and whether a policy meets it.
type Need struct {
	Text    string
	Verdict string // met, not met or not known
	Says    string // the conditions and the policy
}

// A Section is a heading and the content below it, in the order of the fields.
type Section struct {
	Title    string
	Text     string
	Answer   []string // sentences, set off from the rest
	Legend   []Keys   // of all its charts
	Charts   []Chart
	Tables   []Table
	Notes    []string
	Sections []Section

	Switch  string // the difference between its charts, of which one is shown at a time; empty: all are shown
	Columns bool   // its charts stand in two columns where there is room
	Folded  bool   // closed until the reader opens it
	Printed bool   // open in print even so

	ID    string // given by Write
	Level int    // of the heading; likewise
}

// A Chart is a picture with its title and keys.
type Chart struct {
	Title   string // a heading; empty: none
	Picture string // markup
	Keys    string // the title of the legend if the picture has none of its own and stands alone; empty: none
	Slim    string // a narrow picture for telephones; empty: Picture is for both
	Caption string

	Level int // of the heading; given by Write
}

// Keys is a line of a legend, such as the policies with their marks.
type Keys struct {
	Title string
	Keys  []Key
}

// A Key is the name of a series and its mark, as markup.
type Key struct{ Name, Mark string }

// A Table has a row for each compared thing. The first cell of a row names it.
type Table struct {
	Title  string // a heading; empty: none
	Text   string
	Name   string // its name for screen readers, and for its file
	Head   []string
	Rows   []Row
	Prose  bool // its cells are sentences, which break
	Filter int  // the column whose values the reader can filter by; 0: none
	Notes  []string

	Level int // of the heading; given by Write
}

// A Row with a Key has the figures of the mark with the same key in a picture.
type Row struct {
	Key    string
	Marked bool
	Cells  []string
}

// Plain returns rows without keys.
func Plain(cells [][]string) []Row {
	rows := make([]Row, len(cells))
	for i, c := range cells {
		rows[i].Cells = c
	}
	return rows
}

var (
	//go:embed page.css
	styleText string
	//go:embed page.js
	scriptText string
)

// Write writes the page, or nothing on an error.
func Write(w io.Writer, p Page) error {
	p.Sections = numbered(p.Sections, "s", 2, "")
	p.Results = kept(p.Results)
	style := chart.CSS + styleText
	source := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	var m Markup
	m.page(p, style, "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; style-src "+source(style)+"; script-src "+source(scriptText))
	_, err := io.WriteString(w, m.String())
	return err
}

// numbered gives sections the ids and levels for links and headings. A table without a name takes its
// section's name; in a nested section the names of the outer sections come first.
func numbered(sections []Section, prefix string, level int, of string) []Section {
	all := make([]Section, len(sections))
	for i, s := range sections {
		s.ID, s.Level = fmt.Sprintf("%s%d", prefix, i+1), min(level, 3)
		s.Charts, s.Tables = slices.Clone(s.Charts), slices.Clone(s.Tables)
		for n := range s.Charts {
			s.Charts[n].Level = s.Level + 1
		}
		for n := range s.Tables {
			t := &s.Tables[n]
			t.Name, t.Level = of+cmp.Or(t.Name, t.Title, s.Title), s.Level+1
		}
		s.Sections = numbered(s.Sections, s.ID+"-", level+1, of+s.Title+", ")
		all[i] = s
	}
	return all
}

// page adds the whole page.
func (m *Markup) page(p Page, style, policy string) {
	m.Add(Raw(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="`), policy, Raw(`">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="`), marker, Raw(`">
<title>`), p.Title, Raw("</title>\n<style>"), Raw(style), Raw("</style>\n</head>\n<body>\n<header>\n<h1>"), p.Title, Raw("</h1>\n"))
	m.paragraph(p.Question, "soft")
	m.Add(Raw("</header>\n<main>\n"))
	if p.Mark != "" {
		m.Add(Raw(`<p class="mark">Not complete: `), p.Mark, Raw(".</p>\n"))
	}
	m.answer(p.Answer)
	m.tiles(p.Tiles, p.Sure)
	if len(p.Needs) > 0 {
		m.Add(Raw(`<div class="need">`))
		for _, n := range p.Needs {
			m.Add(Raw("\n"+`<p><span class="verdict">`), n.Verdict, Raw("</span><code>"), n.Text, Raw("</code> "), code(n.Says), Raw("</p>"))
		}
		m.Add(Raw("\n</div>\n"))
	}
	for i, s := range p.Sections {
		m.section(s)
		if i == 0 {
			m.Add(Raw(`<nav aria-label="On this page"><ul>`))
			for _, to := range p.Sections {
				m.Add(Raw("\n"+`<li><a href="#`), to.ID, Raw(`">`), to.Title, Raw("</a></li>"))
			}
			m.Add(Raw("\n</ul></nav>\n"))
		}
	}
	m.results(p.Results)
	m.Add(Raw("</main>\n"))
	for _, r := range p.Results {
		if r.Inside != "" {
			m.Add(Raw(`<script type="application/octet-stream" data-name="`), r.Name, Raw(`" data-bytes="`), r.Size, Raw(`" data-sha256="`), r.Sum, Raw(`">`), Raw(r.Inside), Raw("</script>\n"))
		}
	}
	m.Add(Raw("<script>"), Raw(scriptText), Raw("</script>\n</body>\n</html>\n"))
}

// kept keeps results until the room is used up.
func kept(all []Results) []Results {
	room := mostInside
	kept := slices.Clone(all)
	for i := range kept {
		r := &kept[i]
		if len(r.Inside) > room {
			r.Inside, r.Why = "", fmt.Sprintf("packed, they take more than is left of the %d KiB that a page holds", mostInside>>10)
		}
		room -= len(r.Inside)
	}
	return kept
}

// results lists the results that are inside.
func (m *Markup) results(all []Results) {
	if len(all) == 0 {
		return
	}
	m.Add(Raw("<section id=\"inside\" aria-labelledby=\"inside-h\">\n<h2 id=\"inside-h\">The results inside</h2>\n<ul>"))
	for _, r := range all {
		m.Add(Raw("\n<li>"), r.Name, Raw(", "), r.Size, Raw(" bytes: "))
		if r.Inside != "" {
			m.Add(Raw("<code>holdfast report --extract</code> and the name of this page give them back"))
		} else {
			m.Add(Raw("not inside, "), r.Why)
		}
		m.Add(Raw("</li>"))
	}
	m.Add(Raw("\n</ul>\n</section>\n"))
}
