package copying

import (
	"context"
	"errors"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/lab/copysource"
	"github.com/holdfast-go/holdfast/cmd/internal/lab/cstdio"
	"github.com/holdfast-go/holdfast/cmd/internal/lab/timing"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/machine"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/studytest"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

// onKind says on which file system the evidence was found.
func onKind(e study.Evidence, kind string) study.Evidence {
	e.Run.Header.Machine = []machine.Fact{{Name: "file system", Value: kind}}
	return e
}

func TestCopyClaimsFollowTheEvidence(t *testing.T) {
	arms := []string{copyArm(1), copyArm(512), copyArm(4096), copyArm(oddBuffer), copyArm(16384), copyArm(65536)}
	// plant gives each buffer a time and a user time of a copy of 8 MB.
	plant := func(times, user map[string]float64) study.Evidence {
		return studytest.Planted(10, func(arm string, round int, m *result.Measurement) {
			m.Records, m.Size = 8e6, 8e6
			m.Write = studytest.Wiggle(times[arm], round)
			m.User, m.System = time.Duration(user[arm]), time.Second
			m.Elapsed = m.Write
		}, arms...)
	}
	check := func(claim string, e study.Evidence, want study.Verdict) {
		t.Helper()
		studytest.Judge(t, Study(), claim, e, want)
	}
	falling := plant(map[string]float64{copyArm(1): 1e9, copyArm(512): 9e7, copyArm(4096): 3e7, copyArm(oddBuffer): 2.5e7, copyArm(16384): 2e7, copyArm(65536): 1e7}, nil)
	peak := plant(map[string]float64{copyArm(1): 1e9, copyArm(512): 9e7, copyArm(4096): 1e7, copyArm(oddBuffer): 2e7, copyArm(16384): 2e7, copyArm(65536): 2e7}, nil)
	check("copy-larger", falling, study.Holds)
	check("copy-larger", peak, study.NotHere)
	check("copy-ext4-4096", onKind(falling, "ext4"), study.NotHere)
	check("copy-ext4-4096", onKind(peak, "ext4"), study.Holds)
	check("copy-ext4-4096", onKind(peak, "xfs"), study.NotChecked)
	check("copy-btrfs-16284", onKind(falling, "btrfs"), study.NotHere)
	check("copy-btrfs-16284", onKind(peak, "btrfs"), study.Holds)
	check("copy-btrfs-16284", onKind(peak, "ext4"), study.NotChecked)
	check("copy-jfs-small", onKind(peak, "ext4"), study.NotChecked)

	blocks := func(odd float64) study.Evidence {
		return onKind(studytest.Planted(10, func(arm string, round int, m *result.Measurement) {
			m.Records, m.BlocksOut = 8e6, 16000
			if arm == copyArm(oddBuffer) {
				m.BlocksOut = int64(16000 * odd)
			}
		}, copyArm(oddBuffer), copyArm(4096)), "btrfs")
	}
	check("copy-btrfs-16284-writes", blocks(1), study.NotHere)
	check("copy-btrfs-16284-writes", blocks(1.25), study.Holds)
	check("copy-btrfs-16284-writes", onKind(blocks(1.25), "ext4"), study.NotChecked)

	user := func(odd, even, large, single float64) study.Evidence {
		return plant(nil, map[string]float64{copyArm(oddBuffer): odd, copyArm(16384): even, copyArm(65536): large, copyArm(1): single})
	}
	check("copy-user-16284", user(2e5, 3e5, 0, 0), study.NeverSo)
	check("copy-user-16284", user(2e5, 3e6, 0, 0), study.Holds)
	check("copy-user-16284", user(3e6, 3e6, 0, 0), study.NotHere)
	check("copy-user-negligible", user(0, 0, 2e7, 0), study.Holds)
	check("copy-user-negligible", user(0, 0, 5e8, 0), study.NotHere)
	check("copy-system", user(0, 0, 0, 2e8), study.Holds)
	check("copy-system", user(0, 0, 0, 3e9), study.NotHere)

	// Ticks part the CPU time: few say nothing, and a part near the bound is at the edge,
	// however the rounds lie.
	ticks := func(user, all time.Duration) study.Evidence {
		return studytest.Planted(10, func(_ string, round int, m *result.Measurement) {
			m.Elapsed, m.Records, m.User, m.System = all, 100, user, all-user
			if round%2 == 0 { // a round is all of one
				m.User, m.System = all*time.Duration(round%4/2), all-all*time.Duration(round%4/2)
			}
		}, copyArm(1))
	}
	check("copy-system", ticks(5*time.Millisecond, 10*time.Millisecond), study.NotChecked)
	check("copy-system", ticks(25*time.Millisecond, 50*time.Millisecond), study.AtEdge)
	check("copy-system", ticks(0, 500*time.Millisecond), study.Holds)
}

func TestClaimOfAnotherFileSystemNamesTheCommand(t *testing.T) {
	for _, j := range Study().Claiming([]string{"copy-btrfs-16284"}).Judge(onKind(studytest.Planted(10, func(_ string, round int, m *result.Measurement) {
		m.Write = studytest.Wiggle(1e6, round)
	}, copyArm(oddBuffer), copyArm(4096)), "ext4").Run.Run) {
		if j.Command != "holdfast audit --claim copy-btrfs-16284 --dir A_DIRECTORY_ON_BTRFS" || !strings.Contains(j.Why, "ext4") {
			t.Errorf("%+v", j)
		}
	}
}

func TestCopyClaimsOfSyncedWrites(t *testing.T) {
	arms := []string{syncArm(1), syncArm(2), syncArm(4096)}
	plant := func(one, two, page float64) study.Evidence {
		return studytest.Planted(10, func(arm string, round int, m *result.Measurement) {
			c, _ := copyCellOf(result.Cell{Name: arm})
			ns := map[string]float64{syncArm(1): one, syncArm(2): two, syncArm(4096): page}[arm]
			m.Records, m.Size = 100*c.buffer, 100*c.buffer
			m.Write = studytest.Wiggle(ns*100, round)
			m.Elapsed = m.Write
			m.Values = map[string]float64{wholeBytes: syncSize, tailBytes: float64(m.Size) / 2, tailNs: float64(m.Write) / 2}
		}, arms...)
	}
	check := func(claim string, e study.Evidence, want study.Verdict) {
		t.Helper()
		studytest.Judge(t, Study(), claim, e, want)
	}
	same := plant(1.5e6, 1.5e6, 1.6e6) // the original's disk: 1573 s for a mebibyte
	check("copy-osync-larger", same, study.Holds)
	check("copy-osync-larger", plant(1e3, 1e3, 4e6), study.NotHere)
	check("copy-osync-byte", same, study.Holds)
	check("copy-osync-byte", plant(1e5, 1e5, 1e5), study.NotHere)
	check("copy-osync-two", same, study.NeverSo)
	check("copy-osync-two", plant(1.5e6, 1.5e6/19, 1.6e6), study.Holds)
}

func TestACopyMakesACallForEachBuffer(t *testing.T) {
	const size = 1 << 20
	m := studytest.RunOnce(t, copyCell{timing.Copy, size, oddBuffer}.task(study.Choice{}, size, copysource.New(1)), size)
	// Each buffer is read once and written once, and the end is read.
	if calls := int64(size)/oddBuffer + 1; m.IO != nil && (m.IO.Writes < calls || m.IO.Reads < calls+1 || m.IO.Writes > calls+10) {
		t.Errorf("%d reads and %d writes of a copy that takes %d each", m.IO.Reads, m.IO.Writes, calls)
	}
	if m.Values[wholeBytes] != size || m.Values[tailBytes] < size/2 || m.Values[tailNs] <= 0 || m.Size != size {
		t.Errorf("a copy of %d bytes reported %v", m.Size, m.Values)
	}
}

// TestEveryFormCopiesAndWritesWhatItShould runs all forms with sizes that are no
// multiple of the buffer.
func TestEveryFormCopiesAndWritesWhatItShould(t *testing.T) {
	t.Parallel()
	source := copysource.New(7)
	g := studytest.WorkDir(t)
	for _, form := range timing.Forms() {
		if why := cstdio.Missing(); form == timing.InC && why != "" {
			t.Logf("%v is left out: %v", form, why)
			continue
		}
		for _, c := range []copyCell{{form, 100, 1}, {form, 10_007, 4096}, {form, 100, 4096}} {
			if _, err := c.task(study.Choice{}, c.size, source).Run(t.Context(), g, trial.NotCounting, c.size, c.size); err != nil {
				t.Errorf("%s: %v", c.name(), err)
			}
		}
	}
}

func TestACancelledCopyEndsWithinIt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	from := readerFunc(func(p []byte) (int, error) {
		if calls++; calls == 1000 {
			cancel()
		}
		return 1, nil
	})
	if _, err := copyLoop(ctx, io.Discard, from, make([]byte, 1), math.MaxInt64); !errors.Is(err, context.Canceled) || calls > 1000+everyCalls {
		t.Errorf("%v after %d calls", err, calls)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestNamesOfCellsAreReadBack(t *testing.T) {
	for _, form := range timing.Forms() {
		for _, b := range allBuffers() {
			c := copyCell{form, wholeSize, b}
			if got, ok := copyCellOf(result.Cell{Name: c.name()}); !ok || got != c {
				t.Errorf("%q is read as %+v, %t", c.name(), got, ok)
			}
		}
	}
	for _, other := range []string{"stdio, fflush", "copy", "copy, 1MiB", "copy, x by 1B", "paste, 1MiB by 1B"} {
		if c, ok := copyCellOf(result.Cell{Name: other}); ok {
			t.Errorf("%q is read as %+v", other, c)
		}
	}
}

// TestAPlanFitsIntoItsTimeAndLeavesNothingOut: what is too long is made shorter.
func TestAPlanFitsIntoItsTimeAndLeavesNothingOut(t *testing.T) {
	check := func(c study.Choice, cells int) {
		t.Helper()
		arms, all, shortened := copyArms(c.OfStudy()), time.Duration(0), 0
		for _, a := range arms {
			all += a.Time
			if cell, ok := copyCellOf(a.Cell); ok && a.Records < cell.size {
				shortened++
			}
		}
		if limit := c.OfStudy().TimeToTake() / time.Duration(c.OfStudy().RoundsToRun()+1); all > limit {
			t.Errorf("%+v: a round of %v in %v", c.Parts, all, limit)
		}
		if len(arms) != cells || shortened == 0 {
			t.Errorf("%+v: %d cells, %d of them shorter, want %d cells", c.Parts, len(arms), shortened, cells)
		}
	}
	buffers, inC := len(allBuffers()), 4
	check(study.Choice{Preset: study.Full(), Parts: []study.Part{study.PartA}}, 7*buffers)
	check(study.Choice{Preset: study.Quick(), Parts: []study.Part{study.PartC}}, buffers+inC)
	check(study.Choice{Preset: study.Default(), Budget: 10 * time.Minute, Parts: []study.Part{study.PartC}}, buffers+inC)
	check(study.Choice{Preset: study.Default(), Budget: 10 * time.Minute, Parts: []study.Part{study.PartC}, FileSystems: []string{"ext2", "ext3", "ext4", "xfs", "btrfs"}}, buffers+inC)
	check(study.Choice{Preset: study.Quick(), FileSystems: []string{"ext4", "xfs", "btrfs"}}, buffers+inC)
	check(study.Choice{Preset: study.Full(), Parts: []study.Part{study.PartB}}, 3*buffers)
	check(study.Choice{Preset: study.Full(), Parts: []study.Part{study.PartWrite}}, 5*buffers)
	check(study.Choice{Preset: study.Full(), Parts: []study.Part{study.PartA, study.PartC}}, 7*buffers+inC) // 100 MiB are of both, and run once
	check(study.Choice{Preset: study.Default(), Buffers: []holdfast.Size{1, 3}, Parts: []study.Part{study.PartC}}, 2+2)
}

// TestLargeBuffersAreCopiedWhole: a short copy by them says little of a long one, and
// fewer rounds are the price where the time is short.
func TestLargeBuffersAreCopiedWhole(t *testing.T) {
	check := func(c study.Choice, rounds int) {
		t.Helper()
		cells, plan := Study().OutlineOn(c)
		for _, cell := range cells {
			one, _ := copyCellOf(cell)
			if one.buffer >= wholeBuffer && cell.Records != wholeSize || one.buffer == 1 && cell.Records >= wholeSize {
				t.Errorf("%s in %v: %d bytes", cell.Name, c.Budget, cell.Records)
			}
		}
		if plan.Rounds != rounds {
			t.Errorf("%d rounds in %v, want %d", plan.Rounds, c.Budget, rounds)
		}
	}
	five := []string{"ext2", "ext3", "ext4", "xfs", "btrfs"}
	check(study.Choice{Preset: study.Default(), Budget: 10 * time.Minute, Parts: []study.Part{study.PartC}, FileSystems: five}, 9)
	check(study.Choice{Preset: study.Default(), Budget: 4 * time.Minute, Parts: []study.Part{study.PartC}, FileSystems: five}, 3)
	check(study.Choice{Preset: study.Default(), Budget: 10 * time.Minute, Rounds: 5, Parts: []study.Part{study.PartC}, FileSystems: five}, 5)
}

// TestSlowCallsMakeShorterCopies, of the same sizes where calls are fast again.
func TestSlowCallsMakeShorterCopies(t *testing.T) {
	c := study.Choice{Preset: study.Default(), Budget: time.Minute, Parts: []study.Part{study.PartC}}
	fast, _ := Study().Outline(c)
	c.Slower = 20 * time.Microsecond
	slow, slowPlan := Study().Outline(c)
	c.PlanSlower, c.Slower = c.Slower, 0
	outside, outsidePlan := Study().Outline(c)
	if fast[0].Records < 4*slow[0].Records || slow[0].Records != outside[0].Records {
		t.Errorf("%d bytes, %d with slow calls, %d of the same sizes", fast[0].Records, slow[0].Records, outside[0].Records)
	}
	if outsidePlan.Estimate >= slowPlan.Estimate {
		t.Errorf("about %v with slow calls, and %v without", slowPlan.Estimate, outsidePlan.Estimate)
	}
}

func TestAWholePlanIsNotShortened(t *testing.T) {
	for _, a := range copyArms(study.Choice{Preset: study.Full(), Budget: 100 * time.Hour, Parts: []study.Part{study.PartC}}.OfStudy()) {
		if a.Records != wholeSize {
			t.Errorf("%s copies %d bytes", a.Name, a.Records)
		}
	}
}

// TestPartsAreRepeated: a run's own settings make the same cells again.
func TestPartsAreRepeated(t *testing.T) {
	s := Study()
	for _, c := range []study.Choice{
		{Preset: study.Quick(), Rounds: 1, Seed: 3, Budget: 7 * time.Second, Parts: []study.Part{study.PartC, study.PartSync}},
		{Preset: study.Quick(), Seed: 3, Buffers: []holdfast.Size{1, 4096}},
		{Preset: study.Default(), Seed: 3, Budget: 20 * time.Second},
		{Preset: study.Audit(), Seed: 3},
	} {
		h := result.Header{Study: s.Name, Seed: 3, Settings: c.Settings()}
		h.Cells, h.Plan = s.Outline(c)
		if m, err := s.Again(h, trial.NotCounting); err != nil || len(m.Cells) != len(h.Cells) {
			t.Errorf("%d of %d cells again: %v", len(m.Cells), len(h.Cells), err)
		}
	}
	if _, err := study.ParsePart("D"); err == nil {
		t.Error("there is a part D")
	}
}

// slope plants a copy of n bytes. It has a fixed cost, a first half that is slow
// at its beginning, and a steady time of a byte.
func slope(m *result.Measurement, bytes, whole int64, fixed, first time.Duration, perByte float64) {
	m.Records, m.Size, m.Open = bytes, bytes, fixed
	tail := bytes / 2
	m.Write = first + time.Duration(perByte*float64(bytes))
	m.Elapsed = m.Open + m.Write
	m.User, m.System = m.Elapsed/4, m.Elapsed-m.Elapsed/4
	m.Values = map[string]float64{wholeBytes: float64(whole), tailBytes: float64(tail), tailNs: perByte * float64(tail)}
}

func TestPredictionCountsFixedCostsOnce(t *testing.T) {
	trialOf := func(bytes int64) result.Trial {
		var m result.Measurement
		slope(&m, bytes, wholeSize, 30*time.Millisecond, 20*time.Millisecond, 100)
		return result.Trial{Measurement: m}
	}
	want := wholeElapsed(trialOf(wholeSize))
	for _, bytes := range []int64{1000, 1 << 20, wholeSize} {
		if got := wholeElapsed(trialOf(bytes)); math.Abs(got/want-1) > 1e-9 {
			t.Errorf("predicted from %d bytes: %v, want %v", bytes, got, want)
		}
	}
	if got := stretch(trialOf(wholeSize)); got != 1 {
		t.Errorf("the whole is stretched %v times", got)
	}
	if got := stretch(result.Trial{Measurement: result.Measurement{Elapsed: 1, Size: 1}}); got != 1 {
		t.Errorf("a trial that reports nothing is stretched %v times", got)
	}
}

// planCells is a planted run of 100 MiB on one file system, each cell with the time of a
// byte that perByte gives it.
func planCopies(rounds int, bytes int64, perByte func(c copyCell) float64, cells ...copyCell) study.Evidence {
	var names []string
	for _, c := range cells {
		names = append(names, c.name())
	}
	e := studytest.Planted(rounds, func(arm string, round int, m *result.Measurement) {
		c, _ := copyCellOf(result.Cell{Name: arm})
		slope(m, min(bytes, c.size), c.size, 0, 0, perByte(c)*(1+float64(round%3)/1000))
		m.IO = &result.IO{Reads: 1, Writes: 1}
		m.Before = &result.Residency{Pages: 10, Source: "cachestat(2)"}
	}, names...)
	for i, c := range cells {
		e.Run.Header.Cells[i].Records, e.Run.Header.Cells[i].Group = min(bytes, c.size), c.group()
	}
	e.Run.Header.Study, e.Floor = Study().Name, 0.001
	return e
}

// falling is a time of a byte that a call for each buffer adds to.
func falling(c copyCell) float64 { return 0.5 + 500/float64(c.buffer) }

func copiesOf(size int64, form timing.Form) (cells []copyCell) {
	for _, b := range allBuffers() {
		cells = append(cells, copyCell{form, size, b})
	}
	return cells
}

func TestTimingsAreOfTheWhole(t *testing.T) {
	e := onKind(planCopies(10, 1<<20, falling, slices.Concat(copiesOf(wholeSize, timing.Copy), copiesOf(1<<20, timing.Copy), copiesOf(writeSize, timing.Write))...), "xfs")
	rows := Timings(e.Run.Run)
	if len(rows) != 3*len(allBuffers()) {
		t.Fatalf("%d rows", len(rows))
	}
	for _, r := range rows {
		want := falling(copyCell{buffer: int64(r.Buffer)}) * float64(r.FileSize) / 1e9
		if r.FileSystem != "xfs" || math.Abs(r.Elapsed/want-1) > 0.01 || r.Predicted != (r.FileSize > 1<<20) {
			t.Errorf("%+v, want %v s", r, want)
		}
		if math.Abs(r.User/r.CPU-0.25) > 0.01 || math.Abs(r.User+r.System-r.CPU) > 3e-9 {
			t.Errorf("CPU time of %+v", r)
		}
	}
	if rows[0].FileSize != 1<<20 || rows[len(rows)-1].Form != timing.Write {
		t.Errorf("the first is %+v, the last %+v", rows[0], rows[len(rows)-1])
	}
	e.Run.Header.Study = "lines"
	if rows := Timings(e.Run.Run); rows != nil {
		t.Errorf("lines has timings: %v", rows)
	}
}

func TestCopiesAreShownBesideWhatWasPublished(t *testing.T) {
	e := onKind(planCopies(10, 1<<20, falling, slices.Concat(copiesOf(wholeSize, timing.Copy), copiesOf(8<<20, timing.Copy), copiesOf(syncSize, timing.Synced))...), "ext4")
	s := showCopies(e)
	text := studytest.LooksRight(t, s)
	for _, want := range []string{
		"4096 | ", "74.3026", "107.43", "1582.07", "predicted, from 1MiB", "measured", "7.8147",
		"of the published times with O_SYNC only the row of one byte", "cold: none of the source was in the page cache before each of the 170 trials", "published, jfs | 1 over 14 buffers: the same",
		"is the best buffer the largest | yes, 1MiB", "how much of the CPU time is the kernel's | 1B 75 %",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not shown in\n%s", want, text)
		}
	}
	if !strings.Contains(s.Learnt, "(predicted) with 1B") || !strings.Contains(s.Learnt, ". ") {
		t.Errorf("learnt: %s", s.Learnt)
	}
	studytest.LooksRight(t, showCopies(studytest.Planted(0, nil)))
}

func TestWhatStandsOutIsFoundByRule(t *testing.T) {
	check := func(perByte func(copyCell) float64, asked, want string) {
		t.Helper()
		for _, row := range standsOutTable(onKind(planCopies(10, 1<<20, perByte, copiesOf(wholeSize, timing.Copy)...), "ext4")).Rows {
			if strings.HasPrefix(row[0], asked) && !strings.HasPrefix(row[1], want) {
				t.Errorf("%s: %q, want %q", row[0], row[1], want)
			}
		}
	}
	slowOdd := func(c copyCell) float64 {
		if c.buffer == oddBuffer {
			return 3
		}
		return 1
	}
	peak := func(c copyCell) float64 {
		if c.buffer == 4096 {
			return 1
		}
		return 2
	}
	const straddle, best = "does a buffer that straddles", "is the best buffer the largest"
	check(slowOdd, straddle, "it does: 3x")
	check(func(copyCell) float64 { return 1 }, straddle, "no:")
	check(peak, best, "4KiB is, and 1MiB takes 2x")
	check(falling, best, "yes, 1MiB")
}

// TestAShareOfTheKernelIsShownWhereItIsKnown leaves it out of a run whose clock has ticked
// a few times only, of one inside User-Mode Linux, and where it can't be.
func TestAShareOfTheKernelIsShownWhereItIsKnown(t *testing.T) {
	check := func(rounds int, kind string, shown bool) {
		t.Helper()
		e := onKind(planCopies(rounds, 1<<16, falling, copiesOf(wholeSize, timing.Copy)...), kind)
		_, inTable := kernelsShare(e)
		const sentence = "of the CPU time with 1B is the kernel's"
		if strings.Contains(copyLearnt(e), sentence) != shown || strings.HasPrefix(inTable, "1B 75 %") != shown {
			t.Errorf("%d rounds on %s: %s; %q", rounds, kind, copyLearnt(e), inTable)
		}
	}
	check(10, "ext4", true)
	check(4, "ext4", false)
	check(10, "uml-jfs", false)
	e := studytest.Planted(3, func(_ string, _ int, m *result.Measurement) { m.User, m.System = 2*time.Second, -time.Second }, copyArm(1))
	if share := kernelPart(e, copyArm(1)); !math.IsNaN(share) {
		t.Errorf("%v of the CPU time is the kernel's", share)
	}
}

func TestIterationsReadAsPublished(t *testing.T) {
	c := copyCell{timing.Copy, wholeSize, 4096}
	e := onKind(studytest.Planted(1, func(_ string, _ int, m *result.Measurement) {
		m.Elapsed, m.User, m.System = 76508*time.Millisecond, 9110*time.Millisecond, 67353*time.Millisecond
	}, c.name()), "ext2")
	e.Run.Header.Study, e.Run.Header.Cells[0].Records = Study().Name, wholeSize
	want := []string{
		"Measuring copy of 100MiB for BUF_SIZE=4096 on ext2...",
		"  Running iteration 1/1 for BUF_SIZE=4096...",
		"    Iteration 1 results: Elapsed=76.508s, Total CPU=76.463s, User CPU=9.11s, System CPU=67.353s",
	}
	if got := Iterations(e.Run.Run); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	e.Run.Header.Cells[0].Cache = result.Remount
	want = slices.Insert(want, 2, "    Unmounting ext2...", "    Remounting ext2...")
	if got := Iterations(e.Run.Run); !slices.Equal(got, want) {
		t.Errorf("with a remount: %q", got)
	}
}

// several plants a run on several file systems. factors has, for each of them, its time as a multiple
// of the unscaled time.
func several(t *testing.T, factors map[string]float64, cells ...copyCell) result.Run {
	t.Helper()
	var all []study.Evidence
	for _, name := range slices.Sorted(maps.Keys(factors)) {
		e := planCopies(10, 1<<20, func(c copyCell) float64 { return falling(c) * factors[name] }, cells...)
		e.FileSystem = name
		all = append(all, e)
	}
	run := readTogether(all)
	run.Header.Study = Study().Name
	return run
}

func TestSeveralFileSystemsAreRanked(t *testing.T) {
	run := several(t, map[string]float64{"ext4": 1, "jfs": 0.5, "btrfs": 2, "xfs": 1, "uml-bfs": 9, "uml-jfs": 7}, copiesOf(wholeSize, timing.Copy)...)
	s := acrossCopies(study.EvidenceOn(run))
	text := studytest.LooksRight(t, s)
	for _, want := range []string{
		"4096 | jfs < ext4 = xfs < btrfs; uml-jfs < uml-bfs | btrfs < ext4 < bfs < jfs < ext2 < xfs",
		"copy of 100MiB | ext4 | jfs | 1 over 17 buffers: the same",
		"copy-jfs-small | 2x", "to jfs | holds", "jfs is the fastest with small buffers, btrfs the slowest (66 s, 114 s for 100 MB by single bytes): so it is",
		"~",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not shown in\n%s", want, text)
		}
	}
	for _, want := range []string{"by 1B the order is jfs < ", "Over the buffers the trends of all file systems here are the same (a rank correlation of 1 at least)", "the trends here and the published trends are the same (0.9", `not so here is "`} {
		if !strings.Contains(s.Learnt, want) {
			t.Errorf("%q was not learnt: %s", want, s.Learnt)
		}
	}
	rows := Timings(run)
	if systems := systemsIn(rows); len(rows) != 6*len(allBuffers()) || !slices.Equal(systems, run.FileSystems()) {
		t.Errorf("%d rows of %q", len(rows), systems)
	}
	studytest.LooksRight(t, acrossCopies(nil))
}

