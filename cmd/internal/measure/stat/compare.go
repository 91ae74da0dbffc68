package stat

import (
	"math"
	"slices"
	"strconv"
)

// A Verdict is one of four words for b against a.
type Verdict string

const (
	Faster    Verdict = "faster"     // b takes less time: the whole interval lies beyond the floor
	Slower    Verdict = "slower"     // b takes more time
	Same      Verdict = "same"       // the whole interval lies in the equivalence band
	NotProven Verdict = "not proven" // the samples prove nothing, or are too few
)

const (
	// Band is the usual equivalence band: differences up to 5 % are the same.
	Band = 0.05

	// VerdictRounds is the least number of rounds for any verdict but NotProven;
	// large groups take more, see GroupRounds.
	VerdictRounds = 10

	// LargeRounds are enough to prove that two differ by half or more. Fewer have no interval.
	LargeRounds = 6
	large       = 1.5

	// Gross differences have a word with fewer rounds than an interval takes, and no fewer than
	// grossRounds: see [Comparison.Bound].
	gross       = 2.0
	grossRounds = 3

	// far is the factor from which a word is far faster or far slower.
	far = 10.0
)

// A Comparison is the ratio of b's time to a's time.
type Comparison struct {
	N     int     // pairs, one a round; of unpaired samples how many the shorter side has
	Ratio float64 // time of b / time of a: the Hodges–Lehmann estimate, or NaN
	Low   float64 // lower end of the ratio's interval, or NaN: see HasInterval
	High  float64 // upper end of it

	// Confidence is the coverage of Low to High alone: at least 0.95, more in
	// a group (see CompareGroup), or 0 where there is no interval.
	Confidence float64

	Verdict Verdict

	// Bound is 0 except for a gross difference without an interval. Then it bounds the ratio: above 1 b is slower by at
	// least this factor, below 1 faster. It is the nearer to 1 of two values: the ratio of the round nearest to 1, and
	// the end of Student's interval of the logarithms, at the confidence that the interval would have. The second
	// assumes normal rounds; TestGrossWordsAreNotFalse has rounds that are not.
	Bound float64

	// Most is 0 except for a ratio of grossRounds or more without an interval. Then the ratio is at most Most, by the same two
	// values as Bound.
	Most float64
}

// Far returns the least factor by which one is slower or faster, if that is proven and ten or more; else 0.
func (c Comparison) Far() float64 {
	least := c.Bound
	if c.HasInterval() {
		least = c.Low
		if c.Verdict == Faster {
			least = c.High
		}
	}
	if c.Verdict == Faster {
		least = 1 / least
	}
	if (c.Verdict == Faster || c.Verdict == Slower) && least >= far {
		return least
	}
	return 0
}

// Word returns the verdict for a reader: far slower, or slower, at least 80x.
func (c Comparison) Word() string {
	word := string(c.Verdict)
	if c.Far() > 0 {
		word = "far " + word
	}
	if bound := max(c.Bound, 1/c.Bound); c.Bound > 0 && c.Verdict != NotProven {
		word += ", at least " + downTo2(bound) + "x"
	}
	return word
}

// downTo2 writes x with two digits, rounded down, because a lower bound must not grow.
func downTo2(x float64) string {
	unit := math.Pow(10, math.Floor(math.Log10(x))-1)
	return strconv.FormatFloat(math.Floor(x/unit*(1+1e-12))*unit, 'f', max(0, -int(math.Round(math.Log10(unit)))), 64)
}

// mostWidth is the largest ratio of an interval's ends at which it still informs a reader.
const mostWidth = 10

// Informs reports whether there is an interval that informs a reader: its ends differ by no more than a factor of ten.
func (c Comparison) Informs() bool { return c.HasInterval() && c.High <= mostWidth*c.Low }

// HasInterval reports whether Low, High and Confidence are known. Fewer than six pairs have no 95 %
// interval; for a group, see [GroupRounds].
func (c Comparison) HasInterval() bool { return c.Confidence > 0 }

// Width returns half the width of the ratio's interval on the scale of logarithms, as a
// factor's distance from 1: 0.03 is ±3 %. It is NaN where there is no interval. Width
// is the same for a/b as for b/a, and does not say which is faster.
func (c Comparison) Width() float64 {
	return math.Expm1((math.Log(c.High) - math.Log(c.Low)) / 2)
}

