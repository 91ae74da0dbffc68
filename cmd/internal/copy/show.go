package copy

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

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/filecopy"
)

// A copyShow reports a copy while it runs and at its end. One goroutine at a time may call its
// methods.
type copyShow struct {
	*copying
	stdout      io.Writer
	line        *cli.Progress
	pace        pace
	hasFailed   bool
	held        error // the first failure, if not reported yet
	undurable   int   // copied files that a power cut may take
	holes       int64 // bytes of holes
	notKept     error // the first of Result.NotKept
	interrupted int   // number of files in progress when the call was interrupted
	broken      error // the first error of standard output
}

// each reports a file, link or directory. It holds the first failure back if that is likely to be
// the only one, which then ends the command. It prints the others at once.
func (s *copyShow) each(r filecopy.Result) {
	switch {
	case r.Err == nil:
		if !r.Durable {
			s.undurable++
		}
		if s.notKept == nil {
			s.notKept = r.NotKept
		}
		if r.Method != filecopy.Reflink {
			s.holes += r.Size - r.Copied - r.Resumed
		}
	case errors.Is(r.Err, context.Canceled):
		s.interrupted++
	case !s.hasFailed && !s.options.KeepGoing:
		s.hasFailed, s.held = true, r.Err
	default:
		if s.held != nil {
			s.line.Failure(s.held, "%s", copyErrorText(s.held))
			s.held = nil
		}
		s.line.Failure(r.Err, "%s", copyErrorText(r.Err))
	}
	switch {
	case s.json:
		s.keep(json.NewEncoder(s.stdout).Encode(newCopyLine(r)))
	case s.verbose && r.Err == nil:
		s.line.Clear()
		_, err := fmt.Fprintln(s.stdout, copyLineText(r))
		s.keep(err)
	}
}

// keep records the first error of standard output.
func (s *copyShow) keep(err error) {
	if s.broken == nil {
		s.broken = err
	}
}

// progress shows the copy's progress. While the total still grows, it shows no time.
func (s *copyShow) progress(p filecopy.Progress) {
	left := s.pace.left(p)
	if !p.Listed {
		left = 0
	}
	s.line.Bytes(p.Bytes, p.BytesTotal, left)
}

// paceOver is the time over which a pace measures the rate.
const paceOver = 3 * time.Second

// A pace is the progress of the last seconds.
type pace []filecopy.Progress

// left estimates the time of the rest of a copy by the rate of the last seconds; 0 means that it is
// not known.
func (l *pace) left(p filecopy.Progress) time.Duration {
	for len(*l) > 1 && p.Elapsed-(*l)[0].Elapsed > paceOver {
		*l = (*l)[1:]
	}
	*l = append(*l, p)
	first := (*l)[0]
	done := p.Bytes - first.Bytes
	if done <= 0 {
		return 0
	}
	return time.Duration(float64(p.Elapsed-first.Elapsed) * float64(p.BytesTotal-p.Bytes) / float64(done))
}

// A copyLine is a result as JSON.
type copyLine struct {
	Kind        string `json:"kind"` // copy
	Source      string `json:"source"`
	Destination string `json:"destination"`
	// The bytes of names that are not UTF-8, which no JSON string can have.
	SourceBytes      []byte           `json:"source_base64,omitempty"`
	DestinationBytes []byte           `json:"destination_base64,omitempty"`
	Size             int64            `json:"size_bytes"`
	Copied           int64            `json:"copied_bytes"`
	Resumed          int64            `json:"resumed_bytes,omitempty"`
	Method           string           `json:"method"`
	Elapsed          time.Duration    `json:"elapsed_ns"`
	Outcome          holdfast.Outcome `json:"outcome"`
	Durable          bool             `json:"durable"`
	NoJournal        bool             `json:"no_journal,omitempty"`
	Verified         bool             `json:"verified"`
	Changed          bool             `json:"changed,omitempty"`
	NotKept          string           `json:"not_kept,omitempty"`
	Error            string           `json:"error,omitempty"`
}

