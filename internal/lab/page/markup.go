package page

import (
	"fmt"
	"html"
	"strings"
)

// raw is markup of this package, or a picture. All other texts are escaped.
type raw string

// A markup gathers a page. It takes the place of html/template, which keeps every exported method of
// every type in the program: a seventh of it.
type markup struct{ strings.Builder }

// add appends markup as it is, and everything else as text that is inert between tags and in quotes.
func (m *markup) add(parts ...any) {
	for _, part := range parts {
		if r, ok := part.(raw); ok {
			m.WriteString(string(r))
			continue
		}
		m.WriteString(escaped(fmt.Sprint(part)))
	}
}

func escaped(text string) string {
	return html.EscapeString(strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "\x00", "\ufffd"))
}

// code returns a text with what stands between backticks as code.
func code(text string) raw {
	parts := strings.Split(escaped(text), "`")
	for i := 1; i+1 < len(parts); i += 2 {
		parts[i] = "<code>" + parts[i] + "</code>"
	}
	return raw(strings.Join(parts, ""))
}

// paragraph adds a text with code, unless it is empty.
func (m *markup) paragraph(text, class string) {
	if text != "" {
		m.add(raw(`<p class="`+class+`">`), code(text), raw("</p>\n"))
	}
}

func (m *markup) answer(sentences []string) {
	if len(sentences) == 0 {
		return
	}
	m.add(raw(`<div class="advice">`))
	for _, s := range sentences {
		m.add(raw("\n<p>"), code(s), raw("</p>"))
	}
	m.add(raw("\n</div>\n"))
}

func (m *markup) notes(notes []string) {
	if len(notes) == 0 {
		return
	}
	m.add(raw("<ul>"))
	for _, n := range notes {
		m.add(raw("\n<li>"), code(n), raw("</li>"))
	}
	m.add(raw("\n</ul>\n"))
}

// heading is that of a chart or a table.
func (m *markup) heading(title string, level int) {
	if title == "" {
		return
	}
	tag := raw("h4>")
	if level == 3 {
		tag = "h3>"
	}
	m.add(raw("<"), tag, title, raw("</"), tag, raw("\n"))
}

func (m *markup) section(s Section) {
	tag := raw("h3")
	if s.Level == 2 {
		tag = "h2"
	}
	m.add(raw(`<section id="`), s.ID, raw(`"`))
	if s.Level == 2 {
		m.add(raw(` aria-labelledby="`), s.ID, raw(`-h"`))
	}
	m.add(raw(">\n<"), tag, raw(` id="`), s.ID, raw(`-h">`), s.Title, raw("</"), tag, raw(">\n"))
	m.paragraph(s.Text, "soft")
	m.answer(s.Answer)
	for _, c := range s.Charts {
		m.add(raw("<figure>"))
		m.heading(c.Title, c.Level)
		m.add(raw(c.Picture))
		if c.Caption != "" {
			m.add(raw(`<figcaption class="soft">`), code(c.Caption), raw("</figcaption>"))
		}
		m.add(raw("</figure>\n"))
	}
	for _, t := range s.Tables {
		m.table(t)
	}
	m.notes(s.Notes)
	for _, below := range s.Sections {
		m.section(below)
	}
	m.add(raw("</section>\n"))
}

func (m *markup) table(t Table) {
	m.heading(t.Title, t.Level)
	m.paragraph(t.Text, "soft")
	m.add(raw(`<div class="wide" tabindex="0" role="region" aria-label="table: `), t.Name, raw(`"><table`))
	if t.Prose {
		m.add(raw(` class="text"`))
	}
	m.add(raw(` data-name="`), t.Name, raw(`"`))
	if t.Filter != 0 {
		m.add(raw(` data-filter="`), t.Filter, raw(`"`))
	}
	m.add(raw(">\n<thead><tr>"))
	for _, h := range t.Head {
		m.add(raw(`<th scope="col">`), h, raw("</th>"))
	}
	m.add(raw("</tr></thead>\n<tbody>"))
	for _, r := range t.Rows {
		m.add(raw("\n<tr"))
		if r.Key != "" {
			m.add(raw(` data-key="`), r.Key, raw(`"`))
		}
		if r.Marked {
			m.add(raw(` class="advised"`))
		}
		m.add(raw(">"))
		for i, c := range r.Cells {
			if i == 0 {
				m.add(raw(`<th scope="row">`), c, raw("</th>"))
			} else {
				m.add(raw("<td>"), c, raw("</td>"))
			}
		}
		m.add(raw("</tr>"))
	}
	m.add(raw("\n</tbody></table></div>\n"))
	m.notes(t.Notes)
}

// results says which results are inside.
func (m *markup) results(all []Results) {
	if len(all) == 0 {
		return
	}
	m.add(raw("<section id=\"inside\" aria-labelledby=\"inside-h\">\n<h2 id=\"inside-h\">The results inside</h2>\n<ul>"))
	for _, r := range all {
		m.add(raw("\n<li>"), r.Name, raw(", "), r.Size, raw(" bytes: "))
		if r.Inside != "" {
			m.add(raw("<code>holdfast report --extract</code> and the name of this page give them back"))
		} else {
			m.add(raw("not inside, "), r.Why)
		}
		m.add(raw("</li>"))
	}
	m.add(raw("\n</ul>\n</section>\n"))
}
