package prove

import (
	"testing"
	"time"
)

func TestNoFalseAlarmInMemory(t *testing.T) {
	for _, w := range Workloads() {
		if w.Files {
			continue
		}
		for _, p := range NamedPolicies() {
			if !w.Runs(p) {
				continue
			}
			v := &Verdict{Policy: p, Loss: w.lossOf(p), Seed: 1}
			began := time.Now()
			if err := v.inMemory(w, 100000, 3*time.Second); err != nil {
				t.Fatal(w.Name, p, err)
			}
			t.Logf("%-18s %-32v %8d states %v  %+v", w.Name, p, v.Tally.States, time.Since(began), v.Tally)
			if v.Failure != nil {
				v.Failure.Shrink()
				t.Logf("FAIL %s: %s %+v", w.Name, v.Failure.Words, v.Failure.State)
			}
		}
	}
}