func TestClaimsOfSeveralFileSystemsFollowTheRun(t *testing.T) {
	cells := []copyCell{{timing.Copy, wholeSize, 1}, {timing.Copy, wholeSize, 4096}, {timing.Write, writeSize, 1}, {timing.Write, writeSize, 4096}}
	check := func(claim string, factors map[string]float64, want study.Verdict) {
		t.Helper()
		f := studytest.ClaimOf(t, Study(), claim).Find(study.EvidenceOf(several(t, factors, cells...)))
		if f.Verdict != want || f.Why == "" {
			t.Errorf("%s on %v: %+v, want %s", claim, factors, f, want)
		}
	}
	as := map[string]float64{"jfs": 1, "ext4": 2, "btrfs": 4, "xfs": 3}
	not := map[string]float64{"jfs": 4, "ext4": 2, "btrfs": 1, "xfs": 3}
	for _, claim := range []string{"copy-jfs-small", "copy-write-jfs-small"} {
		check(claim, as, study.Holds)
		check(claim, not, study.NotHere)
		check(claim, map[string]float64{"jfs": 1, "ext4": 2}, study.NotChecked)
		check(claim, map[string]float64{"jfs": 1, "ext4": 2, "btrfs": 2}, study.NotHere) // a tie is not the slowest
	}
	check("copy-ext4-btrfs-system", map[string]float64{"jfs": 3, "ext4": 1, "btrfs": 1.5, "xfs": 2}, study.Holds)
	check("copy-ext4-btrfs-system", as, study.NotHere)
	check("copy-user-alike", map[string]float64{"jfs": 1, "ext4": 1.1, "btrfs": 1, "xfs": 1}, study.Holds)
	check("copy-user-alike", as, study.NotHere)
	check("copy-write-ext4-4096", as, study.NeverSo)
	steps := []copyCell{{timing.Copy, wholeSize, 512}, {timing.Copy, wholeSize, 4096}, {timing.Copy, wholeSize, 65536}}
	larger := func(slow string) study.Evidence {
		var all []study.Evidence
		for _, name := range []string{"ext4", "xfs"} {
			e := planCopies(10, 1<<20, func(c copyCell) float64 {
				perByte := falling(c)
				if name == slow && c.buffer == 65536 {
					perByte = 5
				}
				return perByte
			}, steps...)
			e.FileSystem = name
			all = append(all, e)
		}
		return study.EvidenceOf(readTogether(all))
	}
	for slow, want := range map[string]study.Verdict{"": study.Holds, "xfs": study.NotHere} {
		f := studytest.ClaimOf(t, Study(), "copy-larger-all").Find(larger(slow))
		if f.Verdict != want || slow != "" && !strings.HasSuffix(f.Measured, "4096 to 65536 bytes on xfs") {
			t.Errorf("slow on %q: %+v", slow, f)
		}
	}
	check("copy-larger-all", map[string]float64{"ext4": 1}, study.NotChecked)
	check("copy-jfs-small", map[string]float64{"uml-jfs": 1, "ext4": 0.1, "uml-ext4": 2, "uml-btrfs": 4}, study.Holds)
}

