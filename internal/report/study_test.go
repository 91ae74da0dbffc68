package report_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/internal/report"
	"github.com/holdfast-go/holdfast/internal/result"
	"github.com/holdfast-go/holdfast/internal/study"
)

// studied returns a run of a study with ten rounds of wide figures, but for the
// arms that are missing.
func studied(s study.Study, missing map[string]string) result.Run {
	cells, plan := s.Outline(study.Choice{Preset: study.Default()})
	run := result.Run{Header: result.Header{SchemaVersion: result.SchemaVersion, Study: s.Name, Question: s.Question, Dir: "/data", Plan: plan}}
	for _, c := range cells {
		if why := missing[c.Name]; why != "" {
			run.Header.Missing = append(run.Header.Missing, result.Missing{Cell: c.Name, Why: why})
			continue
		}
		run.Header.Cells = append(run.Header.Cells, c)
	}
	for round := range 11 {
		for i, c := range run.Header.Cells {
			m := result.Measurement{Records: c.Records, Size: c.Records, Elapsed: time.Duration(c.Records)*time.Microsecond + time.Duration(i*1_234_567+round*11_111_111)}
			run.Trials = append(run.Trials, result.Trial{Cell: c.Name, Round: round, Position: i + 1, Measurement: m})
		}
	}
	return run
}

// TestTablesOfStudiesFitATerminal: they are to be read without a line breaking.
func TestTablesOfStudiesFitATerminal(t *testing.T) {
	const terminal = 150
	for _, s := range study.Studies() {
		var b strings.Builder
		if err := report.Text(&b, studied(s, nil)); err != nil {
			t.Fatal(s.Name, err)
		}
		for line := range strings.Lines(b.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > terminal {
				t.Errorf("%s: %d columns: %s", s.Name, n, line)
			}
		}
	}
}

// TestReasonsAreSaidOnce: what was not run for one reason is not repeated for every
// arm, and makes no column wide.
func TestReasonsAreSaidOnce(t *testing.T) {
	const why = "a reason that is as long as a sentence that names the cause and what to install must be"
	missing := map[string]string{"write/no_buffering/warm": why, "write/libc_buffering/warm": why, "write/diy_buffering/warm": why, "read/diy_buffering/warm": "another"}
	s, _ := study.Find("bytes")
	var b strings.Builder
	if err := report.Text(&b, studied(s, missing)); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(b.String()), " ")
	for _, want := range []string{" not run: write/no_buffering/warm and 2 more: " + why, " not run: read/diy_buffering/warm: another"} {
		if strings.Count(text, want) != 1 {
			t.Errorf("%q is not there once:\n%s", want, b.String())
		}
	}
	for line := range strings.Lines(b.String()) {
		if strings.Contains(line, why) && !strings.HasPrefix(line, " ") && !strings.HasPrefix(line, "not run: ") {
			t.Errorf("the reason is in a cell: %s", line)
		}
	}
}
