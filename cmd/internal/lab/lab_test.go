package lab

import (
	"runtime"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/studytest"
)

// TestClaimsCanBeReported looks at the claims of all studies: names, texts and arms.
func TestClaimsCanBeReported(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range Studies() {
		arms := map[string]bool{}
		for _, a := range s.Arms(study.Choice{Preset: study.Audit()}) {
			if a.Group == "" { // see study.Is
				t.Errorf("%s: the arm %q is in no group", s.Name, a.Name)
			}
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

func TestSecondProcessRefusesUnknownWork(t *testing.T) {
	out, err := studytest.SecondTest(t.Context(), "dance").CombinedOutput()
	if err == nil || !strings.Contains(string(out), `no work "dance"`) {
		t.Errorf("err = %v: %s", err, out)
	}
}

// TestAPlanTakesNoMemory: what an arm works on is made when it is run.
func TestAPlanTakesNoMemory(t *testing.T) {
	const most = 64 << 20
	for _, s := range Studies() {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s.Outline(study.Choice{Preset: study.Full()})
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > most {
			t.Errorf("%s: a plan takes %d bytes", s.Name, took)
		}
	}
}
