package stat

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/holdfast-go/holdfast/internal/isolate"
)

// together compares single cells, and all of them together. The last movement is for all of them
// together.
func together(a, b [][]float64, paired bool, moved []Movement) (each []Comparison, overall Comparison) {
	all := Movement{}
	if moved != nil {
		all = moved[len(a)]
	}
	return CompareRuns(a, b, paired, moved, Band), CompareSums(a, b, paired, all, Band)
}

// TestCellsOfTwoRunsShareTheDoubt compares runs of the same code: a false verdict among all cells must
// be as rare as for one cell.
func TestCellsOfTwoRunsShareTheDoubt(t *testing.T) {
	const runs, rounds = 1000, 12
	r := rand.New(rand.NewPCG(5, 5))
	for _, cells := range []int{1, 16} {
		for _, paired := range []bool{true, false} {
			wrong := 0
			for range runs {
				a, b := make([][]float64, cells), make([][]float64, cells)
				for i := range a {
					a[i], b[i] = skewed(r, rounds), skewed(r, rounds)
				}
				each, overall := together(a, b, paired, nil)
				for _, c := range append(each, overall) {
					if c.Verdict == Faster || c.Verdict == Slower {
						wrong++
						break
					}
				}
			}
			if wrong > runs*7/100 { // 5 % and three standard errors
				t.Errorf("%d cells, paired %v: %d of %d runs have a false word", cells, paired, wrong, runs)
			}
		}
	}
}

func TestCellsOfTwoRunsAreComparedEach(t *testing.T) {
	a := [][]float64{count(10), count(12)}
	one, overall := together(a[:1], a[:1], true, nil)
	if len(one) != 1 || one[0].Verdict != Same || one[0].Ratio != 1 || one[0].Confidence < 1-0.05/2 || overall.Confidence < 1-0.05/4 || overall.Verdict != Same {
		t.Errorf("one cell: %+v, overall %+v", one, overall)
	}
	both, overall := together(a, [][]float64{a[1], a[1]}, false, nil)
	if len(both) != 2 || both[0].N != 10 || both[1].N != 12 || both[0].Confidence < 1-0.05/4 || overall.N != 10 || overall.Confidence < 1-0.05/4 {
		t.Errorf("two cells: %+v, overall %+v", both, overall)
	}
	if few := CompareSums([][]float64{count(12), count(2)}, [][]float64{count(12), count(2)}, true, Movement{}, Band); few.N != 12 {
		t.Errorf("a cell of two rounds beside one of twelve: %+v", few)
	}
	if got, overall := together(nil, nil, true, nil); got != nil || overall.Verdict != NotProven {
		t.Errorf("no cells: %+v, %+v", got, overall)
	}
}

// TestMovementWidensIntervals compares two runs whose rounds do not vary at all.
func TestMovementWidensIntervals(t *testing.T) {
	run := func(factors ...float64) (cells [][]float64) {
		for _, f := range factors {
			cells = append(cells, scaled(count(20), f))
		}
		return cells
	}
	check := func(what string, after, twins, controls []float64, want ...Verdict) {
		t.Helper()
		a, b := run(1, 1, 1, 1, 1), run(after...)
		m := Moved(a, b, true, ratios(twins...), ratios(controls...))
		cells, _ := together(a, b, true, slices.Repeat([]Movement{m}, 6))
		for i, c := range cells {
			if c.Verdict != want[i] {
				t.Errorf("%s: cell %d is %q, want %q: %+v, %+v", what, i, c.Verdict, want[i], c, m)
			}
			if reach := m.Allowance(c.Confidence); !near(c.High/c.Ratio-1, reach) || !near(c.Ratio/c.Low-1, reach) {
				t.Errorf("%s: %+v does not reach %v to both sides", what, c, reach)
			}
		}
	}
	no := NotProven
	check("nothing", []float64{1, 1, 1, 1, 1}, nil, nil, no, no, no, no, no)
	check("one cell", []float64{1.2, 1, 1, 1, 1}, nil, nil, Slower, no, no, no, no)
	check("all cells", []float64{1.2, 1.2, 1.2, 1.2, 1.2}, nil, nil, Slower, Slower, Slower, Slower, Slower)
	check("with the control", []float64{1.2, 1.2, 1.2, 1.2, 1.2}, nil, []float64{1.2}, no, no, no, no, no)
	check("cells that move apart", []float64{1.2, 0.9, 1.1, 0.8, 1}, nil, nil, no, no, no, no, no)
	check("a twin that moves", []float64{1.2, 1, 1, 1, 1}, []float64{1.08}, nil, no, no, no, no, no)
	check("twins that are not known", []float64{1 / 1.2, 1, 1, 1, 1}, []float64{math.NaN()}, []float64{math.NaN()}, Faster, no, no, no, no)
}

