package study

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/result"
)

func TestFilesClaimsFollowTheEvidence(t *testing.T) {
	arms := []string{filesArm(100), filesArm(300), filesArm(3000), retriesOff, retriesOn, createTemp}
	records := map[string]int64{filesArm(100): 100, filesArm(300): 300, filesArm(3000): 3000, retriesOff: 1000, retriesOn: 1000, createTemp: 200}
	// plant gives each arm the time and the bytes of a file.
	plant := func(ns, allocated map[string]float64, openShare float64) Evidence {
		return planted(10, func(arm string, round int, m *result.Measurement) {
			m.Records = records[arm]
			m.Elapsed = wiggle(ns[arm]*float64(m.Records), round)
			m.Open = time.Duration(openShare * float64(m.Elapsed))
			m.Allocated = int64(allocated[arm] * float64(m.Records))
		}, arms...)
	}
	check := func(claim string, e Evidence, want Verdict) {
		t.Helper()
		if f := claimOf(t, filesClaims(), claim).Find(e); f.Verdict != want {
			t.Errorf("%s: %s (%s), want %s", claim, f.Verdict, f.Measured, want)
		}
	}
	flat := plant(map[string]float64{filesArm(300): 2e4, filesArm(3000): 2e4, retriesOff: 1.2e4, retriesOn: 1.2e4, createTemp: 1e4},
		map[string]float64{filesArm(300): 500, filesArm(3000): 500}, 0.8)
	steep := plant(map[string]float64{filesArm(300): 2e4, filesArm(3000): 8e4, retriesOff: 1.9e3, retriesOn: 1.6e4, createTemp: 1e4},
		map[string]float64{filesArm(300): 500, filesArm(3000): 5000}, 0.2)
	check("files-8x-retries", flat, NeverSo)
	check("files-8x-retries", steep, Holds)
	check("files-500k", flat, NeverSo)
	check("files-500k", steep, Holds)
	check("files-80k", flat, Holds)
	check("files-80k", plant(map[string]float64{retriesOn: 5e4}, nil, 1), NotHere)
	check("files-contention", flat, NotHere)
	check("files-contention", steep, Holds)
	check("files-create", flat, Holds)
	check("files-create", steep, NotHere)
	check("files-memory", flat, Holds)
	check("files-memory", steep, NotHere)
	check("files-backoff", flat, NotChecked)
	check("files-40x", flat, NotChecked)
}

// TestFilesClaimsThatTheDocumentDecides turn with its own figures.
func TestFilesClaimsThatTheDocumentDecides(t *testing.T) {
	check := func(f Finding, want Verdict) {
		t.Helper()
		if f.Verdict != want {
			t.Errorf("%+v, want %s", f, want)
		}
	}
	check(judgeCores("BenchmarkWriter-2", 64), NeverSo)
	check(judgeCores("BenchmarkWriter-64", 64), Holds)
	slow := measured{value: 8e4, low: 7e4, high: 9e4, text: perSecond}
	check(judgeRate(slow, 84_615), NeverSo)
	check(judgeRate(slow, 600_000), NotHere)
	check(judgeRate(measured{value: 6e5, low: 5.5e5, high: 7e5, text: perSecond}, 84_615), Holds)
	one := measured{value: 1, low: 0.9, high: 1.1, text: times}
	check(judgeScaling(one, 4), NeverSo)
	check(judgeScaling(one, 1.1), Holds)
}

func TestFilesArmsRun(t *testing.T) {
	t.Parallel()
	run := runStudy(t, filesClaims(), Choice{Preset: Quick(), Rounds: 1, Seed: 1, Only: []string{filesArm(100), createTemp}})
	e := EvidenceOf(run)
	if got := len(e.Trials(filesArm(100))); got != 1 {
		t.Errorf("%d trials, want 1", got)
	}
	for _, trial := range e.Trials(createTemp) {
		if trial.Open <= 0 || trial.Write <= 0 || trial.Close <= 0 {
			t.Errorf("open %v, write %v, close %v", trial.Open, trial.Write, trial.Close)
		}
	}
}

func TestFilesRetriedGivesUp(t *testing.T) {
	calls := 0
	if err := retried(func() error { calls++; return nil }); err != nil || calls != 1 {
		t.Errorf("%d calls, err = %v", calls, err)
	}
}

// TestFilesOfAllTrialsHaveRoom: they stay until the end.
func TestFilesOfAllTrialsHaveRoom(t *testing.T) {
	c := Choice{Preset: Audit(), Rounds: 30}
	cells, plan := filesClaims().Outline(c)
	all := int64(0)
	for _, cell := range cells {
		all += cell.Records * block * 31
	}
	if plan.Room < all {
		t.Errorf("a plan of 30 rounds has room for %d bytes, and its files take %d", plan.Room, all)
	}
}
