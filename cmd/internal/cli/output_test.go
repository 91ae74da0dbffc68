package cli

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// FuzzOutput writes a text in two parts, wherever it is cut. The output must have nothing that
// sets a terminal, and all of the rest.
func FuzzOutput(f *testing.F) {
	for _, text := range []string{"plain\ttext\n", "\x1b[31m", "\x7f\x00\r", "\u009b31m\x9b", "é\u202e\u2066\u200f", "\xff\xe2\x80", "�"} {
		f.Add(text, uint8(1))
	}
	f.Fuzz(func(t *testing.T, text string, cut uint8) {
		var b strings.Builder
		o := &output{Writer: &b}
		at := min(int(cut), len(text))
		for _, part := range []string{text[:at], text[at:]} {
			if n, err := o.Write([]byte(part)); n != len(part) || err != nil {
				t.Fatal(n, err)
			}
		}
		if err := o.End(); err != nil {
			t.Fatal(err)
		}
		got := b.String()
		if !utf8.ValidString(got) {
			t.Errorf("%q is written as %q, which is not UTF-8", text, got)
		}
		for _, r := range got {
			if r != '\n' && r != '\t' && unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
				t.Errorf("%q is written as %q, which has %q", text, got, r)
			}
		}
		if got != Visible(text) {
			t.Errorf("%q cut at %d is written as %q, and as a whole as %q", text, at, got, Visible(text))
		}
		if again := Visible(got); again != got {
			t.Errorf("%q becomes %q, then %q", text, got, again)
		}
	})
}
