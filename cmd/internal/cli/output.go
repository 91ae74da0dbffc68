package cli

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// An output is standard output, standard error, or a file for text. It passes on nothing that
// controls a terminal: see Visible. It keeps a failed write, because tables and helps are written
// line by line. Several goroutines may use it.
type output struct {
	io.Writer
	mu     sync.Mutex
	part   []byte         // the incomplete last character
	failed *OutputFailure // the first failure
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

// isPlain reports whether a text has only printable ASCII, line feeds and tabs. Exports have
// hundreds of such megabytes, which then need no copy.
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
	_ = o.writeLocked([]byte(Visible(string(o.part)))) // o keeps the failure
	o.part = nil
	if o.failed == nil {
		return nil
	}
	return &Refusal{ExitCannot, o.failed, DiskHint(o.failed.Err)}
}

// wholeCharacters returns the length of a text without an incomplete last character.
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

// Bare returns the writer below an output: for binary bytes, and for lines that are overwritten.
func Bare(w io.Writer) io.Writer {
	if o, ok := w.(*output); ok {
		return o.Writer
	}
	return w
}

// Visible escapes control characters (except line feeds and tabs), marks that change the direction
// of writing, and bytes that are not UTF-8: names and results may contain them, and a terminal
// would obey. Each is written as in a JSON string, so that JSON keeps its meaning.
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

// An OutputFailure is a failed write to standard output.
type OutputFailure struct{ Err error }

func (e *OutputFailure) Error() string { return "standard output: " + PlainText(e.Err) }

func (e *OutputFailure) Unwrap() error { return e.Err }
