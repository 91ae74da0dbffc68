package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/chart"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/machine"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/page"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

// A several is a run on several file systems: the whole run, each file system, and all of
// them side by side.
type several struct {
	sheet
	parts  []part
	across study.Shown
}

// A part is the sheet of one file system in a run on several.
type part struct {
	sheet
	name string
	made result.FileSystem

	shown *studied // nil for a sweep
}

// newSeveral reads the run, or returns [figure.ErrNoRound].
func newSeveral(studies study.List, run result.Run) (several, error) {
	whole, err := newSheet(studies, run)
	if err != nil {
		return several{}, err
	}
	s := several{sheet: whole, across: studies.AcrossOf(run)}
	for _, e := range study.EvidenceOn(run) {
		p, err := newPart(whole, e)
		if err != nil {
			return several{}, err
		}
		s.parts = append(s.parts, p)
	}
	// A table's note stays only in the first part that has it.
	noted := map[string]bool{}
	for _, p := range s.parts {
		if p.shown == nil {
			continue
		}
		var now []string
		for i, t := range p.shown.Tables {
			p.shown.Tables[i].Notes = slices.DeleteFunc(slices.Clone(t.Notes), func(n string) bool { return noted[n] })
			now = append(now, p.shown.Tables[i].Notes...)
		}
		for _, n := range now {
			noted[n] = true
		}
	}
	return s, nil
}

func newPart(whole sheet, e study.Evidence) (part, error) {
	s, err := newSheet(whole.studies, whole.Run.On(e.FileSystem))
	if err != nil {
		return part{}, err
	}
	p := part{sheet: s, name: e.FileSystem}
	p.made, _ = whole.Run.Header.Made(e.FileSystem)
	p.Warnings = slices.DeleteFunc(p.Warnings, func(w figure.Warning) bool {
		isImage := w.Code == "stacked-device" && p.made.How != ""
		return w.Cell != nil || isImage || slices.ContainsFunc(whole.Warnings, func(of figure.Warning) bool { return of.Code == w.Code })
	})
	if of, ok := s.studiedBy(func() study.Evidence { return e }); ok {
		p.shown = &of
	}
	return p, nil
}

// how describes where the file system was made, and how it was mounted.
func (p part) how() string {
	text := p.made.How
	if options := machine.Get(p.made.Machine, "mount options"); options.Value != machine.Unknown {
		text += ", mounted with " + options.Value
	}
	return text
}

// notes are the notes that concern this file system alone.
func (p part) notes() []string {
	if p.shown != nil {
		return append(p.shown.ownNotes(), p.doubtLines()...)
	}
	return append(p.sheet.notes()[1:], p.doubtLines()...)
}

// conclusion returns the study's result on this file system, or the advice; it may be empty.
func (p part) conclusion() string {
	switch {
	case p.shown != nil && p.shown.Learnt != "":
		return "learnt: " + p.shown.learnt()
	case p.shown == nil && p.advised:
		return p.adviceLine()
	}
	return ""
}

