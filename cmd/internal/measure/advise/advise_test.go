package advise_test

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/advise"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
)

var (
	never    = policy("buffer=64KiB")
	periodic = policy("buffer=64KiB,flush=100ms,sync=1s")
	group    = policy("buffer=64KiB,sync=group")
	each     = policy("buffer=0,sync=each")
)

func policy(text string) holdfast.Policy {
	p, err := holdfast.ParsePolicy(text)
	if err != nil {
		panic(err)
	}
	return p
}

// costs is a group with a planted cost for each policy, in their order.
func costs(writers int, ratios map[holdfast.Policy]float64, order ...holdfast.Policy) figure.Group {
	g := figure.Group{Load: figure.Load{RecordBytes: 128, Writers: writers}}
	for _, p := range order {
		word := stat.Slower
		if ratios[p] <= 1 {
			word = stat.Same
		}
		g.Rows = append(g.Rows, figure.Row{Cell: result.Cell{Policy: p}, Cost: figure.Comparison{Comparison: stat.Comparison{N: 10, Ratio: ratios[p], Verdict: word}}})
	}
	return g
}

func TestChoose(t *testing.T) {
	check := func(name string, groups []figure.Group, want string) {
		t.Helper()
		a, ok := advise.Choose(groups)
		if got := a.Sentence(); !ok || got != want {
			t.Errorf("%s: %v %v\n got %s\nwant %s", name, ok, a.Policy, got, want)
		}
	}
	all := []holdfast.Policy{never, periodic, group, each}
	one := func(n, p, g, e float64) []figure.Group {
		return []figure.Group{costs(1, map[holdfast.Policy]float64{never: n, periodic: p, group: g, each: e}, all...)}
	}
	const lastSecond, nothing = "; a power cut loses at most the last 1s + one sync", "; to lose nothing: buffer=64KiB,sync=group, "
	const only = "; chosen by rule, not by figures: it alone bounds the loss in time here"
	check("a bound is nearly free", one(1, 1.03, 14, 15), "use `buffer=64KiB,flush=100ms,sync=1s`; costs 1.03x against the fastest"+lastSecond+nothing+"14x"+only)
	check("a bound is the fastest", one(1.2, 1, 14, 15), "use `buffer=64KiB,flush=100ms,sync=1s`; is the fastest to write"+lastSecond+nothing+"14x"+only)
	check("a bound is dear", one(1, 11, 14, 15), "use `buffer=64KiB,sync=never`; is the fastest to write; a power cut loses anything not synced"+nothing+"14x")
	check("durable is nearly free", one(1, 1.01, 1.08, 15), "use `buffer=64KiB,sync=group`; costs 1.08x against the fastest; a power cut loses nothing")
	check("each is the cheaper durable one", one(1, 1.01, 14, 1.08), "use `buffer=0,sync=each`; costs 1.08x against the fastest; a power cut loses nothing")
	check("nothing bounds", []figure.Group{costs(1, map[holdfast.Policy]float64{never: 1, holdfast.Unbuffered(): 12}, never, holdfast.Unbuffered())},
		"use `buffer=64KiB,sync=never`; is the fastest to write; a power cut loses anything not synced")
	check("another is the fastest by its median", []figure.Group{costs(1, map[holdfast.Policy]float64{never: 0.99, holdfast.Buffered(holdfast.MiB): 1}, holdfast.Buffered(holdfast.MiB), never)},
		"use `buffer=64KiB,sync=never`; is as fast as the fastest, within the noise; a power cut loses anything not synced")
	many := append(one(1, 1.03, 14, 15), costs(64, map[holdfast.Policy]float64{never: 1, periodic: 1.5, group: 2.1, each: 200}, all...))
	check("two loads", many, "use `buffer=64KiB,flush=100ms,sync=1s`; costs 1.03x with 1 writer, 1.50x with 64 writers against the fastest"+lastSecond+nothing+"14x with 1 writer, 2.1x with 64 writers"+only)
	tenth := policy("buffer=64KiB,flush=100ms,sync=100ms")
	check("two bounds", []figure.Group{costs(1, map[holdfast.Policy]float64{never: 1, periodic: 1.03, tenth: 1.3, group: 14}, never, tenth, periodic, group)},
		"use `buffer=64KiB,flush=100ms,sync=1s`; costs 1.03x against the fastest"+lastSecond+nothing+"14x; chosen by rule: the cheapest here that bounds the loss in time")
}

