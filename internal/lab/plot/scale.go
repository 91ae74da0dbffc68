package plot

import (
	"math"
	"strconv"

	"gonum.org/v1/plot"
)

// logarithmic returns the ends of an axis that encloses low and high, both more
// than 0, and its marks: powers of ten, and 2 and 5 of them if they are few. All
// values are exponents of ten, for a linear axis: the library puts the name of a
// logarithmic one in the wrong place.
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
