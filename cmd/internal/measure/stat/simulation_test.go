package stat

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/holdfast-go/holdfast/internal/isolate"
)

// A world draws the noise of a round: a factor around 1 for each cell's cost.
type world func(r *rand.Rand, round, cells int) []float64

// lognormal is the noise that the theory of pairs assumes: independent, and symmetric on the scale of
// logarithms.
func lognormal(noise float64) world {
	return func(r *rand.Rand, _, cells int) []float64 {
		x := make([]float64, cells)
		for i := range x {
			x[i] = math.Exp(noise * r.NormFloat64())
		}
		return x
	}
}

// heavy lets one sample in twenty take five times as long. The ratio of two such
// cells is still symmetric: either may be the disturbed one.
func heavy(noise float64) world {
	calm := lognormal(noise)
	return func(r *rand.Rand, round, cells int) []float64 {
		x := calm(r, round, cells)
		for i := range x {
			if r.IntN(20) == 0 {
				x[i] *= 5
			}
		}
		return x
	}
}

// drifting makes every round 2 % slower than the one before, and multiplies all cells of a round by a
// common factor.
func drifting(noise float64) world {
	calm := lognormal(noise)
	return func(r *rand.Rand, round, cells int) []float64 {
		mood := math.Exp(0.02*float64(round) + 0.2*r.NormFloat64())
		return scaled(calm(r, round, cells), mood)
	}
}

// creeping makes a round's cells slower in the order in which they run, by 2 % from each to the
// next. Each round has a new order.
func creeping(noise float64) world {
	calm := lognormal(noise)
	return func(r *rand.Rand, round, cells int) []float64 {
		x := calm(r, round, cells)
		for i, place := range r.Perm(cells) {
			x[i] *= math.Exp(0.02 * float64(place))
		}
		return x
	}
}

// worlds are kinds of noise, each with a width that needs twenty to thirty rounds. In the loud one no
// two cells are ever proven the same, so that verdict hides no false one.
var worlds = []struct {
	name string
	draw world
	want float64
}{
	{"lognormal", lognormal(0.03), 0.02},
	{"loud", lognormal(0.20), 0.14},
	{"heavy tails", heavy(0.03), 0.02},
	{"drift", drifting(0.03), 0.02},
	{"creep", creeping(0.03), 0.02},
}

// A simulated run has a cell, and another one that takes factor times as long. One of them, by chance,
// has a twin: the A/A pair.
type simulated struct {
	a, b, twin []float64
	original   *[]float64
	factor     float64
}

func newSimulated(r *rand.Rand, factor float64) *simulated {
	s := &simulated{factor: factor}
	s.original = &s.a
	if r.IntN(2) == 0 {
		s.original = &s.b
	}
	return s
}

// run adds rounds up to the given number.
func (s *simulated) run(r *rand.Rand, draw world, rounds int) {
	for round := len(s.a); round < rounds; round++ {
		x := draw(r, round, 3)
		s.a = append(s.a, x[0])
		s.b = append(s.b, x[1]*s.factor)
		if s.original == &s.b {
			x[2] *= s.factor
		}
		s.twin = append(s.twin, x[2])
	}
}

// settle adds rounds until the run is settled at ± want, from VerdictRounds up to
// 40.
func (s *simulated) settle(r *rand.Rand, draw world, want float64) {
	for rounds := VerdictRounds; rounds <= 40; rounds++ {
		s.run(r, draw, rounds)
		if _, ok := Settled([][][]float64{{s.a, s.b}, {*s.original, s.twin}}, want); ok {
			return
		}
	}
}

func (s *simulated) compare() Comparison {
	return Compare(s.a, s.b, Floor(*s.original, s.twin), Band)
}

// A tally counts the outcomes of many runs.
type tally struct {
	runs, rounds, covered int
	words                 map[Verdict]int
}

func (t *tally) add(c Comparison, ratio float64) {
	t.runs++
	t.rounds += c.N
	t.words[c.Verdict]++
	if c.Low <= ratio && ratio <= c.High {
		t.covered++
	}
}

// part returns the share of the runs with these verdicts.
func (t *tally) part(words ...Verdict) float64 {
	sum := 0
	for _, w := range words {
		sum += t.words[w]
	}
	return float64(sum) / float64(t.runs)
}

func (t *tally) coverage() float64 { return float64(t.covered) / float64(t.runs) }

// runs is the number of runs in a simulation: enough for the limits to be meaningful; under -short,
// enough to notice a gross error.
func runs() int {
	if testing.Short() {
		return 200
	}
	return 1000
}

// simulate makes a tally of the given number of seeded runs and logs it.
func simulate(t *testing.T, runs int, factor float64, one func(r *rand.Rand, s *simulated)) *tally {
	t.Helper()
	sum := &tally{words: map[Verdict]int{}}
	for seed := range runs {
		r := rand.New(rand.NewPCG(uint64(seed), 11))
		s := newSimulated(r, factor)
		one(r, s)
		sum.add(s.compare(), factor)
	}
	t.Logf("%d runs of %.1f rounds: %v, %.1f %% cover the truth",
		sum.runs, float64(sum.rounds)/float64(sum.runs), sum.words, 100*sum.coverage())
	return sum
}

// leastCover is the least part of the intervals that must cover the truth. 95 % is promised; seeds may
// be unlucky by one and a half standard errors, and under -short, with fewer runs, by two.
func leastCover() float64 {
	if testing.Short() {
		return 0.92
	}
	return 0.94
}

