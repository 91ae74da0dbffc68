package bytewise

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/lab/cstdio"
	"github.com/holdfast-go/holdfast/cmd/internal/lab/diy"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/studytest"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

// plantedBytes is a run of an audit in which each arm had its figures.
type plantedBytes struct {
	cells  []result.Cell
	trials []*result.Trial
}

// add plants an arm with a little noise from round to round, the same for all arms.
func (p *plantedBytes) add(arm string, perByte time.Duration, goReads, goWrites int64, values map[string]float64) *plantedBytes {
	p.cells = append(p.cells, result.Cell{Name: arm, RecordBytes: 1, Records: bytesCount})
	for round := 1; round <= 10; round++ {
		m := result.Measurement{
			Records: bytesCount, Size: bytesCount, Elapsed: bytesCount * perByte * time.Duration(100+round%3) / 100,
			IO: &result.IO{Reads: goReads, Writes: goWrites}, Values: values,
		}
		p.trials = append(p.trials, &result.Trial{Cell: arm, Round: round, Measurement: m})
	}
	return p
}

func (p *plantedBytes) evidence() study.Evidence {
	return study.EvidenceOf(result.Run{Header: result.Header{Cells: p.cells}, Trials: p.trials})
}

// plantWays plants the document's programs, with nanoseconds a byte to read and to
// write.
func plantWays(raw, libc, diy [2]time.Duration) *plantedBytes {
	p := &plantedBytes{}
	for _, cache := range []result.Cache{result.Cold, result.Warm} {
		for i, d := range []direction{toRead, toWrite} {
			p.add(byteArm(d, noBuffering, cache), raw[i], bytesCount, bytesCount, nil)
			p.add(byteArm(d, libcBuffering, cache), libc[i], 256, 256, nil)
			p.add(byteArm(d, diyBuffering, cache), diy[i], 256, 256, nil)
		}
	}
	return p
}

func TestClaimsOfBytesOnPlantedFigures(t *testing.T) {
	check := func(claim string, e study.Evidence, want study.Verdict) {
		t.Helper()
		studytest.Judge(t, Study(), claim, e, want)
	}
	type pair = [2]time.Duration
	published := plantWays(pair{684, 18722}, pair{13, 36}, pair{10, 30}).evidence()
	for _, claim := range []string{"bytes-read-98", "bytes-write-99.8", "bytes-diy-beats-raw", "bytes-diy-near-libc", "bytes-calls"} {
		check(claim, published, study.Holds)
	}
	check("bytes-fread-complete", published, study.NeverSo)

	here := plantWays(pair{240, 370}, pair{23, 27}, pair{300, 20}).evidence()
	for _, claim := range []string{"bytes-read-98", "bytes-write-99.8", "bytes-diy-beats-raw", "bytes-diy-near-libc"} {
		check(claim, here, study.NotHere)
	}
	check("bytes-read-98", plantWays(pair{1000, 1}, pair{24, 1}, pair{1, 1}).evidence(), study.Holds)
	check("bytes-read-98", plantWays(pair{1000, 1}, pair{26, 1}, pair{1, 1}).evidence(), study.NotHere)

	// Nothing was measured.
	for _, c := range Study().Claims {
		if c.Name != "bytes-fread-complete" {
			check(c.Name, study.EvidenceOf(result.Run{}), study.NotChecked)
			if f := c.Judge(study.EvidenceOf(result.Run{})); f.Verdict != study.NotChecked {
				t.Errorf("%s without figures: %+v", c.Name, f)
			}
		}
	}
}

func TestCallsClaimCountsCalls(t *testing.T) {
	check := func(libcReads, libcWrites int64, want study.Verdict) {
		t.Helper()
		p := &plantedBytes{}
		p.add(byteArm(toRead, noBuffering, result.Warm), 1, bytesCount+1, 0, nil).add(byteArm(toWrite, noBuffering, result.Warm), 1, 0, bytesCount, nil)
		p.add(byteArm(toRead, libcBuffering, result.Warm), 1, libcReads, 0, nil).add(byteArm(toWrite, libcBuffering, result.Warm), 1, 0, libcWrites, nil)
		studytest.Judge(t, Study(), "bytes-calls", p.evidence(), want)
	}
	check(256, 256, study.Holds)
	check(256+callsSlack, 256, study.Holds)
	check(257+callsSlack, 256, study.NotHere)
	check(256, 255, study.NotHere)
	check(1024, 256, study.NotHere) // a library with a buffer of 1 KiB
	check(256, bytesCount, study.NotHere)
}

