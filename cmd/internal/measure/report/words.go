package report

import (
	"fmt"
	"math"
	"strings"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
)

// none stands in a cell without a figure.
const none = "-"

// count writes x with three digits: 123, 45.6k, 7.89M.
func count(x float64) string {
	if math.IsNaN(x) {
		return none
	}
	for _, unit := range []string{"", "k", "M", "G"} {
		if math.Abs(x) < 999.5 || unit == "G" {
			return digits(x) + unit
		}
		x /= 1000
	}
	return none
}

// unitOf returns the letter that ends a count's text, if it has one.
func unitOf(text string) string { return strings.TrimLeft(text, "0123456789.") }

func nanoseconds(x float64) string {
	if math.IsNaN(x) {
		return none
	}
	for _, unit := range []string{"ns", "µs", "ms"} {
		if math.Abs(x) < 999.5 {
			return digits(x) + unit
		}
		x /= 1000
	}
	return digits(x) + "s"
}

// digits writes x with three digits, or all before the point if these are more.
func digits(x float64) string {
	switch a := math.Abs(x); {
	case a < 0.005:
		return "0"
	case a < 9.995:
		return fmt.Sprintf("%.2f", x)
	case a < 99.95:
		return fmt.Sprintf("%.1f", x)
	default:
		return fmt.Sprintf("%.0f", x)
	}
}

// mebibytes writes a number of bytes in MiB.
func mebibytes(n figure.Number) string { return digits(float64(n) / (1 << 20)) }

// plural writes n with its noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
