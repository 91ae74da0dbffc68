// Package humanize writes amounts for people: thousands in groups, bytes with a unit. It knows no
// file and no measurement.
//
// Note: github.com/dustin/go-humanize did it before. It makes big numbers and compiles a regular
// expression before main, which took a tenth of the time that a command needs to start.
package humanize

import (
	"math"
	"strconv"
)

// Grouped writes n with a comma between its thousands: 1,234,567.
func Grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	first := 0
	if n < 0 {
		first = 1
	}
	for i := len(digits) - 3; i > first; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// Bytes writes a number of bytes with a binary unit and at least two digits: 1.5 MiB.
func Bytes(n int64) string {
	return scaled(float64(n), 1024, " B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB")
}

// DecimalBytes writes a number of bytes with a decimal unit and at least two digits: 1.6 MB.
func DecimalBytes(n int64) string {
	return scaled(float64(n), 1000, " B", " kB", " MB", " GB", " TB", " PB", " EB")
}

func scaled(x, step float64, units ...string) string {
	unit := 0
	for ; x >= step && unit < len(units)-1; unit++ {
		x /= step
	}
	tenths := 0
	if math.Floor(x*10+0.5) < 100 && unit > 0 {
		tenths = 1
	}
	scale := math.Pow10(tenths)
	return strconv.FormatFloat(math.Floor(x*scale+0.5)/scale, 'f', tenths, 64) + units[unit]
}
