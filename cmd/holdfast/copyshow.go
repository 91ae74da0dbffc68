package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast"
)

// A copyShow tells of a copy while it goes on and at its end. Its methods are called
// by one goroutine at a time.
type copyShow struct {
	*copying
	stdout, stderr io.Writer
	meter          *meter
	failures       int
	held           error // the first failure, if it was not told
	undurable      int   // files that were copied, and may be gone after a power cut
	holes          int64 // bytes that were not moved and take no room
	interrupted    int   // what was under way when the call was
	broken         error // of standard output
}

func newCopyShow(c *copying, stdout, stderr io.Writer) *copyShow {
	return &copyShow{copying: c, stdout: stdout, stderr: stderr, meter: newMeter(stderr, 1, c.quiet)}
}

// each is told of every file, link and folder.
func (s *copyShow) each(r holdfast.CopyResult) {
	if r.Err != nil {
		s.failed(r.Err)
	} else {
		s.count(r)
	}
	switch {
	case s.json:
		s.keep(json.NewEncoder(s.stdout).Encode(newCopyLine(r)))
	case s.verbose && r.Err == nil:
		s.meter.clear()
		_, err := fmt.Fprintln(s.stdout, copyLineText(r))
		s.keep(err)
	}
}

func (s *copyShow) count(r holdfast.CopyResult) {
	if !r.Durable {
		s.undurable++
	}
	if r.Method != holdfast.MethodReflink {
		s.holes += r.Size - r.Copied - r.Resumed
	}
}

// keep keeps the first error of standard output.
func (s *copyShow) keep(err error) {
	if s.broken == nil {
		s.broken = err
	}
}

// failed tells one of the first failures at once. The first one is held where it is
// likely to be the only one, and then ends the command.
func (s *copyShow) failed(err error) {
	if errors.Is(err, context.Canceled) {
		s.interrupted++
		return
	}
	s.failures++
	if s.failures == 1 && !s.options.KeepGoing {
		s.held = err
		return
	}
	if s.held != nil {
		s.tell(s.held)
		s.held = nil
	}
	if s.failures > mostFailures {
		return
	}
	s.tell(err)
	if s.failures == mostFailures {
		fmt.Fprintln(s.stderr, "holdfast: further failures are counted")
	}
}

func (s *copyShow) tell(err error) {
	s.meter.clear()
	fmt.Fprintf(s.stderr, "holdfast: %s\n", copyErrorText(err))
}

func (s *copyShow) progress(p holdfast.CopyProgress) {
	s.meter.tell(p.Bytes, p.BytesTotal, p.Left, p.Listed)
}

// end takes the progress away.
func (s *copyShow) end() { s.meter.end() }

// A copyLine is a result as JSON.
type copyLine struct {
	Kind        string           `json:"kind"` // copy
	Source      string           `json:"source"`
	Destination string           `json:"destination"`
	Size        int64            `json:"size_bytes"`
	Copied      int64            `json:"copied_bytes"`
	Resumed     int64            `json:"resumed_bytes,omitempty"`
	Method      string           `json:"method"`
	Elapsed     time.Duration    `json:"elapsed_ns"`
	Outcome     holdfast.Outcome `json:"outcome"`
	Durable     bool             `json:"durable"`
	Verified    bool             `json:"verified"`
	Changed     bool             `json:"changed,omitempty"`
	Error       string           `json:"error,omitempty"`
}

func newCopyLine(r holdfast.CopyResult) copyLine {
	text := ""
	if r.Err != nil {
		text = copyErrorText(r.Err)
	}
	return copyLine{
		"copy", plainPath(r.Source), plainPath(r.Destination), r.Size, r.Copied, r.Resumed, r.Method.String(), r.Elapsed,
		r.Outcome, r.Durable, r.Verified, r.Changed, text,
	}
}

// plainPath is a path as people write it.
func plainPath(path string) string { return strings.TrimPrefix(path, "./") }

// shownPath is a path for people, quoted if it would break the line or set the terminal.
func shownPath(path string) string {
	path = plainPath(path)
	if !utf8.ValidString(path) || strings.ContainsFunc(path, unicode.IsControl) {
		return strconv.Quote(path)
	}
	return path
}

// copyErrorText is an error with plain paths.
func copyErrorText(err error) string {
	var failure *holdfast.CopyError
	if !errors.As(err, &failure) {
		return plainText(err)
	}
	shown := *failure
	shown.Source, shown.Destination = shownPath(shown.Source), shownPath(shown.Destination)
	if shown.Op == "open" && errors.Is(err, fs.ErrPermission) {
		shown.Op = openText(failure)
	}
	return shown.Error()
}

