package sweep

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/studytest"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

func TestPolicyStudyHasEveryCellAndItsTwins(t *testing.T) {
	check := func(c study.Choice, cells, wantTwins, wantPaced int) {
		t.Helper()
		loads := Policy().Workloads(c)
		_, long := apart(loads)
		names, twins := map[string]bool{}, 0
		for _, w := range loads {
			names[w.Name()] = true
			if w.Twin {
				twins++
			}
		}
		if len(loads) != cells || len(names) != cells || twins != wantTwins || len(long) != wantPaced {
			t.Errorf("%d cells with %d names, %d twins and %d paced, want %d, %d and %d", len(loads), len(names), twins, len(long), cells, wantTwins, wantPaced)
		}
	}
	check(study.Choice{Preset: study.Default()}, 9*2+2+2+5, 3, 5)
	check(study.Choice{Preset: study.Quick()}, 9*2+2+2+3, 2, 3)
	check(study.Choice{Preset: study.Full()}, 9*2*3+2+6+5, 3, 5)
	one := holdfast.Durable()
	check(study.Choice{Preset: study.Default(), Policies: []holdfast.Policy{one}, Writers: []int{1}}, 1+1+1, 1, 0)
	check(study.Choice{Preset: study.Default(), Policies: []holdfast.Policy{one, one}, Writers: []int{1, 1}, Records: []holdfast.Size{16}}, 1+1+1, 1, 0)
}

// TestBurstsThatDoNotWaitHaveTurns: in blocks, where they are compared with each other.
func TestBurstsThatDoNotWaitHaveTurns(t *testing.T) {
	check := func(what string, want bool, change func(*study.Choice)) {
		t.Helper()
		c := study.Choice{Preset: study.Default()}
		change(&c)
		for _, w := range Policy().Workloads(c) {
			turns := 0
			if want && w.Length == 0 && (w.Empty || !w.Policy.Sync.Waits()) {
				turns = burstTurns
			}
			if cell := w.cell(1); cell.Turns != turns {
				t.Errorf("%s: %s has %d turns, want %d", what, w.Name(), cell.Turns, turns)
			}
		}
	}
	check("default", true, func(*study.Choice) {})
	check("full", true, func(c *study.Choice) { c.Preset = study.Full() })
	check("quick", false, func(c *study.Choice) { c.Preset = study.Quick() })
	check("three rounds", false, func(c *study.Choice) { c.Rounds = leastBlocks - 1 })
	check("a rate", false, func(c *study.Choice) { c.Rate = 1000 })
	check("a page cache", false, func(c *study.Choice) { c.Cache = result.Cold })
	check("file systems", false, func(c *study.Choice) { c.FileSystems = []string{"xfs"} })
}

func TestTwinIsTheSameWorkload(t *testing.T) {
	loads := Policy().Workloads(study.Choice{Preset: study.Default()})
	at := slices.IndexFunc(loads, func(w Workload) bool { return w.Twin })
	twin := loads[at]
	cell := twin.cell(10)
	for i, w := range loads[:at] {
		original := w.cell(10)
		if original.Name == cell.Twin {
			if w.Policy != twin.Policy || w.Writers != twin.Writers || w.RecordBytes != twin.RecordBytes || original.LatencyStride != cell.LatencyStride {
				t.Errorf("cell %d, %+v, has the twin %+v", i, w, twin)
			}
			return
		}
	}
	t.Errorf("the twin of %q is not in the matrix", cell.Twin)
}

// A disk is a made-up machine, by the times that a probe would measure.
type disk struct {
	call time.Duration // one system call
	sync time.Duration
	mib  time.Duration // one MiB to the disk
}

// rates returns the probe results of the workloads.
func (d disk) rates(loads []Workload) []rate {
	rates := make([]rate, len(loads))
	for i, w := range loads {
		perRecord := 30 * time.Nanosecond
		if w.Policy.Buffer == 0 {
			perRecord = d.call
		}
		fixed := time.Millisecond + d.sync // settling
		switch w.Policy.Sync.Mode {
		case holdfast.SyncEach:
			perRecord = d.sync
		case holdfast.SyncGroup:
			perRecord = d.sync / time.Duration(w.Writers)
		case holdfast.SyncNever:
		default:
			fixed += d.sync
			perRecord += d.mib * time.Duration(w.RecordBytes) >> 20
		}
		rates[i] = rate{fixed: fixed, perRecord: float64(perRecord)}
	}
	return rates
}

