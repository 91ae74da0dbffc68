package stat

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/holdfast-go/holdfast/internal/isolate"
)

// The smallest tail of n pairs is 2^(1-n) on both sides. 5 % shared by 28 pairs are 0.00179, which
// ten rounds (0.00195) don't reach and eleven do.
func TestGroupRounds(t *testing.T) {
	check := func(cells, want int) {
		t.Helper()
		if got := GroupRounds(cells); got != want {
			t.Errorf("%d cells take %d rounds, want %d", cells, got, want)
		}
	}
	for cells := range 8 {
		check(cells, VerdictRounds)
	}
	check(8, 11)
	check(10, 11)
	check(11, 12)
	check(14, 12)
	check(15, 13)
	check(16, 13)
	check(100, 18)
}

func TestGroupSharesTheDoubtAmongAllPairs(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 21))
	group := drawn(r, lognormal(0.20), 20, 8)
	fastest, comparisons := CompareGroup(group, 0, Band)
	for i, got := range comparisons {
		if want := compare(group[fastest], group[i], 0, Band, 1-0.05/28); got != want {
			t.Errorf("cell %d: %+v, want %+v", i, got, want)
		}
		alone := Compare(group[fastest], group[i], 0, Band)
		if got.Confidence < 1-0.05/28 || got.Ratio != alone.Ratio || i != fastest && !(got.Low < alone.Low && alone.High < got.High) {
			t.Errorf("cell %d: %+v, alone %+v", i, got, alone)
		}
	}
}

func TestPairIsAGroupOfTwo(t *testing.T) {
	r := rand.New(rand.NewPCG(22, 22))
	for range 100 {
		a, b := noisy(r, 10, 1.2, 0.05)
		fastest, c := CompareGroup([][]float64{a, b}, 0.01, Band)
		if want := [][]float64{b, a}[fastest]; c[1-fastest] != Compare([][]float64{a, b}[fastest], want, 0.01, Band) {
			t.Fatalf("%+v, alone %+v", c[1-fastest], Compare(a, b, 0.01, Band))
		}
	}
}

// However much cells differ, fewer rounds than the group needs prove nothing.
func TestFewRoundsProveNothingInAGroup(t *testing.T) {
	check := func(rounds, cells int, want Verdict) {
		t.Helper()
		group := [][]float64{count(rounds)}
		for len(group) < cells {
			group = append(group, scaled(group[0], 2))
		}
		fastest, comparisons := CompareGroup(group, 0, Band)
		for _, c := range comparisons[1:] {
			if fastest != 0 || c.Verdict != want || c.HasInterval() != (want != NotProven) || !near(c.Ratio, 2) {
				t.Errorf("%d rounds of %d cells: %+v against cell %d, want %q", rounds, cells, c, fastest, want)
			}
		}
	}
	check(10, 7, Slower)
	check(10, 8, NotProven)
	check(11, 8, Slower)
	check(12, 16, NotProven)
	check(13, 16, Slower)
}

func TestGroupOfFewOrBrokenCells(t *testing.T) {
	if fastest, c := CompareGroup(nil, 0, Band); fastest != -1 || c != nil {
		t.Errorf("no cells: %d, %v", fastest, c)
	}
	if fastest, c := CompareGroup([][]float64{count(10)}, 0, Band); fastest != 0 || c[0].Ratio != 1 || c[0].Verdict != Same {
		t.Errorf("one cell: %d, %v", fastest, c)
	}
	fastest, c := CompareGroup([][]float64{{math.NaN()}, count(10), count(9)}, 0, Band)
	if fastest != 2 || c[0].Verdict != NotProven || c[0].HasInterval() || c[1].N != 9 {
		t.Errorf("broken cells: %d, %+v", fastest, c)
	}
}

