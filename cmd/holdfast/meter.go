package main

import (
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
)

// A meter tells, on a terminal and nowhere else, how many bytes of how many are
// done, how fast, and how long it goes on: one line that is written over.
type meter struct {
	bar *progressbar.ProgressBar // nil: it tells nothing
}

// newMeter returns a meter of so many bytes.
func newMeter(stderr io.Writer, bytes int64, quiet bool) *meter {
	if quiet || !isTerminal(stderr) || bytes == 0 {
		return &meter{}
	}
	return &meter{progressbar.NewOptions64(bytes,
		progressbar.OptionSetWriter(stderr),
		progressbar.OptionShowBytes(true),
		progressbar.OptionShowTotalBytes(true),
		progressbar.OptionUseIECUnits(true),
		progressbar.OptionSetWidth(20),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionSetRenderBlankState(true),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionSetTheme(progressbar.ThemeASCII),
	)}
}

func (m *meter) set(done int64) {
	if m.bar != nil {
		_ = m.bar.Set64(done)
	}
}

// end takes the line away.
func (m *meter) end() {
	if m.bar != nil {
		_ = m.bar.Clear()
		m.bar = nil
	}
}