// TestChooseTakesPeriodsFromPacedTrials: the burst, in which the period never fell due, is no
// evidence that the policy is cheap.
func TestChooseTakesPeriodsFromPacedTrials(t *testing.T) {
	burst := costs(1, map[holdfast.Policy]float64{never: 1, periodic: 1.01, group: 14}, never, periodic, group)
	burst.Rows[1].Period = &figure.Period{Longest: time.Second}
	if a, ok := advise.Choose([]figure.Group{burst}); ok {
		t.Errorf("without paced trials: %v", a)
	}
	if text := advise.Missing([]figure.Group{burst}); !strings.Contains(text, "no policy is advised") {
		t.Errorf("without paced trials: %q", text)
	}
	byBytes := costs(1, map[holdfast.Policy]float64{never: 1, policy("buffer=64KiB,sync=4MiB"): 1.01, group: 14}, never, policy("buffer=64KiB,sync=4MiB"), group)
	if a, ok := advise.Choose([]figure.Group{byBytes}); !ok || a.Policy != never {
		t.Errorf("a bound by bytes alone: %v", a)
	}
	paced := costs(1, map[holdfast.Policy]float64{never: 1, periodic: 1.04}, never, periodic)
	paced.Paced, paced.Rate = true, 50000
	r := &paced.Rows[1]
	paced.Rows[0].Cell.Every, r.Cell.Every, paced.Rows[0].Control = 1, 1, true
	r.Period, r.LongestSync, r.Syncs = &figure.Period{Longest: time.Second, FellDue: 3, Reached: true}, 12*time.Millisecond, 24
	r.Cost.Low, r.Cost.High, r.Cost.Confidence = 0.97, 1.05, 0.95
	a, ok := advise.Choose([]figure.Group{burst, paced})
	const want = "no cost shown beside buffer=64KiB,sync=never, at 50k/s (at most 1.05x); " +
		"a power cut loses at most the last 1.02s (1s + the longest of 24 syncs; 88 % take no longer); to lose nothing: buffer=64KiB,sync=group, 14x"
	r.Cost.Ratio, r.Cost.Low = 0.9, 0.8
	if text := advise.Missing([]figure.Group{burst, paced}); text != "" || a.Rule == "" {
		t.Errorf("missing %q, rule %q", text, a.Rule)
	}
	says := func(low, ratio, high float64, by time.Duration, want string) {
		t.Helper()
		r.Cost.Low, r.Cost.Ratio, r.Cost.High, r.BoundBy = low, ratio, high, by
		if r.Cost.Confidence = 0.95; low == 0 {
			r.Cost.Confidence = 0
		}
		b, _ := advise.Choose([]figure.Group{burst, paced})
		if b.Costs != want {
			t.Errorf("%.2f (%.2f-%.2f): %s, want %s", ratio, low, high, b.Costs, want)
		}
	}
	const of = "buffer=64KiB,sync=never, at 50k/s"
	says(0.8, 0.9, 1.05, 0, "no cost shown beside "+of+" (at most 1.05x)")
	says(0.8, 0.9, 0.95, 0, "no cost shown beside "+of+" (at most 1.00x)")
	says(0.97, 1.01, 1.032, 100*time.Millisecond, "no cost shown beside "+of+" (at most 1.04x, measured at periods of 100ms)")
	says(1.05, 1.1, 1.18, 100*time.Millisecond, "costs at most 1.18x against "+of+" (measured at periods of 100ms)")
	says(1.05, 1.1, 1.18, 0, "costs 1.10x (1.05-1.18) against "+of)
	says(0.5, 1.1, 25, 100*time.Millisecond, "what it costs a writer beside "+of+" is not known (measured at periods of 100ms, in 10 trials, too far apart to bound it)")
	r.Cost.N = 2
	says(0, 0.9, 0, 100*time.Millisecond, "what it costs a writer beside "+of+" is not known (measured at periods of 100ms, in 2 trials, too few to bound it)")
	says(0, 1.1, 0, 0, "what it costs a writer beside "+of+" is not known (in 2 trials, too few to bound it)")
	if text := advise.Cost(*r); text != advise.CostNotKnown {
		t.Errorf("the cost of too few trials is %s", text)
	}
	r.Cost.N, r.Cost.Most = 4, 1.16 // by Student
	says(0, 1.1, 0, 100*time.Millisecond, "no cost shown beside "+of+" (at most 1.16x, measured at periods of 100ms, in 4 trials)")
	if text := advise.Cost(*r); text != "≤1.16x" {
		t.Errorf("the cost of four trials is %s", text)
	}
	if p, got := a.Lines(); !ok || p != periodic.String() || got != want {
		t.Errorf("%s: %q, want %q", p, got, want)
	}
}

