package chart

import (
	"math"
	"strconv"
)

// A Scale maps values to distances on an axis.
type Scale int

// The scales.
const (
	Linear Scale = iota // from 0, or below if a value is
	Log                 // powers of ten
	Log2                // powers of two, as sizes of buffers have it
	Nines               // parts of a whole below 1: 0.9, 0.99, 0.999 … at equal distances
)

// An Axis is one side of a picture.
type Axis struct {
	Name       string
	Scale      Scale
	Low, High  float64              // the axis covers at least this range, if Low < High
	Format     func(float64) string // of its numbers; nil writes them out
	Categories []string             // instead of numbers: names for 0, 1 …, on Y from above to below
	Bands      map[int]string       // headings above some of the categories of Y
}

// An axis has its ends, as the scale counts, and its marks.
type axis struct {
	Axis
	begin, end float64
	ticks      []tick
}

type tick struct {
	at    float64
	label string // none: a lesser mark
}

// long is the tick's length.
func (t tick) long() int {
	if t.label == "" {
		return 3
	}
	return 5
}

// on maps a value to the axis's own scale; it is not finite if the value has no place there.
func (a Axis) on(v float64) float64 {
	switch {
	case a.Categories != nil || a.Scale == Linear:
		return v
	case a.Scale == Log:
		return math.Log10(v)
	case a.Scale == Log2:
		return math.Log2(v)
	}
	return -math.Log10(1 - v)
}

func (a Axis) has(v float64) bool { return finite(a.on(v)) }

// part returns the position of a value between the ends: 0 at the first, 1 at the last.
func (a axis) part(v float64) float64 { return (a.on(v) - a.begin) / (a.end - a.begin) }

// within is part, limited to the range from 0 to 1.
func (a axis) within(v float64) float64 {
	switch part := a.part(v); {
	case !(part > 0): // not a number: 0 on a logarithmic scale
		return 0
	default:
		return min(part, 1)
	}
}

// widest returns the width of the axis's widest text, in heights of a letter.
func (a axis) widest() (width float64) {
	for _, t := range a.ticks {
		width = max(width, em(t.label))
	}
	return width
}

