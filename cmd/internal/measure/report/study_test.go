package report_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/cmd/internal/lab"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/report"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// plantedStudy is a run of the study lines with only the two published modes: about 280 ms without a
// buffer and 14 with it.
func plantedStudy(t *testing.T, rounds int) result.Run {
	t.Helper()
	run := planted(t, rounds)
	run.Header.Study, run.Header.Question = "lines", "what does a buffer save"
	run.Header.Cells, run.Trials = nil, nil
	for i, c := range []struct {
		name, twin string
		took       time.Duration
		calls      int64
	}{
		{"lines/unbuffered", "", 280 * time.Millisecond, 100_000}, {"lines/buffered", "", 14 * time.Millisecond, 974},
		{"lines/buffered/again", "lines/buffered", 14 * time.Millisecond, 974},
	} {
		run.Header.Cells = append(run.Header.Cells, result.Cell{Name: c.name, Twin: c.twin, Group: "lines", RecordBytes: 40, Writers: 1, Records: 100_000, LatencyStride: 1})
		for round := range rounds + 1 {
			m := result.Measurement{Records: 100_000, Size: 4_000_000, Elapsed: c.took * time.Duration(100+(round*7+i*3)%5) / 100, IO: &result.IO{Writes: c.calls}}
			m.User, m.System = m.Elapsed/4, m.Elapsed/2
			run.Trials = append(run.Trials, &result.Trial{Cell: c.name, Round: round, Measurement: m})
		}
	}
	run.Header.Missing = []result.Missing{
		{Cell: "socket/write", Why: "no TCP socket on the loopback"}, {Cell: "equal/write, O_DSYNC", Why: "Go knows no O_DSYNC on this system"},
		{Cell: "socket/bufio 4KiB", Why: "no TCP socket on the loopback"}, {Cell: "socket/holdfast 64KiB", Why: "no TCP socket on the loopback"},
	}
	return run
}

