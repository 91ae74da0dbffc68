package lines

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/studytest"
)

// A plantedArm gives an arm planted figures, the same in each round but for a wobble of a few
// percent.
type plantedArm struct {
	perRecord float64 // nanoseconds
	wobble    float64 // of the time, from round to round
	cpu       float64
	writes    int64
	values    map[string]float64
}

// judged is the claim's finding on planted arms.
func judged(t *testing.T, name string, rounds int, arms map[string]plantedArm) study.Finding {
	t.Helper()
	var names []string
	for arm := range arms {
		names = append(names, arm)
	}
	slices.Sort(names)
	first := names[0]
	e := studytest.Planted(rounds, func(arm string, round int, m *result.Measurement) {
		a := arms[arm]
		m.Records = 100_000
		m.Elapsed = time.Duration(a.perRecord * float64(m.Records) * (1 + a.wobble*float64(round%5-2)))
		m.User = time.Duration(a.cpu * float64(m.Records))
		m.IO = &result.IO{Writes: a.writes}
		m.Values = a.values
	}, names...)
	e.Floor = 0.01
	if _, ok := e.Cell(first); !ok && rounds > 0 {
		t.Fatalf("%q is not in the evidence", first)
	}
	return studytest.ClaimOf(t, Study(), name).Find(e)
}

func checkLineClaim(t *testing.T, name string, want study.Verdict, arms map[string]plantedArm) {
	t.Helper()
	f := judged(t, name, 10, arms)
	if f.Verdict != want {
		t.Errorf("%s: %q (%s: %s), want %q", name, f.Verdict, f.Measured, f.Why, want)
	}
	if (f.Settle != "") != (want == study.NotChecked || want == study.AtEdge) {
		t.Errorf("%s: settled by %q", name, f.Settle)
	}
}

// twoTimes are two arms with the times of a line.
func twoTimes(a string, x float64, b string, y float64) map[string]plantedArm {
	return map[string]plantedArm{a: {perRecord: x, cpu: x, wobble: 0.01}, b: {perRecord: y, cpu: y, wobble: 0.012}}
}

func TestLineClaimsOfTimesBothWays(t *testing.T) {
	published := func(slow, fast float64) map[string]plantedArm {
		return twoTimes(publishedUnbuffered, slow, publishedBuffered, fast)
	}
	checkLineClaim(t, "lines-20x", study.Holds, published(2800, 140))
	checkLineClaim(t, "lines-20x", study.NotHere, published(1400, 220))
	checkLineClaim(t, "lines-20x", study.NotHere, published(2800, 70))
	checkLineClaim(t, "lines-20x", study.AtEdge, map[string]plantedArm{publishedUnbuffered: {perRecord: 2800, wobble: 0.4}, publishedBuffered: {perRecord: 200}})

	checkLineClaim(t, "lines-call-cost", study.Holds, twoTimes(publishedUnbuffered, 2900, publishedFormat, 130))
	checkLineClaim(t, "lines-call-cost", study.NotHere, twoTimes(publishedUnbuffered, 1500, publishedFormat, 130))
	checkLineClaim(t, "lines-copy-cost", study.Holds, twoTimes(publishedBuffered, 270, publishedFormat, 130))
	checkLineClaim(t, "lines-copy-cost", study.NotHere, twoTimes(publishedBuffered, 170, publishedFormat, 130))

	checkLineClaim(t, "lines-bottleneck", study.Holds, twoTimes(equalWrite, 1500, equalSynced, 250))
	checkLineClaim(t, "lines-bottleneck", study.NotHere, twoTimes(equalWrite, 1500, equalSynced, 2500))
	checkLineClaim(t, "lines-16k", study.Holds, twoTimes(equalBufio4, 220, equalBufio16, 180))
	checkLineClaim(t, "lines-16k", study.NotHere, twoTimes(equalBufio4, 180, equalBufio16, 181))
	checkLineClaim(t, "lines-16k", study.NotHere, twoTimes(equalBufio4, 180, equalBufio16, 220))
	checkLineClaim(t, "lines-16k", study.NotChecked, map[string]plantedArm{equalBufio4: {perRecord: 200, wobble: 0.1}, equalBufio16: {perRecord: 195}})
	checkLineClaim(t, "lines-million", study.Holds, twoTimes(millionWrite, 2000, millionBufio, 200))
	checkLineClaim(t, "lines-million", study.NotHere, twoTimes(millionWrite, 600, millionBufio, 200))
	checkLineClaim(t, "lines-cpu", study.Holds, twoTimes(equalWrite, 1500, equalBufio4, 200))
	checkLineClaim(t, "lines-cpu", study.NotHere, twoTimes(equalWrite, 200, equalBufio4, 300))
	checkLineClaim(t, "lines-62x", study.Holds, twoTimes(valuesWrite, 2400, valuesBufio, 38))
	checkLineClaim(t, "lines-62x", study.NotHere, twoTimes(valuesWrite, 2400, valuesBufio, 100))
}

