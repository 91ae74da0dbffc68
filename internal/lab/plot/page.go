package plot

import (
	"bytes"
	_ "embed"
	"html/template"

	"github.com/holdfast-go/holdfast/internal/lab/chart"
)

//go:embed page.html
var pageText string

// Page returns an HTML page that shows all panels, and needs no other file. The
// files that it links to, a panel's name with .svg, may be next to it.
// from names the source of the rows.
func Page(from []string, panels []Panel) ([]byte, error) {
	t, err := template.New("page").Parse(pageText)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = t.Execute(&b, struct {
		Style  template.CSS
		From   []string
		Groups []group
	}{template.CSS(chart.CSS), from, grouped(panels)})
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
func grouped(panels []Panel) (groups []group) {
	for _, p := range panels {
		if n := len(groups); n == 0 || groups[n-1].Title != p.Group {
			groups = append(groups, group{Title: p.Group})
		}
		last := &groups[len(groups)-1]
		last.Figures = append(last.Figures, figure{p.Name, template.HTML(p.picture().SVG())}) // escaped by chart
	}
	return groups
}