var (
	fast   = disk{call: 700 * time.Nanosecond, sync: 50 * time.Microsecond, mib: time.Millisecond / 2}
	slow   = disk{call: 3 * time.Microsecond, sync: 10 * time.Millisecond, mib: 20 * time.Millisecond}
	slower = disk{call: 3 * time.Microsecond, sync: 100 * time.Millisecond, mib: 100 * time.Millisecond}
)

func fit(d disk, preset study.Preset, rounds int) fitting {
	c := study.Choice{Preset: preset, Rounds: rounds}
	loads := Policy().Workloads(c)
	bursts, _ := apart(loads)
	f, _ := plan(nil, c, loads, d.rates(bursts), preset.Budget)
	return f
}

func TestDefaultRunFitsIntoItsTimeWithEnoughRounds(t *testing.T) {
	for name, d := range map[string]disk{"fast": fast, "slow": slow} {
		f := fit(d, study.Default(), 0)
		if total := f.total(f.rounds); total > study.Default().Budget || f.rounds < f.verdictRounds()-slackRounds {
			t.Errorf("%s disk: %d rounds in %v", name, f.rounds, total)
		}
		for i, w := range f.loads {
			if took := time.Duration(f.rates[i].perRecord * float64(f.records[i])); w.durable() && took > 5*durableLongest/4+f.rates[i].fixed && f.records[i] > int64(w.Writers) {
				t.Errorf("%s disk: %s takes %v of each round", name, w.Name(), took)
			}
		}
	}
}

// The nine policies of a group need eleven rounds, and one more is planned; the twin and the empty cells are
// in no group.
func TestVerdictRoundsAreThoseOfTheLargestGroup(t *testing.T) {
	check := func(c study.Choice, want int) {
		t.Helper()
		if got := (fitting{loads: Policy().Workloads(c)}).verdictRounds(); got != want {
			t.Errorf("%d rounds, want %d", got, want)
		}
	}
	check(study.Choice{}, 12)
	check(study.Choice{Preset: study.Full()}, 12)
	check(study.Choice{Policies: Policies()[:7]}, 11)
	check(study.Choice{Policies: Policies()[:1]}, 11)
}

func TestASlowDiskGetsFewerRounds(t *testing.T) {
	f := fit(slower, study.Default(), 0)
	if total := f.total(f.rounds); f.rounds < 1 || f.rounds >= f.verdictRounds() || total > study.Default().Budget {
		t.Errorf("%d rounds in %v", f.rounds, total)
	}
	if f := fit(disk{sync: time.Hour}, study.Default(), 0); f.rounds != 1 {
		t.Errorf("a hopeless disk has %d rounds", f.rounds)
	}
}

func TestRoundsThatWereAskedForStay(t *testing.T) {
	if f := fit(slower, study.Default(), 50); f.rounds != 50 {
		t.Errorf("%d rounds, want 50", f.rounds)
	}
	if f := fit(fast, study.Quick(), 1); f.rounds != 1 {
		t.Errorf("%d rounds, want 1", f.rounds)
	}
}

func TestCellsThatAreComparedWriteTheSameNumber(t *testing.T) {
	f := fit(fast, study.Default(), 0)
	for i, a := range f.loads {
		for j, b := range f.loads {
			if a.shares(b) && f.records[i] != f.records[j] {
				t.Errorf("%s writes %d records, %s %d", a.Name(), f.records[i], b.Name(), f.records[j])
			}
		}
		if f.records[i] < int64(a.Writers) || f.records[i]%int64(a.Writers) != 0 {
			t.Errorf("%s: %d records", a.Name(), f.records[i])
		}
		size := f.records[i] * a.RecordBytes
		if a.inSmallTurns() {
			size *= int64(a.Turns)
		}
		if size > f.most || !a.durable() && size < trialLeast*9/10 {
			t.Errorf("%s: %d bytes a trial", a.Name(), size)
		}
	}
}

