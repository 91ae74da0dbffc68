package report_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/machine"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/report"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

// plantedAudit has each verdict once, and texts that could break a format.
func plantedAudit() report.Audit {
	return report.Audit{
		Kind: "audit", Version: report.AuditVersion, Program: "holdfast v0.0.0", Dir: "/data",
		Machine: []machine.Fact{{Name: "CPU model", Value: "abacus <9000>", Source: "/proc/cpuinfo"}, {Name: "file system", Value: "ext4", Source: "statfs"}},
		Claims: []study.Judged{
			{
				Study: "lines", Name: "lines-20x", Source: "go-file-io-experiment", Says: "buffering makes 100,000 lines about 20 times as fast", Published: "18.98–21.06x",
				Finding: study.Finding{Measured: "19.3x (18.1x–20.2x)", Verdict: study.Holds, Why: "within a factor of 1.5 of the published ratio"},
			},
			{
				Study: "lines", Name: "lines-25-50-calls", Source: "go-file-io-experiment", Says: "through a buffer 100,000 lines take 25–50 system calls", Published: "25–50",
				Finding: study.Finding{Measured: "974", Verdict: study.NeverSo, Why: "3,988,890 bytes by 4096 at a time are 974 writes"},
			},
			{
				Study: "costs", Name: "costs-call", Source: "go-file-io-experiment", Says: "a|b *c*", Published: "1|2 *ns*",
				Finding: study.Finding{Measured: "0.7|0.8 *ns*", Verdict: study.NotHere, Why: "d|e, \"f\" *g*\nh"},
			},
			{
				Study: "costs", Name: "costs-seek", Source: "go-file-io-experiment", Says: "the disk takes 5 to 10 ms to find a place",
				Finding: study.Finding{Verdict: study.NotChecked, Why: "no file can be cold here"},
				Command: "holdfast audit --claim costs-seek --dir A_DIRECTORY_ON_A_DISK",
			},
		},
	}
}

func written(t *testing.T, a report.Audit, format report.Format) string {
	t.Helper()
	return writtenWithin(t, a, format, 120)
}