func TestLineClaimsOfCountsBothWays(t *testing.T) {
	calls := func(arm string, n int64) map[string]plantedArm {
		return map[string]plantedArm{arm: {perRecord: 100, writes: n}}
	}
	checkLineClaim(t, "lines-25-50-calls", study.NeverSo, calls(publishedBuffered, 974))
	checkLineClaim(t, "lines-25-50-calls", study.Holds, calls(publishedBuffered, 31))
	checkLineClaim(t, "lines-flush-cost", study.NeverSo, calls(publishedBuffered, 974))
	checkLineClaim(t, "lines-flush-cost", study.Holds, calls(publishedBuffered, 31))
	checkLineClaim(t, "lines-10000-calls", study.Holds, calls(constantWrite, 10_002))
	checkLineClaim(t, "lines-10000-calls", study.NotHere, calls(constantWrite, 13))

	reported := func(arm, name string, x float64) map[string]plantedArm {
		return map[string]plantedArm{arm: {perRecord: 100, values: map[string]float64{name: x}}}
	}
	checkLineClaim(t, "lines-crash", study.Holds, reported(crashBufio, lostLines, 60))
	checkLineClaim(t, "lines-crash", study.NotHere, reported(crashBufio, lostLines, 0))
	checkLineClaim(t, "lines-crash-unbuffered", study.Holds, reported(crashWrite, lostLines, 0))
	checkLineClaim(t, "lines-crash-unbuffered", study.NotHere, reported(crashWrite, lostLines, 1))
	checkLineClaim(t, "lines-forgotten-flush", study.Holds, reported(forgottenBufio, lostBytes, 3482))
	checkLineClaim(t, "lines-forgotten-flush", study.NotHere, reported(forgottenBufio, lostBytes, 0))

	both := func(name string, plain, buffered float64) map[string]plantedArm {
		return map[string]plantedArm{
			valuesWrite: {perRecord: 1, values: map[string]float64{name: plain}}, valuesBufio: {perRecord: 1, values: map[string]float64{name: buffered}},
		}
	}
	checkLineClaim(t, "lines-bytes-op", study.Holds, both(study.BytesPerOp, 53_656, 70_104))
	checkLineClaim(t, "lines-bytes-op", study.NotHere, both(study.BytesPerOp, 53_656, 90_000))
	checkLineClaim(t, "lines-bytes-op", study.NotHere, both(study.BytesPerOp, 328, 16_775))
	checkLineClaim(t, "lines-allocs-op", study.Holds, both(study.AllocsPerOp, 10_008, 10_010))
	checkLineClaim(t, "lines-allocs-op", study.NotHere, both(study.AllocsPerOp, 9, 11))
}

// A writer that is killed may just have flushed: one kill of many that lost
// something is enough.
func TestOneLossIsALoss(t *testing.T) {
	e := studytest.Planted(10, func(_ string, round int, m *result.Measurement) {
		m.Values = map[string]float64{lostLines: float64(round / 10)}
	}, crashBufio)
	if f := studytest.ClaimOf(t, Study(), "lines-crash").Find(e); f.Verdict != study.Holds {
		t.Errorf("%+v", f)
	}
}