func TestReadAheadClaimLooksAtTheCache(t *testing.T) {
	check := func(cached float64, want study.Verdict) {
		t.Helper()
		p := (&plantedBytes{}).add(oneByte, 1, 1, 0, map[string]float64{bytesAfter: cached})
		studytest.Judge(t, Study(), "bytes-kernel-reads-more", p.evidence(), want)
	}
	check(16384, study.Holds)
	check(4096, study.Holds)
	check(0, study.NotHere)
}

func TestDropClaimsCompareColdWithWarm(t *testing.T) {
	cold, warm := coldRead, warmRead
	plant := func(cold, warm string, coldTimes, warmTimes [10]time.Duration) study.Evidence {
		p := (&plantedBytes{}).add(cold, 1, 0, 0, nil).add(warm, 1, 0, 0, nil)
		for i := range p.trials {
			times := map[string][10]time.Duration{cold: coldTimes, warm: warmTimes}[p.trials[i].Cell]
			p.trials[i].Elapsed = times[p.trials[i].Round-1]
		}
		return p.evidence()
	}
	calm := [10]time.Duration{1000, 1001, 1003, 1002, 1000, 1004, 1003, 1001, 1002, 1000}
	wild := [10]time.Duration{2000, 3100, 2200, 2950, 2100, 4000, 2500, 3600, 2000, 3500}
	check := func(claim string, e study.Evidence, want study.Verdict) {
		t.Helper()
		studytest.Judge(t, Study(), claim, e, want)
	}
	check("bytes-drop-consistent", plant(cold, warm, wild, calm), study.NotHere)
	check("bytes-drop-consistent", plant(cold, warm, calm, wild), study.Holds)
	check("bytes-drop-consistent", plant(cold, warm, wild, wild), study.NotChecked)
	check("bytes-drop-consistent", plant(cold, warm, calm, calm), study.Holds)
	check("bytes-drop-differs", plant(cold, warm, wild, calm), study.Holds)
	check("bytes-drop-differs", plant(cold, warm, calm, calm), study.NotHere)
}

// TestBytesInMemoryAreSettledOnADisk: where no file can be cold, a claim says what
// would settle it, unless it is the C side that is missing.
func TestBytesInMemoryAreSettledOnADisk(t *testing.T) {
	_, _, missing := Study().Matrix(study.Choice{Preset: study.Audit(), NeverCold: "all stays in memory"})
	for _, c := range Study().Claims {
		f := c.Find(study.EvidenceOf(result.Run{Header: result.Header{Missing: missing}}))
		byDisk := f.Why == "all stays in memory" && strings.HasPrefix(f.Settle, "--dir ")
		byC := cstdio.Missing() != "" && f.Why == cstdio.Missing() && f.Settle == ""
		needsDisk := slices.ContainsFunc(c.Takes(), func(a string) bool { return !strings.HasSuffix(a, "/"+string(result.Warm)) })
		if f.Why == "" || needsDisk && (f.Verdict != study.NotChecked || !byDisk && !byC) {
			t.Errorf("%s: %+v", c.Name, f)
		}
	}
}

// TestBytesRunForReal runs every arm once, with a number of bytes that is no
// multiple of any buffer.
func TestBytesRunForReal(t *testing.T) {
	t.Parallel()
	dirs := []string{t.TempDir(), "/dev/shm"}
	if testing.Short() {
		dirs = dirs[:1]
	}
	for _, dir := range dirs {
		if _, err := os.Stat(dir); err != nil {
			t.Logf("no run there: %v", err)
			continue
		}
		c := study.Choice{Preset: study.Quick(), Count: 5003, Rounds: 2, Buffers: []holdfast.Size{1, 1000, 1000}, Seed: 3}
		run := studytest.RunStudyIn(t, dir, Study(), c)
		text := studytest.LooksRight(t, Study().Show(study.EvidenceOf(run)))
		for _, want := range []string{"Read 5003 bytes from test-file.txt in ", "run to run"} {
			if cstdio.Missing() == "" && dir != "/dev/shm" && !strings.Contains(text, want) {
				t.Errorf("%s: no %q in %s", dir, want, text)
			}
		}
		if why := cstdio.Missing(); why != "" && !strings.Contains(text, why) {
			t.Errorf("%q is not said: %s", why, text)
		}
	}
}

// TestBytesAreShownWithoutAnyFigures: of a run that ended before its first round.
func TestBytesAreShownWithoutAnyFigures(t *testing.T) {
	cells, plan := Study().Outline(study.Choice{Preset: study.Quick()})
	for _, header := range []result.Header{{}, {Cells: cells, Plan: plan}} {
		studytest.LooksRight(t, Study().Show(study.EvidenceOf(result.Run{Header: header})))
	}
}

