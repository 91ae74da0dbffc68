package study

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/holdfast-go/holdfast/internal/stat"
)

// Texts of figures in tables; what is absent is a dash.

const dash = "–"

func orDash(x float64, text string) string {
	if math.IsNaN(x) {
		return dash
	}
	return text
}

// milliseconds prints nanoseconds as the documents do: 276.4ms.
func milliseconds(ns float64) string {
	return orDash(ns, strconv.FormatFloat(ns/1e6, 'f', 1, 64)+"ms")
}

// duration prints nanoseconds with three digits in a unit that fits: 1.23µs.
func duration(ns float64) string {
	switch abs := math.Abs(ns); {
	case math.IsNaN(ns):
		return dash
	case abs >= least(time.Second):
		return digits(ns/1e9) + "s"
	case abs >= least(time.Millisecond):
		return digits(ns/1e6) + "ms"
	case abs >= least(time.Microsecond):
		return digits(ns/1e3) + "µs"
	}
	return digits(ns) + "ns"
}

// least is what prints as one of the unit: with three digits, 999.5ns is 1µs.
func least(unit time.Duration) float64 { return 0.9995 * float64(unit) }

// digits prints three of them, and no power of ten.
func digits(x float64) string {
	switch {
	case math.IsNaN(x):
		return dash
	case math.Abs(x) >= 999.5:
		return humanize.Comma(int64(math.Round(x)))
	}
	text := strconv.FormatFloat(x, 'g', 3, 64)
	if strings.Contains(text, "e-") {
		rounded, _ := strconv.ParseFloat(text, 64)
		return strconv.FormatFloat(rounded, 'f', -1, 64)
	}
	return text
}

// times prints a ratio: 19.3x, 1,394x.
func times(x float64) string { return orDash(x, digits(x)+"x") }

// whole prints a count with commas: 23,672,792.
func whole(x float64) string {
	if math.IsNaN(x) {
		return dash
	}
	return humanize.Comma(int64(math.Round(x)))
}

// percent prints a share: 99.8 %.
func percent(share float64) string {
	return orDash(share, digits(share*100)+" %")
}

// possible is a share of a whole, or NaN: on a busy machine a part may be measured as
// longer than the whole.
func possible(share float64) float64 {
	if share < 0 || share > 1 {
		return math.NaN()
	}
	return share
}

// orDash prints a figure with its interval.
func (m measured) orDash() string { return orDash(m.value, m.String()) }

// compared prints a ratio with its interval and its word: 1.9x (1.8x–2.0x), slower.
func compared(c stat.Comparison) string {
	return orDash(c.Ratio, ratio(c).String()+", "+string(c.Verdict))
}

// median prints a figure with its interval.
func median(s stat.Summary, text func(float64) string) string { return figure(s, text).orDash() }