func TestStreamIsBehindUnlessItIsFlushed(t *testing.T) {
	t.Parallel()
	s := Study()
	e := study.EvidenceOf(studytest.RunStudy(t, s, study.Choice{Preset: study.Quick(), Rounds: 1, Seed: 1, Parts: []study.Part{study.PartSync}}))
	for _, w := range pointWays() {
		for _, stream := range []string{inStdio, inWriter} {
			if arm := pointArm(stream, w); e.Have(arm) {
				if behind := e.Median(arm, study.Value(behindBytes)); (behind > 0) == w.flush {
					t.Errorf("%s: %v bytes are behind", arm, behind)
				}
			}
		}
	}
	studytest.LooksRight(t, s.Show(e))
}

func TestCopyRunsForReal(t *testing.T) {
	t.Parallel()
	s := Study()
	run := studytest.RunStudy(t, s, study.Choice{Preset: study.Quick(), Rounds: 1, Seed: 1, Budget: time.Second, Buffers: []holdfast.Size{1, 4096}})
	studytest.LooksRight(t, s.Show(study.EvidenceOf(run)))
	if rows := Timings(run); len(rows) == 0 || slices.ContainsFunc(rows, func(r timing.Row) bool { return !(r.Elapsed > 0) }) {
		t.Errorf("the timings are %v", rows)
	}
}

