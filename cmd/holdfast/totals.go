package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/holdfast-go/holdfast"
)

// Totals is what a run of write has done.
type totals struct {
	Kind        string          `json:"kind"` // write
	End         endKind         `json:"end"`
	Lines       int64           `json:"lines"` // that were read
	Written     int64           `json:"written_lines"`
	Bytes       int64           `json:"written_bytes"`
	Files       int             `json:"files"` // that lines went to, that of the other lines too
	Else        int64           `json:"else_lines"`
	Failures    lineFailures    `json:"failures"`
	FirstLost   int64           `json:"first_lost_line,omitempty"` // that a file has not taken, if no bytes were lost
	LostBytes   int64           `json:"lost_bytes"`                // that were accepted, and could not be written at the end
	Cut         int             `json:"cut_bytes"`                 // read of a line whose end did not come
	FailedFiles int             `json:"failed_files"`
	FailedLate  int             `json:"-"` // of these at the end
	Policy      holdfast.Policy `json:"policy"`
	// Durable says that all of it is on stable storage.
	Durable bool                `json:"durable"`
	Elapsed time.Duration       `json:"elapsed_ns"`
	Stats   holdfast.FilesStats `json:"stats"`
}

// An endKind says why a run ended.
type endKind string

const (
	endComplete    endKind = "complete"
	endInterrupted endKind = "interrupted"
	endStopped     endKind = "stopped"
)

// LineFailures counts the lines that were not written, by why.
type lineFailures [lineErrorKinds]int64

func (f *lineFailures) add(kind lineErrorKind, n int) { f[kind] += int64(n) }

func (f *lineFailures) sum() (n int64) {
	for _, count := range f {
		n += count
	}
	return n
}

// failureNames are the keys in JSON, and the words for people.
var failureNames = [lineErrorKinds]struct{ key, words string }{
	missing:   {"missing", "without such a field or column"},
	notJSON:   {"not_json", "no JSON object"},
	noValue:   {"no_value", "with null, an object or an array in the field"},
	tooLong:   {"too_long", "too long"},
	refused:   {"refused", "not taken by their file"},
	uncertain: {"uncertain", "perhaps in their file, whose sync failed"},
}

// MarshalJSON has a key for each why.
func (f lineFailures) MarshalJSON() ([]byte, error) {
	keys := map[string]int64{}
	for kind, name := range failureNames {
		keys[name.key] = f[kind]
	}
	return json.Marshal(keys)
}

func (f *lineFailures) String() string {
	var whys []string
	for kind, n := range f {
		if n > 0 {
			whys = append(whys, humanize.Comma(n)+" "+failureNames[kind].words)
		}
	}
	return strings.Join(whys, ", ")
}

// add counts what a file has taken.
func (t *totals) add(isElse bool, lines, bytes int) {
	if isElse {
		t.Else += int64(lines)
	}
	t.Written += int64(lines)
	t.Bytes += int64(bytes)
}

// failed reports whether a promise was not met.
func (t *totals) failed() bool { return t.Failures.sum() > 0 || t.FailedFiles > 0 }

// print tells people what was done.
func (t *totals) print(w io.Writer, isSplit bool) error {
	var b strings.Builder
	fmt.Fprintf(&b, "written: %s to %s, %s in %v%s\n", countText(t.Written, "line"), countText(int64(t.Files), "file"),
		bytesText(t.Bytes), t.Elapsed.Round(time.Millisecond), rateText(t))
	if t.Else > 0 {
		fmt.Fprintf(&b, "of these without a file of their own: %s\n", countText(t.Else, "line"))
	}
	if n := t.Failures.sum(); n > 0 {
		fmt.Fprintf(&b, "not written: %s: %s\n", countText(n, "line"), &t.Failures)
	}
	if t.Cut > 0 {
		fmt.Fprintf(&b, "not written: the last %s that were read: the line has no end\n", countText(int64(t.Cut), "byte"))
	}
	if t.FailedFiles > 0 {
		fmt.Fprintf(&b, "failed: %s\n", countText(int64(t.FailedFiles), "file"))
	}
	if t.LostBytes > 0 {
		fmt.Fprintf(&b, "lost at the end: %s that had been taken\n", countText(t.LostBytes, "byte"))
	}
	if t.Written > 0 {
		fmt.Fprintf(&b, "durable: %s\n", t.durableText())
	}
	if t.Written > 0 && !isSplit {
		loss := t.Policy.Loss()
		fmt.Fprintf(&b, "policy: %v; while it ran, the end of the process would have taken: %v; a power cut: %v\n", t.Policy, loss.Process, loss.Power)
	}
	fmt.Fprintf(&b, "calls that were made again: %s; idle files and folders that were closed: %s\n", humanize.Comma(t.Stats.Retries), humanize.Comma(t.Stats.Evictions))
	_, err := io.WriteString(w, b.String())
	return err
}

func (t *totals) durableText() string {
	switch {
	case t.Policy.Sync == holdfast.SyncNever:
		return "nothing for sure, the policy has sync=never: it is the kernel's, which writes it within about half a minute"
	case t.FailedFiles > 0:
		return "all that was written, but for the files that failed"
	}
	return "all that was written"
}

func rateText(t *totals) string {
	if t.Elapsed < time.Millisecond {
		return ""
	}
	return fmt.Sprintf(" (%s/s)", bytesText(int64(float64(t.Bytes)/t.Elapsed.Seconds())))
}

// countText writes a number with its noun.
func countText(n int64, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return humanize.Comma(n) + " " + noun
}

func (t *totals) printJSON(w io.Writer) error {
	return json.NewEncoder(w).Encode(t)
}