func TestLargestRecordsStillFit(t *testing.T) {
	loads := Policy().Workloads(study.Choice{Preset: study.Quick(), Records: []holdfast.Size{study.MaxRecord}, Writers: []int{64}})
	loads, _ = apart(loads)
	f := fitting{loads: loads, rates: fast.rates(loads), rounds: 1, fixed: true, most: trialMost}.into(time.Second)
	for i, n := range f.records {
		if n != 64 {
			t.Errorf("%s: %d records, want one for each writer", loads[i].Name(), n)
		}
	}
}

func TestPrepareOnARealDisk(t *testing.T) {
	t.Parallel()
	g := studytest.WorkDir(t)
	c := study.Choice{Preset: study.Quick(), Policies: []holdfast.Policy{holdfast.Buffered(4096), holdfast.Durable()}, Writers: []int{2}, Rounds: 2, Budget: time.Second, Seed: 5}
	probes := 0
	m, plan, err := Policy().Prepare(t.Context(), g, c, func(done, all int) {
		if done != probes || all != 5 {
			t.Errorf("probe %d of %d, want %d of 5", done, all, probes)
		}
		probes++
	})
	if err != nil || probes != 5 {
		t.Fatalf("%d probes, %v", probes, err)
	}
	size := int64(0)
	for _, cell := range m.Cells {
		if one := cell.Records * cell.RecordBytes; !cell.Empty {
			size += (one + trial.PreparedBytes(one)) * 3
		}
		if !cell.Empty && plan.Room < cell.Records*cell.RecordBytes {
			t.Errorf("%s needs more than the plan's room", cell.Name)
		}
	}
	if len(m.Cells) != 5 || m.Rounds != 2 || m.Seed != 5 || plan.Size != size+probeBytes(Policy().Workloads(c)) || plan.Estimate != m.Estimate() || m.Limit != 0 {
		t.Errorf("%+v; %+v; want %d bytes", m, plan, size)
	}
}

// TestAdviceStudyRunsEachPolicyAtTheRate: at a rate it has an empty cell, and at full speed a twin.
func TestAdviceStudyRunsEachPolicyAtTheRate(t *testing.T) {
	for _, rate := range []float64{0, 50000} {
		loads := Advice().Workloads(study.Choice{Policies: []holdfast.Policy{holdfast.Durable(), holdfast.EachDurable()}, Setting: study.Setting{Rate: rate}})
		names := map[string]bool{}
		for _, w := range loads {
			names[w.Name()] = true
			if w.Rate != rate {
				t.Errorf("%s runs at %v", w.Name(), w.Rate)
			}
		}
		if last := loads[len(loads)-1]; len(loads) != 3 || len(names) != 3 || last.Empty != (rate > 0) || last.Twin != (rate == 0) {
			t.Errorf("rate %v: %v, the last is %+v", rate, names, last)
		}
	}
}