func TestClaimsQuoteThePublishedTimes(t *testing.T) {
	rows := timing.PublishedSynced()
	if rows[0].Buffer != 1 || rows[0].Elapsed != byOneByte || rows[1].Buffer != 2 || rows[1].Elapsed != byTwoBytes {
		t.Errorf("%v and %v s by one and by two bytes; published: %+v", byOneByte, byTwoBytes, rows[:2])
	}
}

// plantSyncs is a run in which each write of a buffer takes as long as cost says, of the
// cell's write in a round. writes counts the writes of each trial's last half.
func plantSyncs(rounds, writes int, cost func(buffer int64, round int) time.Duration, buffers ...int64) study.Evidence {
	var cells []copyCell
	var names []string
	for _, b := range buffers {
		cells = append(cells, copyCell{timing.Synced, syncSize, b})
		names = append(names, syncArm(b))
	}
	e := studytest.Planted(rounds, func(arm string, round int, m *result.Measurement) {
		c, _ := copyCellOf(result.Cell{Name: arm})
		m.Size = int64(2*writes) * c.buffer
		tail := float64(writes) * float64(cost(c.buffer, round))
		m.Elapsed, m.User, m.System = time.Duration(2*tail), time.Second, time.Second
		m.Values = map[string]float64{wholeBytes: syncSize, tailBytes: float64(writes) * float64(c.buffer), tailNs: tail}
	}, names...)
	for i := range cells {
		e.Run.Header.Cells[i].Records, e.Run.Header.Cells[i].Group = int64(2*writes)*cells[i].buffer, cells[i].group()
	}
	e.Run.Header.Study = Study().Name
	return onKind(e, "ext4")
}

