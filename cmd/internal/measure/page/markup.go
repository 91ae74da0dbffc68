package page

import (
	"fmt"
	"html"
	"slices"
	"strings"
	"unicode"
)

// Raw is markup that is not escaped: a constant of the program, or a picture that it drew. All other texts
// are escaped.
type Raw string

// A Markup builds a page. It replaces html/template, which would keep every exported method of every
// type in the program: a seventh of the program's size.
type Markup struct{ strings.Builder }

// Add appends Raw unchanged, and everything else as text that is inert between tags and in quotes.
func (m *Markup) Add(parts ...any) {
	for _, part := range parts {
		if r, ok := part.(Raw); ok {
			m.WriteString(string(r))
			continue
		}
		m.WriteString(escaped(fmt.Sprint(part)))
	}
}

func escaped(text string) string {
	return html.EscapeString(strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "\x00", "\ufffd"))
}

// code returns a text in which the parts between backticks are marked as code.
func code(text string) Raw {
	parts := strings.Split(escaped(text), "`")
	for i := 1; i+1 < len(parts); i += 2 {
		parts[i] = "<code>" + parts[i] + "</code>"
	}
	return Raw(strings.Join(parts, ""))
}

// paragraph adds a text with code, unless it is empty.
func (m *Markup) paragraph(text, class string) {
	if text != "" {
		m.Add(Raw(`<p class="`+class+`">`), code(text), Raw("</p>\n"))
	}
}

func (m *Markup) answer(sentences []string) {
	if len(sentences) == 0 {
		return
	}
	m.Add(Raw(`<div class="advice">`))
	for _, s := range sentences {
		m.Add(Raw("\n<p>"), code(s), Raw("</p>"))
	}
	m.Add(Raw("\n</div>\n"))
}

func (m *Markup) notes(notes []string) {
	if len(notes) == 0 {
		return
	}
	m.Add(Raw("<ul>"))
	for _, n := range notes {
		m.Add(Raw("\n<li>"), code(n), Raw("</li>"))
	}
	m.Add(Raw("\n</ul>\n"))
}

// heading adds the heading of a chart or a table.
func (m *Markup) heading(title string, level int) {
	if title == "" {
		return
	}
	tag := Raw("h4>")
	if level == 3 {
		tag = "h3>"
	}
	m.Add(Raw("<"), tag, title, Raw("</"), tag, Raw("\n"))
}

func (m *Markup) section(s Section) {
	tag := Raw("h3")
	if s.Level == 2 {
		tag = "h2"
	}
	m.Add(Raw(`<section id="`), s.ID, Raw(`"`))
	if s.Level == 2 {
		m.Add(Raw(` aria-labelledby="`), s.ID, Raw(`-h"`))
	}
	open, end := Raw(">\n<"), Raw("\n")
	if s.Folded {
		class := Raw("folded")
		if s.Printed {
			class += " printed"
		}
		open, end = ` class="`+class+`">`+"\n<details><summary><", "</summary>\n"
	}
	m.Add(open, tag, Raw(` id="`), s.ID, Raw(`-h">`), s.Title, Raw("</"), tag, Raw(">"), end)
	m.paragraph(s.Text, "soft")
	m.answer(s.Answer)
	m.charts(s)
	for _, t := range s.Tables {
		m.table(t)
	}
	m.notes(s.Notes)
	for _, below := range s.Sections {
		m.section(below)
	}
	if s.Folded {
		m.Add(Raw("</details>\n"))
	}
	m.Add(Raw("</section>\n"))
}