func (a Axis) text(v float64) string {
	if a.Format != nil {
		return a.Format(v)
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// laid returns the axis of values from low to high.
func (a Axis) laid(low, high float64) axis {
	of := axis{Axis: a}
	if a.Low < a.High && a.has(a.Low) && a.has(a.High) {
		low, high = min(low, a.Low), max(high, a.High)
	}
	switch {
	case a.Categories != nil:
		of.begin, of.end = -0.5, float64(len(a.Categories))-0.5
		for i, name := range a.Categories {
			of.ticks = append(of.ticks, tick{float64(i), name})
		}
	case a.Scale == Linear:
		of.linear(low, high)
	case a.Scale == Log:
		of.decades(low, high)
	case a.Scale == Log2:
		of.doublings(low, high)
	default:
		of.nines(high)
	}
	return of
}

// linear has about five marks, at round numbers.
func (a *axis) linear(low, high float64) {
	if !(a.Low < a.High) {
		low = min(low, 0)
	}
	if high <= low {
		high = low + 1
	}
	step := roundUp((high-low)/5, 1, 2, 2.5, 5)
	digits := max(0, -int(math.Floor(math.Log10(step)+1e-9)))
	if step*math.Pow10(digits) != math.Trunc(step*math.Pow10(digits)) {
		digits++ // 2.5
	}
	from, to := math.Floor(low/step+1e-9), math.Ceil(high/step-1e-9)
	for i := from; i <= to; i++ {
		text := strconv.FormatFloat(i*step, 'f', digits, 64)
		if a.Format != nil {
			text = a.Format(i * step)
		}
		a.ticks = append(a.ticks, tick{i * step, text})
	}
	a.begin, a.end = from*step, to*step
}

// decades has marks at the powers of ten, with numbers at 2 and 5 too if there are few.
func (a *axis) decades(low, high float64) {
	begin, end := 1/roundUp(1/low, 1, 2, 5), roundUp(high, 1, 2, 5)
	if begin >= end {
		begin, end = begin/2, end*2
	}
	few := end/begin < 50
	first, last := math.Floor(math.Log10(begin)+1e-9), math.Floor(math.Log10(end)+1e-9)
	every := math.Ceil((last - first) / 8) // only every n-th power of ten has a number
	for exponent := first; exponent <= last; exponent++ {
		for digit := 1.0; digit < 10; digit++ {
			value := digit * math.Pow(10, exponent)
			if exponent < 0 {
				value = digit / math.Pow(10, -exponent) // exact
			}
			if value < begin*(1-1e-9) || value > end*(1+1e-9) || digit > 1 && last-first > 8 {
				continue
			}
			t := tick{at: value}
			if digit == 1 && (every < 2 || math.Mod(exponent-first, every) == 0) || few && (digit == 2 || digit == 5) {
				t.label = a.text(value)
			}
			a.ticks = append(a.ticks, t)
		}
	}
	a.begin, a.end = math.Log10(begin), math.Log10(end)
}

// doublings has marks at the powers of two, and numbers at about eight of them.
func (a *axis) doublings(low, high float64) {
	a.begin, a.end = math.Floor(math.Log2(low)+1e-9), math.Ceil(math.Log2(high)-1e-9)
	if a.begin >= a.end {
		a.begin, a.end = a.begin-1, a.end+1
	}
	every := math.Ceil((a.end - a.begin + 1) / 9)
	for exponent := a.begin; exponent <= a.end; exponent++ {
		t := tick{at: math.Pow(2, exponent)}
		if math.Mod(exponent, every) == 0 {
			t.label = a.text(t.at)
		}
		a.ticks = append(a.ticks, t)
	}
}

// nines has marks at 0, at 0.5, and at 0.9, 0.99 and so on.
func (a *axis) nines(high float64) {
	a.begin, a.end = 0, max(1, math.Ceil(a.on(high)-1e-9))
	for nines := 0.0; nines <= a.end; nines++ {
		value := 1 - math.Pow(10, -nines)
		text := "p" + strconv.FormatFloat(math.Round(value*1e8)/1e6, 'f', -1, 64)
		if a.Format != nil {
			text = a.Format(value)
		}
		a.ticks = append(a.ticks, tick{value, text})
		if nines == 0 {
			half := "p50"
			if a.Format != nil {
				half = a.Format(0.5)
			}
			a.ticks = append(a.ticks, tick{0.5, half})
		}
	}
}

// roundUp returns the smallest product of a power of ten and one of the multiples that is not less than
// x. The multiples ascend from 1.
func roundUp(x float64, multiples ...float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(x)))
	for _, m := range multiples {
		if m*unit >= x*(1-1e-9) {
			return m * unit
		}
	}
	return 10 * unit
}

// Count, Bytes and Duration are for the Format of an [Axis]: 25k, 64KiB, and 1.5ms of
// nanoseconds.
func Count(x float64) string { return scaled(x, 1000, "", "k", "M", "G", "T") }

// Bytes is the text of a number of bytes; see [Count].
func Bytes(x float64) string { return scaled(x, 1024, "B", "KiB", "MiB", "GiB", "TiB") }

// Duration is the text of a number of nanoseconds; see [Count].
func Duration(x float64) string {
	if math.Abs(x) >= 60e9*(1-1e-9) {
		return scaled(x/60e9, 60, "min", "h")
	}
	return scaled(x, 1000, "ns", "µs", "ms", "s")
}

func scaled(x, step float64, units ...string) string {
	i := 0
	for ; i < len(units)-1 && math.Abs(x) >= step*(1-1e-9); i++ {
		x /= step
	}
	return strconv.FormatFloat(x, 'g', 4, 64) + units[i]
}
