package panel

import (
	"math"
	"strconv"

	"gonum.org/v1/plot"
)

// bounds returns the least and the greatest value of the series.
func bounds(all []series) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, s := range all {
		for _, p := range s.points {
			low, high = min(low, p.y), max(high, p.y)
		}
	}
	return low, high
}

// linear returns the upper end of an axis that begins at 0, and its marks: about
// five, at round numbers.
func linear(high float64) (end float64, ticks []plot.Tick) {
	if high <= 0 {
		high = 1
	}
	step := roundUp(high/5, 1, 2, 2.5, 5)
	digits := max(0, -int(math.Floor(math.Log10(step)+1e-9)))
	if step*math.Pow10(digits) != math.Trunc(step*math.Pow10(digits)) {
		digits++ // 2.5
	}
	n := math.Ceil(high/step - 1e-9)
	for i := range int(n) + 1 {
		value := float64(i) * step
		ticks = append(ticks, plot.Tick{Value: value, Label: strconv.FormatFloat(value, 'f', digits, 64)})
	}
	return n * step, ticks
}

// logarithmic returns the ends of an axis that encloses low and high, both more
// than 0, and its marks: powers of ten, and 2 and 5 of them if they are few. All of
// it is given as powers of ten, for a linear axis: the library lays out the name of a
// logarithmic one as if it stood elsewhere.
func logarithmic(low, high float64) (begin, end float64, ticks []plot.Tick) {
	begin, end = 1/roundUp(1/low, 1, 2, 5), roundUp(high, 1, 2, 5)
	if begin >= end {
		begin, end = begin/2, end*2
	}
	few := end/begin < 50
	for exponent := int(math.Floor(math.Log10(begin) + 1e-9)); exponent <= int(math.Floor(math.Log10(end)+1e-9)); exponent++ {
		for digit := 1; digit < 10; digit++ {
			value, err := strconv.ParseFloat(strconv.Itoa(digit)+"e"+strconv.Itoa(exponent), 64)
			if err != nil || value < begin*(1-1e-9) || value > end*(1+1e-9) {
				continue
			}
			t := plot.Tick{Value: math.Log10(value)}
			if digit == 1 || few && (digit == 2 || digit == 5) {
				t.Label = strconv.FormatFloat(value, 'f', -1, 64)
			}
			ticks = append(ticks, t)
		}
	}
	return math.Log10(begin), math.Log10(end), ticks
}

// roundUp returns the least of the multiples of a power of ten that is not less
// than x. The multiples ascend from 1.
func roundUp(x float64, multiples ...float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(x)))
	for _, m := range append(multiples, 10) {
		if m*unit >= x*(1-1e-9) {
			return m * unit
		}
	}
	return 100 * unit
}
