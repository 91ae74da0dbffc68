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

// Prove runs workloads of the catalogue at level memory of holdfast prove, under the policies that a run of it takes. States
// and seconds are fewer: the catalogue's own tests have most of them.
func Prove(t *testing.T, workloads ...*crash.Workload) {
	isolate.Once(t)
	o := crash.Options{Workloads: workloads, Levels: []crash.Level{crash.Memory}, States: 2000, Time: time.Second, Seed: rand.Uint64(),
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
		if v.Verdict == crash.Broken || v.Verdict == crash.NotKnown {
			t.Errorf("%s under %v is %s, seed %d: %s", v.Workload, v.Policy, v.Verdict, o.Seed, v.Failure.Words)
		}
	}
	if t.Logf("%d states of %d cells", states, len(verdicts)); states == 0 {
		t.Error("nothing was judged")
	}
}
