package cli

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
)

// A Progress is the line on standard error with the progress of a command. On a terminal it is
// overwritten, as a bar or as a text. Elsewhere there is no bar, and each text is a line of its
// own. Messages clear it first. It uses no colour. Several goroutines may call its methods.
type Progress struct {
	stderr     io.Writer
	IsTerminal bool
	quiet      bool // shows failures only

	ticks chan struct{} // closed by End
	ended sync.WaitGroup

	mu       sync.Mutex
	total    int64     // the total of a bar of bytes; 0: no bar
	begun    time.Time // the bar's begin
	drawn    time.Time // its last drawing
	wide     int       // columns of the current line
	failures int
	causes   map[syscall.Errno]bool // causes already shown
}

const (
	everyTerminal = 250 * time.Millisecond // between texts
	everyPlain    = 10 * time.Second
	everyBar      = 100 * time.Millisecond // between drawings of a bar of bytes
	MostFailures  = 10                     // reported one by one
)

// NewProgress returns a Progress that shows nothing yet; a quiet one shows only failures.
func NewProgress(stderr io.Writer, quiet bool) *Progress {
	return &Progress{stderr: stderr, quiet: quiet, IsTerminal: IsTerminal(stderr), ticks: make(chan struct{})}
}

// IsTerminal reports whether w is a terminal on which a line can be overwritten.
func IsTerminal(w io.Writer) bool {
	f, ok := Bare(w).(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}

// HasBar reports whether a bar would be seen.
func (p *Progress) HasBar() bool { return p.IsTerminal && !p.quiet }

// Every shows the value of text every now and then, until End.
func (p *Progress) Every(text func() string) {
	if p.quiet {
		return
	}
	every := everyPlain
	if p.IsTerminal {
		every = everyTerminal
	}
	p.ended.Go(func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				p.Show(text())
			case <-p.ticks:
				return
			}
		}
	})
}

// Show shows a text.
func (p *Progress) Show(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text = "holdfast: " + text
	if !p.IsTerminal {
		fmt.Fprintln(p.stderr, text)
		return
	}
	p.lineLocked(text)
}

// lineLocked overwrites the current line. It cuts a line to the terminal's width, because a longer
// one could not be overwritten.
func (p *Progress) lineLocked(line string) {
	line = fit(line, columns(p.stderr, 80)-1)
	fmt.Fprintf(Bare(p.stderr), "\r%-*s", p.wide, line)
	p.wide = utf8.RuneCountInString(line)
}

// Steps shows a bar of steps after a text.
func (p *Progress) Steps(text string, done, all int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.HasBar() {
		return
	}
	const stepsColumns = 14 // the bar has 7 of them
	text = fit(Visible(OneLine(text)), columns(p.stderr, 80)-stepsColumns-2)
	p.lineLocked(text + " " + bar(int64(done), int64(all), stepsColumns))
}

// OfBytes begins a bar of total bytes, or no bar for 0 bytes.
func (p *Progress) OfBytes(total int64) *Progress {
	if p.HasBar() {
		p.total, p.begun = total, time.Now()
	}
	return p
}

// SetBytes shows the number of bytes done, and an estimate of the time left.
func (p *Progress) SetBytes(done int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	left := time.Duration(0)
	if done > 0 {
		left = time.Duration(float64(time.Since(p.begun)) * float64(p.total-done) / float64(done))
	}
	p.bytesLocked(done, p.total, left)
}

// Bytes shows the number of bytes done, and the time left unless that is 0.
func (p *Progress) Bytes(done, total int64, left time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bytesLocked(done, total, left)
}

// narrow is the width below which time, bytes and rate do not fit on one line.
const narrow = 76

func (p *Progress) bytesLocked(done, total int64, left time.Duration) {
	if p.total <= 0 || total <= 0 || time.Since(p.drawn) < everyBar {
		return
	}
	p.drawn = time.Now()
	line := bar(min(done, total), total, 27)
	if left > 0 {
		line = fmt.Sprintf("%v left %s", max(time.Second, left.Round(time.Second)), line)
	}
	if columns(p.stderr, 80) >= narrow {
		rate := float64(done) / max(p.drawn.Sub(p.begun), time.Millisecond).Seconds()
		line += fmt.Sprintf(" %s of %s, %s/s", BytesText(done), BytesText(total), BytesText(int64(rate)))
	}
	p.lineLocked(line)
}

// Clear removes the line until the next text.
func (p *Progress) Clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clearLocked()
}

func (p *Progress) clearLocked() {
	if p.wide > 0 {
		fmt.Fprintf(Bare(p.stderr), "\r%s\r", strings.Repeat(" ", p.wide))
		p.wide = 0
	}
}

// Failure reports one of the first MostFailures failures, or a failure with a new cause of the
// system. One lost sync fails many files, and the first cause may come late.
func (p *Progress) Failure(err error, format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var cause syscall.Errno
	isNew := errors.As(err, &cause) && !p.causes[cause]
	if isNew && p.causes == nil {
		p.causes = map[syscall.Errno]bool{}
	}
	if isNew {
		p.causes[cause] = true
	}
	if p.failures++; p.failures > MostFailures && !isNew {
		return
	}
	p.clearLocked()
	Say(p.stderr, format, args...)
	if p.failures == MostFailures {
		fmt.Fprintln(p.stderr, "holdfast: further failures are counted")
	}
}

// Say reports a message that is not a failure, unless the Progress is quiet.
func (p *Progress) Say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.quiet {
		p.clearLocked()
		Say(p.stderr, format, args...)
	}
}

// End removes the line for good. It is called once.
func (p *Progress) End() {
	close(p.ticks)
	p.ended.Wait()
	p.Clear()
}

// bar draws a part of a whole: 12% [==>      ].
func bar(done, whole int64, columns int) string {
	part := 0.0
	if whole > 0 {
		part = min(1, float64(done)/float64(whole))
	}
	inside := max(0, columns-len("100% []"))
	drawn := int(math.Ceil(part * float64(inside)))
	return fmt.Sprintf("%3.0f%% [%-*s]", 100*part, inside, strings.Repeat("=", max(0, drawn-1))+">"[:min(drawn, 1)])
}

// columns returns the width of a terminal, or otherwise if it is not known.
func columns(w io.Writer, otherwise int) int {
	if f, ok := Bare(w).(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return otherwise
}

// fit cuts a text to the columns of a terminal: a longer line can't be overwritten.
func fit(text string, most int) string {
	runes := []rune(text)
	return string(runes[:min(len(runes), max(0, most))])
}
