package plot

import (
	"fmt"
	"html"
	"strings"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/chart"
)

const pageStyle = `body { font: 16px/1.5 system-ui, sans-serif; max-width: 80rem; margin: 0 auto; padding: 1rem; background: var(--paper); color: var(--ink) }
a { color: var(--s0) }
.panels { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 34rem), 1fr)); gap: 1rem }
figure { margin: 0; border: 1px solid var(--line); padding: .5rem; break-inside: avoid }
figcaption { font-size: .85rem; color: var(--soft) }
`

// Page returns an HTML page that shows all panels, and needs no other file. The
// files that it links to, a panel's name with .svg, may be next to it.
// from names the source of the rows.
func Page(from []string, panels []Panel) []byte {
	var b strings.Builder
	b.WriteString(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>holdfast: times by buffer size</title>
<meta name="color-scheme" content="light dark">
<style>
` + chart.CSS + pageStyle + `</style>
</head>
<body>
<h1>Times by buffer size</h1>
`)
	var sources []string
	for _, name := range from {
		sources = append(sources, "<code>"+html.EscapeString(name)+"</code>")
	}
	fmt.Fprintf(&b, "<p>Drawn by holdfast from %s.</p>\n", strings.Join(sources, ", "))
	group := ""
	for _, p := range panels {
		if p.Group != group {
			if group != "" {
				b.WriteString("</div>\n")
			}
			group = p.Group
			fmt.Fprintf(&b, "<h2>%s</h2>\n<div class=\"panels\">\n", html.EscapeString(group))
		}
		name := html.EscapeString(p.Name)
		fmt.Fprintf(&b, "<figure>\n%s<figcaption><a href=\"%[2]s.svg\">SVG</a> · %[2]s</figcaption>\n</figure>\n", p.picture().SVG(), name)
	}
	if group != "" {
		b.WriteString("</div>\n")
	}
	b.WriteString("</body>\n</html>\n")
	return []byte(b.String())
}
