package provetest

import (
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/crash"
)

// Find crashes a workload in one way, and returns what is wrong with it.
func Find(t *testing.T, w Workload, level string) (rule, said string) {
	t.Helper()
	p := start(t, w)
	p.Level, p.Dir = crash.Level(level), t.TempDir()
	p.Judge = judge(w.Read, newHistory(), p.Level == crash.Kill, 0)
	if level != "kill" {
		if why := crash.CanSupervise(p.Start(t.Context(), "")); why != "" {
			t.Skip(why)
		}
	}
	v, err := p.Prove(t.Context())
	switch {
	case err != nil:
		t.Fatal(err)
	case v.Unknown != "":
		return "not known", v.Unknown
	case v.Failure == nil:
		return "", ""
	}
	rule = v.Failure.Violation.Rule
	return rule, strings.TrimPrefix(words(v.Failure), rule+": ")
}

// Judge judges read records by notes, as "rule: words".
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
