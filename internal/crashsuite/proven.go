//go:build go1.25

package crashsuite

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/crash"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// Prove runs workloads of the catalogue at level memory of holdfast prove, in about a time, under the policies that a run of it takes. Of each
// workload at least 200 states are judged, with -short or the race detector 40: on a busy machine it goes on with other seeds until they are,
// and after three minutes it fails.
func Prove(t *testing.T, long time.Duration, workloads ...*crash.Workload) {
	isolate.Once(t)
	least := int64(200) // a quiet machine judges them in less than half a second
	if testing.Short() || isolate.RaceEnabled {
		long, least = long/5, least/5
	}
	states, problems := proved(t.Context(), long, least, time.Now().Add(3*time.Minute), workloads)
	t.Logf("%d states", states)
	for _, problem := range problems {
		t.Error(problem)
	}
}

// proved returns how many states were judged, and what is wrong with them or with their number.
func proved(ctx context.Context, long time.Duration, least int64, deadline time.Time, workloads []*crash.Workload) (all int64, problems []string) {
	states := map[string]int64{}
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	for lacking := workloads; len(lacking) > 0; {
		o := crash.Options{Workloads: lacking, Levels: []crash.Level{crash.Memory}, States: 80_000, Time: long, Seed: rand.Uint64(), InFakeTime: inFakeTime}
		verdicts, err := crash.Prove(ctx, o)
		if err != nil {
			wrong("%v", err)
		}
		run := map[string]bool{}
		for _, v := range verdicts {
			run[v.Workload] = v.Control == "" // a liar is caught by the first state that shows it
			states[v.Workload] += v.Tally.States
			all += v.Tally.States
			switch {
			case v.Failure != nil:
				wrong("%s under %v is %s, seed %d: %s: %s", v.Workload, v.Policy, v.Verdict, o.Seed, v.Failure.Violation.Rule, v.Failure.Words)
			case v.Verdict == crash.NotKnown:
				wrong("%s is not known, seed %d", v.Workload, o.Seed)
			}
		}
		if all == 0 {
			wrong("nothing was judged")
		}
		if problems != nil {
			break
		}
		lacking = slices.DeleteFunc(slices.Clone(lacking), func(w *crash.Workload) bool { return !run[w.Name] || states[w.Name] >= least })
		if !time.Now().Before(deadline) {
			for _, w := range lacking {
				wrong("%s: %d states were judged, want at least %d: this machine is too busy", w.Name, states[w.Name], least)
			}
			break
		}
	}
	return all, problems
}

// inFakeTime is [crash.Options].InFakeTime.
func inFakeTime(run func()) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("%v", cause)
		}
	}()
	synctest.Test(new(testing.T), func(*testing.T) { run() })
	return nil
}
