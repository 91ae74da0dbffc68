package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

type (
	testGroup = Group[struct{}, int]
	testArm   = Arm[int]
)

// groups returns two groups of three arms.
func groups() (all []*testGroup) {
	for _, name := range []string{"a", "b"} {
		g := &testGroup{Name: name, Title: "work " + name, Unit: "record"}
		for _, arm := range []string{"ours", "twin", "other"} {
			g.Arms = append(g.Arms, &testArm{Name: arm, Note: "what " + arm + " is"})
		}
		all = append(all, g)
	}
	return all
}

// run runs the groups, and returns the names of each round's arms in order.
func run(ctx context.Context, all []*testGroup, r Rounds, try func(name string, round int) error) (complete int, rounds [][]string, err error) {
	r.Kind = "test"
	if r.Talk == nil {
		r.Talk = io.Discard
	}
	complete, err = Trials[struct{}, int]{
		Groups: all,
		Open:   func(context.Context) error { rounds = append(rounds, nil); return nil },
		Close:  func() error { return nil },
		Try: func(_ context.Context, g *testGroup, a *testArm, round int) (Sample, error) {
			name, last := g.Name+"/"+a.Name, len(rounds)-1
			rounds[last] = append(rounds[last], name)
			return Sample{Elapsed: time.Microsecond, CPU: time.Microsecond, Units: 1}, try(name, round)
		},
	}.Run(ctx, r)
	return complete, rounds, err
}

func always(string, int) error { return nil }

func TestEveryRoundHasEveryArmOnceAndItsGroupTogether(t *testing.T) {
	for _, warm := range []bool{false, true} {
		all, want := groups(), 3
		if warm {
			want = 4
		}
		var talk bytes.Buffer
		complete, rounds, err := run(t.Context(), all, Rounds{Count: 3, Seed: 7, Warm: warm, Talk: &talk}, always)
		if complete != 3 || err != nil || len(rounds) != want || !strings.Contains(talk.String(), "test: round 3 of 3 done") {
			t.Fatalf("warm %v: %d complete of %d, %v\n%s", warm, complete, len(rounds), err, &talk)
		}
		for _, names := range rounds {
			if names[0][0] != names[1][0] || names[1][0] != names[2][0] {
				t.Errorf("the arms of a group lie apart: %v", names)
			}
			if slices.Sort(names); len(slices.Compact(names)) != 6 {
				t.Errorf("a round without every arm: %v", names)
			}
		}
		for _, g := range all {
			for _, a := range g.Arms {
				if len(a.Samples) != 3 {
					t.Errorf("warm %v: %s/%s has %d samples", warm, g.Name, a.Name, len(a.Samples))
				}
			}
		}
	}
}

func TestSeedGivesTheOrder(t *testing.T) {
	orders := map[uint64]string{}
	for _, seed := range []uint64{1, 1, 2} {
		_, rounds, _ := run(t.Context(), groups(), Rounds{Count: 5, Seed: seed}, always)
		if text := fmt.Sprint(rounds); orders[seed] != "" && orders[seed] != text {
			t.Error("the same seed gave another order")
		} else {
			orders[seed] = text
		}
	}
	if orders[1] == orders[2] {
		t.Error("another seed gave the same order")
	}
}

func TestRoundThatIsCutOffIsForgotten(t *testing.T) {
	check := func(warm bool, breaks, trial, want int) {
		t.Helper()
		all := groups()
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		trials := 0
		complete, _, err := run(ctx, all, Rounds{Count: 5, Warm: warm}, func(_ string, round int) error {
			if round == breaks {
				if trials++; trials == trial {
					stop()
					return errors.New("the arm was interrupted too")
				}
			}
			return nil
		})
		if complete != want || !errors.Is(err, context.Canceled) {
			t.Errorf("warm %v, cut off in round %d: %d complete, %v; want %d", warm, breaks, complete, err, want)
		}
		for _, g := range all {
			for _, a := range g.Arms {
				if len(a.Samples) != want || a.Err != nil {
					t.Errorf("warm %v, cut off in round %d: %d samples, %v; want %d", warm, breaks, len(a.Samples), a.Err, want)
				}
			}
		}
		if text := (Rounds{Count: 5}).conditions(complete, "a disk", nil); !strings.Contains(text, fmt.Sprintf("%d rounds in", want)) || !strings.Contains(text, fmt.Sprintf("interrupted before %d more", 5-want)) {
			t.Errorf("not marked: %s", text)
		}
	}
	check(false, 3, 4, 2)
	check(false, 5, 6, 4) // the last trial of all
	check(true, 0, 4, 0)
}

func TestMachinesErrorEndsTheRun(t *testing.T) {
	all, broken := groups(), errors.New("no memory")
	tries := 0
	complete, err := Trials[struct{}, int]{
		Groups: all,
		Ready:  func(context.Context, *testGroup, *testArm) error { return broken },
		Try: func(context.Context, *testGroup, *testArm, int) (Sample, error) {
			tries++
			return Sample{}, nil
		},
	}.Run(t.Context(), Rounds{Count: 3, Talk: io.Discard})
	if complete != 0 || !errors.Is(err, broken) || tries > 0 || Failed(all) != nil {
		t.Errorf("%d rounds, %v, %d tries, %v", complete, err, tries, Failed(all))
	}
}

