package latency

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/studytest"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

// TestLatencyVerdictsFollowTheMeasurement plants both sides of each claim.
func TestLatencyVerdictsFollowTheMeasurement(t *testing.T) {
	check := func(name string, plant func(arm string, round int, m *result.Measurement), want study.Verdict) {
		t.Helper()
		studytest.Judge(t, Study(), name, studytest.Planted(10, plant, studytest.ClaimOf(t, Study(), name).Takes()...), want)
	}
	slowest := func(times map[string]float64) func(string, int, *result.Measurement) {
		return func(arm string, round int, m *result.Measurement) {
			m.Latency = result.Latency{Count: 50_000, P50: 30, P99: 900, P999: studytest.Wiggle(times[arm], round), Max: time.Millisecond}
		}
	}
	value := func(name string, values map[string]float64) func(string, int, *result.Measurement) {
		return func(arm string, round int, m *result.Measurement) {
			m.Values = map[string]float64{name: float64(studytest.Wiggle(values[arm], round))}
		}
	}
	check("latency-spikes", slowest(map[string]float64{plainWrite: 9000, smallWrite: 3000}), study.Holds)
	check("latency-spikes", slowest(map[string]float64{plainWrite: 3000, smallWrite: 9000}), study.NotHere)
	check("latency-small-buffer", slowest(map[string]float64{smallWrite: 3000, largeWrite: 16000}), study.Holds)
	check("latency-small-buffer", slowest(map[string]float64{smallWrite: 16000, largeWrite: 3000}), study.NotHere)
	check("latency-sooner", value("visible_p50_ns", map[string]float64{smallSight: 3e6, largeSight: 50e6}), study.Holds)
	check("latency-sooner", value("visible_p50_ns", map[string]float64{smallSight: 50e6, largeSight: 3e6}), study.NotHere)
	check("latency-delays", value("visible_p50_ns", map[string]float64{plainSight: 7e4, smallSight: 3e6}), study.Holds)
	check("latency-sooner", value("visible_p50_ns", map[string]float64{smallSight: 3e6, largeSight: 3e6}), study.NotHere)
	check("latency-delays", value("visible_p50_ns", map[string]float64{plainSight: 7e4, smallSight: 6e4}), study.NotHere)
	check("latency-delays", value("visible_p50_ns", map[string]float64{plainSight: 7e4, smallSight: 7e4}), study.NotHere)
	check("latency-4096", value("heap_bytes", map[string]float64{thousand: 4_160_000}), study.Holds)
	check("latency-4096", value("heap_bytes", map[string]float64{thousand: 8_256_000}), study.NeverSo)
	check("latency-window", value("lost_age_ns", map[string]float64{ticked: 18e6}), study.Holds)
	check("latency-window", value("lost_age_ns", map[string]float64{ticked: 60e6}), study.NotHere)
	check("latency-window-seen", value("visible_max_ns", map[string]float64{tickedSight: 101e6}), study.Holds)
	check("latency-window-seen", value("visible_max_ns", map[string]float64{tickedSight: 198e6}), study.NotHere)
	grows := func(factor float64) func(string, int, *result.Measurement) {
		return func(_ string, round int, m *result.Measurement) {
			m.Values = map[string]float64{"heap_bytes": 4e6, "heap_written_bytes": float64(studytest.Wiggle(4e6*factor, round))}
		}
	}
	check("latency-unlimited", grows(4), study.Holds)
	check("latency-unlimited", grows(1), study.NeverSo)
}

// TestLatencyVerdictsWaitForEnough: neither noise nor a few rounds decide.
func TestLatencyVerdictsWaitForEnough(t *testing.T) {
	for _, c := range latencyClaims() {
		nothing := func(string, int, *result.Measurement) {}
		if f := c.Find(studytest.Planted(10, nothing, c.Takes()...)); f.Verdict != study.NotChecked {
			t.Errorf("%s: %s without a figure", c.Name, f.Verdict)
		}
		random := rand.New(rand.NewPCG(1, 2))
		either := func(_ string, _ int, m *result.Measurement) {
			x := 1e6 * (1 + 100*random.Float64())
			m.Latency = result.Latency{P50: time.Duration(x), P99: time.Duration(x), P999: time.Duration(x), Max: time.Duration(x)}
			m.Values = map[string]float64{
				"visible_p50_ns": x, "visible_max_ns": 2 * x, "lost_age_ns": x / 2,
				"heap_bytes": 4e6 + x, "heap_written_bytes": 4e6 + 2*x,
			}
		}
		if f := c.Find(studytest.Planted(3, either, c.Takes()...)); f.Verdict != study.NotChecked || f.Settle == "" {
			t.Errorf("%s: %s after three rounds of noise", c.Name, f.Verdict)
		}
	}
}

// TestLatencyVerdictFlipsWithTheArm measures for real: the buffers of an arm are
// changed for others, and nothing else.
func TestLatencyVerdictFlipsWithTheArm(t *testing.T) {
	if testing.Short() {
		t.Skip("a thousand buffers in each of many trials take some time; what is planted turns the verdicts too")
	}
	all := newLatencyPlan(study.Choice{}).bufferings()
	check := func(arm buffering, size, growth study.Verdict) {
		t.Helper()
		s := Study()
		s.Twin = thousand
		s.Arms = func(c study.Choice) []study.Arm {
			arms := latencyArms(c)
			i := slices.IndexFunc(arms, func(a study.Arm) bool { return a.Name == thousand })
			arms[i].Task = func() trial.Task { return arm.held(1000) }
			return arms
		}
		e := study.EvidenceOf(studytest.RunStudy(t, s, study.Choice{Preset: study.Audit(), Rounds: 6, Only: []string{thousand}}))
		for name, want := range map[string]study.Verdict{"latency-4096": size, "latency-unlimited": growth} {
			studytest.Judge(t, Study(), name, e, want)
		}
	}
	standard, unlimited, larger := all[0], all[1], all[2]
	check(standard, study.Holds, study.NeverSo)
	check(unlimited, study.NeverSo, study.Holds)
	check(larger, study.NeverSo, study.NeverSo)
}
