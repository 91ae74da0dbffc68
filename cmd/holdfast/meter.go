package main

import (
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
)

// A meter tells, on a terminal and nowhere else, how many bytes of how many are
// done, how fast, and how long it goes on: one line that is written over.
type meter struct {
	bar   *progressbar.ProgressBar // nil: it tells nothing
	began time.Time
	told  time.Time
	text  string // that stands before the bar
}

// meterEvery is how often it tells something new.
const meterEvery = 100 * time.Millisecond

// newMeter returns a meter of so many bytes; of none it tells nothing.
func newMeter(stderr io.Writer, bytes int64, quiet bool) *meter {
	if quiet || !isTerminal(stderr) || bytes == 0 {
		return &meter{}
	}
	return &meter{bar: newBytesBar(stderr, bytes), began: time.Now()}
}

// narrow are the columns in which time, bytes and rate have no place on one line.
const narrow = 56

// newBytesBar is a bar whose time begins now: else it begins when the first bytes are
// done, which then seem to have taken none.
func newBytesBar(w io.Writer, bytes int64) *progressbar.ProgressBar {
	count := func(*progressbar.ProgressBar) {}
	isWide := columns(w) >= narrow
	if isWide {
		count = progressbar.OptionShowCount()
	}
	bar := progressbar.NewOptions64(bytes,
		progressbar.OptionSetWriter(w),
		progressbar.OptionShowBytes(isWide),
		count,
		progressbar.OptionUseIECUnits(true),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetElapsedTime(false),
		progressbar.OptionSetWidth(20),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionSetTheme(progressbar.ThemeASCII),
	)
	bar.StartWithoutRender()
	return bar
}

// isOn reports whether anybody sees it.
func (m *meter) isOn() bool { return m.bar != nil }

// set tells that so many bytes are done, and guesses how long the others take.
func (m *meter) set(done int64) {
	if m.bar == nil || time.Since(m.told) < meterEvery {
		return
	}
	total := m.bar.GetMax64()
	left := time.Duration(0)
	if done > 0 {
		left = time.Duration(float64(time.Since(m.began)) * float64(total-done) / float64(done))
	}
	m.tell(done, total, left, true)
}

// tell tells how far it is. Without left, or where the total still grows, it says
// nothing of the time.
func (m *meter) tell(done, total int64, left time.Duration, stands bool) {
	if m.bar == nil || time.Since(m.told) < meterEvery || total == 0 {
		return
	}
	m.told = time.Now()
	text := ""
	if left > 0 && stands {
		text = fmt.Sprintf("%v left", max(time.Second, left.Round(time.Second)))
	}
	// Each of these draws the line.
	if total != m.bar.GetMax64() {
		m.bar.ChangeMax64(total)
	}
	_ = m.bar.Set64(min(done, total))
	if text != m.text {
		m.bar.Describe(text)
		m.text = text
	}
}

// clear takes the line away until more is told.
func (m *meter) clear() {
	if m.bar != nil {
		_ = m.bar.Clear()
	}
}

// end takes the line away for good.
func (m *meter) end() {
	m.clear()
	m.bar = nil
}
