package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/holdfast-go/holdfast/internal/result"
)

// A Format is a form for programs, or for a pull request, in which a run can be
// written. docs/results.md describes each.
type Format string

const (
	CSV       Format = "csv"      // a row for each trial: raw values
	JSON      Format = "json"     // one document: all figures, warnings and the header
	Benchmark Format = "bench"    // a line for each trial, as go test -bench prints it, for benchstat
	Markdown  Format = "markdown" // tables
)

// Formats returns all of them, in the order of the help.
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
	return "", fmt.Errorf("%q is not a format; the formats are %s", text, strings.Join(names, ", "))
}

// Export writes the run in a format, or returns [figure.ErrNoRound] and writes
// nothing. CSV needs no whole round.
func Export(w io.Writer, run result.Run, format Format) error {
	switch format {
	case CSV:
		return writeCSV(w, run)
	case JSON:
		return writeJSON(w, run)
	case Benchmark:
		return writeBenchmark(w, run)
	case Markdown:
		return writeMarkdown(w, run)
	}
	return fmt.Errorf("%q is not a format", format)
}