// openText says which of the two may not be opened, where that can be seen.
func openText(failure *holdfast.CopyError) string {
	f, err := os.OpenFile(failure.Source, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe must not wait
	switch {
	case err == nil:
		_ = f.Close() // nothing was done with it
		return "make the copy"
	case errors.Is(err, fs.ErrPermission):
		return "open the source"
	}
	return failure.Op
}

// copyErrorParts parts the text of an error from the advice at its end. Names may hold
// what parts them.
func copyErrorParts(err error) (sentence, advice string) {
	sentence = copyErrorText(err)
	var failure *holdfast.CopyError
	if errors.As(err, &failure) {
		_, advice, _ = strings.Cut(failure.Err.Error(), "; ")
	}
	if advice != "" {
		sentence = strings.TrimSuffix(sentence, "; "+advice)
	}
	return sentence, advice
}

// copyLineText is a result as a line for people.
func copyLineText(r holdfast.CopyResult) string {
	var how []string
	if r.Size > 0 {
		how = append(how, bytesText(r.Size))
	}
	if r.Method != holdfast.MethodAuto {
		how = append(how, r.Method.String())
	}
	if r.Resumed > 0 {
		how = append(how, bytesText(r.Resumed)+" were there")
	}
	for _, is := range []struct {
		so   bool
		text string
	}{{r.Verified, "verified"}, {r.Durable, "durable"}, {r.Changed, "changed meanwhile"}} {
		if is.so {
			how = append(how, is.text)
		}
	}
	line := shownPath(r.Source) + " -> " + shownPath(r.Destination)
	if len(how) > 0 {
		line += ": " + strings.Join(how, ", ")
	}
	return line
}

// print tells the totals, and returns the first error of standard output.
func (s *copyShow) print(t holdfast.CopyTotals, err error) error {
	switch {
	case s.json:
		s.keep(json.NewEncoder(s.stdout).Encode(s.totalsLine(t, err)))
	case !s.quiet && (err == nil || t.Files+t.Folders+t.Links+t.Failed+t.Refused > 0):
		_, err := io.WriteString(s.stdout, s.totalsText(t))
		s.keep(err)
	}
	return s.broken
}

// totalsLine is the last line of --json.
func (s *copyShow) totalsLine(t holdfast.CopyTotals, err error) any {
	end := endComplete
	switch {
	case errors.Is(err, context.Canceled):
		end = endInterrupted
	case err != nil && !s.options.KeepGoing:
		end = endStopped
	}
	methods := map[string]int{}
	for m, n := range t.Methods {
		methods[m.String()] = n
	}
	return struct {
		Kind    string         `json:"kind"` // copy_totals
		End     endKind        `json:"end"`
		Files   int            `json:"files"`
		Folders int            `json:"folders"`
		Links   int            `json:"links"`
		Refused int            `json:"refused"`
		Failed  int            `json:"failed"`
		Size    int64          `json:"size_bytes"`
		Copied  int64          `json:"copied_bytes"`
		Holes   int64          `json:"hole_bytes"`
		Changed int            `json:"changed"`
		Methods map[string]int `json:"methods"`
		Policy  string         `json:"policy"`
		Durable bool           `json:"durable"`
		Elapsed time.Duration  `json:"elapsed_ns"`
	}{"copy_totals", end, t.Files, t.Folders, t.Links, t.Refused, t.Failed, t.Size, t.Copied, s.holes, t.Changed, methods, s.policy.String(), s.undurable == 0, t.Elapsed}
}

func (s *copyShow) totalsText(t holdfast.CopyTotals) string {
	var b strings.Builder
	fmt.Fprintf(&b, "copied: %s, %s in %v%s\n", whatText(t), bytesText(t.Size), t.Elapsed.Round(10*time.Microsecond), copyRate(t))
	if text := methodsText(t.Methods); text != "" {
		fmt.Fprintf(&b, "by: %s\n", text)
	}
	if s.holes > 0 {
		fmt.Fprintf(&b, "holes kept: %s\n", bytesText(s.holes))
	}
	if t.Changed > 0 {
		fmt.Fprintf(&b, "changed meanwhile: %s, whose copies may be of no single moment\n", countText(int64(t.Changed), "file"))
	}
	if t.Failed+t.Refused > 0 {
		fmt.Fprintf(&b, "not copied: %d failed, %d refused\n", t.Failed, t.Refused)
	}
	if t.Files+t.Folders+t.Links > 0 {
		fmt.Fprintf(&b, "verified: %s\ndurable: %s\n", s.verifiedText(), s.durableText())
	}
	return b.String()
}

func whatText(t holdfast.CopyTotals) string {
	texts := []string{countText(int64(t.Files), "file")}
	if t.Folders > 0 {
		texts = append(texts, countText(int64(t.Folders), "folder"))
	}
	if t.Links > 0 {
		texts = append(texts, countText(int64(t.Links), "link"))
	}
	return strings.Join(texts, ", ")
}

func copyRate(t holdfast.CopyTotals) string {
	if t.Elapsed < time.Millisecond || t.Size == 0 {
		return ""
	}
	return fmt.Sprintf(" (%s/s)", bytesText(int64(float64(t.Size)/t.Elapsed.Seconds())))
}

// methodsText counts the files by method, if any had bytes to move.
func methodsText(methods map[holdfast.CopyMethod]int) string {
	var texts []string
	for _, m := range slices.Sorted(maps.Keys(methods)) {
		if m != holdfast.MethodAuto && methods[m] > 0 {
			texts = append(texts, fmt.Sprintf("%v %s", m, countText(int64(methods[m]), "file")))
		}
	}
	return strings.Join(texts, ", ")
}

func (s *copyShow) verifiedText() string {
	if s.options.Verify {
		return "each copy was read back from the disk, and is equal"
	}
	return "no, --verify was not given"
}

func (s *copyShow) durableText() string {
	switch {
	case s.undurable == 0: // with --verify too, which reads from the disk what was synced
		return "all that was copied"
	case s.options.Policy.Sync == holdfast.SyncNever && !s.options.Atomic:
		return "nothing for sure, the policy has sync=never: it is the kernel's, which writes it within about half a minute"
	}
	return fmt.Sprintf("all but %d", s.undurable)
}
