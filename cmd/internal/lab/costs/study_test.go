package costs

import (
	"encoding/binary"
	"errors"
	"maps"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/studytest"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

// A costsPlant gives an arm the same planted figure in every round.
type costsPlant struct {
	cost   float64 // ns of one operation
	spread float64 // the rounds go from cost-spread to cost+spread
	voluntary, forced,
	writes float64 // of one operation
	below  bool
	before *result.Residency
	after  float64 // pages in memory after the reads
}

const costsOperations = 1_000_000

func (p costsPlant) measurement(round, rounds int) result.Measurement {
	cost := p.cost
	if rounds > 1 {
		cost += p.spread * (2*float64(round-1)/float64(rounds-1) - 1)
	}
	count := func(each float64) int64 { return int64(math.Round(each * costsOperations)) }
	return result.Measurement{
		Records: costsOperations, Elapsed: time.Duration(cost * costsOperations),
		Values: map[string]float64{belowResolution: indicator(p.below), residentPages: p.after},
		IO:     &result.IO{Writes: count(p.writes)}, Before: p.before,
		Usage: result.Usage{VoluntarySwitches: count(p.voluntary), ForcedSwitches: count(p.forced)},
	}
}

// costsEvidence plants the given number of rounds.
func costsEvidence(rounds int, plants map[string]costsPlant, missing ...result.Missing) study.Evidence {
	e := studytest.Planted(rounds, func(arm string, round int, m *result.Measurement) {
		*m = plants[arm].measurement(round, rounds)
	}, slices.Sorted(maps.Keys(plants))...)
	e.Run.Header.Missing = missing
	return e
}

// asPublished is a machine on which everything in the document holds.
func asPublished() map[string]costsPlant {
	cold := &result.Residency{Pages: 16384, Source: "cachestat(2)"}
	plants := map[string]costsPlant{}
	for _, r := range ladder() {
		plants[r.name] = costsPlant{cost: 20}
		if r.level != nil {
			plants[r.name] = costsPlant{cost: r.level.Least * 1.5, spread: r.level.Least * 0.1}
		}
	}
	plants[bufferedRung] = costsPlant{cost: 100, spread: 2, writes: bufferedCalls}
	plants[writeRung] = costsPlant{cost: 2000, spread: 50, writes: 1, voluntary: 1}
	plants[emptyRung] = costsPlant{cost: 75, spread: 5, voluntary: 1}
	plants[threadRung] = costsPlant{cost: 2000, spread: 50, voluntary: 0.5, forced: 0.5}
	plants[coldRung] = costsPlant{cost: 7e6, spread: 1e5, before: cold, after: costsOperations}
	plants[syncRung] = costsPlant{cost: 1500, spread: 10}
	return plants
}

func TestCostsClaimsBothWays(t *testing.T) {
	claims := map[string]study.Claim{}
	for _, c := range Study().Claims {
		claims[c.Name] = c
	}
	judged := map[string]map[study.Verdict]bool{}
	check := func(claim string, want study.Verdict, change map[string]costsPlant) {
		t.Helper()
		plants := asPublished()
		for name, p := range change {
			plants[name] = p
		}
		f := claims[claim].Judge(costsEvidence(10, plants))
		if f.Verdict != want || f.Why == "" || strings.Contains(f.Why+f.Measured, "NaN") {
			t.Errorf("%s: %+v, want %q", claim, f, want)
		}
		if judged[claim] == nil {
			judged[claim] = map[study.Verdict]bool{}
		}
		judged[claim][want] = true
		t.Logf("%s: %s: %s: %s", claim, f.Verdict, f.Measured, f.Why)
	}
	check("costs-memory", study.Holds, nil)
	check("costs-memory", study.NotHere, map[string]costsPlant{memoryRung: {cost: 95, spread: 5}})
	check("costs-memory", study.AtEdge, map[string]costsPlant{memoryRung: {cost: 10, spread: 3}})
	check("costs-call", study.Holds, nil)
	check("costs-call", study.NotHere, map[string]costsPlant{callRung: {cost: 0.7, spread: 0.1}})
	check("costs-call", study.NotHere, map[string]costsPlant{callRung: {cost: 0.7, spread: 0.1, below: true}})
	check("costs-call", study.AtEdge, map[string]costsPlant{callRung: {cost: 2, spread: 0.1, below: true}})
	check("costs-empty", study.Holds, nil)
	check("costs-empty", study.NotHere, map[string]costsPlant{emptyRung: {cost: 150, spread: 5}})
	check("costs-empty", study.AtEdge, map[string]costsPlant{emptyRung: {cost: 100, spread: 20}})
	check("costs-io", study.Holds, nil)
	check("costs-io", study.NotHere, map[string]costsPlant{readByteRung: {cost: 400, spread: 5}})
	check("costs-io", study.NotHere, map[string]costsPlant{readByteRung: {cost: 1000, spread: 300}, writeRung: {cost: 7e3, spread: 5}})
	check("costs-io", study.AtEdge, map[string]costsPlant{readByteRung: {cost: 1000, spread: 300}})

	cold, warm := &result.Residency{Pages: 100}, &result.Residency{Pages: 100, Resident: 1}
	check("costs-seek", study.Holds, nil)
	check("costs-seek", study.NotHere, map[string]costsPlant{coldRung: {cost: 9e4, spread: 1e3, before: cold}})
	check("costs-seek", study.NotHere, map[string]costsPlant{coldRung: {cost: 3e7, spread: 1e3, before: cold}})
	check("costs-seek", study.NotChecked, map[string]costsPlant{coldRung: {cost: 7e6, before: warm}})
	check("costs-seek", study.NotChecked, map[string]costsPlant{coldRung: {cost: 7e6, before: cold, after: 32 * costsOperations}})
	check("costs-seek", study.NotChecked, map[string]costsPlant{coldRung: {cost: 7e6}})

	check("costs-switch", study.Holds, map[string]costsPlant{emptyRung: {cost: 1500, spread: 10}})
	check("costs-switch", study.NotHere, nil)
	check("costs-switch", study.AtEdge, map[string]costsPlant{emptyRung: {cost: 1000, spread: 100}})
	check("costs-call-switches", study.Holds, nil)
	check("costs-call-switches", study.NeverSo, map[string]costsPlant{emptyRung: {cost: 75, voluntary: 0.001}, writeRung: {cost: 2000, voluntary: 0.003, forced: 0.5}})
	check("costs-call-switches", study.NotChecked, map[string]costsPlant{emptyRung: {cost: 75}})
	check("costs-call-switches", study.NotChecked, map[string]costsPlant{emptyRung: {cost: 75, voluntary: 0.5}, writeRung: {cost: 2000, voluntary: 0.003}})
	check("costs-call-switches", study.NotChecked, map[string]costsPlant{emptyRung: {cost: 75}, writeRung: {cost: 2000}, threadRung: {cost: 2000}})

	check("costs-middle-layer", study.Holds, nil)
	check("costs-middle-layer", study.NotHere, map[string]costsPlant{bufferedRung: {cost: 1800, spread: 10, writes: bufferedCalls}})
	check("costs-middle-layer", study.AtEdge, map[string]costsPlant{bufferedRung: {cost: 1000, spread: 300, writes: bufferedCalls}})
	check("costs-not-the-disk", study.Holds, nil)
	check("costs-not-the-disk", study.NotHere, map[string]costsPlant{syncRung: {cost: 6e4, spread: 1e3}})
	check("costs-not-the-disk", study.AtEdge, map[string]costsPlant{syncRung: {cost: 2000, spread: 500}})
	for name := range claims {
		if !judged[name][study.Holds] || len(judged[name]) < 3 {
			t.Errorf("%s is tested for %v only", name, judged[name])
		}
	}
}

func TestCostsClaimsWithoutTheirArms(t *testing.T) {
	var missing []result.Missing
	for _, r := range ladder() {
		missing = append(missing, result.Missing{Cell: r.name, Why: "no such thing here"})
	}
	for _, c := range Study().Claims {
		if f := c.Judge(costsEvidence(10, nil, missing...)); f.Verdict != study.NotChecked || !strings.Contains(f.Why, "no such thing here") || f.Settle != "" {
			t.Errorf("%s: %+v", c.Name, f)
		}
		if f := c.Judge(costsEvidence(3, asPublished())); f.Verdict != study.NotChecked {
			t.Errorf("%s from 3 rounds: %+v", c.Name, f)
		}
	}
}

func TestCostsClaimsNameTheirArms(t *testing.T) {
	for _, c := range Study().Claims {
		plants := map[string]costsPlant{}
		for _, arm := range c.Takes() {
			plants[arm] = asPublished()[arm]
		}
		want, got := c.Judge(costsEvidence(10, asPublished())), c.Judge(costsEvidence(10, plants))
		if got != want {
			t.Errorf("%s: with its own arms %+v, with all %+v", c.Name, got, want)
		}
	}
}

func TestCostsShowWhateverThereIs(t *testing.T) {
	some := asPublished()
	delete(some, coldRung)
	delete(some, callRung)
	below := asPublished()
	below[callRung] = costsPlant{cost: 0.1, below: true}
	for name, e := range map[string]study.Evidence{
		"all":     costsEvidence(10, asPublished()),
		"few":     costsEvidence(3, asPublished()),
		"one":     costsEvidence(1, asPublished()),
		"none":    costsEvidence(0, asPublished()),
		"nothing": costsEvidence(0, nil),
		"missing": costsEvidence(10, some, result.Missing{Cell: coldRung, Why: "there is no disk"}),
		"below":   costsEvidence(10, below),
	} {
		shown := showCosts(e)
		studytest.LooksFilled(t, shown)
		text := studytest.LooksRight(t, shown)
		if has := strings.Contains(text, "there is no disk"); has != (name == "missing") {
			t.Errorf("%s: the reason is shown: %v", name, has)
		}
		if has := strings.Contains(text, "< 0.1ns"); has != (name == "below") {
			t.Errorf("%s: a bound is shown: %v", name, has)
		}
	}
}

func TestCostsAreInOrder(t *testing.T) {
	plants := asPublished()
	plants[writeRung] = costsPlant{cost: 0.5}
	rows := showCosts(costsEvidence(10, plants)).Tables[0].Rows
	if rows[0][0] != writeRung || rows[0][4] != "no: less" || rows[len(rows)-1][0] != coldRung || rows[len(rows)-1][4] != "yes" {
		t.Errorf("%q", rows)
	}
}

func TestLearntChangesWithTheFigures(t *testing.T) {
	plants := asPublished()
	before := showCosts(costsEvidence(10, plants)).Learnt
	plants[writeRung] = costsPlant{cost: 300, writes: 1}
	if after := showCosts(costsEvidence(10, plants)).Learnt; before == after || !strings.Contains(before, "20x") || !strings.Contains(after, "3x") {
		t.Errorf("%s\n%s", before, after)
	}
}

func TestRingPassesEveryLineOnce(t *testing.T) {
	for _, lines := range []uint32{smallRing, 1 << 16} {
		r, seen := newRing(lines), map[uint32]bool{}
		strides := map[uint32]int{}
		for at := uint32(0); !seen[at]; {
			seen[at] = true
			strides[r.words[at]-at]++
			at = r.words[at]
		}
		if len(seen) != int(lines) {
			t.Errorf("%d of %d lines are passed", len(seen), lines)
		}
		for stride, n := range strides {
			if n > int(lines)/64 {
				t.Errorf("of %d lines %d are followed by the one %d words on", lines, n, stride)
			}
		}
	}
}

func TestChaseGoesOnWhereItWas(t *testing.T) {
	r := newRing(smallRing)
	if err := errors.Join(r.eight(3), r.sixteen(2)); err != nil {
		t.Fatal(err)
	}
	at := uint32(0)
	for range 8*3 + 16*2 {
		at = r.words[at]
	}
	if r.at != at {
		t.Errorf("it is at %d, want %d", r.at, at)
	}
}

// TestOnlyTheColdReadNeedsAColdCache: in memory, and where the page cache is not known, the others run.
func TestOnlyTheColdReadNeedsAColdCache(t *testing.T) {
	for _, a := range Study().Arms(study.Choice{Preset: study.Quick(), NeverCold: "no file can be cold"}) {
		if got, want := a.Missing == "no file can be cold", a.Name == coldRung && runtime.GOOS == "linux"; got != want {
			t.Errorf("%s: missing %q", a.Name, a.Missing)
		}
	}
}

// TestCostsForReal runs every rung, small.
func TestCostsForReal(t *testing.T) {
	procs := runtime.GOMAXPROCS(0)
	run := studytest.RunStudy(t, Study(), study.Choice{Preset: study.Quick(), Count: 100, Rounds: 1})
	if now := runtime.GOMAXPROCS(0); now != procs {
		t.Errorf("GOMAXPROCS was %d and is %d", procs, now)
	}
	if len(run.Header.Cells)+len(run.Header.Missing) != len(ladder())+1 {
		t.Errorf("%d arms, %d missing", len(run.Header.Cells), len(run.Header.Missing))
	}
	for _, trial := range run.Trials {
		if trial.Elapsed <= 0 || trial.Records < 8 || trial.Records > 8*turns {
			t.Errorf("%s: %v for %d operations", trial.Cell, trial.Elapsed, trial.Records)
		}
	}
	studytest.LooksFilled(t, showCosts(study.EvidenceOf(run)))
}

func TestEveryRungsNameIsItsOwn(t *testing.T) {
	var names []string
	for _, r := range ladder() {
		names = append(names, r.name)
		if !r.disk && r.count < 10*turns || r.count < 100 || r.each <= 0 || r.does == "" || r.method == "" || r.task == nil {
			t.Errorf("%+v", r)
		}
	}
	slices.Sort(names)
	if len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("%q", names)
	}
}

