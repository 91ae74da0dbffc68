package stat

import (
	"math"
	"slices"
)

// pairs are the values of all pairs of two ascending samples, too many to list: the sum of a row and a
// column, times scale. Rows and columns ascend.
//
// So the number of pairs up to a value is counted in the time of one pass over rows and columns: each
// further row has no more columns up to that value than the one before.
type pairs struct {
	rows, columns []float64
	scale         float64
	triangle      bool // row i has only the columns from i on
	n             int  // all pairs
}

func (p *pairs) at(row, column int) float64 { return (p.rows[row] + p.columns[column]) * p.scale }

// from is the first column of a row.
func (p *pairs) from(row int) int {
	if p.triangle {
		return row
	}
	return 0
}

// estimate takes the median, and the k-th from either end for the interval, if there is
// such a k.
func (p *pairs) estimate(k int, coverage float64) estimate {
	e := estimate{p.kth((p.n + 1) / 2), math.NaN(), math.NaN(), coverage}
	if p.n%2 == 0 {
		e.centre += 0.5 * (p.kth(p.n/2+1) - e.centre)
	}
	if k > 0 {
		e.low, e.high = p.kth(k), p.kth(p.n-k+1)
	}
	return e
}

// kth returns the k-th smallest value, counted from 1. It narrows an interval around it by
// interpolation until few values are left. If that is slow, it halves the floats between the ends, by
// the integers that have their order: so every sample needs at most some hundred counts.
func (p *pairs) kth(k int) float64 {
	low, below := math.Nextafter(p.at(0, p.from(0)), math.Inf(-1)), 0 // below: the number of values up to low
	high, upTo := p.at(len(p.rows)-1, len(p.columns)-1), p.n
	for slow := false; upTo-below > len(p.rows)+len(p.columns) && ordinal(high)-ordinal(low) > 1; {
		guess := low + (high-low)*(float64(k-below)/float64(upTo-below))
		if slow || !(low < guess && guess < high) {
			guess = ofOrdinal(ordinal(low) + (ordinal(high)-ordinal(low))/2)
		}
		before := upTo - below
		if n := p.count(guess); n >= k {
			high, upTo = guess, n
		} else {
			low, below = guess, n
		}
		slow = upTo-below > before/2 && !slow
	}
	if ordinal(high)-ordinal(low) == 1 {
		return high // all values that are left are ties
	}
	values := p.between(low, high)
	slices.Sort(values)
	return values[k-below-1]
}

// count returns the number of values that are at most x.
func (p *pairs) count(x float64) (n int) {
	column := len(p.columns)
	for row := range p.rows {
		for column > 0 && p.at(row, column-1) > x {
			column--
		}
		if column <= p.from(row) {
			break // no row below has any either
		}
		n += column - p.from(row)
	}
	return n
}

// between lists the values above low that are at most high.
func (p *pairs) between(low, high float64) (values []float64) {
	left, right := len(p.columns), len(p.columns)
	for row := range p.rows {
		for right > 0 && p.at(row, right-1) > high {
			right--
		}
		for left > 0 && p.at(row, left-1) > low {
			left--
		}
		for column := max(left, p.from(row)); column < right; column++ {
			values = append(values, p.at(row, column))
		}
	}
	return values
}

const signBit = 1 << 63

// ordinal maps floats to integers in the same order, and ofOrdinal maps them back.
func ordinal(x float64) uint64 {
	bits := math.Float64bits(x)
	if bits&signBit != 0 {
		return ^bits
	}
	return bits | signBit
}

func ofOrdinal(n uint64) float64 {
	if n&signBit != 0 {
		return math.Float64frombits(n &^ signBit)
	}
	return math.Float64frombits(^n)
}
