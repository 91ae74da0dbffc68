package study_test

import (
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/studytest"
)

func TestClaimWithoutItsArmsIsNotChecked(t *testing.T) {
	c := study.Claim{Arms: []string{"a", "b"}, Decide: func(study.Evidence) study.Finding { return study.Finding{Verdict: study.Holds} }}
	none := func(string, int, *result.Measurement) {}
	if f := c.Find(studytest.Planted(10, none, "a", "b")); f.Verdict != study.Holds {
		t.Errorf("with both arms: %+v", f)
	}
	if f := c.Find(studytest.Planted(10, none, "a")); f.Verdict != study.NotChecked || !strings.Contains(f.Why, "b") {
		t.Errorf("without b: %+v", f)
	}
	e := studytest.Planted(10, none, "a")
	e.Run.Header.Missing = []result.Missing{{Cell: "b", Why: "no compiler"}}
	if f := c.Find(e); f.Verdict != study.NotChecked || f.Why != "no compiler" {
		t.Errorf("b missing: %+v", f)
	}
}