// TestPacedTrialsShowWhatIsJudged plans for made-up disks. Each trial of a policy that keeps the
// rate has three periods and its share of the samples. The last policies are left out to keep the time.
func TestPacedTrialsShowWhatIsJudged(t *testing.T) {
	plan := func(d disk, setting float64, quantile float64, budget time.Duration, policies ...holdfast.Policy) pacing {
		loads := Advice().Workloads(study.Choice{Policies: policies, Setting: study.Setting{Rate: setting}})
		rates := d.rates(loads)
		for i := range rates {
			rates[i] = rates[i].due(setting)
		}
		return pacing{loads: loads, rates: rates, quantile: quantile, most: trialMost}.into(budget)
	}
	half := holdfast.Policy{Buffer: 64 * holdfast.KiB, Sync: holdfast.SyncEvery(500 * time.Millisecond)}
	all := []holdfast.Policy{half, holdfast.Durable(), {Buffer: 4 * holdfast.KiB, Sync: half.Sync}, {Sync: half.Sync}, holdfast.EachDurable()}
	for name, d := range map[string]disk{"fast": fast, "slow": slow} {
		p := plan(d, 50000, 0.99, 45*time.Second, all...)
		if p.total() > 45*time.Second || p.rounds < fewJudged || p.loads[0].Policy != half || !p.loads[len(p.loads)-1].Empty {
			t.Errorf("%s: %d rounds of %d cells in %v", name, p.rounds, len(p.loads), p.total())
		}
		for i, w := range p.loads {
			lasts := time.Duration(float64(p.records[i]) / 50000 * float64(time.Second))
			if w.Policy.Sync == half.Sync && lasts < 3*half.Sync.Every || lasts < leastJudged {
				t.Errorf("%s: %v lasts %v", name, w.Policy, lasts)
			}
		}
	}
	p := plan(fast, 100, 0.99, 45*time.Second, holdfast.Durable(), holdfast.EachDurable())
	if n := p.records[0] * int64(p.rounds); n < 1000 || p.total() > 45*time.Second {
		t.Errorf("%d records in %d rounds of %v: too few for p99", n, p.rounds, p.total())
	}
	if p := plan(fast, 100, 0.999, 45*time.Second, holdfast.Durable(), holdfast.EachDurable()); len(p.loads) != 2 || p.loads[0].Policy != holdfast.Durable() {
		t.Errorf("%d cells fit into the time, the first is %v", len(p.loads), p.loads[0].Policy)
	}
	if p := plan(fast, 1000, 0, time.Minute, holdfast.Periodic(time.Hour)); p.rounds != 1 || p.records[0] != p.most/128 {
		t.Errorf("%d rounds of %d records", p.rounds, p.records[0])
	}
	bytes := holdfast.Policy{Buffer: 64 * holdfast.KiB, Sync: holdfast.Sync{Mode: holdfast.SyncPeriodic, Bytes: 4 * holdfast.MiB}}
	if p := plan(fast, 1e6, 0, time.Minute, bytes); p.records[0]*128 < 3*4<<20 {
		t.Errorf("%d bytes in a trial", p.records[0]*128)
	}
}

