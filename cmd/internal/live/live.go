// Package live draws on the whole terminal while a command runs, and takes keys.
//
// It draws when it is called and at no other time: a measurement must not share its CPU with a
// clock that redraws. Start with [Open].
package live

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/holdfast-go/holdfast/cmd/internal/cli"
)

// A Screen is a terminal that was taken over. Several goroutines may call its methods.
type Screen struct {
	HasKeys bool // keys are taken

	out      *os.File
	terminal *os.File     // that of the keys
	before   *term.State  // of it; nil: no keys are taken
	end      func() error // the reading of keys; nil: that can't be ended

	mu     sync.Mutex
	closed bool
}

// The sequences of ECMA-48 and xterm that are used.
const (
	enter = "\x1b[?1049h\x1b[?25l" // the other screen, without a cursor
	leave = "\x1b[?25h\x1b[?1049l"
	home  = "\x1b[H"
	erase = "\x1b[K" // to the end of the line
	below = "\x1b[J" // all that is below
)

// ErrNoTerminal reports that there is no terminal that can be drawn on.
var ErrNoTerminal = errors.New("standard output is no terminal that can be drawn on")

// Open takes over the terminal out until [Screen.Close]. If in is a terminal too, each key is
// given to onKey, on a goroutine of its own. Ctrl-C is a key then: the byte 3.
func Open(in io.Reader, out io.Writer, onKey func(byte)) (*Screen, error) {
	f, ok := cli.Bare(out).(*os.File)
	if !ok || !cli.IsTerminal(f) || !canDraw(f) {
		return nil, ErrNoTerminal
	}
	s := &Screen{out: f}
	if keys, ok := in.(*os.File); ok && term.IsTerminal(int(keys.Fd())) {
		if err := s.takeKeys(keys, onKey); err != nil {
			return nil, err
		}
	}
	if _, err := f.WriteString(enter); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// takeKeys reads keys until Close where a read can be ended, else until the process ends.
func (s *Screen) takeKeys(terminal *os.File, onKey func(byte)) (err error) {
	s.terminal, s.HasKeys = terminal, true
	if s.before, err = term.MakeRaw(int(terminal.Fd())); err != nil {
		return err
	}
	keys := terminal
	// Opened anew, as Linux can, its reads can be ended. The old one has its mode from the shell.
	if again, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", terminal.Fd())); err == nil {
		if again.SetReadDeadline(time.Time{}) == nil {
			keys, s.end = again, func() error { return again.SetReadDeadline(time.Unix(1, 0)) }
		} else {
			again.Close()
		}
	}
	go func() {
		key := make([]byte, 1)
		for {
			if n, err := keys.Read(key); n == 0 || err != nil {
				break
			}
			onKey(key[0])
		}
		if keys != terminal {
			keys.Close()
		}
	}()
	return nil
}

// Draw shows these lines and no others. What does not fit is cut. After Close it draws nothing. lines has
// the size of the terminal; where that is not known, the size of the first ones.
func (s *Screen) Draw(lines func(columns, rows int) []string) {
	columns, rows, err := term.GetSize(int(s.out.Fd()))
	if err != nil || columns <= 0 || rows <= 0 {
		columns, rows = 80, 24
	}
	all := lines(columns, rows)
	var b strings.Builder
	b.WriteString(home)
	for i, line := range all[:min(len(all), rows)] {
		if i > 0 {
			b.WriteString("\r\n")
		}
		text := []rune(cli.Visible(cli.OneLine(strings.ReplaceAll(line, "\t", " "))))
		b.WriteString(string(text[:min(len(text), columns)]))
		if len(text) < columns {
			b.WriteString(erase)
		}
	}
	if len(all) < rows {
		b.WriteString("\r\n" + below)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		_, _ = s.out.WriteString(b.String()) // a terminal that is gone ends the process by a signal
	}
}

// Close gives the terminal back as it was. Later calls do nothing. It may be called by onKey.
func (s *Screen) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	_, err := fmt.Fprint(s.out, leave)
	if s.before != nil {
		err = errors.Join(err, term.Restore(int(s.terminal.Fd()), s.before))
	}
	if s.end != nil {
		err = errors.Join(err, s.end())
	}
	return err
}
