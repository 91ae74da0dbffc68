package advise_test

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/lab/advise"
	"github.com/holdfast-go/holdfast/internal/lab/figure"
	"github.com/holdfast-go/holdfast/internal/lab/result"
	"github.com/holdfast-go/holdfast/internal/lab/stat"
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
	check := func(name string, groups []figure.Group, want holdfast.Policy, sentence string) {
		t.Helper()
		a, ok := advise.Choose(groups)
		if !ok || a.Policy != want || a.Sentence != sentence {
			t.Errorf("%s: %v %v\n got %s\nwant %s", name, ok, a.Policy, a.Sentence, sentence)
		}
	}
	all := []holdfast.Policy{never, periodic, group, each}
	one := func(n, p, g, e float64) []figure.Group {
		return []figure.Group{costs(1, map[holdfast.Policy]float64{never: n, periodic: p, group: g, each: e}, all...)}
	}
	check("a bound is nearly free", one(1, 1.03, 14, 15), periodic,
		"`buffer=64KiB,flush=100ms,sync=1s`: 97 % of the fastest (cost 1.03x, slower), loses at most the last 1s + one sync at a power cut; "+
			"the fastest, `buffer=64KiB,sync=never`, loses anything not synced; to lose nothing costs 14.0x: `buffer=64KiB,sync=group`")
	check("a bound is the fastest", one(1.2, 1, 14, 15), periodic,
		"`buffer=64KiB,flush=100ms,sync=1s`: the fastest, loses at most the last 1s + one sync at a power cut; to lose nothing costs 14.0x: `buffer=64KiB,sync=group`")
	check("a bound is dear", one(1, 11, 14, 15), never,
		"`buffer=64KiB,sync=never`: the fastest, loses anything not synced at a power cut; to lose at most the last 1s + one sync costs 11.0x: "+
			"`buffer=64KiB,flush=100ms,sync=1s`; to lose nothing costs 14.0x: `buffer=64KiB,sync=group`")
	check("durable is nearly free", one(1, 1.01, 1.08, 15), group,
		"`buffer=64KiB,sync=group`: 93 % of the fastest (cost 1.08x, slower), loses nothing at a power cut; the fastest, `buffer=64KiB,sync=never`, loses anything not synced")
	check("each is the cheaper durable one", one(1, 1.01, 14, 1.08), each,
		"`buffer=0,sync=each`: 93 % of the fastest (cost 1.08x, slower), loses nothing at a power cut; the fastest, `buffer=64KiB,sync=never`, loses anything not synced")
	check("nothing bounds", []figure.Group{costs(1, map[holdfast.Policy]float64{never: 1, holdfast.Unbuffered(): 12}, never, holdfast.Unbuffered())}, never,
		"`buffer=64KiB,sync=never`: the fastest, loses anything not synced at a power cut")
	many := append(one(1, 1.03, 14, 15), costs(64, map[holdfast.Policy]float64{never: 1, periodic: 1.5, group: 2.1, each: 200}, all...))
	check("two loads", many, periodic,
		"`buffer=64KiB,flush=100ms,sync=1s`: at least 67 % of the fastest (cost 1.50x, slower), loses at most the last 1s + one sync at a power cut; "+
			"the fastest, `buffer=64KiB,sync=never`, loses anything not synced; to lose nothing costs 14.0x with 1 writer, 2.10x with 64 writers: `buffer=64KiB,sync=group`")
}

func TestChooseNeedsTwoPolicies(t *testing.T) {
	for name, groups := range map[string][]figure.Group{
		"none": nil, "empty": {{}},
		"one":              {costs(1, map[holdfast.Policy]float64{never: 1}, never)},
		"one in each load": {costs(1, map[holdfast.Policy]float64{never: 1}, never), costs(2, map[holdfast.Policy]float64{group: 1}, group)},
	} {
		if a, ok := advise.Choose(groups); ok {
			t.Errorf("%s: %s", name, a.Sentence)
		}
	}
}

var number = regexp.MustCompile(`[0-9.]+k?x|[0-9.]+ %`)

// TestAdviceCitesOnlyWhatItWasGiven chooses from random figures and looks every
// number of the sentence up in them, and every policy's loss in its Loss.
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
				given[advise.Times(r.Cost.Comparison)], given[advise.Percent(r.Cost.Comparison)] = true, true
			}
			groups = append(groups, g)
		}
		a, ok := advise.Choose(groups)
		if !ok {
			t.Fatalf("no advice from %+v", groups)
		}
		for _, f := range number.FindAllString(a.Sentence, -1) {
			if !given[f] {
				t.Fatalf("%s is not among the figures: %s", f, a.Sentence)
			}
		}
		if !strings.HasPrefix(a.Sentence, "`"+a.Policy.String()+"`") || !strings.Contains(a.Sentence, "loses") {
			t.Fatalf("%s", a.Sentence)
		}
		if power := a.Policy.Loss().Power; !strings.Contains(a.Sentence, power.String()) {
			t.Fatalf("%v is not in: %s", power, a.Sentence)
		}
	}
}

// TestGroupCommitIsNotBeatenByAHair plants what one writer's noise does: a sync of
// its own seems a little cheaper there, and is thirty times dearer for 64.
func TestGroupCommitIsNotBeatenByAHair(t *testing.T) {
	order := []holdfast.Policy{never, periodic, group, each}
	a, ok := advise.Choose([]figure.Group{
		costs(1, map[holdfast.Policy]float64{never: 1, periodic: 2.5, group: 3718, each: 3573}, order...),
		costs(64, map[holdfast.Policy]float64{never: 1, periodic: 2.3, group: 93, each: 3053}, order...),
	})
	if !ok || !strings.HasSuffix(a.Sentence, "3718x with 1 writer, 93.0x with 64 writers: `buffer=64KiB,sync=group`") {
		t.Errorf("%v: %s", ok, a.Sentence)
	}
}
