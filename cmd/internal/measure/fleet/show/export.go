package show

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/fleet"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/report"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

// ErrNoBenchmark reports that a fleet has no lines for benchstat.
var ErrNoBenchmark = errors.New("a fleet has no benchmark lines")

// Export writes a fleet for programs or a pull request. For [report.Benchmark] it returns
// ErrNoBenchmark.
func Export(w io.Writer, f fleet.Fleet, format report.Format) error {
	switch format {
	case report.JSON:
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		return e.Encode(document{"fleet", version, len(f.Outliers), f.Known(), f})
	case report.CSV:
		return writeCSV(w, f)
	case report.Markdown:
		return writeMarkdown(w, f)
	case report.Benchmark:
		return ErrNoBenchmark
	}
	return fmt.Errorf("%q is not a format of a fleet", format)
}

type document struct {
	Kind     string `json:"kind"` // fleet
	Version  int    `json:"fleet_version"`
	Outliers int    `json:"outlier_count"`
	Known    bool   `json:"all_judged"`
	fleet.Fleet
}

// version increases when a reader of older documents would misread a new one.
const version = 1

var head = []string{
	"host", "file", "group", "study", "program", "started_at", "cell", "part", "policy", "record_bytes", "writers",
	"ns_per_record", "low", "high", "of_group", "word", "state",
}

// writeCSV writes a row for each host and cell, and one for each file or host without results.
func writeCSV(w io.Writer, f fleet.Fleet) error {
	out := csv.NewWriter(w)
	rows := [][]string{head}
	number := func(x figure.Number) string {
		return strings.TrimSuffix(study.OrDash(float64(x), fmt.Sprint(float64(x))), study.Dash)
	}
	for _, h := range f.Hosts {
		state := "answered"
		if h.Missing != "" {
			state = "not complete"
		}
		for _, t := range h.Times {
			rows = append(rows, []string{
				h.Name, h.File, h.Group, h.Study, h.Program, h.StartedAt.Format("2006-01-02T15:04:05Z07:00"),
				t.Cell, string(t.Part), t.Policy.String(), fmt.Sprint(t.Load.RecordBytes), fmt.Sprint(t.Load.Writers),
				number(figure.Number(t.Record.Median)), number(figure.Number(t.Record.Low)), number(figure.Number(t.Record.High)), number(t.Ratio), word(h, t.Part), state,
			})
		}
	}
	for _, s := range f.Silent {
		row := make([]string, len(head))
		row[0], row[1], row[len(row)-1] = s.Host, s.File, s.Why
		rows = append(rows, row)
	}
	return out.WriteAll(rows) // which flushes
}

// word returns the finding about a part of a host, or an empty text.
func word(h fleet.Host, part fleet.Part) string {
	for _, s := range h.Scores {
		if s.Part == part {
			return string(s.Word)
		}
	}
	return ""
}

func writeMarkdown(w io.Writer, f fleet.Fleet) error {
	var b strings.Builder
	fact, table := report.Markdown.Fact, func(t study.Table) string { return report.Markdown.Table(t, 0) }
	fmt.Fprintf(&b, "### holdfast: fleet\n\n**%s**\n\n%s\n", summary(f), table(groupsTable(f, len(f.Groups))))
	if len(f.Outliers) > 0 {
		b.WriteString("\n#### outliers\n\n")
	}
	for _, o := range f.Outliers {
		fmt.Fprintf(&b, "- **%s** (group %s): %s; %s\n", fact(o.Host), o.Group, fact(strings.Join(findings(o), "; ")), fact(differences(o, len(o.Differs))))
	}
	for _, g := range f.Groups {
		fmt.Fprintf(&b, "\n#### group %s: time a record\n\n%s\n\n%s\n", g.Name, table(cellsTable(f, g)), boundsText(g))
	}
	b.WriteString("\n")
	for _, line := range append(notes(f, 50), method(f)) {
		fmt.Fprintf(&b, "- %s\n", fact(line))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