// TestPredictionsOfSyncsFallAsTheBufferGrows: one trial that a busy disk held up does not
// make its buffer slower than the one below it.
func TestPredictionsOfSyncsFallAsTheBufferGrows(t *testing.T) {
	buffers := []int64{1, 2, 4, 8, 16, 32}
	e := plantSyncs(5, 10, func(buffer int64, round int) time.Duration {
		if buffer == 4 {
			return 5 * time.Millisecond
		}
		return time.Duration(10+round) * 100 * time.Microsecond
	}, buffers...)
	for i, b := range buffers {
		c := copyCell{timing.Synced, syncSize, b}
		w := wholeOf(e, c)
		if !w.predicted || !(w.elapsed.Low < w.elapsed.Median && w.elapsed.Median < w.elapsed.High) {
			t.Errorf("%d: %+v is no prediction with an interval", b, w.elapsed)
		}
		// (5 × 1.3 ms + 5 ms) / 6 is a sync, once for each write.
		if want := 1.917e6 * syncSize / float64(b); math.Abs(w.elapsed.Median/want-1) > 0.01 {
			t.Errorf("%d: %v s, want %v", b, w.elapsed.Median/1e9, want/1e9)
		}
		if i > 0 && w.elapsed.Median >= wholeOf(e, copyCell{timing.Synced, syncSize, buffers[i-1]}).elapsed.Median {
			t.Errorf("%d bytes a write take longer than %d", b, buffers[i-1])
		}
	}
	// A comparison of two buffers takes each by itself.
	if r := e.Ratio(syncArm(4), syncArm(2), wholeElapsed); r.Ratio < 1.5 {
		t.Errorf("pooled away: %v", r)
	}
}