// ratios returns comparisons with exactly known ratios.
func ratios(ratios ...float64) (known []Comparison) {
	for _, r := range ratios {
		known = append(known, Comparison{Ratio: r, Low: r, High: r, Confidence: confidence})
	}
	return known
}

// TestMovementIsBeyondErrors: a difference that the rounds within the runs explain is no movement.
func TestMovementIsBeyondErrors(t *testing.T) {
	check := func(what string, want float64, m Movement) {
		t.Helper()
		if got := m.Allowance(0.95); math.Abs(got-math.Expm1(want)) > 1e-9 {
			t.Errorf("%s: allows %v, want %v", what, got, math.Expm1(want))
		}
	}
	wide := func(ratio, reach float64) []Comparison {
		return []Comparison{{Ratio: ratio, Low: ratio / reach, High: ratio * reach, Confidence: 0.95}}
	}
	z := math.Sqrt2 * math.Erfinv(0.95)
	check("a twin within its interval", z*leastMovement, Moved(nil, nil, false, wide(1.3, 1.3), nil))
	check("a twin beyond it", z*math.Log(1.2), Moved(nil, nil, false, wide(1.56, 1.3), nil))
	check("a control of a known ratio", z*leastMovement+math.Log(1.3)-leastMovement, Moved(nil, nil, false, nil, wide(1.3, 1)))
	check("a control within its error", z*leastMovement, Moved(nil, nil, false, nil, wide(1.3, math.Exp(z*math.Log(1.3)))))

	var one, other [][]float64 // five cells, in equal steps: the middle distance is one step
	for i := range 5 {
		one, other = append(one, count(20)), append(other, scaled(count(20), math.Exp(0.1*float64(i))))
	}
	check("cells that lie apart", z*1.4826*0.1*5/4, Moved(one, other, true, nil, nil))

	r := rand.New(rand.NewPCG(4, 4))
	var a, b [][]float64
	for range 200 {
		a, b = append(a, drawn(r, lognormal(0.2), 12, 1)[0]), append(b, drawn(r, lognormal(0.2), 12, 1)[0])
	}
	if m := Moved(a, b, false, nil, nil); m.each > 0.05 { // the medians differ by 8 %
		t.Errorf("cells that do not move: %+v", m)
	}
}

// burstTurns has the value of package sweep's burstTurns.
const burstTurns = 5

// leastOf returns the costs of a cell's rounds: each is the shortest of `turns` turns.
func leastOf(r *rand.Rand, turns int, draw world, rounds int) []float64 {
	costs := make([]float64, rounds)
	for round := range costs {
		costs[round] = slices.Min(draw(r, round, turns))
	}
	return costs
}

// busy is a machine whose CPUs other programs use, more in some rounds than in others. A turn that meets
// them takes up to three times as long.
func busy(noise float64) world {
	calm := lognormal(noise)
	return func(r *rand.Rand, round, turns int) []float64 {
		x, load := calm(r, round, turns), 0.9*r.Float64()
		for i := range x {
			if r.Float64() < load {
				x[i] *= 1 + 2*r.Float64()
			}
		}
		return x
	}
}