// TestFewRoundsProveNoRatio: counts need one round, times need several.
func TestFewRoundsProveNoRatio(t *testing.T) {
	arms := map[string]plantedArm{publishedUnbuffered: {perRecord: 2800}, publishedBuffered: {perRecord: 140, writes: 974}}
	if f := judged(t, "lines-20x", 3, arms); f.Verdict != study.NotChecked || f.Settle == "" {
		t.Errorf("three rounds: %+v", f)
	}
	if f := judged(t, "lines-25-50-calls", 3, arms); f.Verdict != study.NeverSo {
		t.Errorf("three rounds: %+v", f)
	}
}

// TestVerdictsFollowTheArms changes three arms, runs them, and sees the verdicts turn.
// Each is decided by a count, so one round is enough. Kills need more: they may come
// when a buffer is just empty.
func TestVerdictsFollowTheArms(t *testing.T) {
	changed := map[string]func() study.Arm{
		forgottenBufio: func() study.Arm {
			return lineArm(groupForgotten, "bufio 4KiB", "with the flush", 1000, 1, time.Microsecond, forgotten{by: study.Ours, buffer: 4096, count: 1000}.task)
		},
		crashBufio: func() study.Arm {
			return lineArm(groupCrash, "bufio 4KiB", "without a buffer", 100, 1, time.Microsecond, lineCrash{way: study.Way{By: study.Golang}, atLeast: 100}.task)
		},
		constantWrite: func() study.Arm {
			return lineRun{text: lineText{format: constantLine}, count: 10_000, writers: 1, way: goBuffer(4096, 0)}.arm(groupConstant, "write", "with a buffer", time.Microsecond)
		},
	}
	check := func(name string, rounds int, asIs, turned study.Verdict) {
		t.Helper()
		c := studytest.ClaimOf(t, Study(), name)
		s := Study()
		s.Arms = func(c study.Choice) []study.Arm {
			return lineArms(study.Choice{Preset: c.Preset, Only: c.Only, Count: 2000})
		}
		if got := c.Find(study.EvidenceOf(studytest.RunStudy(t, s, study.Choice{Preset: study.Audit(), Rounds: rounds, Only: c.Takes()}))); got.Verdict != asIs {
			t.Errorf("%s: %+v, want %s", name, got, asIs)
		}
		s.Arms = func(study.Choice) []study.Arm { return []study.Arm{changed[c.Takes()[0]]()} }
		if got := c.Find(study.EvidenceOf(studytest.RunStudy(t, s, study.Choice{Preset: study.Audit(), Rounds: 1, Only: c.Takes()}))); got.Verdict != turned {
			t.Errorf("%s with the arm changed: %+v, want %s", name, got, turned)
		}
	}
	check("lines-forgotten-flush", 1, study.Holds, study.NotHere)
	check("lines-crash", 8, study.Holds, study.NotHere)
	check("lines-10000-calls", 1, study.Holds, study.NotHere)
}

// TestAPartOfATimeIsNotReportedAsMoreThanTheTime is of a busy machine, where formatting a line
// took longer than formatting and writing one.
func TestAPartOfATimeIsNotReportedAsMoreThanTheTime(t *testing.T) {
	learnt := func(format time.Duration) string {
		e := studytest.Planted(10, func(arm string, _ int, m *result.Measurement) {
			m.Records, m.Elapsed = 1, 100
			if arm == equalFormat || arm == publishedFormat {
				m.Elapsed = format
			}
		}, equalFormat, equalBufio4, publishedFormat, publishedBuffered)
		return lineLearnt(e) + studytest.ClaimOf(t, Study(), "lines-copy-cost").Judge(e).Why
	}
	if text := learnt(40); strings.Count(text, "40 % of a buffered line's time is") != 2 {
		t.Errorf("learnt: %s", text)
	}
	if text := learnt(432); strings.Contains(text, "%") {
		t.Errorf("learnt: %s", text)
	}
}