// The same code against itself: faster and slower are false. At most 5 % of the runs say so, in every
// world, although the floor is itself an estimate.
func TestSameCodeAgainstItself(t *testing.T) {
	for _, w := range worlds {
		for _, rounds := range []int{10, 20} {
			t.Run(fmt.Sprintf("%s, %d rounds", w.name, rounds), func(t *testing.T) {
				sum := simulate(t, runs(), 1, func(r *rand.Rand, s *simulated) { s.run(r, w.draw, rounds) })
				if got := sum.part(Faster, Slower); got > 0.05 {
					t.Errorf("%.1f %% of the verdicts are false", 100*got)
				}
				if got := sum.coverage(); got < leastCover() {
					t.Errorf("%.1f %% of the intervals cover the truth", 100*got)
				}
			})
		}
	}
}

// The same, with runs that the stop rule ends, between 10 and 40 rounds. A run that ends as soon as its
// intervals look narrow has intervals that are a little too narrow: about 94 % of them cover the truth,
// and without a floor 6 % of the verdicts would be false (3,000 runs, lognormal).
func TestSameCodeAgainstItselfUntilSettled(t *testing.T) {
	isolate.Once(t)
	for _, w := range worlds {
		t.Run(w.name, func(t *testing.T) {
			// Half as many runs as elsewhere, because each compares after every round.
			sum := simulate(t, runs()/2, 1, func(r *rand.Rand, s *simulated) { s.settle(r, w.draw, w.want) })
			if mean := float64(sum.rounds) / float64(sum.runs); mean < 15 || mean > 35 {
				t.Errorf("%.1f rounds a run: the rule hardly decides here", mean)
			}
			if got := sum.part(Faster, Slower); got > 0.05 {
				t.Errorf("%.1f %% of the verdicts are false", 100*got)
			}
			if got := sum.coverage(); got < leastCover()-0.02 {
				t.Errorf("%.1f %% of the intervals cover the truth", 100*got)
			}
		})
	}
}

// The same where a run ends as soon as its word is decided, or the ratio is known to ± want: looking for words after each round
// says no more false ones.
func TestSameCodeAgainstItselfUntilDecided(t *testing.T) {
	isolate.Once(t)
	for _, w := range worlds {
		t.Run(w.name, func(t *testing.T) {
			sum := simulate(t, runs()/4, 1, func(r *rand.Rand, s *simulated) {
				for rounds := VerdictRounds; rounds <= 40; rounds++ {
					s.run(r, w.draw, rounds)
					if c := s.compare(); c.Decided(Floor(*s.original, s.twin)) || c.Width() <= w.want {
						return
					}
				}
			})
			if got := sum.part(Faster, Slower); got > 0.05 {
				t.Errorf("%.1f %% of the verdicts are false", 100*got)
			}
		})
	}
}

// A planted 10 % under 3 % of noise. 20 rounds find it, with an interval that covers it, and never
// call it the same or faster.
func TestPlantedTenPercent(t *testing.T) {
	sum := simulate(t, runs(), 1.10, func(r *rand.Rand, s *simulated) { s.run(r, lognormal(0.03), 20) })
	if got := sum.part(Slower); got < 0.95 {
		t.Errorf("found in %.1f %% of the runs", 100*got)
	}
	if got := sum.coverage(); got < leastCover() {
		t.Errorf("%.1f %% of the intervals cover 1.10", 100*got)
	}
	if got := sum.part(Same, Faster); got > 0 {
		t.Errorf("taken for the same or faster in %.1f %% of the runs", 100*got)
	}
}

// The same in worse worlds: it is found unless the noise is too loud. It is never called the same, and
// never faster.
func TestPlantedTenPercentInEveryWorld(t *testing.T) {
	for _, w := range worlds {
		t.Run(w.name, func(t *testing.T) {
			sum := simulate(t, runs(), 1.10, func(r *rand.Rand, s *simulated) { s.run(r, w.draw, 20) })
			if got := sum.part(Same, Faster); got > 0.005 {
				t.Errorf("taken for the same or faster in %.1f %% of the runs", 100*got)
			}
			if got := sum.part(Slower); got < 0.90 && w.name != "loud" {
				t.Errorf("found in %.1f %% of the runs", 100*got)
			}
		})
	}
}

// With 1 % of noise ten rounds are enough to prove the same code the same.
func TestSameIsSaidOfTheSame(t *testing.T) {
	sum := simulate(t, runs(), 1, func(r *rand.Rand, s *simulated) { s.run(r, lognormal(0.01), 10) })
	if got := sum.part(Same); got < 0.99 {
		t.Errorf("said in %.1f %% of the runs", 100*got)
	}
}

// Two runs on quiet machines, with rounds that can't be paired. The interval covers the truth, and
// without any floor at most 5 % of the verdicts on the same code are false.
func TestUnpairedRuns(t *testing.T) {
	for _, factor := range []float64{1, 1.10} {
		sum := &tally{words: map[Verdict]int{}}
		for seed := range runs() {
			r := rand.New(rand.NewPCG(uint64(seed), 13))
			a, b := newSimulated(r, 1), newSimulated(r, factor)
			a.run(r, lognormal(0.10), 12)
			b.run(r, lognormal(0.10), 20)
			sum.add(compareUnpaired(a.a, b.b, 0, 0, confidence), factor)
		}
		t.Logf("factor %v: %v, %.1f %% cover the truth", factor, sum.words, 100*sum.coverage())
		if got := sum.coverage(); got < leastCover() {
			t.Errorf("%.1f %% of the intervals cover %v", 100*got, factor)
		}
		if got := sum.part(Faster, Slower); factor == 1 && got > 1-leastCover() {
			t.Errorf("%.1f %% of the verdicts are false", 100*got)
		}
	}
}
