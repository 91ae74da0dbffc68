//go:build go1.25

package crashsuite

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// little is a workload that writes a record to a file.
func little() *crash.Workload {
	return &crash.Workload{Name: "little", Policies: []holdfast.Policy{holdfast.Durable()},
		Targets: func(holdfast.Policy) []crash.Target { return []crash.Target{{Path: "log"}} },
		Run: func(r *crash.Run) error {
			f, _, err := r.Open("log", 0)
			if err != nil {
				return err
			}
			r.Note(crash.Begun, 0, 1)
			if _, err := f.Write(crash.Record{Size: 600}.Append(nil)); err != nil {
				return err
			}
			return f.Close()
		}}
}

// TestProveGoesOnUntilEnoughIsJudged: one round of this workload has some dozen states.
func TestProveGoesOnUntilEnoughIsJudged(t *testing.T) {
	isolate.Once(t)
	const least = 300
	w := []*crash.Workload{little()}
	once, problems := proved(t.Context(), 1, 1, time.Now(), w)
	if once == 0 || once >= least || problems != nil {
		t.Fatalf("one round judges %d states: %q", once, problems)
	}
	if all, problems := proved(t.Context(), 1, least, time.Now().Add(time.Hour), w); all < least || problems != nil {
		t.Errorf("%d states, want %d: %q", all, least, problems)
	}
	if _, problems := proved(t.Context(), 1, least, time.Now(), w); len(problems) != 1 || !strings.Contains(problems[0], "want at least 300") {
		t.Errorf("too late it says %q", problems)
	}
}