func newCopyLine(r filecopy.Result) copyLine {
	text, notKept := "", ""
	if r.NotKept != nil {
		notKept = notKeptText(r.NotKept)
	}
	if r.Err != nil {
		text = copyErrorText(r.Err)
	}
	return copyLine{
		"copy", plainPath(r.Source), plainPath(r.Destination), cli.NotText(plainPath(r.Source)), cli.NotText(plainPath(r.Destination)), r.Size, r.Copied, r.Resumed, r.Method.String(), r.Elapsed,
		r.Outcome, r.Durable, r.NoJournal, r.Verified, r.Changed, notKept, text,
	}
}

// plainPath returns a path without a leading "./".
func plainPath(path string) string { return strings.TrimPrefix(path, "./") }

// shownPath returns a path for messages, quoted if it would break the line or control the terminal.
func shownPath(path string) string {
	path = plainPath(path)
	if cli.Visible(path) != path || strings.ContainsAny(path, "\n\t") {
		return strconv.Quote(path)
	}
	return path
}

// notKeptText returns what of a copy was not kept, and why, in one line.
func notKeptText(err error) string { return strings.ReplaceAll(err.Error(), "\n", ", ") }

// copyErrorText returns an error's text with plain paths.
func copyErrorText(err error) string {
	var failure *filecopy.Error
	if !errors.As(err, &failure) {
		return cli.PlainText(err)
	}
	shown := *failure
	shown.Source, shown.Destination = shownPath(shown.Source), shownPath(shown.Destination)
	if shown.Op == "open" && errors.Is(err, fs.ErrPermission) {
		// Find out which of the two may not be opened, without waiting for a pipe.
		f, err := os.OpenFile(failure.Source, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		switch {
		case err == nil:
			_ = f.Close() // it was not used
			shown.Op = "make the copy"
		case errors.Is(err, fs.ErrPermission):
			shown.Op = "open the source"
		}
	}
	return shown.Error()
}

// copyErrorParts splits the text of an error from the advice at its end. Names may contain the
// separator.
func copyErrorParts(err error) (sentence, advice string) {
	sentence = copyErrorText(err)
	var failure *filecopy.Error
	if errors.As(err, &failure) {
		_, advice, _ = strings.Cut(failure.Err.Error(), "; ")
	}
	if advice != "" {
		sentence = strings.TrimSuffix(sentence, "; "+advice)
	}
	return sentence, advice
}

// copyLineText returns a result as a line of text.
func copyLineText(r filecopy.Result) string {
	var how []string
	if r.Size > 0 {
		how = append(how, cli.BytesText(r.Size))
	}
	if r.Method != filecopy.Auto {
		how = append(how, r.Method.String())
	}
	if r.Resumed > 0 {
		how = append(how, cli.BytesText(r.Resumed)+" were there already")
	}
	for _, is := range []struct {
		so   bool
		text string
	}{{r.Verified, "verified"}, {r.Durable, "durable"}, {r.Changed, "changed meanwhile"}, {r.NotKept != nil, "not everything is kept"}} {
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

// print prints the totals, and returns the first error of standard output.
func (s *copyShow) print(t filecopy.Totals, err error) error {
	if !s.json {
		if !s.quiet && (err == nil || t.Files+t.Dirs+t.Links+t.Failed+t.Refused > 0) {
			s.keep(cli.WriteLocal(s.stdout, func(w io.Writer) error { _, err := io.WriteString(w, s.totalsText(t)); return err }))
		}
		return s.broken
	}
	end := cli.EndComplete
	switch {
	case errors.Is(err, context.Canceled):
		end = cli.EndInterrupted
	case err != nil && !s.options.KeepGoing:
		end = cli.EndStopped
	}
	methods := map[string]int{}
	for m, n := range t.Methods {
		methods[m.String()] = n
	}
	s.keep(json.NewEncoder(s.stdout).Encode(struct {
		Kind      string         `json:"kind"` // copy_totals
		End       cli.EndKind    `json:"end"`
		Files     int            `json:"files"`
		Dirs      int            `json:"directories"`
		Links     int            `json:"links"`
		Refused   int            `json:"refused"`
		Failed    int            `json:"failed"`
		Skipped   int            `json:"skipped"`
		Size      int64          `json:"size_bytes"`
		Copied    int64          `json:"copied_bytes"`
		Holes     int64          `json:"hole_bytes"`
		Changed   int            `json:"changed"`
		NotKept   int            `json:"not_kept"`
		Methods   map[string]int `json:"methods"`
		Policy    string         `json:"policy"`
		Durable   bool           `json:"durable"`
		NoJournal int            `json:"no_journal"`
		Elapsed   time.Duration  `json:"elapsed_ns"`
	}{"copy_totals", end, t.Files, t.Dirs, t.Links, t.Refused, t.Failed, t.Skipped, t.Size, t.Copied, s.holes, t.Changed, t.NotKept, methods, s.policy.String(), s.undurable == 0, t.NoJournal, t.Elapsed}))
	return s.broken
}

func (s *copyShow) totalsText(t filecopy.Totals) string {
	var b strings.Builder
	fmt.Fprintf(&b, "copied: %s", cli.CountText(int64(t.Files), "file"))
	if t.Dirs > 0 {
		fmt.Fprintf(&b, ", %s", cli.CountText(int64(t.Dirs), "directory"))
	}
	if t.Links > 0 {
		fmt.Fprintf(&b, ", %s", cli.CountText(int64(t.Links), "link"))
	}
	fmt.Fprintf(&b, ", %s in %v", cli.BytesText(t.Size), t.Elapsed.Round(10*time.Microsecond))
	if t.Elapsed >= time.Millisecond && t.Size > 0 {
		fmt.Fprintf(&b, " (%s/s)", cli.BytesText(int64(float64(t.Size)/t.Elapsed.Seconds())))
	}
	b.WriteString("\n")
	var methods []string // the methods of files with bytes to move
	for _, m := range slices.Sorted(maps.Keys(t.Methods)) {
		if n := t.Methods[m]; m != filecopy.Auto && n > 0 {
			methods = append(methods, fmt.Sprintf("%v %s", m, cli.CountText(int64(n), "file")))
		}
	}
	if len(methods) > 0 {
		fmt.Fprintf(&b, "by: %s\n", strings.Join(methods, ", "))
	}
	if s.holes > 0 {
		fmt.Fprintf(&b, "holes kept: %s\n", cli.BytesText(s.holes))
	}
	if t.Changed > 0 {
		fmt.Fprintf(&b, "changed during the copy: %s, whose copies may mix old and new bytes\n", cli.CountText(int64(t.Changed), "file"))
	}
	if t.NotKept > 0 {
		fmt.Fprintf(&b, "not kept: properties of %s, first %s; the file system or its mount does not permit them\n", cli.CountText(int64(t.NotKept), "name"), notKeptText(s.notKept))
	}
	if t.Skipped > 0 {
		fmt.Fprintf(&b, "left out: %s: pipes, sockets and devices\n", cli.CountText(int64(t.Skipped), "name"))
	}
	if t.Failed+t.Refused > 0 {
		fmt.Fprintf(&b, "not copied: %d failed, %d refused\n", t.Failed, t.Refused)
	}
	if t.Files+t.Dirs+t.Links > 0 {
		verified := "no, --verify was not given"
		if s.options.Verify {
			verified = "each copy was read back from the disk and equals its source"
		}
		fmt.Fprintf(&b, "verified: %s\ndurable: %s\n", verified, s.durableText())
	}
	if t.NoJournal > 0 {
		b.WriteString(cli.NoJournalText)
	}
	return b.String()
}

func (s *copyShow) durableText() string {
	switch {
	case s.undurable == 0: // also with --verify, which reads synced bytes from the disk
		return "everything copied"
	case s.options.Policy.Sync.Mode == holdfast.SyncNever && !s.options.Atomic:
		return "nothing is guaranteed under sync=never: the kernel writes the bytes within about half a minute"
	}
	return fmt.Sprintf("all but %d", s.undurable)
}