func TestNothingIsPredictedFromLittle(t *testing.T) {
	same := func(int64, int) time.Duration { return time.Millisecond }
	check := func(rounds, writes int, why string) {
		t.Helper()
		e := plantSyncs(rounds, writes, same, 1, 2)
		c := copyCell{timing.Synced, syncSize, 1}
		if got := notPredicted(e, c); got != why {
			t.Errorf("%d rounds of %d writes: %q, want %q", rounds, writes, got, why)
		}
		if rows := Timings(e.Run.Run); (len(rows) == 0) != (why != "") || len(Averages(e.Run.Run)) != len(rows) {
			t.Errorf("%d rounds of %d writes: rows %v", rounds, writes, rows)
		}
		if text := studytest.LooksRight(t, showCopies(e)); why != "" && !strings.Contains(text, why) {
			t.Errorf("%q is not shown in\n%s", why, text)
		}
		if f := studytest.ClaimOf(t, Study(), "copy-osync-byte").Find(e); (f.Measured == "") != (why != "") {
			t.Errorf("%+v", f)
		}
	}
	check(1, 100, "not predicted: 1 of at least 3 rounds")
	check(3, 4, "not predicted: 24 of at least 30 writes")
	check(3, 5, "")
	check(10, 10, "")
}

// TestUserModeLinuxHasNoUserTime: what its kernel says of it is not so.
func TestUserModeLinuxHasNoUserTime(t *testing.T) {
	c := copyCell{timing.Copy, wholeSize, 4096}
	run := several(t, map[string]float64{"uml-jfs": 1, "uml-ext4": 2, "ext4": 1}, c, copyCell{timing.Copy, wholeSize, 1})
	for _, r := range Timings(run) {
		inside := study.IsUserMode(r.FileSystem)
		if math.IsNaN(r.User) != inside || math.IsNaN(r.System) != inside || !(r.CPU > 0) {
			t.Errorf("%+v", r)
		}
	}
	for _, e := range study.EvidenceOn(run) {
		text := studytest.LooksRight(t, showCopies(e))
		if strings.Contains(text, UserModeUnparted) != study.IsUserMode(e.FileSystem) {
			t.Errorf("%s:\n%s", e.FileSystem, text)
		}
	}
	if lines := strings.Join(Iterations(run), "\n"); strings.Count(lines, "User CPU=") != 2*10 || strings.Count(lines, "Total CPU=") != 3*2*10 {
		t.Error(lines)
	}
	for _, claim := range []string{"copy-user-alike", "copy-ext4-btrfs-system"} {
		if f := studytest.ClaimOf(t, Study(), claim).Find(study.EvidenceOf(run)); f.Verdict != study.NotChecked || f.Why != UserModeUnparted {
			t.Errorf("%s: %+v", claim, f)
		}
	}
}

