package study

import (
	"math"
	"strings"
	"testing"
)

func TestJudgeHoldsOnlyWithTheWholeInterval(t *testing.T) {
	check := func(low, value, high float64, want Verdict) {
		t.Helper()
		f := Measured{value, low, high, Times}.Judge(Span{10, 30}, NeverSo, "yes", "no")
		if f.Verdict != want {
			t.Errorf("%v to %v: %s, want %s", low, high, f.Verdict, want)
		}
		if (f.Settle != "") != (want == NotChecked || want == AtEdge) {
			t.Errorf("%v to %v: to be settled by %q", low, high, f.Settle)
		}
	}
	check(10, 20, 30, Holds)
	check(12, 20, 28, Holds)
	check(9.9, 20, 30, AtEdge)
	check(10, 20, 30.1, AtEdge)
	check(1, 5, 9.9, NeverSo)
	check(30.1, 35, 40, NeverSo)
	check(1, 35, 40, AtEdge)
	nan := math.NaN()
	check(nan, 20, nan, NotChecked)
	check(nan, nan, nan, NotChecked)
}

func TestAnIntervalAtTheEdgeNamesItsBound(t *testing.T) {
	check := func(low, high float64, bound string) {
		t.Helper()
		f := Measured{20, low, high, Times}.Judge(Span{10, 30}, NeverSo, "yes", "no")
		if f.Verdict != AtEdge || !strings.Contains(f.Why, "contains "+bound+",") {
			t.Errorf("%v to %v: %s, %s", low, high, f.Verdict, f.Why)
		}
	}
	check(9, 25, "10x")
	check(15, 31, "30x")
	check(1, 40, "10x")
}

func TestAboutIsAFactorBothWays(t *testing.T) {
	if got, want := About(20, 2), (Span{10, 40}); got != want {
		t.Errorf("about 20 is %v, want %v", got, want)
	}
}
