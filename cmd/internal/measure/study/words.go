package study

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/chart"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/humanize"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
)

// The texts of figures in tables; an absent figure is a dash.

// Dash replaces an absent figure.
const Dash = "–"

// OrDash returns the text of x, or a dash where x is not known.
func OrDash(x float64, text string) string {
	if math.IsNaN(x) {
		return Dash
	}
	return text
}

// Milliseconds prints nanoseconds as the documents do: 276.4ms.
func Milliseconds(ns float64) string {
	return OrDash(ns, strconv.FormatFloat(ns/1e6, 'f', 1, 64)+"ms")
}

// Duration prints nanoseconds with three digits in a unit that fits: 1.23µs.
func Duration(ns float64) string {
	// The least value that prints as one of the unit: with three digits, 999.5ns is 1µs.
	least := func(unit time.Duration) float64 { return 0.9995 * float64(unit) }
	switch abs := math.Abs(ns); {
	case math.IsNaN(ns):
		return Dash
	case abs >= least(time.Second):
		return Digits(ns/1e9) + "s"
	case abs >= least(time.Millisecond):
		return Digits(ns/1e6) + "ms"
	case abs >= least(time.Microsecond):
		return Digits(ns/1e3) + "µs"
	}
	return Digits(ns) + "ns"
}

// Digits prints three digits, and no power of ten.
func Digits(x float64) string {
	switch {
	case math.IsNaN(x):
		return Dash
	case math.Abs(x) >= 999.5:
		return humanize.Grouped(int64(math.Round(x)))
	}
	text := strconv.FormatFloat(x, 'g', 3, 64)
	if strings.Contains(text, "e-") {
		rounded, _ := strconv.ParseFloat(text, 64)
		return strconv.FormatFloat(rounded, 'f', -1, 64)
	}
	return text
}

// Times prints a ratio: 19.3x, 1,394x.
func Times(x float64) string { return OrDash(x, Digits(x)+"x") }

// Whole prints a count with commas: 23,672,792.
func Whole(x float64) string {
	if math.IsNaN(x) {
		return Dash
	}
	return humanize.Grouped(int64(math.Round(x)))
}

// Percent prints a share: 99.8 %.
func Percent(share float64) string {
	return OrDash(share, Digits(share*100)+" %")
}

// Possible returns a share of a whole, or NaN if it is impossible: on a busy machine a part may be
// measured as longer than the whole.
func Possible(share float64) float64 {
	if share < 0 || share > 1 {
		return math.NaN()
	}
	return share
}

// OrDash prints a figure with its interval.
func (m Measured) OrDash() string { return OrDash(m.Value, m.String()) }

// Compared prints a ratio with its interval and its word: 1.9x (1.8x–2.0x), slower.
func Compared(c stat.Comparison) string {
	return OrDash(c.Ratio, Ratio(c).String()+", "+string(c.Verdict))
}

// Median prints a figure with its interval.
func Median(s stat.Summary, text func(float64) string) string { return Figure(s, text).OrDash() }

// Larger returns the larger of two figures, or the one of them that is known.
func Larger(a, b float64) float64 {
	if math.IsNaN(a) || b > a {
		return b
	}
	return a
}

// Short is the arm's name without its group.
func Short(arm string) string {
	_, name, _ := strings.Cut(arm, "/")
	return name
}

// NotRun is the text for an arm without figures.
func NotRun(e Evidence, arm string) string {
	if why := e.Missing(arm); why != "" {
		return "not run: " + why
	}
	return Dash
}

// SpeedUp prints the ratio of the times of two arms, slow/fast.
func SpeedUp(e Evidence, slow, fast string) string {
	return Ratio(e.Ratio(slow, fast, PerRecord)).OrDash()
}

// A Said is a part of a study's result: a format for the ratio of the times of two arms, Over/Under.
type Said struct{ Format, Over, Under string }

// Learnt returns the texts for the parts whose arms were run.
func (e Evidence) Learnt(parts ...Said) (texts []string) {
	for _, p := range parts {
		if text := SpeedUp(e, p.Over, p.Under); text != Dash {
			texts = append(texts, fmt.Sprintf(p.Format, text))
		}
	}
	return texts
}

// Point is a figure in a picture.
func Point(series int, s stat.Summary) chart.Point {
	return chart.Point{Series: series, Value: s.Median, Low: s.Low, High: s.High}
}

// OnCPUs is the note on the number of CPUs that Go ran goroutines on.
func OnCPUs(e Evidence) string {
	return fmt.Sprintf("Go ran goroutines on %s CPUs at once (GOMAXPROCS): with more CPUs, shared locks cost more and parallel readers gain more.", e.Fact("GOMAXPROCS"))
}
