package cli

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// An output is the standard output or standard error of the command, or a file that it
// writes text to. It passes on nothing that sets a terminal: see Visible. It remembers a
// failed write, because tables and helps are written line by line. Several goroutines may
// use it.
type output struct {
	io.Writer
	mu     sync.Mutex
	part   []byte         // the beginning of a character, until its end comes
	failed *OutputFailure // the first one
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	visible := p
	if len(o.part) > 0 || !isPlain(p) {
		text := append(o.part, p...)
		whole := wholeCharacters(text)
		o.part = append([]byte(nil), text[whole:]...)
		visible = []byte(Visible(string(text[:whole])))
	}
	if err := o.writeLocked(visible); err != nil {
		return 0, err
	}
	return len(p), nil
}

// isPlain reports whether a text is of ASCII's printed characters, line feeds and tabs. So are hundreds of
// megabytes of an export, which need no copies.
func isPlain(text []byte) bool {
	for _, c := range text {
		if (c < ' ' || c > '~') && c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}

func (o *output) writeLocked(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	_, err := o.Writer.Write(text)
	if err != nil && o.failed == nil {
		o.failed = &OutputFailure{Cause(err)}
	}
	return err
}

// End writes an incomplete last character, and returns the first failure.
func (o *output) End() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	_ = o.writeLocked([]byte(Visible(string(o.part)))) // it remembers
	o.part = nil
	if o.failed == nil {
		return nil
	}
	return &Refusal{ExitCannot, o.failed, DiskHint(o.failed.Err)}
}

// wholeCharacters is how many bytes of a text come before an incomplete last character.
func wholeCharacters(text []byte) int {
	for i := len(text) - 1; i >= max(0, len(text)-utf8.UTFMax); i-- {
		if utf8.RuneStart(text[i]) {
			if !utf8.FullRune(text[i:]) {
				return i
			}
			break
		}
	}
	return len(text)
}

// Bare is the writer below an output: for bytes that are no text, and for lines that are
// written over.
func Bare(w io.Writer) io.Writer {
	if o, ok := w.(*output); ok {
		return o.Writer
	}
	return w
}

// Visible returns a text without control characters (but line feeds and tabs), marks that
// change the direction of writing, and bytes that are no UTF-8. Names and results may hold
// them, and a terminal would obey. Each is written as in a string of JSON, so that JSON
// keeps its meaning.
func Visible(text string) string {
	if utf8.ValidString(text) && !strings.ContainsFunc(text, isUnsafe) {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case isUnsafe(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteString(text[:size])
		}
		text = text[size:]
	}
	return b.String()
}

func isUnsafe(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r)
}

// An OutputFailure says that a write to standard output failed.
type OutputFailure struct{ Err error }

func (e *OutputFailure) Error() string { return "standard output: " + PlainText(e.Err) }

func (e *OutputFailure) Unwrap() error { return e.Err }