func TestAveragesAreOfTheRounds(t *testing.T) {
	c := copyCell{timing.Copy, wholeSize, 4096}
	e := onKind(studytest.Planted(3, func(_ string, round int, m *result.Measurement) {
		m.Elapsed, m.User, m.System = time.Duration(1+round*round)*time.Second, time.Second, time.Second
	}, c.name()), "ext2")
	e.Run.Header.Study, e.Run.Header.Cells[0].Records = Study().Name, wholeSize
	median, average := Timings(e.Run.Run)[0], Averages(e.Run.Run)[0]
	if middle, all := (1 + 2.0*2), (2+5+10)/3.0; median.Elapsed != middle || math.Abs(average.Elapsed-all) > 1e-6 || average.CPU != 2 || average.User != 1 {
		t.Errorf("median %+v, average %+v", median, average)
	}
	if text := studytest.LooksRight(t, showCopies(e)); !strings.Contains(text, "Average, elapsed") || !strings.Contains(text, "| 5.667 |") {
		t.Error(text)
	}
}

// TestCopiesInCStandBesideThoseInGo: the table has the published CPU time of the same
// buffer, and Go's is set against C's. Without C the arm says what is missing.
func TestCopiesInCStandBesideThoseInGo(t *testing.T) {
	inC := copyCell{timing.InC, wholeSize, 4096}
	e := onKind(studytest.Planted(5, func(arm string, _ int, m *result.Measurement) {
		m.Elapsed, m.System, m.Records = time.Second, map[bool]time.Duration{true: 100, false: 200}[arm == inC.name()]*time.Millisecond, wholeSize
	}, copyArm(4096), inC.name()), "ext4")
	for i := range e.Run.Header.Cells {
		e.Run.Header.Cells[i].Records = wholeSize
	}
	published, ok := publishedCell("ext4", copyCell{timing.Copy, wholeSize, 4096})
	if got := publishedTexts(e, inC); !ok || got[1] != secondsText(published.CPU) {
		t.Errorf("published beside C: %q", got)
	}
	if _, found := costOfGo(e); !strings.HasPrefix(found, "4KiB 2x") {
		t.Errorf("Go against C: %q", found)
	}
	arms := copyArms(study.Choice{Preset: study.Default(), Parts: []study.Part{study.PartC}})
	i := slices.IndexFunc(arms, func(a study.Arm) bool { return a.Name == inC.name() })
	if i < 0 || arms[i].Missing != cstdio.Missing() {
		t.Errorf("arm %d of %d", i, len(arms))
	}
}
