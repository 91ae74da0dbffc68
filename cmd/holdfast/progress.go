package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/holdfast-go/holdfast/internal/trial"
)

// A progress tells how far the run is: one line that is written over on a
// terminal, else a plain line for each round. It uses no colour. It writes only
// between trials, off the clock.
type progress struct {
	stderr io.Writer
	bar    *progressbar.ProgressBar // nil where it is not a terminal
	round  int
}

func newProgress(stderr io.Writer) *progress {
	return &progress{stderr: stderr, round: -1}
}

// isTerminal reports whether w is a terminal that can write over a line.
func isTerminal(w io.Writer) bool {
	if o, ok := w.(*output); ok {
		w = o.Writer
	}
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}

func newBar(w io.Writer, steps int) *progressbar.ProgressBar {
	return progressbar.NewOptions(steps,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetElapsedTime(false),
		progressbar.OptionSetWidth(7),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionSetTheme(progressbar.ThemeASCII),
	)
}

// probing follows the calibration.
func (p *progress) probing(done, all int) {
	if !isTerminal(p.stderr) {
		return
	}
	if p.bar == nil {
		p.bar = newBar(p.stderr, all)
	}
	p.bar.Describe("calibrating")
	_ = p.bar.Set(done)
	if done+1 == all {
		p.end()
	}
}

// begin tells of the trial that comes.
func (p *progress) begin(s trial.Step) {
	if isTerminal(p.stderr) {
		if p.bar == nil {
			p.bar = newBar(p.stderr, s.Trials)
		}
		p.bar.Describe(fit(stepText(s), columns(p.stderr)-barColumns))
		p.bar.ChangeMax(max(s.Trials, s.Trial))
		_ = p.bar.Set(s.Trial - 1)
		return
	}
	if s.Round != p.round {
		p.round = s.Round
		fmt.Fprintf(p.stderr, "holdfast: %s, %s left\n", roundText(s), leftText(s))
	}
}

// stepText tells of a trial. The arms of a study have names.
func stepText(s trial.Step) string {
	left := s.Left.Round(time.Second).String()
	if s.Open {
		left = "≤" + left
	}
	what := s.Cell.Name
	if s.Cell.Group == "" {
		what = fmt.Sprintf("%d x %v", s.Cell.Writers, s.Cell.Policy)
	}
	return fmt.Sprintf("round %d/%d, %s left, %s", s.Round, max(s.Round, s.Rounds), left, what)
}

// barColumns is what a line has besides its text: 100% [=======] and blanks.
const barColumns = 18

// columns is the width of a terminal, or 80 where it is not known.
func columns(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return 80
}

// fit cuts a text to so many columns: a longer line can't be written over.
func fit(text string, most int) string {
	runes := []rune(text)
	return string(runes[:min(len(runes), max(0, most))])
}

// end takes the line away.
func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Clear()
		p.bar = nil
	}
}

func roundText(s trial.Step) string {
	switch {
	case s.Round == 0:
		return "warm-up"
	case s.Open:
		return fmt.Sprintf("round %d of about %d", s.Round, max(s.Round, s.Rounds))
	}
	return fmt.Sprintf("round %d of %d", s.Round, s.Rounds)
}

// leftText is about how long the run goes on, or at most.
func leftText(s trial.Step) string {
	left := s.Left.Round(time.Second).String()
	if s.Open {
		return "at most " + left
	}
	return left
}