func TestPrepareStopsWhenCancelled(t *testing.T) {
	g := studytest.WorkDir(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := Policy().Prepare(ctx, g, study.Choice{Preset: study.Quick()}, func(int, int) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("Prepare: %v", err)
	}
}

// TestRatesOfOpenLoops: a policy that keeps up takes the time of the rate, and one that can't takes its
// own time until it is given up.
func TestRatesOfOpenLoops(t *testing.T) {
	check := func(closed, perSecond, want float64) {
		t.Helper()
		if got := (rate{perRecord: closed}).due(perSecond).perRecord; got != want {
			t.Errorf("%v ns a record, %v due a second: %v, want %v", closed, perSecond, got, want)
		}
	}
	check(100, 0, 100)
	check(100, 1e6, 1000)
	check(2000, 1e6, 2000)
	check(1e9, 1e6, 3000)
}

// TestTimeThatIsUpIsStillALimit: calibration may use up all the time, and a limit of 0 would mean no
// limit.
func TestTimeThatIsUpIsStillALimit(t *testing.T) {
	g := studytest.WorkDir(t)
	c := study.Choice{Preset: study.Default(), Policies: []holdfast.Policy{holdfast.Buffered(4096)}, Writers: []int{1}, Budget: time.Nanosecond}
	m, plan, err := Policy().Prepare(t.Context(), g, c, func(int, int) {})
	if err != nil || m.Limit <= 0 || plan.Limit != m.Limit || plan.Width == 0 {
		t.Errorf("limit %v, plan %+v, %v", m.Limit, plan, err)
	}
}

// TestPacedTrialsAreLongEnough: for three periods of each policy for which there is time.
func TestPacedTrialsAreLongEnough(t *testing.T) {
	policies := func(texts ...string) (list []holdfast.Policy) {
		for _, text := range texts {
			p, err := holdfast.ParsePolicy(text)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, p)
		}
		return list
	}
	check := func(budget time.Duration, list []holdfast.Policy, want ...string) {
		t.Helper()
		c := study.Choice{Preset: study.Default(), Budget: budget, Policies: list}
		_, long := apart(Policy().Workloads(c))
		var got []string
		for _, w := range long {
			period := max(w.Policy.FlushEvery, w.Policy.Sync.Every)
			if w.Length < 3*period+pacedMargin && period > 0 || w.Rate <= 0 || w.Writers != 1 {
				t.Errorf("%s lasts %v", w.Name(), w.Length)
			}
			if w.Short == "" && w.Length != long[0].Length {
				t.Errorf("%s lasts %v, and its control %v", w.Name(), w.Length, long[0].Length)
			}
			if w.Short != "" && !slices.ContainsFunc(long, func(by Workload) bool { return by.Name() == w.Short && by.period() <= longestShort }) {
				t.Errorf("%s has no %s, which bounds its cost", w.Name(), w.Short)
			}
			if !w.Twin && !w.Empty {
				got = append(got, w.Policy.String())
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("in %v there are paced %v, want %v", budget, got, want)
		}
	}
	few := policies("sync=never", "buffer=64KiB,sync=1h", "buffer=64KiB,sync=100ms", "buffer=4KiB,flush=10ms,sync=never")
	check(0, Policies(), "buffer=64KiB,sync=never", "buffer=64KiB,flush=100ms,sync=100ms", "buffer=64KiB,flush=100ms,sync=1s")
	check(0, few, "buffer=4KiB,sync=never", "buffer=64KiB,sync=never", "buffer=4KiB,flush=10ms,sync=never", "buffer=64KiB,sync=100ms")
	check(10*time.Second, Policies())
	check(0, policies("sync=never", "buffer=64KiB,sync=1h"))
	check(24*time.Hour, policies("buffer=64KiB,sync=1h"), "buffer=64KiB,sync=never", "buffer=64KiB,sync=100ms", "buffer=64KiB,sync=1h0m0s")
	check(0, policies("buffer=64KiB,sync=100ms", "buffer=64KiB,sync=1s"), "buffer=64KiB,sync=never", "buffer=64KiB,sync=100ms", "buffer=64KiB,sync=1s") // the chosen policy with the short period is the stand-in
}

// TestPlanHasBothParts checks the plan on each disk. It has the rounds for a verdict on the bursts, and
// trials of the paced cells, on a fast disk enough for an interval. It keeps the time and the bytes.
func TestPlanHasBothParts(t *testing.T) {
	for name, d := range map[string]disk{"fast": fast, "slow": slow} {
		paced := leastPaced
		if name == "fast" {
			paced = 6
		}
		c := study.Choice{Preset: study.Default()}
		all := Policy().Workloads(c)
		loads, long := apart(all)
		f, every := plan(nil, c, all, d.rates(loads), c.Preset.Budget)
		var cells []trial.Cell
		for i, w := range f.loads {
			cells = append(cells, Cell(w.cell(f.records[i]), f.rates[i].estimate(f.records[i]), trial.NotCounting))
		}
		for _, w := range long {
			cells = append(cells, Cell(w.paced(f.rounds, every), w.Length+pacedFixed, trial.NotCounting))
		}
		m, plan := matrix(c, all, cells, f.rounds)
		trials := 0
		for round := 1; round <= f.rounds; round++ {
			if cells[len(cells)-1].RunsIn(round) {
				trials++
			}
		}
		if f.rounds < f.verdictRounds()-slackRounds || trials < paced || m.Estimate() > c.Preset.Budget || plan.Size+probeBytes(loads) > runMost {
			t.Errorf("%s disk: %d rounds, %d paced trials, %v, %d MiB", name, f.rounds, trials, m.Estimate(), plan.Size>>20)
		}
		if _, outline := Policy().Outline(c); plan.Size > outline.Size || outline.Size > 12<<30 {
			t.Errorf("%s disk: writes %d MiB, and %d MiB were said before", name, plan.Size>>20, outline.Size>>20)
		}
	}
}
