package study

import (
	"math"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/result"
)

func TestJudgeHoldsOnlyWithTheWholeInterval(t *testing.T) {
	check := func(low, value, high float64, want Verdict) {
		t.Helper()
		f := measured{value, low, high, times}.judge(span{10, 30}, NeverSo, "yes", "no")
		if f.Verdict != want {
			t.Errorf("%v to %v: %s, want %s", low, high, f.Verdict, want)
		}
		if (f.Settle != "") != (want == NotChecked) {
			t.Errorf("%v to %v: to be settled by %q", low, high, f.Settle)
		}
	}
	check(10, 20, 30, Holds)
	check(12, 20, 28, Holds)
	check(9.9, 20, 30, NotChecked)
	check(10, 20, 30.1, NotChecked)
	check(1, 5, 9.9, NeverSo)
	check(30.1, 35, 40, NeverSo)
	check(1, 35, 40, NotChecked)
	nan := math.NaN()
	check(nan, 20, nan, NotChecked)
	check(nan, nan, nan, NotChecked)
}

func TestAboutIsAFactorBothWays(t *testing.T) {
	if got, want := about(20, 2), (span{10, 40}); got != want {
		t.Errorf("about 20 is %v, want %v", got, want)
	}
}

func TestClaimWithoutItsArmsIsNotChecked(t *testing.T) {
	c := Claim{Arms: []string{"a", "b"}, Judge: func(Evidence) Finding { return Finding{Verdict: Holds} }}
	none := func(string, int, *result.Measurement) {}
	if f := c.Find(planted(10, none, "a", "b")); f.Verdict != Holds {
		t.Errorf("with both arms: %+v", f)
	}
	if f := c.Find(planted(10, none, "a")); f.Verdict != NotChecked || !strings.Contains(f.Why, "b") {
		t.Errorf("without b: %+v", f)
	}
	e := planted(10, none, "a")
	e.run.Header.Missing = []result.Missing{{Cell: "b", Why: "no compiler"}}
	if f := c.Find(e); f.Verdict != NotChecked || f.Why != "no compiler" {
		t.Errorf("b missing: %+v", f)
	}
}

// TestClaimsCanBeTold looks at the claims of all studies: names, texts and arms.
func TestClaimsCanBeTold(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range Audited() {
		arms := map[string]bool{}
		for _, a := range s.Arms(Choice{Preset: Audit()}) {
			arms[a.Name] = true
		}
		for _, c := range s.Claims {
			if seen[c.Name] || !strings.HasPrefix(c.Name, s.Name+"-") {
				t.Errorf("%s: the claim %q stands twice, or has not the study's name in front", s.Name, c.Name)
			}
			seen[c.Name] = true
			if c.Source == "" || c.Says == "" || c.Judge == nil {
				t.Errorf("%s: no source, text or verdict", c.Name)
			}
			for _, arm := range c.Arms {
				if !arms[arm] {
					t.Errorf("%s takes the arm %q, which an audit of %s does not have", c.Name, arm, s.Name)
				}
			}
		}
	}
}