func writtenWithin(t *testing.T, a report.Audit, format report.Format, columns int) string {
	t.Helper()
	var b bytes.Buffer
	if err := report.WriteAudit(&b, a, format, columns, true); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestAuditGolden(t *testing.T) {
	golden(t, "audit.txt", written(t, plantedAudit(), ""))
	golden(t, "audit_60.txt", writtenWithin(t, plantedAudit(), "", 60))
	golden(t, "audit.md", written(t, plantedAudit(), report.Markdown))
}

// TestAuditBeginsWithWhatDoesNotHold: the counts, then a line for each claim that does not hold, in 30
// lines.
func TestAuditBeginsWithWhatDoesNotHold(t *testing.T) {
	a := plantedAudit()
	brief := func(columns int) string {
		var b bytes.Buffer
		if err := report.WriteAudit(&b, a, "", columns, false); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	golden(t, "audit-brief.txt", brief(80))
	for range 5 {
		a.Claims = append(a.Claims, a.Claims...)
	}
	long := brief(100)
	if n := strings.Count(long, "\n"); n > 30 || !strings.Contains(long, "… and 78 more claims") || strings.Contains(long, "lines-20x") {
		t.Errorf("%d lines:\n%s", n, long)
	}
	if not, never := strings.Index(long, "costs-call"), strings.Index(long, "lines-25-50-calls"); not < 0 || never >= 0 {
		t.Errorf("what does not hold here is not the first:\n%s", long)
	}
}

func TestAuditFitsTheTerminal(t *testing.T) {
	a := plantedAudit()
	a.Claims[3].Command = "" // it is copied, so it is one line
	for _, columns := range []int{60, 80, 100, 110, 120} {
		text := writtenWithin(t, a, "", columns)
		for _, line := range strings.Split(text, "\n") {
			if n := utf8.RuneCountInString(line); n > columns || strings.TrimRight(line, " ") != line {
				t.Errorf("%d columns of %d: %q", n, columns, line)
			}
		}
		whole := strings.Join(strings.Fields(text), " ")
		for _, c := range a.Claims {
			if measured, _, _ := strings.Cut(c.Measured, " "); !strings.Contains(whole, c.Name) || !strings.Contains(whole, measured) {
				t.Errorf("%d columns lack %q:\n%s", columns, c.Name, text)
			}
		}
	}
}

// TestAuditRowsHaveTheirCells counts the cells of the Markdown rows: a | in a text ends no cell.
func TestAuditRowsHaveTheirCells(t *testing.T) {
	rows := 0
	for _, line := range strings.Split(written(t, plantedAudit(), report.Markdown), "\n") {
		if !strings.HasPrefix(line, "|") {
			continue
		}
		rows++
		if n := strings.Count(strings.ReplaceAll(line, `\|`, ""), "|"); n != 7 {
			t.Errorf("%d cells in %s", n-1, line)
		}
		if strings.Contains(strings.ReplaceAll(line, "**", ""), " *") {
			t.Errorf("a text marks itself in %s", line)
		}
	}
	if rows != 2+4 {
		t.Errorf("%d rows, want a head and 4", rows)
	}
}

func TestAuditCountsItsVerdicts(t *testing.T) {
	const want = "4 claims; holds: 1; does not hold here: 1; was never so: 1; at the edge: 0; can't be checked here: 1"
	for _, format := range []report.Format{"", report.Markdown} {
		if got := written(t, plantedAudit(), format); !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	one := plantedAudit()
	one.Claims = one.Claims[:1]
	if got := written(t, one, ""); !strings.Contains(got, "1 claim; holds: 1; does not hold here: 0;") || strings.Contains(got, "to settle") {
		t.Error(got)
	}
}

func TestAuditIsReadBack(t *testing.T) {
	a := plantedAudit()
	rows, err := csv.NewReader(strings.NewReader(written(t, a, report.CSV))).ReadAll()
	if err != nil || len(rows) != 1+len(a.Claims) {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	var doc report.Audit
	if err := json.Unmarshal([]byte(written(t, a, report.JSON)), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Kind != "audit" || doc.Version != report.AuditVersion || doc.Dir != a.Dir || len(doc.Machine) != 2 || len(doc.Claims) != len(a.Claims) {
		t.Fatalf("%+v", doc)
	}
	for i, want := range a.Claims {
		if doc.Claims[i] != want {
			t.Errorf("JSON has %+v, want %+v", doc.Claims[i], want)
		}
		row := rows[i+1]
		got := study.Judged{
			Study: row[0], Name: row[1], Source: row[2], Says: row[3], Published: row[4], Command: row[8],
			Finding: study.Finding{Measured: row[5], Verdict: study.Verdict(row[6]), Why: row[7]},
		}
		if got != want {
			t.Errorf("CSV has %+v, want %+v", got, want)
		}
	}
}

func TestAuditIsNoBenchmark(t *testing.T) {
	var b bytes.Buffer
	if err := report.WriteAudit(&b, plantedAudit(), report.Benchmark, 0, true); !errors.Is(err, report.ErrNoBenchmark) || b.Len() > 0 {
		t.Errorf("%v, %d bytes", err, b.Len())
	}
}

// TestAuditPageHasEachValueInItsColumn reads the row of a claim.
func TestAuditPageHasEachValueInItsColumn(t *testing.T) {
	var b bytes.Buffer
	if err := plantedAudit().HTML(&b); err != nil {
		t.Fatal(err)
	}
	const head = `<th scope="col">published</th><th scope="col">measured here</th><th scope="col">verdict</th><th scope="col">why</th>`
	const row = `<td>18.98–21.06x</td><td>19.3x (18.1x–20.2x)</td><td>holds</td><td>within a factor of 1.5 of the published ratio</td>`
	for _, want := range []string{head, row} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%s is not in\n%s", want, b.String())
		}
	}
}
