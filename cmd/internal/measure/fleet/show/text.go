package show

import (
	"fmt"
	"io"
	"strings"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/fleet"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/report"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

// MostLines is the largest number of lines that [Text] writes without all.
const MostLines = 30

// Text writes a fleet for a terminal of 60 to 100 columns: the result, each outlier with its findings, missing and doubtful
// results, and the groups, as far as there is room. With all it writes every outlier, every group and every host.
func Text(w io.Writer, f fleet.Fleet, all bool, columns int) error {
	text := brief(f, columns)
	if all {
		text = whole(f, columns)
	}
	_, err := io.WriteString(w, text)
	return err
}

func brief(f fleet.Fleet, columns int) string {
	const groups, listed = 4, 6
	head := report.Fold(summary(f), columns)
	table := ""
	if len(f.Groups) > 0 {
		table = "\n" + report.Format("").Table(groupsTable(f, groups), columns) + "\n"
	}
	if n := len(f.Groups) - groups; n > 0 {
		table += fmt.Sprintf("and %s more: --all\n", count(n, "group"))
	}
	table += "the times of each host, and how they are judged: --all\n"
	outlier := 0 // lines of it; the first outlier is always shown
	if len(f.Outliers) > 0 {
		outlier = lines(outlierText(f.Outliers[0], 3, columns)) + 3
	}
	foot := ""
	for _, line := range notes(f, listed) {
		foot += report.Fold(line, columns)
	}
	if foot = cut(foot, min(12, MostLines-lines(head)-lines(table)-outlier-1)); foot != "" {
		foot = "\n" + foot
	}
	foot += table
	room := MostLines - lines(head) - lines(foot)

	outliers := ""
	for i, o := range f.Outliers {
		entry := "\n" + outlierText(o, 3, columns)
		if i > 0 && lines(outliers)+lines(entry)+2 > room {
			outliers += fmt.Sprintf("\nand %s more: --all\n", count(len(f.Outliers)-i, "outlier"))
			break
		}
		outliers += entry
	}
	return head + outliers + foot
}

func whole(f fleet.Fleet, columns int) string {
	var b strings.Builder
	b.WriteString(report.Fold(summary(f), columns))
	if len(f.Groups) > 0 {
		b.WriteString("\n" + report.Format("").Table(groupsTable(f, len(f.Groups)), columns) + "\n")
	}
	for _, o := range f.Outliers {
		b.WriteString("\n" + outlierText(o, len(o.Differs), columns))
	}
	for _, g := range f.Groups {
		b.WriteString("\n" + groupText(f, g, columns))
		b.WriteString("\n" + report.Format("").Table(scoresTable(f, g), columns) + "\n\n" + report.Format("").Table(timesTable(f, g), columns) + "\n")
	}
	b.WriteString("\n")
	for _, line := range notes(f, len(f.Hosts)+len(f.Silent)+len(f.Older)*3) {
		b.WriteString(report.Fold(line, columns))
	}
	b.WriteString(report.Fold(method(f), columns))
	return b.String()
}

func outlierText(o fleet.Outlier, facts, columns int) string {
	text := ""
	for i, line := range findings(o) {
		if i == 0 {
			line = fmt.Sprintf("%s (group %s): %s", o.Host, o.Group, line)
		} else {
			line = "  " + line
		}
		text += report.Fold(line, columns)
	}
	return text + report.Fold("  "+differences(o, facts), columns)
}

func groupText(f fleet.Fleet, g fleet.Group, columns int) string {
	return fmt.Sprintf("group %s: time a record\n%s\n", g.Name, report.Format("").Table(cellsTable(f, g), columns)) + report.Fold(boundsText(g), columns)
}

func lines(text string) int { return strings.Count(text, "\n") }

// cut keeps the first lines of a text, and adds how many it leaves out. If there is no room for three
// lines, it leaves out the whole text.
func cut(text string, most int) string {
	all := strings.SplitAfter(text, "\n")
	switch n := lines(text); {
	case n <= most:
		return text
	case most < 4:
		return ""
	default:
		return strings.Join(all[:most-1], "") + fmt.Sprintf("and %s more: --all\n", count(n-most+1, "line"))
	}
}

// timesTable has a row for each host and cell of a group.
func timesTable(f fleet.Fleet, g fleet.Group) study.Table {
	t := study.Table{Head: []string{"host", "policy, record × writers", "time", "interval", "of group"}}
	for _, h := range f.Members(g) {
		for _, one := range h.Times {
			t.Rows = append(t.Rows, []string{h.Name, label(one.Key), study.Duration(one.Record.Median), interval(one.Record), study.Times(float64(one.Ratio))})
		}
	}
	return t
}