// slack is how many times wider the interval of a ratio may be for a word that is decided.
const slack = 1.5

// Decided reports whether the word would be the same, beyond this floor, if the interval were half as wide again. So further rounds
// would hardly take it back. A run that ends on it may end on a difference that it was looking for: without the slack, too often by chance.
func (c Comparison) Decided(floor float64) bool {
	if !c.HasInterval() || c.Verdict == NotProven {
		return false
	}
	low, high := math.Log(c.Low), math.Log(c.High)
	more := (slack - 1) * (high - low) / 2
	return verdict(c.N, low-more, high+more, math.Log1p(floor), math.Log1p(Band)) == c.Verdict
}

// Unseen returns the largest difference that the interval leaves possible, in either direction, as
// a factor's distance from 1. With 0.09 any difference above 9 % would have been seen. It is NaN
// where there is no interval.
func (c Comparison) Unseen() float64 { return max(c.High, 1/c.Low) - 1 }

// Reaching returns the comparison with its interval extended up to a ratio. The verdict becomes not proven if the new interval
// contradicts it.
func (c Comparison) Reaching(ratio float64) Comparison {
	if c.Most > 0 {
		c.Most = max(c.Most, ratio)
	}
	if !c.HasInterval() || !(ratio > c.High) {
		return c
	}
	if c.High = ratio; c.Verdict != Slower && (c.Verdict != Same || ratio > 1+Band) {
		c.Verdict = NotProven
	}
	return c
}

// Compare compares two cells by the ratios of their costs in the same rounds. The costs of round i are
// a[i] and b[i]: elapsed time, or CPU time. Pairing cancels disturbances that affect both cells of a
// round alike. The two cells must be chosen before they are measured; for the fastest of many see
// [CompareGroup].
//
// The logarithms of the ratios are assumed to be symmetric around their centre. That holds for two
// cells in random order within a round, unless their distributions differ in shape. The estimate is the
// median of the Walsh averages, and the interval comes from Wilcoxon's signed-rank test. So Compare(b,
// a) is exactly the inverse.
//
// The floor is the relative gap between two runs of the same code (see [Floor]),
// and band is the equivalence band (see [Band]); 0.05 is 5 %. The verdict is
//
//   - not proven, with fewer than [VerdictRounds] pairs, unless the whole interval lies beyond
//     a factor of 1.5, or there is no interval and the [Comparison.Bound] of a gross difference;
//   - not proven, with slices of different lengths (their rounds are not known), or with a
//     cost that is not positive and finite;
//   - same, if the whole interval lies within the band, and the floor does too;
//   - faster or slower, if the whole interval lies beyond the floor on that side;
//   - not proven otherwise.
func Compare(a, b []float64, floor, band float64) Comparison {
	return compare(a, b, floor, band, confidence)
}

// compare is Compare with an interval that covers the ratio with at least the
// confidence asked for.
func compare(a, b []float64, floor, band, confidence float64) Comparison {
	logs, ok := logRatios(a, b)
	if !ok {
		return incomparable()
	}
	c := hodgesLehmann(logs, confidence).comparison(len(logs), floor, band)
	if !c.HasInterval() {
		c.boundGross(logs, floor, confidence)
	}
	return c
}

// boundGross finds the verdict for a gross difference with fewer rounds than an interval needs, and an upper bound of the ratio.
func (c *Comparison) boundGross(logs []float64, floor, confidence float64) {
	if len(logs) < grossRounds {
		return
	}
	n, sum := float64(len(logs)), 0.0
	for _, l := range logs {
		sum += l
	}
	mean, squares := sum/n, 0.0
	for _, l := range logs {
		squares += (l - mean) * (l - mean)
	}
	reach := studentQuantile(len(logs)-1, confidence) * math.Sqrt(squares/(n-1)/n)
	slower, faster := min(mean-reach, slices.Min(logs)), max(mean+reach, slices.Max(logs))
	c.Most = math.Exp(faster)
	least := max(math.Log(gross), math.Log1p(floor)) // NaN: nothing is beyond
	switch {
	case slower >= least:
		c.Verdict, c.Bound = Slower, math.Exp(slower)
	case faster <= -least:
		c.Verdict, c.Bound = Faster, math.Exp(faster)
	}
}