// TestCellsAreComparedInTheRoundsThatBothHad: the third cell rests after ten rounds. That the second is faster afterwards makes it not
// the fastest.
func TestCellsAreComparedInTheRoundsThatBothHad(t *testing.T) {
	first, second, rests := jittered(20, 1, 0.01), jittered(20, 1.1, 0.01), jittered(10, 3, 0.01)
	for i := 10; i < 20; i++ {
		second[i] = 0.5
	}
	fastest, c := CompareGroup([][]float64{first, second, rests}, 0, Band)
	if fastest != 0 || c[1].N != 20 || c[2].N != 10 || !near(c[2].Ratio, 3) || c[2].Verdict != Slower {
		t.Errorf("%d, %+v", fastest, c)
	}
}

func TestCheapest(t *testing.T) {
	check := func(cells [][]float64, want int) {
		t.Helper()
		if got := cheapest(cells); got != want {
			t.Errorf("cheapest(%v) = %d, want %d", cells, got, want)
		}
	}
	nan := math.NaN()
	check(nil, -1)
	check([][]float64{{3}, {1}, {2}}, 1)
	check([][]float64{{2}, {1}, {1}}, 1)
	check([][]float64{{1, 1, 100}, {2, 2, 2}}, 0)
	check([][]float64{{nan, 1}, {}, {3}, {4}}, 2)
	check([][]float64{{nan}, {}}, 0)
}

// drawn returns cells with the same code, and their rounds.
func drawn(r *rand.Rand, draw world, rounds, cells int) [][]float64 {
	group := make([][]float64, cells)
	for round := range rounds {
		for i, x := range draw(r, round, cells) {
			group[i] = append(group[i], x)
		}
	}
	return group
}

// heads returns the first rounds of all cells.
func heads(group [][]float64, rounds int) [][]float64 {
	short := make([][]float64, len(group))
	for i, costs := range group {
		short[i] = costs[:rounds]
	}
	return short
}

// A groupTally counts the runs of a group with a false verdict.
type groupTally struct {
	runs, rounds, bare, floored int
}

// add judges a run of the same code under many names; the twin is the group's last cell.
func (t *groupTally) add(r *rand.Rand, all [][]float64) {
	group, twin := all[:len(all)-1], all[len(all)-1]
	t.runs++
	t.rounds += len(twin)
	t.bare += falseWord(group, 0, 0)
	t.floored += falseWord(group, Floor(group[r.IntN(len(group))], twin), Band)
}

// falseWord is 1 if one of several cells with the same code is called faster or slower.
func falseWord(group [][]float64, floor, band float64) int {
	_, comparisons := CompareGroup(group, floor, band)
	for _, c := range comparisons {
		if c.Verdict == Faster || c.Verdict == Slower {
			return 1
		}
	}
	return 0
}

// check requires that at most 5 % of the runs have a false verdict. Without a floor and a band, the
// intervals alone promise this, because all of them together hold.
func (t *groupTally) check(test *testing.T, bare float64) {
	test.Helper()
	n := float64(t.runs)
	test.Logf("%d runs of %.1f rounds: a false word in %.1f %%, in %.1f %% without a floor",
		t.runs, float64(t.rounds)/n, 100*float64(t.floored)/n, 100*float64(t.bare)/n)
	if float64(t.floored) > 0.05*n {
		test.Errorf("a word is false in %d of %d runs", t.floored, t.runs)
	}
	if float64(t.bare) > bare*n+3*math.Sqrt(bare*n) { // seeds may be unlucky by three standard errors
		test.Errorf("without a floor a word is false in %d of %d runs", t.bare, t.runs)
	}
}

// groupRuns is the number of runs in a simulation of groups, which take longer.
func groupRuns() int { return runs() * 3 / 20 }

