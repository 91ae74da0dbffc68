package live

import (
	"bytes"
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/terminaltest"
)

// drawn reads what a terminal was sent, up to a text.
func drawn(t *testing.T, controller *os.File, until string) string {
	t.Helper()
	var all []byte
	for piece := make([]byte, 4096); !bytes.Contains(all, []byte(until)); {
		n, err := controller.Read(piece)
		if err != nil {
			t.Fatalf("%v after %q", err, all)
		}
		all = append(all, piece[:n]...)
	}
	return string(all)
}

func TestTerminalIsGivenBackAsItWas(t *testing.T) {
	t.Setenv("TERM", "xterm")
	goroutines := runtime.NumGoroutine()
	controller, terminal := terminaltest.Open(t, 40)
	before := terminaltest.Mode(t, terminal)
	keys := make(chan byte, 10)
	s, err := Open(terminal, terminal, func(key byte) { keys <- key })
	if err != nil {
		t.Fatal(err)
	}
	if terminaltest.Mode(t, terminal) == before {
		t.Error("keys come by whole lines")
	}
	if _, err := controller.WriteString("x\x03"); err != nil {
		t.Fatal(err)
	}
	if !s.HasKeys || <-keys != 'x' || <-keys != 3 {
		t.Error("other keys came")
	}
	s.Draw(func(columns, rows int) []string {
		if columns != 40 || rows != 24 {
			t.Errorf("the terminal has %d columns and %d rows", columns, rows)
		}
		return []string{"one", strings.Repeat("wide", 20), "\x1b[31mhostile\n\u202e\tname"}
	})
	got := drawn(t, controller, below)
	if !strings.Contains(got, "wide\r\n\\u001b[31mhostile\\n\\u202e name") || strings.Contains(got, strings.Repeat("wide", 11)) {
		t.Errorf("it drew %q", got)
	}
	func() {
		defer func() { _ = recover() }()
		defer s.Close()
		panic("in the middle")
	}()
	if terminaltest.Mode(t, terminal) != before {
		t.Error("the mode is another one after a panic")
	}
	drawn(t, controller, leave)
	s.Draw(func(int, int) []string { return []string{"late"} })
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := terminal.WriteString("end"); err != nil {
		t.Fatal(err)
	}
	if got := drawn(t, controller, "end"); strings.Contains(got, "late") {
		t.Errorf("it still draws: %q", got)
	}
	for start := time.Now(); runtime.NumGoroutine() > goroutines; runtime.Gosched() {
		if time.Since(start) > time.Minute {
			t.Fatal("the goroutine of the keys is left")
		}
	}
}

func TestWhatIsNoTerminalIsNotTakenOver(t *testing.T) {
	t.Setenv("TERM", "xterm")
	var buffer bytes.Buffer
	if _, err := Open(strings.NewReader("q"), &buffer, nil); !errors.Is(err, ErrNoTerminal) || buffer.Len() > 0 {
		t.Errorf("%v, and %q", err, buffer.String())
	}
	controller, terminal := terminaltest.Open(t, 40)
	s, err := Open(strings.NewReader("q"), terminal, func(byte) { t.Error("a key came") })
	if err != nil {
		t.Fatal(err)
	}
	if s.HasKeys {
		t.Error("keys are taken from what is no terminal")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	drawn(t, controller, enter+leave)
	t.Setenv("TERM", "dumb")
	if _, err := Open(terminal, terminal, nil); !errors.Is(err, ErrNoTerminal) {
		t.Errorf("a terminal that obeys nothing: %v", err)
	}
}