func TestRatiosHaveTheirInterval(t *testing.T) {
	check := func(ratio, low, high float64, want string) {
		t.Helper()
		c := stat.Comparison{Ratio: ratio, Low: low, High: high, Confidence: 0.95}
		if got := advise.Ratio(c) + " " + advise.Interval(c); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	check(1.003, 0.974, 1.05, "1.00x (0.97-1.05)")
	check(2.4, 1.99, 2.89, "2.4x (2.0-2.9)")
	check(92.2, 80, 104, "92x (80-104)")
	check(30, 0.5, 90, "30x (0.5-90)")
	check(3704, 2776, 4094, "3,700x (2,800-4,100)")
	check(123456, 99000, 223456, "123kx (99,000-223k)")
	if got := advise.Ratio(stat.Comparison{}) + advise.Interval(stat.Comparison{Ratio: 2}); got != "-" {
		t.Error(got)
	}
}

func TestChooseNeedsTwoPolicies(t *testing.T) {
	for name, groups := range map[string][]figure.Group{
		"none": nil, "empty": {{}},
		"one":              {costs(1, map[holdfast.Policy]float64{never: 1}, never)},
		"one in each load": {costs(1, map[holdfast.Policy]float64{never: 1}, never), costs(2, map[holdfast.Policy]float64{group: 1}, group)},
	} {
		if a, ok := advise.Choose(groups); ok {
			t.Errorf("%s: %s", name, a.Sentence())
		}
	}
}

var number = regexp.MustCompile(`[0-9.,]+k?x`)

// TestAdviceCitesOnlyWhatItWasGiven chooses from random figures. It looks up every number of the
// sentence in the figures, and every loss in the policy's Loss.
func TestAdviceCitesOnlyWhatItWasGiven(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	all := []holdfast.Policy{holdfast.Unbuffered(), never, periodic, group, each}
	for range 2000 {
		var groups []figure.Group
		given := map[string]bool{}
		for _, writers := range []int{1, 64}[:1+random.IntN(2)] {
			ratios := map[holdfast.Policy]float64{}
			for _, p := range all {
				ratios[p] = 1 + random.ExpFloat64()*random.ExpFloat64()*4
			}
			ratios[all[random.IntN(len(all))]] = 1
			g := costs(writers, ratios, all...)
			for _, r := range g.Rows {
				given[advise.Ratio(r.Cost.Comparison)] = true
			}
			groups = append(groups, g)
		}
		a, ok := advise.Choose(groups)
		if !ok {
			t.Fatalf("no advice from %+v", groups)
		}
		sentence := a.Sentence()
		for _, f := range number.FindAllString(sentence, -1) {
			if !given[f] {
				t.Fatalf("%s is not among the figures: %s", f, sentence)
			}
		}
		if !strings.HasPrefix(sentence, "use `"+a.Policy.String()+"`") || !strings.Contains(sentence, "loses") {
			t.Fatalf("%s", sentence)
		}
		if power := a.Policy.Loss().Power; !strings.Contains(sentence, power.String()) {
			t.Fatalf("%v is not in: %s", power, sentence)
		}
	}
}

// TestGroupCommitIsNotBeatenByAHair plants the noise of one writer: sync=each seems a little cheaper
// there, and costs thirty times as much with 64 writers.
func TestGroupCommitIsNotBeatenByAHair(t *testing.T) {
	order := []holdfast.Policy{never, periodic, group, each}
	a, ok := advise.Choose([]figure.Group{
		costs(1, map[holdfast.Policy]float64{never: 1, periodic: 2.5, group: 3718, each: 3573}, order...),
		costs(64, map[holdfast.Policy]float64{never: 1, periodic: 2.3, group: 93, each: 3053}, order...),
	})
	if !ok || !strings.Contains(a.Sentence(), "buffer=64KiB,sync=group, 3,700x with 1 writer, 93x with 64 writers") {
		t.Errorf("%v: %s", ok, a.Sentence())
	}
}