// The same code under many names: in at most 5 % of the RUNS is any of them called faster or slower
// than the luckiest.
func TestSameCodeUnderManyNames(t *testing.T) {
	for _, w := range worlds {
		for _, cells := range []int{2, 8, 16} {
			for _, rounds := range []int{10, 40} {
				t.Run(fmt.Sprintf("%s, %d cells, %d rounds", w.name, cells, rounds), func(t *testing.T) {
					var sum groupTally
					r := rand.New(rand.NewPCG(uint64(cells), uint64(rounds)))
					for range groupRuns() {
						sum.add(r, drawn(r, w.draw, rounds, cells+1))
					}
					sum.check(t, 0.05)
				})
			}
		}
	}
}

// The same, with runs that the stop rule ends, between ten rounds and 40. Optional stopping costs the
// intervals some coverage (see TestSameCodeAgainstItselfUntilSettled); counting all pairs of a group
// gains more. The worlds are counted together, because these runs take long; of 600 runs in each, 0 to
// 1.2 % had a false verdict.
func TestSameCodeUnderManyNamesUntilSettled(t *testing.T) {
	isolate.Once(t)
	wider := []float64{2: 1, 8: 1.8, 16: 2.2} // so that 25 to 40 rounds settle it
	for _, cells := range []int{2, 8, 16} {
		t.Run(fmt.Sprintf("%d cells", cells), func(t *testing.T) {
			var sum groupTally
			r := rand.New(rand.NewPCG(uint64(cells), 24))
			for range groupRuns() / 4 {
				for _, w := range worlds {
					all := drawn(r, w.draw, 40, cells+1)
					sum.add(r, heads(all, settledAfter(all, wider[cells]*w.want)))
				}
			}
			sum.check(t, 0.06)
		})
	}
}

// settledAfter returns the number of rounds after which a run ends. The last cell is the twin of the
// first.
func settledAfter(all [][]float64, want float64) int {
	rounds := VerdictRounds
	for ; rounds < len(all[0]); rounds++ {
		now := heads(all, rounds)
		last := len(now) - 1
		if _, ok := Settled([][][]float64{now[:last], {now[0], now[last]}}, want); ok {
			break
		}
	}
	return rounds
}

// The twin of a calm cell shows nothing of the other cells' noise: then only the intervals keep the
// verdicts true.
func TestCalmTwinHidesNothing(t *testing.T) {
	wrong := 0
	r := rand.New(rand.NewPCG(25, 25))
	for range groupRuns() {
		twins := drawn(r, lognormal(0.01), 20, 2)
		wrong += falseWord(drawn(r, lognormal(0.20), 20, 16), Floor(twins[0], twins[1]), Band)
	}
	t.Logf("a false word in %d of %d runs", wrong, groupRuns())
	if wrong*20 > groupRuns() {
		t.Errorf("a word is false in %d of %d runs", wrong, groupRuns())
	}
}

// A planted 10 % in one of eight cells under 3 % of noise: that cell is called
// slower, and all others are not.
func TestPlantedTenPercentInAGroup(t *testing.T) {
	var found, wrong, covered int
	r := rand.New(rand.NewPCG(26, 26))
	for range groupRuns() {
		all := drawn(r, lognormal(0.03), 20, 9)
		group, twin := all[:8], all[8]
		floor := Floor(group[0], twin)
		planted := 1 + r.IntN(7)
		group[planted] = scaled(group[planted], 1.10)
		_, comparisons := CompareGroup(group, floor, Band)
		for i, c := range comparisons {
			switch {
			case i != planted && (c.Verdict == Slower || c.Verdict == Faster):
				wrong++
			case i == planted && c.Verdict == Slower:
				found++
			}
			if i == planted && c.Low <= 1.10 && 1.10 <= c.High {
				covered++
			}
		}
	}
	t.Logf("found in %d of %d runs, covered in %d, %d false words", found, groupRuns(), covered, wrong)
	if found*100 < groupRuns()*95 || wrong*20 > groupRuns() || covered*100 < groupRuns()*95 {
		t.Errorf("found in %d of %d runs, covered in %d, %d false words", found, groupRuns(), covered, wrong)
	}
}
