package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
)

type entrant struct {
	name string
	Runs[float64]
}

type contest struct{ arms []*entrant }

func (c contest) Entrants() []*entrant { return c.arms }

// contests returns two races of three arms.
func contests() []contest {
	var all []contest
	for _, race := range []string{"a", "b"} {
		var c contest
		for _, arm := range []string{"ours", "twin", "other"} {
			c.arms = append(c.arms, &entrant{name: race + "/" + arm})
		}
		all = append(all, c)
	}
	return all
}

func TestEveryRoundHasEveryArmOnceAndItsRaceTogether(t *testing.T) {
	for _, warm := range []bool{false, true} {
		all, want := contests(), 3
		if warm {
			want = 4
		}
		var rounds [][]string
		var talk bytes.Buffer
		complete, err := Rounds{Name: "test", Count: 3, Seed: 7, Warm: warm, Talk: &talk}.Run(func(n int, order *rand.Rand) error {
			var names []string
			err := EachArm(t.Context(), order, all, func(_ contest, a *entrant) error {
				names = append(names, a.name)
				return nil
			})
			rounds = append(rounds, names)
			return err
		}, func(int) { t.Error("a run that ends well forgets nothing") })
		if complete != 3 || err != nil || len(rounds) != want || !strings.Contains(talk.String(), "test: round 3 of 3 done") {
			t.Fatalf("warm %v: %d complete of %d, %v\n%s", warm, complete, len(rounds), err, &talk)
		}
		for _, names := range rounds {
			if names[0][0] != names[1][0] || names[1][0] != names[2][0] {
				t.Errorf("the arms of a race lie apart: %v", names)
			}
			if slices.Sort(names); len(slices.Compact(names)) != 6 {
				t.Errorf("a round without every arm: %v", names)
			}
		}
	}
}

func TestRoundThatIsCutOffIsForgotten(t *testing.T) {
	check := func(warm bool, breaks, want int) {
		t.Helper()
		all := contests()
		complete, err := Rounds{Count: 5, Warm: warm, Talk: io.Discard}.Run(func(n int, order *rand.Rand) error {
			return EachArm(t.Context(), order, all, func(_ contest, a *entrant) error {
				if n == breaks && len(all[0].arms[0].Samples) == breaks {
					return context.Canceled
				}
				if n > 0 {
					a.Samples = append(a.Samples, 1)
				}
				return nil
			})
		}, func(rounds int) { Keep(all, rounds) })
		if complete != want || !errors.Is(err, context.Canceled) {
			t.Errorf("warm %v, cut off in round %d: %d complete, %v; want %d", warm, breaks, complete, err, want)
		}
		for _, c := range all {
			for _, a := range c.arms {
				if len(a.Samples) != want {
					t.Errorf("warm %v, cut off in round %d: %d samples, want %d", warm, breaks, len(a.Samples), want)
				}
			}
		}
	}
	check(false, 3, 2)
	check(true, 0, 0)
}

func TestFailureCountsUnlessItIsExcused(t *testing.T) {
	all := contests()
	if err := Failed(all); err != nil {
		t.Error(err)
	}
	all[1].arms[2].Err = fmt.Errorf("here: %w", errors.ErrUnsupported)
	if err := Failed(all, os.ErrExist, errors.ErrUnsupported); err != nil {
		t.Errorf("excused: %v", err)
	}
	if err := Failed(all, os.ErrExist); !errors.Is(err, ErrFailed) {
		t.Errorf("not excused: %v", err)
	}
}

func TestPickedKeepsWhatAllAreComparedWith(t *testing.T) {
	check := func(pick string, wantAny bool, want ...string) {
		t.Helper()
		kept, any := Picked([]string{"ours", "twin", "one", "two"}, func(a string) bool { return a == pick })
		if any != wantAny || !slices.Equal(kept, want) {
			t.Errorf("%q: %v, %v", pick, kept, any)
		}
	}
	check("two", true, "ours", "twin", "two")
	check("ours", true, "ours", "twin")
	check("nobody", false, "ours", "twin")
}

func TestArmsAreComparedWithOurs(t *testing.T) {
	same := func(x float64) float64 { return x }
	ours, twin, other := &Runs[float64]{}, &Runs[float64]{}, &Runs[float64]{}
	for range 12 {
		ours.Samples, twin.Samples, other.Samples = append(ours.Samples, 10), append(twin.Samples, 10), append(other.Samples, 20)
	}
	floor := Floor(ours, twin, same)
	check := func(a *Runs[float64], want string) {
		t.Helper()
		if got := strings.Join(Compared(ours, a, same, floor, 2), "|"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	check(ours, "||")
	check(twin, "1.00|1.00–1.00|same")
	check(other, "2.00|2.00–2.00|slower")
	ours.Err = errors.New("broke")
	check(other, "||")
	if got := Percent(Floor(ours, twin, same)); got != "not known" {
		t.Errorf("floor %q", got)
	}
}

func TestChildPrintsWhatItDidOrFails(t *testing.T) {
	type order struct{ Name string }
	check := func(text string, wantCode int, want string) {
		t.Helper()
		var out bytes.Buffer
		code := serve(text, &out, func(o order, _ io.Writer) (any, error) {
			switch o.Name {
			case "nobody":
				return nil, errors.New("there is no such arm")
			case "bare":
				return nil, nil
			}
			return Sample{Units: len(o.Name)}, nil
		})
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