func TestPagesAreChecked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pages")
	if err := trial.NewFile(path, 5*study.PageBytes, numbered()); err != nil {
		t.Fatal(err)
	}
	var wrong *trial.ContentError
	if err := checkPages(path, 5); err != nil {
		t.Error(err)
	}
	for _, pages := range []int64{4, 6} {
		if err := checkPages(path, pages); !errors.As(err, &wrong) {
			t.Errorf("%d pages of 5: err = %v", pages, err)
		}
	}
	page := make([]byte, study.PageBytes)
	binary.LittleEndian.PutUint64(page, 7)
	if err := checkPage(page, 8); !errors.As(err, &wrong) || wrong.Offset != 8*study.PageBytes {
		t.Errorf("err = %v", err)
	}
}

// The break-it check: a buffer of one record is none, and the claim falls.
func TestMiddleLayerFallsWithoutABuffer(t *testing.T) {
	plants := asPublished()
	plants[bufferedRung] = plants[writeRung]
	if f := judgeMiddleLayer(costsEvidence(10, plants)); f.Verdict != study.NotHere {
		t.Errorf("%+v", f)
	}
}

func TestTheLargeRingIsLeftOutWhereItHasNoRoom(t *testing.T) {
	check := func(limit int64, limited, left bool) {
		t.Helper()
		if why := noMemory(limit, limited); (why != "") != left {
			t.Errorf("%d, %v: %q", limit, limited, why)
		}
	}
	check(0, false, false)
	check(ringMemory+1, true, false)
	check(ringMemory, true, true)
	check(1, true, true)
}
