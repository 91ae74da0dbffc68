package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/advise"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/humanize"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

// A Format is a format for programs, or for a pull request. docs/results.md describes each.
type Format string

const (
	CSV       Format = "csv"      // a row for each trial: raw values
	JSON      Format = "json"     // one document: all figures, warnings and the header
	Benchmark Format = "bench"    // a line for each trial, as go test -bench prints it, for benchstat
	Markdown  Format = "markdown" // tables
)

// Formats returns all formats, in the order of the help.
func Formats() []Format { return []Format{CSV, JSON, Benchmark, Markdown} }

// ParseFormat reads the name of a format.
func ParseFormat(text string) (Format, error) {
	var names []string
	for _, f := range Formats() {
		if text == string(f) {
			return f, nil
		}
		names = append(names, string(f))
	}
	if slices.Contains([]string{"html", "page", "pdf"}, strings.ToLower(text)) {
		return "", fmt.Errorf("%q is not a format of --export; holdfast report results.jsonl -o page.html makes a page", text)
	}
	if near := humanize.Near(text, names); near != "" {
		return "", fmt.Errorf("%q is not a format; did you mean %q?", text, near)
	}
	return "", fmt.Errorf("%q is not a format; the formats are %s", text, strings.Join(names, ", "))
}

// Export writes the run in a format, or returns [figure.ErrNoRound] and writes
// nothing. CSV needs no complete round.
func Export(w io.Writer, studies study.List, run result.Run, format Format) error {
	switch format {
	case CSV:
		return writeCSV(w, run)
	case JSON:
		return writeJSON(w, run)
	case Benchmark:
		return writeBenchmark(w, run)
	case Markdown:
		return writeMarkdown(w, studies, run)
	}
	return fmt.Errorf("%q is not a format", format)
}

// writeMarkdown writes tables for a pull request.
func writeMarkdown(w io.Writer, studies study.List, run result.Run) error {
	s, err := newSheet(studies, run)
	if err != nil {
		return err
	}
	var b strings.Builder
	h := run.Header
	fmt.Fprintf(&b, "### holdfast: %s\n\n%s, %s, seed %d\n", markdownFact(h.Study), markdownFact(s.machine()), s.roundsText(), h.Seed)
	if mark := run.Mark(); mark != "" {
		fmt.Fprintf(&b, "\n**Not complete: %s**\n", markdownFact(mark))
	}
	if len(run.FileSystems()) > 0 {
		return severalMarkdown(w, b.String(), studies, run)
	}
	if of, ok := s.studied(); ok {
		of.markdown(&b)
		_, err = io.WriteString(w, b.String())
		return err
	}
	for _, g := range s.Groups {
		fmt.Fprintf(&b, "\n#### %s\n\n%s\n", markdownFact(title(g.Load)), groupMarkdown(g))
	}
	b.WriteString("\n")
	for _, line := range append(s.notes(), s.doubtLines()...) {
		fmt.Fprintf(&b, "- %s\n", markdownText(line))
	}
	if s.advised {
		fmt.Fprintf(&b, "\n%s\n", s.adviceLine())
	} else if why := advise.Missing(s.Groups); why != "" {
		fmt.Fprintf(&b, "\n%s\n", why)
	}
	_, err = io.WriteString(w, b.String())
	return err
}

func writeJSON(w io.Writer, run result.Run) error {
	s, err := newSheet(nil, run)
	if err != nil {
		return err
	}
	d := document{
		Kind: "figures", Version: figuresVersion, Header: run.Header, Resumed: run.Resumed, End: run.End,
		Missing: run.Mark(), Figures: s.Figures,
	}
	if s.advised {
		d.Advice = &adviceDocument{s.advice.Policy, s.advice.Sentence(), s.advice.Rule}
	}
	for _, p := range s.Policies() {
		loss := p.Loss()
		d.Losses = append(d.Losses, lossDocument{p, loss.Process.String(), loss.Power.String()})
	}
	return encode(w, d)
}
