package stat

import "math"

// leastMovement is by how much, as a standard deviation, the ratio of one cell in two runs of the
// same code moves at the least: 2.5 % of each run. A quiet machine shows no less
// (docs/design/measuring.md).
const leastMovement = 0.035

// leastBeside is leastMovement of cells that have controls beside them: 1.4 % of each run. It is
// what dev/tools/bars measures, see docs/design/measuring.md.
const leastBeside = 0.02

// A Movement is what the machine may have done between two runs. Nothing that is measured within
// a run shows it. Its zero value is none.
type Movement struct {
	each   float64 // the standard deviation of a cell's logarithm of B/A, each cell for itself
	common float64 // by how much all cells may have moved together

	down, up float64 // the standard errors of what was subtracted, on the way to a smaller and a larger B/A
}

// Less adds the errors of what was subtracted from the costs. They are standard errors of the logarithm of
// B/A, towards a smaller one and a larger one.
func (m Movement) Less(down, up float64) Movement {
	m.down, m.up = down, up
	return m
}

// Beside is the movement of a cell that is compared by its controls. These take out what moves all cells. What
// it moves by itself shows in comparisons that should be 1: of the cell with its twin, and of the halves of a run.
func Beside(seen ...Comparison) Movement {
	m := Movement{each: leastBeside}
	for _, c := range seen {
		m.each = max(m.each, c.beyond())
	}
	return m
}

// Farther returns the movement of the two that widens intervals more.
func (m Movement) Farther(other Movement) Movement {
	if other.Allowance(confidence)+other.down+other.up > m.Allowance(confidence)+m.down+m.up {
		return other
	}
	return m
}

// beyond is how far the ratio's logarithm is from 0 beyond its own interval: 0 where there is none.
func (c Comparison) beyond() float64 {
	by := math.Abs(math.Log(c.Ratio)) - math.Sqrt2*math.Erfinv(c.Confidence)*c.standardError()
	if !(by > 0) {
		return 0
	}
	return by
}

// Moved estimates the movement between two runs of some cells of one kind, from what does not
// depend on the code under test. The arguments a and b are as in [CompareRuns]. The twins compare a
// cell with its twin, one or more for each run. The controls are the ratios B/A of what has none of
// that code.
//
// What moves each cell for itself shows in how far the cells' ratios lie around the one in the
// middle. Less than half of the cells may really have changed. So it finds a few cells that
// changed, and a change of every cell by the same factor. Many changes of different size look like
// a machine that moves.
//
// The error of each of these, which the rounds within the runs show, is no movement: the
// intervals have it in them already.
func Moved(a, b [][]float64, paired bool, twins, controls []Comparison) Movement {
	m := Movement{each: leastMovement}
	var centres, errors, distances []float64
	for i := range a {
		c := Unpaired(a[i], b[i])
		if paired {
			c = Compare(a[i], b[i], 0, Band)
		}
		if !math.IsNaN(c.Ratio) {
			centres, errors = append(centres, math.Log(c.Ratio)), append(errors, c.standardError())
		}
	}
	middle := Quantile(centres, 0.5)
	for _, c := range centres {
		distances = append(distances, math.Abs(c-middle))
	}
	// 1.4826 makes it the standard deviation of normal samples. With few cells it is often too small,
	// since their middle is their own. Hence n/(n-1), and only half of their errors' variance is taken
	// off.
	if n := float64(len(distances)); n > 2 {
		apart, by := 1.4826*Quantile(distances, 0.5)*n/(n-1), Quantile(errors, 0.5)
		m.each = max(m.each, math.Sqrt(max(0, apart*apart-by*by/2)))
	}
	for _, t := range twins {
		m.each = max(m.each, t.beyond())
	}
	for _, c := range controls {
		// A control moves for itself too: what is beyond that moved all.
		if l := min(c.beyond(), math.Abs(math.Log(c.Ratio))-m.each); l > m.common {
			m.common = l
		}
	}
	return m
}

// standardError is about that of the ratio's logarithm, or 0 where there is no interval.
func (c Comparison) standardError() float64 {
	if !c.HasInterval() {
		return 0
	}
	return math.Log(c.High/c.Low) / 2 / (math.Sqrt2 * math.Erfinv(c.Confidence))
}

// Allowance returns by how much the movement widens an interval of this coverage at either end, as
// a factor's distance from 1. It is for runs within which nothing varies.
func (m Movement) Allowance(confidence float64) float64 {
	return math.Expm1(m.common + math.Sqrt2*math.Erfinv(confidence)*m.each)
}

// CompareRuns compares the cells of one run with those of another. The costs of the
// i-th cell are a[i] and b[i], round by round, paired as in [Compare]. They are not paired
// where the runs have different seeds, plans or machines, and then the two may be
// of different length. It returns a comparison for each cell.
//
// All intervals hold together with at least 97.5 %: they share 2.5 % (Bonferroni), and [CompareSums] has the other 2.5. So
// where nothing differs, one pair of runs in twenty has a false faster or
// slower at most, however many cells there are. The intervals are widened by the movements, one for each cell; nil is none. They
// are estimates, so the 95 % hold as far as these do.
func CompareRuns(a, b [][]float64, paired bool, moved []Movement, band float64) (cells []Comparison) {
	for i := range a {
		m := Movement{}
		if moved != nil {
			m = moved[i]
		}
		cells = append(cells, compareRun(a[i], b[i], paired, m, band, 2*len(a)))
	}
	return cells
}

// CompareSums compares the geometric means of some cells. Two such have 2.5 % together. A cell that has fewer rounds than others
// is not in the geometric means.
func CompareSums(a, b [][]float64, paired bool, moved Movement, band float64) Comparison {
	most := 0
	for _, x := range a {
		most = max(most, len(x))
	}
	var before, after [][]float64
	for i := range a {
		if len(a[i]) == most {
			before, after = append(before, a[i]), append(after, b[i])
		}
	}
	return compareRun(GeometricMeans(before), GeometricMeans(after), paired, moved, band, 2*2)
}

// compareRun is one of a number of comparisons that share 5 %.
func compareRun(a, b []float64, paired bool, moved Movement, band float64, number int) Comparison {
	confidence := 1 - (1-confidence)/float64(number)
	if paired {
		return moved.widen(compare(a, b, 0, band, confidence), band)
	}
	return moved.widen(compareUnpaired(a, b, 0, band, confidence), band)
}

// widen takes the movement into an interval, and finds the word anew. What varies within the
// runs, what moves between them and the error of what was subtracted are independent, so their squares add up.
func (m Movement) widen(c Comparison, band float64) Comparison {
	if !c.HasInterval() || m == (Movement{}) {
		return c
	}
	z := math.Sqrt2 * math.Erfinv(c.Confidence)
	centre := math.Log(c.Ratio)
	reach := func(end, less float64) float64 {
		return math.Hypot(math.Hypot(math.Log(end)-centre, z*m.each), z*less) + m.common
	}
	low, high := centre-reach(c.Low, m.down), centre+reach(c.High, m.up)
	if math.IsInf(high-low, 1) { // what was subtracted may be all there is
		c.Low, c.High, c.Confidence, c.Verdict = math.NaN(), math.NaN(), 0, NotProven
		return c
	}
	c.Low, c.High = math.Exp(low), math.Exp(high)
	c.Verdict = verdict(c.N, low, high, 0, math.Log1p(band))
	return c
}