// Floor returns the noise floor of a run: the relative gap between the costs of one cell that every
// round ran under two names. 0.02 means that 2 % can arise without any cause. It is NaN if [Compare]
// has no ratio; with a floor of NaN nothing is proven faster, slower or the same. Verdicts use Floor,
// since their intervals already contain the noise of the rounds; [Noise] is for people.
func Floor(a, a2 []float64) float64 {
	logs, ok := logRatios(a, a2)
	if !ok {
		return math.NaN()
	}
	return math.Expm1(math.Abs(hodgesLehmann(logs, confidence).centre))
}

// Noise returns the largest difference that the costs of one cell under two names may have. [Floor] is the estimate of their ratio; Noise
// is the end of its interval that is farther from 1, because the estimate for two noisy cells may be 1 by chance. With too few rounds for
// an interval it is the ratio of their worst round. It is NaN if Floor is.
func Noise(a, a2 []float64) float64 {
	logs, ok := logRatios(a, a2)
	if !ok {
		return math.NaN()
	}
	e := hodgesLehmann(logs, confidence)
	if e.coverage == 0 {
		e.low, e.high = slices.Min(logs), slices.Max(logs)
	}
	return math.Expm1(max(math.Abs(e.low), math.Abs(e.high)))
}

// incomparable is the comparison of samples without a ratio.
func incomparable() Comparison {
	nan := math.NaN()
	return Comparison{Ratio: nan, Low: nan, High: nan, Verdict: NotProven}
}

// verdict finds the verdict on the scale of logarithms, where faster and slower are mirror images.
// Comparisons with NaN are false: not proven.
func verdict(pairs int, low, high, floor, band float64) Verdict {
	if pairs < VerdictRounds {
		floor, band = max(floor, math.Log(large)), math.NaN()
	}
	switch {
	case -band <= low && high <= band && floor <= band:
		return Same
	case high < -floor:
		return Faster
	case low > floor:
		return Slower
	}
	return NotProven
}

// logRatios returns log(b/a) pair by pair, or false if a pair has none.
func logRatios(a, b []float64) (ratios []float64, ok bool) {
	if len(a) != len(b) || len(a) == 0 {
		return nil, false
	}
	before, okA := logs(a)
	after, okB := logs(b)
	if !okA || !okB {
		return nil, false
	}
	for i := range after {
		after[i] -= before[i]
	}
	return after, true
}

// logs returns the logarithms of costs, or false if one is not positive and finite.
func logs(costs []float64) (l []float64, ok bool) {
	l = make([]float64, 0, len(costs))
	for _, x := range costs {
		if !(x > 0) || math.IsInf(x, 0) {
			return nil, false
		}
		l = append(l, math.Log(x))
	}
	return l, true
}

// An estimate is a shift of logarithms with its interval. With too few samples, low and high are NaN
// and coverage is 0.
type estimate struct{ centre, low, high, coverage float64 }

// comparison turns the shift of logarithms into a ratio and finds the verdict.
func (e estimate) comparison(n int, floor, band float64) Comparison {
	return Comparison{
		N:          n,
		Ratio:      math.Exp(e.centre),
		Low:        math.Exp(e.low),
		High:       math.Exp(e.high),
		Confidence: e.coverage,
		Verdict:    verdict(n, e.low, e.high, math.Log1p(floor), math.Log1p(band)),
	}
}

// hodgesLehmann returns the median of the Walsh averages of x with the interval
// of the signed-rank test at the given confidence. It assumes that x is symmetric around its centre, and
// that its values are independent.
//
// The Walsh averages are the means of all pairs of x, each value paired with itself too:
// n(n+1)/2 averages. They are searched without being listed.
func hodgesLehmann(x []float64, confidence float64) estimate {
	x = sorted(x)
	n := len(x)
	k, coverage := signedRank(n, confidence)
	p := pairs{rows: x, columns: x, scale: 0.5, triangle: true, n: n * (n + 1) / 2}
	return p.estimate(k, coverage)
}