func markdown(t *testing.T, run result.Run) string {
	t.Helper()
	var b bytes.Buffer
	if err := report.Export(&b, lab.Studies(), run, report.Markdown); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestStudyGolden(t *testing.T) {
	run := plantedStudy(t, 10)
	golden(t, "study.txt", text(t, run))
	golden(t, "study.md", markdown(t, run))
	golden(t, "study.html", body(t, run))
}

func TestStudyFitsItsForms(t *testing.T) {
	for _, rounds := range []int{1, 3, 10} {
		run := plantedStudy(t, rounds)
		shown := text(t, run)
		for _, line := range strings.Split(shown, "\n") {
			if strings.TrimRight(line, " ") != line {
				t.Errorf("%d rounds: spaces at the end of %q", rounds, line)
			}
		}
		for _, prose := range strings.Split(shown[strings.Index(shown, "\nfigures are"):], "\n") {
			if n := utf8.RuneCountInString(prose); n > 100 {
				t.Errorf("%d columns: %s", n, prose)
			}
		}
		for _, form := range []string{shown, markdown(t, run), body(t, run)} {
			if strings.Contains(form, "NaN") || strings.Contains(form, "%!") {
				t.Errorf("%d rounds: %s", rounds, form)
			}
		}
	}
}

// TestStudyGuessesFromFewRounds: the sentence on the result says so, if there is one.
func TestStudyGuessesFromFewRounds(t *testing.T) {
	check := func(rounds int, want string) {
		t.Helper()
		run := plantedStudy(t, rounds)
		for _, form := range []string{text(t, run), markdown(t, run), body(t, run)} {
			if !strings.Contains(form, want) {
				t.Errorf("%d rounds: no %q in\n%s", rounds, want, form)
			}
		}
	}
	check(1, "(from 1 round, a guess) one write a line takes ")
	check(9, "(from 9 rounds, a guess) one write a line takes ")
	check(10, "one write a line takes ")

	nothing := plantedStudy(t, 1)
	nothing.Header.Cells = nothing.Header.Cells[1:]
	nothing.Trials = nothing.Trials[2:]
	for _, form := range []string{text(t, nothing), markdown(t, nothing), page(t, nothing)} {
		if strings.Contains(form, "guess") || strings.Contains(form, "learnt:") || strings.Contains(form, "Learnt") {
			t.Errorf("something is learnt of one arm alone:\n%s", form)
		}
	}
}

// TestStudySaysWhatWasNotRun: each reason appears once, whatever its text.
func TestStudySaysWhatWasNotRun(t *testing.T) {
	run := plantedStudy(t, 10)
	run.Header.Missing[1].Why = "a|b *c* <d>"
	for form, want := range map[string][]string{
		text(t, run):     {"not run: socket/write and 2 more: no TCP socket on the loopback\n", "not run: equal/write, O_DSYNC: a|b *c* <d>\n"},
		markdown(t, run): {"- not run: socket/write and 2 more: no TCP", `a|b \*c\* &lt;d>`},
		page(t, run):     {"not run: socket/write and 2 more: no TCP", "not run: equal/write, O_DSYNC: a|b *c* &lt;d&gt;"},
	} {
		for _, w := range want {
			if strings.Count(form, w) != 1 {
				t.Errorf("%q stands %d times in\n%s", w, strings.Count(form, w), form)
			}
		}
	}
}

// TestStudyTablesKeepTheirCells: a | in a text ends no cell of Markdown.
func TestStudyTablesKeepTheirCells(t *testing.T) {
	run := plantedStudy(t, 10)
	run.Header.Missing[1] = result.Missing{Cell: "lines/a|b", Why: "c|d"}
	if got := markdown(t, run); !strings.Contains(got, `| a\|b | not run: c\|d |`) {
		t.Errorf("the row is not escaped in\n%s", got)
	}
}

func TestStudyWithoutARoundIsNone(t *testing.T) {
	run := plantedStudy(t, 10)
	run.Trials = nil
	for name, write := range map[string]func(io.Writer, result.Run) error{
		"text": func(w io.Writer, run result.Run) error { return report.Text(w, lab.Studies(), run, 100, true) }, "page": func(w io.Writer, run result.Run) error { return report.HTML(w, lab.Studies(), run, report.More{}) },
		"markdown": func(w io.Writer, run result.Run) error { return report.Export(w, lab.Studies(), run, report.Markdown) },
	} {
		var b bytes.Buffer
		if err := write(&b, run); !errors.Is(err, figure.ErrNoRound) || b.Len() > 0 {
			t.Errorf("%s: %v, %d bytes", name, err, b.Len())
		}
	}
}

// TestStudyLeavesEmptyTablesOut: no arm of the other groups was run.
func TestStudyLeavesEmptyTablesOut(t *testing.T) {
	run := plantedStudy(t, 10)
	for _, form := range []string{text(t, run), markdown(t, run), body(t, run)} {
		if strings.Contains(form, "closed without a flush") || !strings.Contains(form, "100,000 lines, measured here") {
			t.Errorf("a table without rows is shown, or one with rows is not:\n%s", form)
		}
	}
}

// TestStudyPageIsWellFormed parses the page as XML, as far as HTML allows.
func TestStudyPageIsWellFormed(t *testing.T) {
	site, _, _ := strings.Cut(page(t, plantedStudy(t, 10)), "<script>") // the script is no XML, and the last part of the page
	d := xml.NewDecoder(strings.NewReader(site + "</body></html>"))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	for depth := 0; ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			if depth != 0 {
				t.Errorf("%d elements are open at the end", depth)
			}
			return
		}
		if err != nil {
			t.Fatal(fmt.Errorf("offset %d: %w", d.InputOffset(), err))
		}
		switch token.(type) {
		case xml.StartElement:
			depth++
		case xml.EndElement:
			depth--
		}
	}
}