func TestArmThatFailsIsRunNoMoreAndShown(t *testing.T) {
	all, calls := groups(), 0
	broke := errors.New("broke | down")
	var talk, out bytes.Buffer
	complete, _, err := run(t.Context(), all, Rounds{Count: 10, Talk: &talk}, func(name string, _ int) error {
		if name != "b/other" {
			return nil
		}
		calls++
		return broke
	})
	if complete != 10 || err != nil || calls != 1 || !strings.Contains(talk.String(), "b/other: broke | down") {
		t.Errorf("%d rounds, %v, %d calls\n%s", complete, err, calls, &talk)
	}
	Tables(&out, all)
	if !strings.Contains(out.String(), "\n| other | does not count: broke / down | | | | | | | |\n") &&
		!strings.Contains(out.String(), "\n| other | does not count: broke / down |  |  |  |  |  |  |  |\n") {
		t.Errorf("not shown:\n%s", &out)
	}
	if Failed(all) != ErrFailed || Failed(all, os.ErrExist, broke) != nil {
		t.Error("a failure counts unless it is excused")
	}
}

func TestPickedKeepsWhatAllAreComparedWith(t *testing.T) {
	check := func(pick string, want ...string) {
		t.Helper()
		var got []string
		for _, g := range Picked(groups(), regexp.MustCompile(pick)) {
			for _, a := range g.Arms {
				got = append(got, g.Name+"/"+a.Name)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", pick, got, want)
		}
	}
	check("b/other", "b/ours", "b/twin", "b/other")
	check("a/ours", "a/ours", "a/twin")
	check("nobody")
}

func TestTableComparesWithOurs(t *testing.T) {
	g := groups()[0]
	for range 12 {
		for i, took := range []time.Duration{10_000, 10_000, 20_000} {
			g.Arms[i].Samples = append(g.Arms[i].Samples, Sample{Elapsed: took * 10, CPU: took, Units: 10})
		}
	}
	check := func(want ...string) {
		t.Helper()
		var out bytes.Buffer
		Tables(&out, []*testGroup{g}, Median("units", "%.0f", func(s Sample) float64 { return float64(s.Units) }))
		for _, line := range want {
			if !strings.Contains(out.String(), line) {
				t.Errorf("no %q in:\n%s", line, &out)
			}
		}
	}
	check("## a: work a", "| arm | time per record | 95 % | time ÷ ours | 95 % | than ours | CPU per record | CPU ÷ ours | 95 % | units |",
		"| ours | 10 µs | 10 µs–10 µs |  |  |  | 1 µs |  |  | 10 |", "| twin | 10 µs | 10 µs–10 µs | 1.00 | 1.00–1.00 | same |",
		"| other | 20 µs | 20 µs–20 µs | 2.00 | 2.00–2.00 | slower | 2 µs | 2.00 | 2.00–2.00 | 10 |", "run twice: 0.0 %", "- `other`: what other is.")
	for i := range g.Arms[1].Samples {
		g.Arms[1].Samples[i].Elapsed = 110_000
	}
	check("run twice: 10.0 %")
	g.Arms[0].Err = errors.New("broke")
	check("| ours | does not count: broke |", "| other | 20 µs | 20 µs–20 µs |  |  |  | 2 µs |", "run twice: not known")
}

func TestFastestOfThePeersIsNamed(t *testing.T) {
	g := groups()[0]
	g.Best = "peer"
	g.Arms = append(g.Arms, &testArm{Name: "peer small"}, &testArm{Name: "peer large"}, &testArm{Name: "peer that broke", Err: errors.New("broke")})
	for range 12 {
		for i, took := range []time.Duration{20_000, 20_000, 10_000, 40_000, 30_000} {
			g.Arms[i].Samples = append(g.Arms[i].Samples, Sample{Elapsed: took, CPU: 2 * took, Units: 1, Values: []float64{float64(took)}})
		}
	}
	check := func(want string) {
		t.Helper()
		var out bytes.Buffer
		Tables(&out, []*testGroup{g}, Value("slowest", 0, Duration), Value("more", 1, Duration))
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, &out)
		}
	}
	check("The fastest peer is `peer large`: time ÷ ours 1.50 [1.50–1.50], slower; CPU ÷ 1.50.\n")
	check("| 30 µs |  |\n") // the second value was not measured
	g.Arms[4].Err = errors.New("broke")
	check("The fastest peer is `peer small`: time ÷ ours 2.00")
}

func TestFiguresHaveThreeDigits(t *testing.T) {
	for ns, want := range map[float64]string{0.2123: "0.212 ns", 13.66: "13.7 ns", 999.4: "999 ns", 999.6: "1 µs", 1234567: "1.23 ms", 2e10: "20 s"} {
		if got := Duration(ns); got != want {
			t.Errorf("%v: %s, want %s", ns, got, want)
		}
	}
}

func TestChildPrintsWhatItDidOrFails(t *testing.T) {
	type order struct{ Name string }
	k := Kind{Name: "test", Carry: Order(func(o order, _ io.Writer) (any, error) {
		switch o.Name {
		case "nobody":
			return nil, errors.New("there is no such arm")
		case "bare":
			return nil, nil
		}
		return Sample{Units: len(o.Name)}, nil
	})}
	check := func(text string, wantCode int, want string) {
		t.Helper()
		var out bytes.Buffer
		code := k.serve([]byte(text), &out)
		var s Sample
		if out.Len() > 0 {
			if err := json.Unmarshal(out.Bytes(), &s); err != nil {
				t.Error(err)
			}
		}
		if got := fmt.Sprint(s.Units); code != wantCode || got != want {
			t.Errorf("%s: code %d, %s units; want %d, %s", text, code, got, wantCode, want)
		}
	}
	check(`{"Name":"four"}`, 0, "4")
	check(`{"Name":"bare"}`, 0, "0")
	check(`{"Name":"nobody"}`, 1, "0")
	check(`{`, 1, "0")
}
