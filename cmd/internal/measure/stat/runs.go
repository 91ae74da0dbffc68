package stat

import "math"

// leastMovement is the least standard deviation of the ratio of one cell between two runs of the same
// code: 2.5 % for each run. A quiet machine shows no less (docs/design/measuring.md).
const leastMovement = 0.035

// leastBeside is leastMovement for cells with controls beside them: 1 % for each run, measured by
// dev/tools/bars; see docs/design/measuring.md.
const leastBeside = 0.014

// Layout is the part by which two builds of the same code may differ for good, because the linker put the code elsewhere: see
// [Movement.Built].
const Layout = 0.05

// A Movement is the possible change of the machine between two runs, which no measurement within a run
// shows. Its zero value is no movement.
type Movement struct {
	each   float64 // the standard deviation of a cell's log(B/A), for each cell independently
	common float64 // the largest change that all cells may share

	down, up float64 // the standard errors of the subtracted harness, toward a smaller and a larger B/A

	layout float64 // the part beyond which a difference is the code's
}

// Built adds that the two were built apart. A build keeps its layout, so a difference of up to [Layout] is really there, in every run,
// and no interval has to hold 1. But it is not the code's, so there is no word for it.
func (m Movement) Built() Movement {
	m.layout = Layout
	return m
}

// Less adds the errors of the harness that was subtracted from the costs. They are standard errors of
// log(B/A), toward a smaller and a larger ratio.
func (m Movement) Less(down, up float64) Movement {
	m.down, m.up = down, up
	return m
}

// Beside is the movement of a cell that is compared by its controls. The controls cancel changes that all cells
// share. The cell's own movement shows in comparisons that should be 1: of the cell with its twin, and of the
// halves of a run.
func Beside(seen ...Comparison) Movement {
	m := Movement{each: leastBeside}
	for _, c := range seen {
		m.each = max(m.each, c.beyond())
	}
	return m
}

// Farther returns the one of the two movements that widens intervals more.
func (m Movement) Farther(other Movement) Movement {
	m.layout = max(m.layout, other.layout)
	other.layout = m.layout
	if other.Allowance(confidence)+other.down+other.up > m.Allowance(confidence)+m.down+m.up {
		return other
	}
	return m
}

// beyond is the distance of the ratio's logarithm from 0, less the half-width of its interval; at least
// 0.
func (c Comparison) beyond() float64 {
	by := math.Abs(math.Log(c.Ratio)) - math.Sqrt2*math.Erfinv(c.Confidence)*c.standardError()
	if !(by > 0) {
		return 0
	}
	return by
}

// Moved estimates the movement between two runs for cells of one kind, from data that do not depend on
// the code under test. The arguments a and b are as in [CompareRuns]. The twins compare a cell with its
// twin, one or more for each run. The controls are ratios B/A of work without that code.
//
// The movement of single cells shows in the distances of the cells' ratios from their median. It
// assumes that fewer than half of the cells really changed. So a change of a few cells is found, and a
// change of every cell by the same factor. Many changes of different size look like a movement of the
// machine.
//
// The errors that the rounds within the runs show are not part of the movement: the intervals already
// contain them.
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
	// 1.4826 turns the median distance into the standard deviation of normal samples. With few cells it
	// is often too small, because the median is computed from the same cells. Hence n/(n-1), and only
	// half of the errors' variance is subtracted.
	if n := float64(len(distances)); n > 2 {
		apart, by := 1.4826*Quantile(distances, 0.5)*n/(n-1), Quantile(errors, 0.5)
		m.each = max(m.each, math.Sqrt(max(0, apart*apart-by*by/2)))
	}
	for _, t := range twins {
		m.each = max(m.each, t.beyond())
	}
	for _, c := range controls {
		// A control has a movement of its own too: only the part beyond that is common to all.
		if l := min(c.beyond(), math.Abs(math.Log(c.Ratio))-m.each); l > m.common {
			m.common = l
		}
	}
	return m
}

// standardError is the approximate standard error of the ratio's logarithm, or 0 if there is no
// interval.
func (c Comparison) standardError() float64 {
	if !c.HasInterval() {
		return 0
	}
	return math.Log(c.High/c.Low) / 2 / (math.Sqrt2 * math.Erfinv(c.Confidence))
}

// Allowance returns the factor's distance from 1 by which the movement widens an interval of this
// coverage at either end, if nothing varies within the runs.
func (m Movement) Allowance(confidence float64) float64 {
	return math.Expm1(m.common + math.Sqrt2*math.Erfinv(confidence)*m.each)
}

// CompareRuns compares the cells of one run with the cells of another. The costs of the i-th cell are
// a[i] and b[i], round by round, paired as in [Compare]. They are not paired if the runs have different
// seeds, plans or machines; then the two may have different lengths. It returns a comparison for each
// cell.
//
// All intervals together hold with at least 97.5 %: they share 2.5 % (Bonferroni), and [CompareSums] has the other 2.5 %. So if
// nothing differs, at most one pair of runs in twenty has a false faster or slower, however many cells there are. The intervals
// are widened by the movements, one for each cell; nil means none. The movements are estimates, so the 95 % depend on them.
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

// CompareSums compares the geometric means of some cells, in the rounds that all of them had: the first. Two calls together have
// 2.5 % of error. A cell with too few rounds for a verdict is left out if others have more.
func CompareSums(a, b [][]float64, paired bool, moved Movement, band float64) Comparison {
	mostA, mostB := 0, 0
	for i := range a {
		mostA, mostB = max(mostA, len(a[i])), max(mostB, len(b[i]))
	}
	fewestA, fewestB := mostA, mostB
	var before, after [][]float64
	for i := range a {
		if len(a[i]) >= min(mostA, VerdictRounds) && len(b[i]) >= min(mostB, VerdictRounds) {
			before, after = append(before, a[i]), append(after, b[i])
			fewestA, fewestB = min(fewestA, len(a[i])), min(fewestB, len(b[i]))
		}
	}
	for i := range before {
		before[i], after[i] = before[i][:fewestA], after[i][:fewestB]
	}
	return compareRun(GeometricMeans(before), GeometricMeans(after), paired, moved, band, 2*2)
}

// compareRun is one of `number` comparisons that share 5 %.
func compareRun(a, b []float64, paired bool, moved Movement, band float64, number int) Comparison {
	confidence := 1 - (1-confidence)/float64(number)
	if paired {
		return moved.widen(compare(a, b, 0, band, confidence), band)
	}
	return moved.widen(compareUnpaired(a, b, 0, band, confidence), band)
}

// widen extends an interval by the movement, and finds the verdict again. The variation within the runs, the
// movement between them and the error of the subtracted harness are independent, so their squares add up.
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
	if math.IsInf(high-low, 1) { // the cost may be the harness alone
		c.Low, c.High, c.Confidence, c.Verdict = math.NaN(), math.NaN(), 0, NotProven
		return c
	}
	c.Low, c.High = math.Exp(low), math.Exp(high)
	c.Verdict = verdict(c.N, low, high, math.Log1p(m.layout), math.Log1p(band))
	return c
}