// names lists the names of the file systems: ext4, xfs and btrfs.
func (s several) names() string {
	names := s.Run.FileSystems()
	if len(names) == 1 {
		return names[0]
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// published are the published tables, each once.
func (s several) published() []study.Table {
	of, _ := s.studies.Find(s.Run.Header.Study)
	return withRows(of.Published)
}

// notes are the notes that concern the whole run.
func (s several) notes() []string {
	notes := []string{readStudy}
	if s.parts[0].shown == nil {
		notes = s.sheet.notes()[:1]
	}
	notes = append(notes, "each file system ran every cell once in each round, all in one order; cells are compared only within a file system, except in the tables side by side")
	// These file systems could not be made. Missing parts of the others are among their own notes.
	made := s.Run.FileSystems()
	for _, m := range s.Run.Header.Missing {
		if !slices.ContainsFunc(made, func(name string) bool { return strings.HasPrefix(m.Cell, result.Named(name, "")) }) {
			notes = append(notes, notRun+m.Cell+": "+m.Why)
		}
	}
	return notes
}

// severalText writes the run for a terminal.
func severalText(w io.Writer, studies study.List, run result.Run, width int) error {
	s, err := newSeveral(studies, run)
	if err != nil {
		return err
	}
	s.columns = width
	for i := range s.parts {
		s.parts[i].columns = width
	}
	var b strings.Builder
	s.textHead(&b)
	b.WriteString(wrap("on file systems made for it: "+s.names(), s.width(), indent))
	shownText(&b, s.published(), nil, s.width())
	if s.parts[0].shown == nil {
		s.textLosses(&b)
	}
	for _, p := range s.parts {
		p.text(&b)
	}
	if len(withRows(s.across.Tables)) > 0 {
		b.WriteString("\n" + s.headline("side by side: "+s.names()))
		shownText(&b, withRows(s.across.Tables), s.across.Picture, s.width())
	}
	b.WriteString("\n")
	for _, n := range append(s.notes(), s.someDoubts()...) {
		b.WriteString(wrap(n, s.width(), indent))
	}
	if s.across.Learnt != "" {
		b.WriteString("\n" + wrap("learnt: "+s.guarded(s.across.Learnt), s.width(), indent))
	}
	_, err = io.WriteString(w, b.String())
	return err
}

// headline is a heading among tables.
func (s sheet) headline(text string) string {
	text = wrap(text, s.width(), "")
	return text + strings.Repeat("=", widest(text)) + "\n"
}

func (p part) text(b *strings.Builder) {
	b.WriteString("\n" + p.headline(p.name))
	if how := p.how(); how != "" {
		b.WriteString(wrap(how, p.width(), indent))
	}
	if p.shown != nil {
		shownText(b, withRows(p.shown.Tables), p.shown.Picture, p.width())
	} else {
		p.textGroups(b)
	}
	b.WriteString("\n")
	for _, n := range p.notes() {
		b.WriteString(wrap(n, p.width(), indent))
	}
	if line := p.conclusion(); line != "" {
		b.WriteString("\n" + wrap(line, p.width(), indent))
	}
}

// severalMarkdown writes the run as Markdown, after a head.
func severalMarkdown(w io.Writer, head string, studies study.List, run result.Run) error {
	s, err := newSeveral(studies, run)
	if err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString(head)
	tablesMarkdown(&b, "####", s.published())
	for _, p := range s.parts {
		p.markdown(&b)
	}
	if tables := withRows(s.across.Tables); len(tables) > 0 {
		fmt.Fprintf(&b, "\n#### side by side: %s\n", s.names())
		tablesMarkdown(&b, "#####", tables)
	}
	b.WriteString("\n")
	for _, line := range append(s.notes(), s.doubtLines()...) {
		fmt.Fprintf(&b, "- %s\n", markdownText(line))
	}
	if s.across.Learnt != "" {
		fmt.Fprintf(&b, "\n**Learnt:** %s\n", markdownText(s.guarded(s.across.Learnt)))
	}
	_, err = io.WriteString(w, b.String())
	return err
}

func (p part) markdown(b *strings.Builder) {
	fmt.Fprintf(b, "\n#### %s\n", markdownFact(p.name))
	if how := p.how(); how != "" {
		fmt.Fprintf(b, "\n%s\n", markdownText(how))
	}
	if p.shown != nil {
		tablesMarkdown(b, "#####", withRows(p.shown.Tables))
	} else {
		for _, g := range p.Groups {
			fmt.Fprintf(b, "\n##### %s\n\n%s\n", markdownFact(title(g.Load)), groupMarkdown(g))
		}
	}
	b.WriteString("\n")
	for _, n := range p.notes() {
		fmt.Fprintf(b, "- %s\n", markdownText(n))
	}
	if line := p.conclusion(); line != "" {
		fmt.Fprintf(b, "\n%s\n", markdownText(line))
	}
}

// page is the page of a run on several file systems.
func (s several) page() page.Page {
	p := s.newPage()
	p.Title += " on " + s.names()
	p.Sections = pageTables(s.published())
	method := studyMethod()
	if s.parts[0].shown == nil {
		method = s.method()
	}
	for _, one := range s.parts {
		p.Sections = append(p.Sections, one.page())
	}
	side := page.Section{Title: "side by side: " + s.names(), Answer: s.said(s.guarded(s.across.Learnt)), Sections: pageTables(withRows(s.across.Tables))}
	if s.across.Picture != nil {
		side.Charts = append(side.Charts, page.Chart{Picture: s.across.Picture.SVG(), Caption: dotsCaption})
	}
	if s.parts[0].shown == nil {
		side.Charts = s.speeds()
	}
	if len(side.Sections)+len(side.Charts) > 0 {
		p.Sections = append(p.Sections, side)
	}
	p.Sections = append(p.Sections, s.losses()...)
	p.Sections = append(p.Sections, s.foot(s.notes(), method)...)
	return p
}

// speeds draws the records a second of each policy, a dot for each file system.
func (s several) speeds() (charts []page.Chart) {
	for _, g := range s.parts[0].Groups {
		load := g.Load
		d := chart.Dots{Title: fmt.Sprintf("records a second on each file system: %s", title(load)), Scale: tick}
		at := map[holdfast.Policy]int{}
		for i, p := range s.parts {
			d.Series = append(d.Series, p.name)
			for _, of := range p.Groups {
				if of.Load != load {
					continue
				}
				for _, r := range of.Rows {
					row, ok := at[r.Cell.Policy]
					if !ok {
						row = len(d.Rows)
						at[r.Cell.Policy] = row
						d.Rows = append(d.Rows, chart.Row{Label: r.Cell.Policy.String()})
					}
					d.Rows[row].Points = append(d.Rows[row].Points, chart.Point{Series: i, Value: r.Rate.Median, Low: r.Rate.Low, High: r.Rate.High})
				}
			}
		}
		if picture := d.SVG(); picture != "" {
			charts = append(charts, page.Chart{Title: title(load), Picture: picture, Caption: dotsCaption})
		}
	}
	return charts
}

func (p part) page() page.Section {
	one := page.Section{Title: p.name, Notes: p.notes()}
	if how := p.how(); how != "" {
		one.Text = how + "."
	}
	if p.shown == nil {
		one.Answer = p.answer()
		speed := p.speed()
		for i := range speed {
			speed[i].Legend = p.legend(speed[i].Charts)
		}
		one.Sections = append(p.costAgainstLoss(nil), speed...)
		for _, g := range p.Groups {
			one.Sections = append(one.Sections, p.groupPage(g))
		}
	} else {
		one.Answer = p.said(p.shown.learnt())
		if p.shown.Picture != nil {
			one.Charts = append(one.Charts, page.Chart{Picture: p.shown.Picture.SVG(), Caption: dotsCaption})
		}
		one.Sections = pageTables(withRows(p.shown.Tables))
	}
	if len(p.made.Machine) > 0 {
		one.Sections = append(one.Sections, page.Section{Title: "differences from the machine", Tables: []page.Table{p.machineTable(p.made.Machine, "value there")}})
	}
	return one
}
