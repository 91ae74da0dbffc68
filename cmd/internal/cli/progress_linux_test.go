package cli

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/internal/isolate"
)

// drawnLines are lines written over each other on a terminal. They may be read some moments later,
// and in pieces.
func drawnLines(t *testing.T, controller, terminal *os.File) []string {
	t.Helper()
	const last = "that is all"
	if _, err := terminal.WriteString(last); err != nil {
		t.Fatal(err)
	}
	var all []byte
	for piece := make([]byte, 4096); !bytes.HasSuffix(all, []byte(last)); {
		n, err := controller.Read(piece)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, piece[:n]...)
	}
	text := strings.TrimSuffix(string(all), last)
	return strings.FieldsFunc(text, func(r rune) bool { return r == '\r' || r == '\n' })
}

// TestProgressFitsTheTerminal tells how far a copy and a run are: a line that is longer
// than the terminal is wide can't be written over.
func TestProgressFitsTheTerminal(t *testing.T) {
	t.Setenv("TERM", "xterm")
	for _, columns := range []uint16{40, 60, 100} {
		controller, terminal := isolate.Terminal(t, columns)
		m := NewProgress(terminal, false).OfBytes(1023 << 20)
		m.begun = time.Now().Add(-5 * time.Minute)
		m.SetBytes(123 << 20)
		m.End()
		p := NewProgress(terminal, false)
		p.Steps("round 3/10, 2m5s left, ext4-nojournal: file to file, read+write 64KiB/again", 6, 80)
		p.End()
		lines := drawnLines(t, controller, terminal)
		for _, line := range lines {
			if utf8.RuneCountInString(line) > int(columns) {
				t.Errorf("%d columns on a terminal of %d: %q", utf8.RuneCountInString(line), columns, line)
			}
		}
		if told := strings.Join(lines, "\n"); !strings.Contains(told, " left  12% [") || !strings.Contains(told, "round 3/10, 2m5s left") {
			t.Errorf("on %d columns it told:\n%s", columns, told)
		} else if rate := regexp.MustCompile(`\] 123 MiB of 1023 MiB, 4[0-2]\d KiB/s`); columns == 100 && !rate.MatchString(told) {
			t.Errorf("the rate since the bar began is missing:\n%s", told)
		}
	}
}

// TestMessagesFitTheTerminal: what is said of a run, an error and its hint.
func TestMessagesFitTheTerminal(t *testing.T) {
	const columns = 60
	controller, terminal := isolate.Terminal(t, columns)
	Say(terminal, "plan: %s", strings.Repeat("what is said ", 20))
	Report(terminal, Misuse(strings.Repeat("what to do ", 20), "%s", strings.Repeat("what failed ", 20)))
	lines := drawnLines(t, controller, terminal)
	for _, line := range lines {
		if utf8.RuneCountInString(line) > columns {
			t.Errorf("%d columns on a terminal of %d: %q", utf8.RuneCountInString(line), columns, line)
		}
	}
	if words := strings.Join(lines, " "); strings.Count(words, "what") != 60 || len(lines) > 18 {
		t.Errorf("it said:\n%s", strings.Join(lines, "\n"))
	}
}