// TestABufferThatIsNoneTurnsTheClaim breaks the arm that a claim is about.
func TestABufferThatIsNoneTurnsTheClaim(t *testing.T) {
	if why := cstdio.Missing(); why != "" {
		t.Skip(why)
	}
	claim := studytest.ClaimOf(t, Study(), "bytes-calls")
	c := study.Choice{Preset: study.Audit(), Count: 5000, Rounds: 1, Only: claim.Takes()}
	broken := Study()
	broken.Arms = func(c study.Choice) []study.Arm {
		arms := bytesArms(c)
		none := inC(libcBuffering, 1, cstdio.Setup{Method: cstdio.Fread, Mode: cstdio.None})
		for i, a := range arms {
			for _, d := range []direction{toRead, toWrite} {
				if a.Name == byteArm(d, libcBuffering, result.Warm) {
					arms[i] = none.arm(c, d, result.Warm, a.Group)[0]
				}
			}
		}
		return arms
	}
	sound := study.EvidenceOf(studytest.RunStudy(t, Study(), c))
	if why := sound.Missing(claim.Takes()[0]); why != "" {
		t.Skip(why)
	}
	if math.IsNaN(sound.Median(claim.Takes()[0], study.Reads)) {
		t.Skip("this system does not count the calls of a process")
	}
	if f := claim.Judge(sound); f.Verdict != study.Holds {
		t.Errorf("with a buffer: %+v", f)
	}
	if f := claim.Judge(study.EvidenceOf(studytest.RunStudy(t, broken, c))); f.Verdict != study.NotHere {
		t.Errorf("without one: %+v", f)
	}
}

// TestWrongBytesAreNoTrial: a way that leaves out a byte, or turns one, fails.
func TestWrongBytesAreNoTrial(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	check := func(content []byte, n int64, at int64) {
		t.Helper()
		if err := os.WriteFile(path, content, 0o666); err != nil {
			t.Fatal(err)
		}
		var wrong *trial.ContentError
		err := isPattern(path, n)
		if at < 0 && err != nil || at >= 0 && (!errors.As(err, &wrong) || wrong.Offset != at) {
			t.Errorf("%d bytes of %d: %v, want one at %d", len(content), n, err, at)
		}
	}
	pattern := make([]byte, 100_000)
	cstdio.Fill(pattern, 0)
	check(pattern, 100_000, -1)
	check(pattern[:65_536], 65_536, -1)
	check(nil, 0, -1)
	check(pattern[:99_999], 100_000, 99_999)
	check(pattern, 99_999, 100_000)
	turned := slices.Clone(pattern)
	turned[70_000] ^= 1
	check(turned, 100_000, 70_000)

	g := studytest.WorkDir(t)
	needsWarm(t, g)
	var wrong *trial.ContentError
	for name, w := range map[string]byteReader{
		"one byte short": &goReader{goReads: goReads{func(n int64) (cstdio.Sum, int64, error) { return cstdio.PatternSum(n - 1), n - 1, nil }, func() error { return nil }}},
		"other bytes":    &goReader{goReads: goReads{func(n int64) (cstdio.Sum, int64, error) { return cstdio.Sum{}, n, nil }, func() error { return nil }}},
	} {
		task := readBytes(func(string) (byteReader, error) { return w, nil }, 100, result.Warm)
		if _, err := task.Run(t.Context(), g, trial.NotCounting, 100, 100); !errors.As(err, &wrong) {
			t.Errorf("%s: %v", name, err)
		}
	}
	lazy := goWrites{func(n int64) (int64, error) { return n, nil }, func() error { return nil }, func() error { return nil }}
	task := writeBytes(func(string) (byteWriter, error) { return lazy, nil }, 100, result.Warm)
	if _, err := task.Run(t.Context(), g, trial.NotCounting, 100, 100); !errors.As(err, &wrong) || wrong.Offset != 0 {
		t.Errorf("nothing written: %v", err)
	}
}

// needsWarm skips where nothing says what the page cache has: on Linux it is said.
func needsWarm(t *testing.T, g *trial.WorkDir) {
	t.Helper()
	if err := g.Can(result.Warm); err != nil && runtime.GOOS != "linux" {
		t.Skip(err)
	}
}

