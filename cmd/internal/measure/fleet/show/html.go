package show

import (
	"fmt"
	"io"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/fleet"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/page"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

// HTML writes one page that needs no other file. It contains everything that [Text] writes with all.
func HTML(w io.Writer, f fleet.Fleet) error {
	p := page.Page{Title: "holdfast: fleet", Question: "which hosts differ from their peers", Answer: []string{summary(f)}}
	if charts := strips(f); len(charts) > 0 {
		p.Sections = append(p.Sections, page.Section{Title: "Hosts compared with their peers", Switch: "the group", Charts: charts})
	}
	p.Sections = append(p.Sections, page.Section{Title: "Groups of similar machines", Tables: []page.Table{tableOf(groupsTable(f, len(f.Groups)))}})
	if len(f.Outliers) > 0 {
		s := page.Section{Title: "Outliers"}
		for _, o := range f.Outliers {
			s.Sections = append(s.Sections, page.Section{Title: fmt.Sprintf("%s, group %s", o.Host, o.Group), Answer: findings(o), Text: differences(o, len(o.Differs))})
		}
		p.Sections = append(p.Sections, s)
	}
	if missing := notes(f, len(f.Hosts)+len(f.Silent)); len(missing) > 0 {
		p.Sections = append(p.Sections, page.Section{Title: "What is missing or doubtful", Notes: missing})
	}
	for _, g := range f.Groups {
		p.Sections = append(p.Sections, page.Section{
			Title: fmt.Sprintf("Group %s", g.Name), Text: classText(g.Class) + ". " + boundsText(g),
			Tables: []page.Table{tableOf(cellsTable(f, g)), tableOf(scoresTable(f, g))},
		})
	}
	p.Sections = append(p.Sections, page.Section{Title: "What the words mean", Notes: []string{method(f)}})
	return page.Write(w, p)
}

func tableOf(t study.Table) page.Table {
	return page.Table{Title: t.Title, Head: t.Head, Rows: page.Plain(t.Rows)}
}