// studied returns a run of a study with ten rounds of wide figures, without the missing arms.
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
			m.User, m.System = m.Elapsed*3/10, m.Elapsed*6/10
			m.IO = &result.IO{Reads: 104_857_600, Writes: 104_857_600}
			run.Trials = append(run.Trials, &result.Trial{Cell: c.Name, Round: round, Position: i + 1, Measurement: m})
		}
	}
	return run
}

// withCells are the studies that have a cell on this system: zerocopy compares calls that Linux alone has.
func withCells() (all []study.Study) {
	for _, s := range lab.Studies() {
		if len(studied(s, nil).Header.Cells) > 0 {
			all = append(all, s)
		}
	}
	return all
}

// TestStudiesFitATerminal: no line of their tables is broken, on one file system and on several.
func TestStudiesFitATerminal(t *testing.T) {
	isolate.Once(t)
	const terminal = 100
	for _, s := range withCells() {
		one := func(*testing.T, int) result.Run { return studied(s, nil) }
		for _, run := range []result.Run{studied(s, nil), onTwo(t, one, 10)} {
			for line := range strings.Lines(text(t, run)) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > terminal {
					t.Errorf("%s: %d columns: %s", s.Name, n, line)
				}
			}
		}
	}
}

// TestReasonsAreSaidOnce: a reason for not running something is not repeated for every arm, and makes
// no column wide.
func TestReasonsAreSaidOnce(t *testing.T) {
	const why = "a reason that is as long as a sentence that names the cause and what to install must be"
	missing := map[string]string{"write/go_file/warm": why, "write/bufio/warm": why, "write/holdfast_writer/warm": why, "read/bufio/warm": "another"}
	s, _ := lab.Studies().Find("bytes")
	var b strings.Builder
	if err := report.Text(&b, lab.Studies(), studied(s, missing), 100, true); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(b.String()), " ")
	for _, want := range []string{" not run: write/go_file/warm and 2 more: " + why, " not run: read/bufio/warm: another"} {
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

// TestStudiesBeginWithTheirAnswer: without --all each has at most 30 lines: the result, the first table
// of this machine, and how to see the rest.
func TestStudiesBeginWithTheirAnswer(t *testing.T) {
	isolate.Once(t)
	for _, s := range withCells() {
		run := studied(s, nil)
		var b strings.Builder
		if err := report.Text(&b, lab.Studies(), run, 100, false); err != nil {
			t.Fatal(err)
		}
		brief, whole := b.String(), text(t, run)
		if n := strings.Count(brief, "\n"); n > 30 || n < 12 {
			t.Errorf("%s: %d lines:\n%s", s.Name, n, brief)
		}
		shown := s.Show(study.EvidenceOf(run))
		first := strings.Index(brief, "\n"+shown.Tables[0].Title[:min(20, len(shown.Tables[0].Title))])
		learnt := strings.Index(brief, "\nlearnt: ")
		if first < 0 || shown.Learnt != "" && (learnt < 0 || learnt > first) {
			t.Errorf("%s: learnt at %d, the first table at %d of:\n%s", s.Name, learnt, first, brief)
		}
		if !strings.Contains(brief, "\n--all also shows ") || strings.Contains(whole, "--all also") {
			t.Errorf("%s does not say how to see the rest:\n%s", s.Name, brief)
		}
	}
	var b strings.Builder
	if err := report.Text(&b, lab.Studies(), plantedStudy(t, 10), 100, false); err != nil {
		t.Fatal(err)
	}
	golden(t, "study-brief.txt", b.String())
}

// TestStudiesFitNarrowTerminals: no line is wider, except for words and cells that can't be broken.
func TestStudiesFitNarrowTerminals(t *testing.T) {
	isolate.Once(t)
	for _, of := range withCells() {
		run := studied(of, nil)
		for _, width := range []int{60, 80, 100} {
			var b strings.Builder
			if err := report.Text(&b, lab.Studies(), run, width, true); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(b.String()) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
					t.Errorf("%s on %d columns, %d: %s", run.Header.Study, width, n, line)
				}
			}
		}
	}
}