// TestEveryWayHandlesAnySize: each way reads and writes sizes around its buffer.
func TestEveryWayHandlesAnySize(t *testing.T) {
	t.Parallel()
	sizes := []int64{1, 4095, 4096, 4097, 9973}
	if testing.Short() {
		sizes = sizes[3:]
	}
	g := studytest.WorkDir(t)
	needsWarm(t, g)
	for _, w := range append(byteWays(), setvbufWays([]int{1, 512})...) {
		for _, d := range []direction{toRead, toWrite} {
			if w.missing != "" || !w.can(d) {
				continue
			}
			for _, n := range sizes {
				if _, err := w.task(d, n, result.Warm).Run(t.Context(), g, trial.NotCounting, n, n); err != nil {
					t.Errorf("%s %s, %d bytes: %v", d, w.name, n, err)
				}
			}
		}
	}
}

func TestCachesOfBytes(t *testing.T) {
	check := func(c study.Choice, arm string, there bool, missing bool) {
		t.Helper()
		c.Preset.Name = study.PresetFull
		arms := bytesArms(c)
		i := slices.IndexFunc(arms, func(a study.Arm) bool { return a.Name == arm })
		if (i >= 0) != there || i >= 0 && (arms[i].Missing != "") != missing {
			t.Errorf("%+v: %s at %d", c, arm, i)
		}
	}
	warm, cold, dropped := byteArm(toRead, goFile, result.Warm), byteArm(toRead, goFile, result.Cold), byteArm(toRead, goFile, result.Dropped)
	check(study.Choice{}, warm, true, false)
	check(study.Choice{}, cold, true, false)
	check(study.Choice{}, dropped, false, false)
	check(study.Choice{NeverCold: "no"}, cold, true, true)
	check(study.Choice{NeverCold: "no"}, warm, true, false)
	check(study.Choice{Setting: study.Setting{Cache: result.Warm}}, cold, false, false)
	check(study.Choice{Setting: study.Setting{Cache: result.Dropped}, NeverCold: "no"}, dropped, true, true)
	check(study.Choice{Setting: study.Setting{Cache: result.Dropped}}, cold, false, false)
	check(study.Choice{NeverWarm: "no"}, byteArm(toRead, goFile, result.TryCold), true, false)
	check(study.Choice{NeverWarm: "no"}, warm, false, false)
	check(study.Choice{NeverWarm: "no", NeverCold: "no"}, cold, true, true)
	check(study.Choice{Setting: study.Setting{Cache: result.NewFile}}, byteArm(toRead, goFile, result.NewFile), true, true)
}

func TestSystemCallsOfBytesArePredicted(t *testing.T) {
	check := func(w byteWay, n, want int64) {
		t.Helper()
		if got := w.systemCalls(n); got != want {
			t.Errorf("%d bytes by %d: %d calls, want %d", n, w.block, got, want)
		}
	}
	check(byteWay{block: 1}, 100, 100)
	check(byteWay{block: 4096}, 8192, 2)
	check(byteWay{block: 4096}, 8193, 3)
	check(byteWay{block: 4096, toEnd: true}, 8192, 3)
}

// TestYourFileIsTimedBesideTheOthers: a student's functions are an arm, and wrong bytes
// are no trial.
func TestYourFileIsTimedBesideTheOthers(t *testing.T) {
	t.Parallel()
	if why := diy.Missing(); why != "" {
		t.Skip(why)
	}
	right := "../diy/testdata/student.c"
	run := studytest.RunStudy(t, Study(), study.Choice{Preset: study.Quick(), Count: 5003, Rounds: 2, Seed: 3, DIY: right})
	text := studytest.LooksRight(t, Study().Show(study.EvidenceOf(run)))
	for _, want := range []string{"yours", "yours / libc_buffering", "diy_fread of " + right} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	if strings.Contains(text, goFile) || strings.Contains(text, "_IOFBF") {
		t.Errorf("more than the exercise: %s", text)
	}
	source, err := os.ReadFile(right)
	if err != nil {
		t.Fatal(err)
	}
	wrong := filepath.Join(t.TempDir(), "wrong.c")
	if err := os.WriteFile(wrong, []byte(strings.Replace(string(source), "f->end += n;", "f->end += n - 1;", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, d := range []direction{toRead, toWrite} {
		_, err := yourWay(wrong).task(d, 5003, result.Warm).Run(t.Context(), studytest.WorkDir(t), trial.NotCounting, 5003, 5003)
		var content *trial.ContentError
		if errors.As(err, &content) != (d == toWrite) || d == toRead && err != nil {
			t.Errorf("%s: %v", d, err)
		}
	}
}