// TestRunsOfAMovingMachine simulates two runs of a machine that moves in between, each cell by itself.
// Trials in turns are compared at one speed; for trials without turns the movement is estimated from
// the spread of the cells. The tables are in docs/design/measuring.md.
func TestRunsOfAMovingMachine(t *testing.T) {
	isolate.Once(t)
	runs, mostFalse, mostExits := 200, 8.0, 2.0 // 5 % and two standard errors; of 1,000 runs 6 % at most have a false verdict
	if testing.Short() {
		runs, mostFalse, mostExits = 40, 12, 6 // with fewer runs, chance has more room
	}
	check := func(cells int, name string, noise, drift float64, draw world, turns, leastSeen int) {
		m := movingMachine{rand.New(rand.NewPCG(21, uint64(cells))), cells, drift, draw}
		same, ten, twenty := m.told(runs, turns, 1), m.told(runs, turns, 1.1), m.told(runs, turns, 1.2)
		t.Logf("| %d | %s, %.0f %%, %.0f %% | %v | %v | %v |", cells, name, 100*noise, 100*drift, same, ten, twenty)
		if same.words > mostFalse || same.exits > mostExits {
			t.Errorf("%d cells, noise %v, drift %v: in %.0f %% of the comparisons of the same code is a false word, in %.0f %% a regression", cells, noise, drift, same.words, same.exits)
		}
		if twenty.words < float64(leastSeen) {
			t.Errorf("%d cells, noise %v, drift %v: +20 %% is seen in %.0f %%", cells, noise, drift, twenty.words)
		}
	}
	for _, cells := range []int{4, 16} {
		t.Log("in turns")
		for _, drift := range []float64{0, 0.02} {
			for _, noise := range []float64{0.02, 0.05, 0.10} {
				check(cells, "quiet", noise, drift, lognormal(noise), burstTurns, 85)
			}
			check(cells, "busy", 0.05, drift, busy(0.05), burstTurns, 85)
		}
		t.Log("without turns")
		for _, drift := range []float64{0, 0.02, 0.05} {
			check(cells, "quiet", 0.05, drift, lognormal(0.05), 1, 0)
		}
	}
}

// A movingMachine draws two runs of some cells and a twin.
type movingMachine struct {
	r     *rand.Rand
	cells int
	drift float64
	draw  world
}

// said is the number of comparisons, of 100, with a verdict and with the exit code 1.
type said struct{ words, exits float64 }

func (s said) String() string { return fmt.Sprintf("%.0f %%, %.0f %%", s.words, s.exits) }

// told compares runs. The first cell of the second run is slower by a factor. If the factor is 1, any verdict
// is false.
func (m movingMachine) told(runs, turns int, slower float64) (in said) {
	const rounds = 20
	movedBy := func() float64 { return math.Exp(m.drift * m.r.NormFloat64()) }
	costs := func(factor float64) []float64 { return scaled(leastOf(m.r, turns, m.draw, rounds), factor*movedBy()) }
	run := func(factor float64) (of [][]float64, twin []float64) {
		for range m.cells {
			of, factor = append(of, costs(factor)), 1
		}
		return of, costs(1)
	}
	for range runs {
		a, twinA := run(1)
		b, twinB := run(slower)
		twins := []Comparison{Compare(a[m.cells-1], twinA, 0, Band), Compare(b[m.cells-1], twinB, 0, Band)}
		alikeA, alikeB := a, b
		if turns > 1 {
			alikeA, alikeB = nil, nil
		}
		moved := slices.Repeat([]Movement{Moved(alikeA, alikeB, false, twins, ratios(movedBy()/movedBy()))}, m.cells+1)
		each, overall := together(a, b, false, moved)
		told, exit := each[0].Verdict == Slower, false
		for _, c := range append(each, overall) {
			told = told || slower == 1 && (c.Verdict == Faster || c.Verdict == Slower)
			exit = exit || c.Verdict == Slower && c.Low > 1+Band
		}
		if told {
			in.words++
		}
		if exit {
			in.exits++
		}
	}
	return said{100 * in.words / float64(runs), 100 * in.exits / float64(runs)}
}

