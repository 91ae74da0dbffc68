package locks

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/machine"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/studytest"
)

// plantedLocks is a run of ten rounds in which the arms take these times, a
// little different in each round.
func plantedLocks(each map[string]time.Duration, values map[string]float64) study.Evidence {
	e := studytest.Planted(10, func(arm string, round int, m *result.Measurement) {
		m.Records, m.Elapsed, m.Values = 1000, 1000*each[arm]+time.Duration(round), values
		m.User = m.Elapsed * 19 / 10
	}, slices.Sorted(maps.Keys(each))...)
	e.Run.Header.Machine = []machine.Fact{{Name: "GOMAXPROCS", Value: "2"}}
	return e
}

func TestLocksClaimsFollowTheTimes(t *testing.T) {
	check := func(name string, first, second time.Duration, want study.Verdict) {
		t.Helper()
		c := studytest.ClaimOf(t, Study(), name)
		got := c.Judge(plantedLocks(map[string]time.Duration{c.Takes()[0]: first, c.Takes()[1]: second}, nil))
		if got.Verdict != want || got.Measured == "" || got.Why == "" {
			t.Errorf("%s with %v and %v: %+v, want %q", name, first, second, got, want)
		}
	}
	check("locks-batched", 60, 2, study.Holds)
	check("locks-batched", 60, 80, study.NotHere)
	check("locks-acquisition", 60, 12, study.Holds)
	check("locks-acquisition", 12, 60, study.NotHere)
	for _, name := range []string{"locks-rwmutex-90", "locks-rwmutex-95", "locks-rwmutex-99"} {
		check(name, 100, 40, study.Holds)
		check(name, 100, 51, study.NotHere)
		check(name, 100, 120, study.NotHere)
	}
	check("locks-write-only", 1000, 1068, study.Holds)
	check("locks-write-only", 1000, 1000, study.NotHere)
	check("locks-write-only", 1000, 1300, study.NotHere)
}

// TestReadersThatHadOneCPUSayNothing: they could not have read side by side.
func TestReadersThatHadOneCPUSayNothing(t *testing.T) {
	c := studytest.ClaimOf(t, Study(), "locks-rwmutex-95")
	e := studytest.Planted(10, func(arm string, round int, m *result.Measurement) {
		m.Elapsed = time.Millisecond + time.Duration(round)
		m.User = m.Elapsed
	}, c.Takes()...)
	if f := c.Judge(e); f.Verdict != study.NotChecked || f.Measured == "" || !strings.Contains(f.Why, "1 at once") {
		t.Errorf("%+v", f)
	}
}

func TestWriteLockClaimFollowsTheReadersLetIn(t *testing.T) {
	check := func(admitted float64, want study.Verdict) {
		t.Helper()
		e := plantedLocks(map[string]time.Duration{heldLock: 1}, map[string]float64{admittedWhileHeld: admitted})
		studytest.Judge(t, Study(), "locks-write-blocks", e, want)
	}
	check(0, study.Holds)
	check(1, study.NeverSo)
}

func TestLocksClaimsOfNothing(t *testing.T) {
	names := map[string]bool{}
	for _, a := range Study().Arms(study.Choice{}.OfStudy()) {
		names[a.Name] = true
	}
	for _, c := range Study().Claims {
		if f := c.Judge(plantedLocks(nil, nil)); f.Verdict != study.NotChecked || f.Why == "" {
			t.Errorf("%s: %+v", c.Name, f)
		}
		for _, arm := range c.Takes() {
			if !names[arm] {
				t.Errorf("%s takes the arm %q, which the study has not", c.Name, arm)
			}
		}
	}
}

func TestEveryWayCountsWhatItSays(t *testing.T) {
	for _, steps := range []int64{0, 1, 9, 10, 11, 1003} {
		for _, w := range counterWays {
			c := w.start()
			crew{goroutines: 7}.work(steps, func(_, n int64) { c.count(n) })
			if err := w.check(c.total(), steps); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestAWrongCountIsNoTrial(t *testing.T) {
	check := func(way string, total int64, ok bool) {
		t.Helper()
		if err := (counterWay{name: way}).check(total, 10); (err == nil) != ok {
			t.Errorf("%s at %d of 10: %v", way, total, err)
		}
	}
	check("mutex", 10, true)
	check("mutex", 9, false)
	check(racy, 9, true)
	check(racy, 0, false)
	check(racy, 11, false)
	check(onlyStart, 0, true)
	check(onlyStart, 1, false)
}

func TestMapLoadsReadTheirShare(t *testing.T) {
	for _, reads := range readShares {
		l, n := mapLoad{load: load{steps: 1000}, keys: 1000, reads: reads}, int64(0)
		for step := range l.steps {
			if l.isRead(step) {
				n++
			}
		}
		if n != reads*10 {
			t.Errorf("%d of 1000 steps read, want %d %%", n, reads)
		}
	}
}

// lossyMap loses the first value that is set.
type lossyMap struct {
	mutexMap
	deaf bool
}

func (m *lossyMap) set(key, value int64) {
	if m.deaf {
		m.deaf = false
		return
	}
	m.mutexMap.set(key, value)
}

func TestALostUpdateOfAMapIsNoTrial(t *testing.T) {
	l := mapLoad{load: load{steps: 100, passes: 1}, keys: 100, reads: 50}
	check := func(deaf, ok bool) {
		t.Helper()
		m := &lossyMap{mutexMap: mutexMap{m: map[int64]int64{}}}
		for key := range l.keys {
			m.set(key, 0)
		}
		m.deaf = deaf
		if err := l.check(m, l.run(m, 0, l.steps)); (err == nil) != ok {
			t.Errorf("deaf %t: %v", deaf, err)
		}
	}
	check(false, true)
	check(true, false)
}

func TestLocksRunsSmall(t *testing.T) {
	t.Parallel()
	e := study.EvidenceOf(studytest.RunStudy(t, Study(), study.Choice{Preset: study.Quick(), Count: 200, Writers: []int{5, 3}, Rounds: 1}))
	if n := e.Median(heldLock, study.Value(admittedWhileHeld)); n != 0 {
		t.Errorf("%v readers got in", n)
	}
	shown := showLocks(e)
	if counters, maps := len(shown.Tables[1].Rows), len(shown.Tables[2].Rows); counters != 12 || maps != 14 {
		t.Errorf("%d counters and %d maps", counters, maps)
	}
	studytest.LooksFilled(t, shown)
}

func TestLocksShowsWhatIsMissing(t *testing.T) {
	studytest.LooksFilled(t, showLocks(plantedLocks(nil, nil)))
	studytest.LooksFilled(t, showLocks(plantedLocks(map[string]time.Duration{counterName("mutex"): 60, mapName(withMutex, 95): 100}, nil)))
}
