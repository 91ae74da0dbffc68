//go:build go1.25

package catalogue

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash"
	"github.com/holdfast-go/holdfast/internal/crashsuite"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// fewer is how many times fewer states there are where each takes longer, or time is short.
func fewer() int {
	if testing.Short() || isolate.RaceEnabled {
		return 20
	}
	return 1
}

// TestNoStateInMemoryBreaksAPromise judges some hundred thousand states of all workloads, each under some of its generated
// policies, and the controls. It takes about 15 s, of which a workload with a reader of its own has more.
func TestNoStateInMemoryBreaksAPromise(t *testing.T) {
	crashsuite.Prove(t, 15*time.Second, Workloads()...)
}

// TestTimeThatIsOverLeavesVerdictsOut gives no time at all: the controls are judged, and some cells more.
func TestTimeThatIsOverLeavesVerdictsOut(t *testing.T) {
	isolate.Once(t)
	o := crash.Options{Policies: []holdfast.Policy{holdfast.Unbuffered(), holdfast.Durable()}, Workloads: Workloads(), Levels: []crash.Level{crash.Memory}, States: 100, Time: 1}
	verdicts, err := crash.Prove(t.Context(), o)
	if err != nil || len(verdicts) != len(o.Cells(crash.Memory)) {
		t.Fatal(len(verdicts), err)
	}
	judged := 0
	for i, v := range verdicts {
		switch left := v.Verdict == crash.NoTime; {
		case v.Control != "" && v.Verdict != crash.Held, left != (v.Tally.States == 0):
			t.Errorf("%d, %s: %s with %d states", i, v.Workload, v.Verdict, v.Tally.States)
		case v.Control == "" && !left:
			judged++
		}
	}
	if judged != 4 {
		t.Errorf("%d cells are judged, want %d", judged, 4)
	}
}

// TestAnHourUnderEachPeriodicPolicy runs in fake time, so that what is lost is judged by its age.
func TestAnHourUnderEachPeriodicPolicy(t *testing.T) {
	hour := time.Hour / time.Duration(fewer())
	for _, p := range []holdfast.Policy{
		holdfast.Periodic(time.Second),
		{Buffer: 64 * holdfast.KiB, FlushEvery: 100 * time.Millisecond, Sync: holdfast.SyncEvery(time.Second)},
		{Buffer: 4 * holdfast.KiB, FlushBytes: holdfast.KiB, Sync: holdfast.SyncEvery(10 * time.Second)},
		{Buffer: 4 * holdfast.KiB, FlushEvery: 50 * time.Millisecond},
	} {
		for _, w := range []*crash.Workload{Find("writer"), Find("append")} {
			synctest.Test(t, func(t *testing.T) {
				v := crash.Cell{Workload: w, Policy: p}.Verdict(crash.Memory, rand.Uint64())
				began := time.Now()
				how := crash.Recording{Fake: true, Delay: 2 * time.Millisecond,
					Until: func() bool { return time.Since(began) > hour },
					Pause: func(r *rand.Rand) { time.Sleep(time.Duration(r.IntN(3000)) * time.Millisecond) }}
				if err := v.InMemory(w, 8_000/fewer(), how, time.Time{}); err != nil {
					t.Error(err)
				}
				if v.Failure != nil {
					v.Failure.Shrink()
					t.Errorf("%s under %v, seed %d: %s: %s", w.Name, p, v.Seed, v.Failure.Violation.Rule, v.Failure.Words)
				}
				if v.Tally.Most.Age == 0 {
					t.Error("nothing was lost, so that no age was judged")
				}
				t.Logf("%-8s %v: %d states, %v, oldest lost %v", w.Name, p, v.Tally.States, time.Since(began), v.Tally.Most.Age)
			})
		}
	}
}

// TestFailureIsReplayedExactly holds that what is kept of a failure fails again, in the same way,
// and that it was made small.
func TestFailureIsReplayedExactly(t *testing.T) {
	for _, name := range []string{"liar-no-sync", "liar-no-directory", "liar-name-first", "liar-memory"} {
		w := Find(name)
		p := holdfast.EachDurable()
		v := crash.Cell{Workload: w, Policy: p}.Verdict(crash.Memory, 3)
		if err := v.InMemory(w, 5000, crash.Recording{Records: 300}, time.Now().Add(time.Hour)); err != nil || v.Failure == nil {
			t.Fatal(name, err)
		}
		v.Failure.Shrink()
		var kept crash.Failure
		text, err := json.Marshal(v.Failure)
		if err = errors.Join(err, json.Unmarshal(text, &kept)); err != nil {
			t.Fatal(err)
		}
		if got, err := kept.Replay(Workloads()); err != nil || !reflect.DeepEqual(got, v.Failure.Violation) {
			t.Errorf("%s: replayed %v, %v, want %v", name, got, err, v.Failure.Violation)
		}
		if n := len(kept.Log.Entries) - kept.Log.Start; n > 12 {
			t.Errorf("%s: %d entries are kept", name, n)
		}
		if s := kept.State; s.Mask != 0 && s.Mask&(s.Mask-1) != 0 || s.Rest {
			t.Errorf("%s: more is pending than need be: %+v", name, s)
		}
		t.Log(kept.Words)
	}
}
