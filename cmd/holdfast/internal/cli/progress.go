package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// A Progress is the one line on standard error that says how far a command is. On a
// terminal it is written over, as a bar or as a text. Elsewhere there is no bar, and each
// text is a line of its own. Messages clear it first. It uses no colour. Several goroutines
// may call its methods.
type Progress struct {
	stderr     io.Writer
	IsTerminal bool
	quiet      bool // but for failures

	ticks chan struct{} // closed at the end
	ended sync.WaitGroup

	mu       sync.Mutex
	bar      *progressbar.ProgressBar // that stands on the terminal, or nil
	text     string                   // before the bar
	begun    time.Time                // the bar
	drawn    time.Time                // its last state
	wide     int                      // bytes of the text that stands on the terminal
	failures int
}

const (
	everyTerminal = 250 * time.Millisecond // between texts
	everyPlain    = 10 * time.Second
	everyBar      = 100 * time.Millisecond // between states of a bar of bytes
	MostFailures  = 10                     // that are reported one by one
)

// NewProgress returns a progress that shows nothing yet; a quiet one reports failures alone.
func NewProgress(stderr io.Writer, quiet bool) *Progress {
	return &Progress{stderr: stderr, quiet: quiet, IsTerminal: IsTerminal(stderr), ticks: make(chan struct{})}
}

// IsTerminal reports whether w is a terminal that can write over a line.
func IsTerminal(w io.Writer) bool {
	f, ok := Bare(w).(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}

// HasBar reports whether a bar would be seen.
func (p *Progress) HasBar() bool { return p.IsTerminal && !p.quiet }

// Every shows what text returns now and then, until the end.
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
	fmt.Fprintf(Bare(p.stderr), "\r%-*s", p.wide, text)
	p.wide = len(text)
}

// Steps shows a bar of steps behind a text.
func (p *Progress) Steps(text string, done, all int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.HasBar() {
		return
	}
	if p.bar == nil {
		p.bar = newBar(p.stderr, int64(all), 7)
	}
	p.bar.Describe(fit(Visible(OneLine(text)), columns(p.stderr, 80)-barColumns))
	p.bar.ChangeMax(all)
	_ = p.bar.Set(done)
}

// OfBytes begins a bar of this many bytes, or no bar for 0 bytes.
func (p *Progress) OfBytes(total int64) *Progress {
	if p.HasBar() && total > 0 {
		p.bar, p.begun = newBytesBar(p.stderr, total), time.Now()
	}
	return p
}

// SetBytes shows how many bytes are done, and estimates how long the others take.
func (p *Progress) SetBytes(done int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.isDueLocked() {
		return
	}
	total := p.bar.GetMax64()
	left := time.Duration(0)
	if done > 0 {
		left = time.Duration(float64(time.Since(p.begun)) * float64(total-done) / float64(done))
	}
	p.bytesLocked(done, total, left)
}

// Bytes shows how many of the bytes are done; without left it shows no time.
func (p *Progress) Bytes(done, total int64, left time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isDueLocked() && total > 0 {
		p.bytesLocked(done, total, left)
	}
}

// isDueLocked reports whether the bar of bytes may be drawn again.
func (p *Progress) isDueLocked() bool { return p.bar != nil && time.Since(p.drawn) >= everyBar }

func (p *Progress) bytesLocked(done, total int64, left time.Duration) {
	p.drawn = time.Now()
	text := ""
	if left > 0 {
		text = fmt.Sprintf("%v left", max(time.Second, left.Round(time.Second)))
	}
	// Each of these draws the line.
	if total != p.bar.GetMax64() {
		p.bar.ChangeMax64(total)
	}
	_ = p.bar.Set64(min(done, total))
	if text != p.text {
		p.bar.Describe(text)
		p.text = text
	}
}

// Clear removes the line until more is shown.
func (p *Progress) Clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clearLocked()
}

func (p *Progress) clearLocked() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
	if p.wide > 0 {
		fmt.Fprintf(Bare(p.stderr), "\r%s\r", strings.Repeat(" ", p.wide))
		p.wide = 0
	}
}

// Failure reports one of the first failures.
func (p *Progress) Failure(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failures++; p.failures > MostFailures {
		return
	}
	p.clearLocked()
	Say(p.stderr, format, args...)
	if p.failures == MostFailures {
		fmt.Fprintln(p.stderr, "holdfast: further failures are counted")
	}
}

// Say reports something that is no failure, unless the progress is quiet.
func (p *Progress) Say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.quiet {
		p.clearLocked()
		Say(p.stderr, format, args...)
	}
}

// EndBar removes the bar. A later one begins anew.
func (p *Progress) EndBar() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clearLocked()
	p.bar = nil
}

// End removes the line for good. It is called once.
func (p *Progress) End() {
	close(p.ticks)
	p.ended.Wait()
	p.EndBar()
}

// barColumns is what a line of steps has besides its text: 100% [=======] and blanks.
const barColumns = 18

func newBar(w io.Writer, steps int64, wide int, more ...progressbar.Option) *progressbar.ProgressBar {
	return progressbar.NewOptions64(steps, append([]progressbar.Option{
		progressbar.OptionSetWriter(Bare(w)),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetElapsedTime(false),
		progressbar.OptionSetWidth(wide),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionSetTheme(progressbar.ThemeASCII),
	}, more...)...)
}

// narrow is the width below which time, bytes and rate do not fit on one line.
const narrow = 56

// newBytesBar is a bar whose time begins now. Otherwise it would begin with the first done
// bytes, which would then seem to have taken no time.
func newBytesBar(w io.Writer, bytes int64) *progressbar.ProgressBar {
	isWide := columns(w, 80) >= narrow
	more := []progressbar.Option{progressbar.OptionShowBytes(isWide), progressbar.OptionUseIECUnits(true)}
	if isWide {
		more = append(more, progressbar.OptionShowCount())
	}
	bar := newBar(w, bytes, 20, more...)
	bar.StartWithoutRender()
	return bar
}

// columns is the width of a terminal, or otherwise where it is not known.
func columns(w io.Writer, otherwise int) int {
	if f, ok := Bare(w).(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return otherwise
}

// fit cuts a text to the columns of a terminal: a longer line can't be written over.
func fit(text string, most int) string {
	runes := []rune(text)
	return string(runes[:min(len(runes), max(0, most))])
}