// TestLayoutHasNoWord: a build that is 4 % slower in every run, or up to the allowance, has no word; 10 % more has, and the interval
// holds what is measured.
func TestLayoutHasNoWord(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 14))
	words := func(slower float64) (told map[Verdict]int) {
		told = map[Verdict]int{}
		for range 200 {
			a, b := make([]float64, 20), make([]float64, 20)
			for i := range a {
				a[i], b[i] = math.Exp(0.02*r.NormFloat64()), slower*math.Exp(0.02*r.NormFloat64())
			}
			cells := [][]float64{a, a, a, a}
			c := CompareRuns(cells, [][]float64{b, b, b, b}, true, []Movement{{}, Movement{}.Built(), {}, {}}, Band)
			if c[1].Low != c[0].Low || c[1].High != c[0].High {
				t.Fatalf("the interval is %v…%v, without an allowance %v…%v", c[1].Low, c[1].High, c[0].Low, c[0].High)
			}
			told[c[1].Verdict]++
			sum := CompareSums(cells, [][]float64{b, b, b, b}, true, Movement{}.Built(), Band)
			if slower < 1+Layout && (sum.Verdict == Slower || sum.Verdict == Faster) {
				t.Fatalf("together they are %q (%v…%v)", sum.Verdict, sum.Low, sum.High)
			}
		}
		return told
	}
	if told := words(1.04); told[Slower]+told[Faster] > 4 {
		t.Errorf("4 %% slower: %v", told)
	}
	if told := words(1 / 1.04); told[Slower]+told[Faster] > 4 {
		t.Errorf("4 %% faster: %v", told)
	}
	if told := words(1.10); told[Slower] < 190 {
		t.Errorf("10 %% slower: %v", told)
	}
	if m := (Movement{each: 0.02}).Farther(Movement{}.Built()); m.layout != Layout || m.each != 0.02 {
		t.Errorf("the farther one is %+v", m)
	}
}

// TestAlternateRounds simulates two builds that are run alternately. A drift over the run affects both
// rounds of a pair, and the shortest of 15 trials counts. The table is in docs/design/measuring.md.
func TestAlternateRounds(t *testing.T) {
	isolate.Once(t)
	runs := 200
	if testing.Short() {
		runs = 50
	}
	const cells, pairs, turns = 4, 20, 15
	for _, noise := range []float64{0.02, 0.05, 0.10} {
		for _, drift := range []float64{0, 0.02, 0.05} {
			r := rand.New(rand.NewPCG(22, 22))
			told, exits := map[float64]int{}, map[float64]int{}
			for range runs {
				for _, slower := range []float64{1, 1.1, 1.2} {
					a, b := make([][]float64, cells), make([][]float64, cells)
					for i := range cells {
						machine, factor := 0.0, 1.0 // the machine's speed wanders, by drift from one end to the other
						if i == 0 {
							factor = slower
						}
						for pair := range pairs {
							var costs [2][]float64
							for turn := range 2 * turns {
								machine += drift / math.Sqrt(2*turns*pairs) * r.NormFloat64()
								side := (turn + 1) / 2 % 2 // A B, B A
								costs[side] = append(costs[side], math.Exp(machine+noise*r.NormFloat64()))
							}
							x, y := slices.Min(costs[pair%2]), slices.Min(costs[1-pair%2])
							a[i], b[i] = append(a[i], x), append(b[i], y*factor)
						}
					}
					each, overall := together(a, b, true, nil)
					said, exit := each[0].Verdict == Slower, false
					for _, c := range append(each, overall) {
						said = said || slower == 1 && (c.Verdict == Faster || c.Verdict == Slower)
						exit = exit || c.Verdict == Slower && c.Low > 1+Band
					}
					if said {
						told[slower]++
					}
					if exit {
						exits[slower]++
					}
				}
			}
			percent := func(n int) float64 { return 100 * float64(n) / float64(runs) }
			t.Logf("| %.0f %%, %.0f %% | %.1f %%, %.1f %% | %.0f %%, %.0f %% | %.0f %%, %.0f %% |", 100*noise, 100*drift,
				percent(told[1]), percent(exits[1]), percent(told[1.1]), percent(exits[1.1]), percent(told[1.2]), percent(exits[1.2]))
			if percent(told[1]) > 8 || percent(exits[1]) > 2 { // 5 % and three standard errors
				t.Errorf("noise %v, drift %v: %d of %d comparisons of the same code have a false word, %d a regression", noise, drift, told[1], runs, exits[1])
			}
			if percent(told[1.1]) < 90 {
				t.Errorf("noise %v, drift %v: +10 %% is seen in %d of %d", noise, drift, told[1.1], runs)
			}
		}
	}
}