// charts adds all charts of a section. With a switch the reader chooses one chart by its title; that needs no
// script.
func (m *Markup) charts(s Section) {
	for _, line := range s.Legend {
		m.Add(Raw(`<ul class="keys" data-keys="`), line.Title, Raw(`" aria-label="`), line.Title, Raw(`"><li class="soft">`), line.Title, Raw("</li>"))
		for _, k := range line.Keys {
			m.Add(Raw("\n<li>"), Raw(k.Mark), k.Name, Raw("</li>"))
		}
		m.Add(Raw("\n</ul>\n"))
	}
	switched := s.Switch != "" && len(s.Charts) > 1
	switch {
	case switched:
		m.Add(Raw(`<div class="switch" role="group" aria-label="`), s.Switch, Raw(`">`+"\n"))
		for i, c := range s.Charts {
			id, checked := fmt.Sprintf("%s-c%d", s.ID, i+1), Raw("")
			if i == 0 {
				checked = " checked"
			}
			m.Add(Raw(`<input type="radio" name="`), s.ID, Raw(`-c" id="`), id, Raw(`" aria-label="`), c.Title, Raw(`"`), checked, Raw(`><label for="`), id, Raw(`">`), c.Title, Raw("</label>\n"))
		}
	case s.Columns && len(s.Charts) > 1:
		m.Add(Raw(`<div class="columns">` + "\n"))
	}
	for _, c := range s.Charts {
		m.Add(Raw("<figure"))
		if c.Keys != "" {
			m.Add(Raw(` data-keys="`), c.Keys, Raw(`"`))
		}
		m.Add(Raw(">"))
		if !switched {
			m.heading(c.Title, c.Level)
		}
		if c.Slim == "" {
			m.Add(Raw(c.Picture))
		} else {
			m.Add(Raw(`<div class="broad">`), Raw(c.Picture), Raw(`</div><div class="slim">`), Raw(c.Slim), Raw("</div>"))
		}
		if c.Caption != "" {
			m.Add(Raw(`<figcaption class="soft">`), code(c.Caption), Raw("</figcaption>"))
		}
		m.Add(Raw("</figure>\n"))
	}
	if len(s.Charts) > 1 && (switched || s.Columns) {
		m.Add(Raw("</div>\n"))
	}
}

// tiles adds the figures of the answer.
func (m *Markup) tiles(tiles []Tile, sure string) {
	if len(tiles) > 0 {
		m.Add(Raw(`<dl class="tiles">`))
		for _, t := range tiles {
			m.Add(Raw("\n<div><dt>"), t.Label, Raw("</dt><dd>"), t.Value, Raw("</dd>"))
			if t.Note != "" {
				m.Add(Raw(`<dd class="soft">`), code(t.Note), Raw("</dd>"))
			}
			m.Add(Raw("</div>"))
		}
		m.Add(Raw("\n</dl>\n"))
	}
	m.paragraph(sure, "sure")
}

func (m *Markup) table(t Table) {
	m.heading(t.Title, t.Level)
	m.paragraph(t.Text, "soft")
	m.Add(Raw(`<div class="wide" tabindex="0" role="region" aria-label="table: `), t.Name, Raw(`"><table`))
	if t.Prose {
		m.Add(Raw(` class="text"`))
	}
	m.Add(Raw(` data-name="`), t.Name, Raw(`"`))
	if t.Filter != 0 {
		m.Add(Raw(` data-filter="`), t.Filter, Raw(`"`))
	}
	m.Add(Raw(">\n<thead><tr>"))
	words := t.words()
	for i, h := range t.Head {
		m.Add(Raw(`<th scope="col"`), words[i], Raw(">"), h, Raw("</th>"))
	}
	m.Add(Raw("</tr></thead>\n<tbody>"))
	for _, r := range t.Rows {
		m.Add(Raw("\n<tr"))
		if r.Key != "" {
			m.Add(Raw(` data-key="`), r.Key, Raw(`"`))
		}
		if r.Marked {
			m.Add(Raw(` class="advised"`))
		}
		m.Add(Raw(">"))
		for i, c := range r.Cells {
			if i == 0 {
				m.Add(Raw(`<th scope="row">`), c, Raw("</th>"))
			} else {
				m.Add(Raw("<td"), words[i], Raw(">"), c, Raw("</td>"))
			}
		}
		m.Add(Raw("</tr>"))
	}
	m.Add(Raw("\n</tbody></table></div>\n"))
	m.notes(t.Notes)
}

// words returns an attribute for each column of words: a column in which no text begins with a number.
func (t Table) words() []Raw {
	words := make([]Raw, len(t.Head))
	for _, r := range t.Rows {
		words = append(words, make([]Raw, max(0, len(r.Cells)-len(words)))...)
	}
	for i := range words {
		begins := func(is func(rune) bool) bool {
			return slices.ContainsFunc(t.Rows, func(r Row) bool { return i < len(r.Cells) && strings.IndexFunc(r.Cells[i], is) == 0 })
		}
		if i > 0 && !t.Prose && begins(unicode.IsLetter) && !begins(unicode.IsDigit) {
			words[i] = ` class="word"`
		}
	}
	return words
}
