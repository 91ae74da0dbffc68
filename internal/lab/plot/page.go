package plot

import (
	"bytes"
	_ "embed"
	"html/template"
)

//go:embed page.html
var pageText string

// Page returns an HTML page that shows all panels, and needs no other file. The
// files that it links to, a panel's name with .svg and .png, may be next to it.
// from names the source of the rows.
func Page(from []string, panels []Panel) ([]byte, error) {
	t, err := template.New("page").Parse(pageText)
	if err != nil {
		return nil, err
	}
	groups, err := grouped(panels)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = t.Execute(&b, struct {
		From   []string
		Groups []group
	}{from, groups})
	return b.Bytes(), err
}

// A group is the panels under one heading.
type group struct {
	Title   string
	Figures []figure
}

type figure struct {
	Name    string
	Picture template.HTML
}

// grouped puts the panels that follow each other in groups together.
func grouped(panels []Panel) (groups []group, err error) {
	for _, p := range panels {
		svg, err := p.SVG()
		if err != nil {
			return nil, err
		}
		if n := len(groups); n == 0 || groups[n-1].Title != p.Group {
			groups = append(groups, group{Title: p.Group})
		}
		last := &groups[len(groups)-1]
		last.Figures = append(last.Figures, figure{p.Name, template.HTML(svg[bytes.Index(svg, []byte("<svg")):])}) // escaped by vgsvg
	}
	return groups, nil
}
