//go:build go1.25

package crashsuite

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/crash"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// Prove runs workloads of the catalogue at level memory of holdfast prove, in about a time, under the policies that a run of it takes.
func Prove(t *testing.T, long time.Duration, workloads ...*crash.Workload) {
	isolate.Once(t)
	if testing.Short() || isolate.RaceEnabled {
		long /= 5
	}
	o := crash.Options{Workloads: workloads, Levels: []crash.Level{crash.Memory}, States: 80_000, Time: long, Seed: rand.Uint64(),
		InFakeTime: func(run func()) (err error) {
			defer func() {
				if cause := recover(); cause != nil {
					err = fmt.Errorf("%v", cause)
				}
			}()
			synctest.Test(new(testing.T), func(*testing.T) { run() })
			return nil
		}}
	verdicts, err := crash.Prove(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	states := int64(0)
	for _, v := range verdicts {
		states += v.Tally.States
		switch {
		case v.Failure != nil:
			t.Errorf("%s under %v is %s, seed %d: %s: %s", v.Workload, v.Policy, v.Verdict, o.Seed, v.Failure.Violation.Rule, v.Failure.Words)
		case v.Verdict == crash.NotKnown:
			t.Errorf("%s is not known, seed %d", v.Workload, o.Seed)
		}
	}
	if t.Logf("%d states of %d cells", states, len(verdicts)); states == 0 {
		t.Error("nothing was judged")
	}
}
