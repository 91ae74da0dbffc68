package provetest

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/crash"
)

// Find crashes a workload in one way, and returns what is wrong with it.
func Find(t *testing.T, w Workload, level string) (rule, words string) {
	t.Helper()
	p := start(t, w)
	p.Level, p.Dir = crash.Level(level), t.TempDir()
	if level != "kill" {
		if why := crash.CanSupervise(p.Start(t.Context(), "")); why != "" {
			t.Skip(why)
		}
	}
	v, err := p.Prove(t.Context())
	switch {
	case err != nil:
		t.Fatal(err)
	case v.Failure == nil:
		return "", ""
	}
	return v.Failure.Violation.Rule, v.Failure.Words
}

// Judge judges notes and what was read by them, as "rule: words".
func Judge(notes string, found map[string]string) string {
	h := newHistory()
	if _, err := h.extend([]byte(notes)); err != nil {
		return err.Error()
	}
	if v := h.judge(found); v != nil {
		return v.Rule + ": " + v.Words
	}
	return ""
}
