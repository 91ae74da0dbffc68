package reads

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/studytest"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

// readsPlant is ten rounds in which the two arms of a claim take these times, make
// these calls and raise these faults, for a MiB.
type readsPlant struct {
	each   time.Duration
	calls  int64
	faults int64
}

func judgeReads(t *testing.T, name string, first, second readsPlant) study.Finding {
	t.Helper()
	c := studytest.ClaimOf(t, Study(), name)
	return c.Find(studytest.Planted(10, func(arm string, round int, m *result.Measurement) {
		p := first
		if arm == c.Takes()[1] {
			p = second
		}
		m.Records, m.Size = 1<<20, 1<<20
		m.Elapsed = p.each + time.Duration(round)
		m.IO = &result.IO{Reads: p.calls}
		m.MinorFaults = p.faults
	}, c.Takes()...))
}

func TestReadsClaimsFollowWhatIsPlanted(t *testing.T) {
	check := func(name string, first, second readsPlant, want study.Verdict) {
		t.Helper()
		if f := judgeReads(t, name, first, second); f.Verdict != want || f.Measured == "" || f.Why == "" {
			t.Errorf("%s: %+v, want %q", name, f, want)
		}
	}
	slow, fast := readsPlant{each: 2 * time.Millisecond}, readsPlant{each: time.Millisecond}
	check("reads-4k", fast, slow, study.Holds)
	check("reads-4k", slow, fast, study.NotHere)
	check("reads-32k", slow, fast, study.Holds)
	check("reads-32k", fast, slow, study.NotHere)
	for _, name := range []string{"reads-buffered", "reads-buffered-cold", "reads-read-ahead"} {
		check(name, slow, fast, study.Holds)
		check(name, fast, fast, study.NotHere)
	}
	check("reads-cpu-cache", slow, fast, study.Holds)
	check("reads-cpu-cache", fast, slow, study.NotHere)
	check("reads-32k-calls", readsPlant{each: 1, calls: 256}, readsPlant{each: 1, calls: 32}, study.Holds)
	check("reads-32k-calls", readsPlant{each: 1, calls: 256}, readsPlant{each: 1, calls: 256}, study.NeverSo)
	check("reads-4k-faults", readsPlant{each: 1, faults: 2}, readsPlant{each: 1, faults: 1}, study.NeverSo)
	check("reads-4k-faults", readsPlant{each: 1, faults: 128}, readsPlant{each: 1, faults: 256}, study.Holds)
}

// TestUncountedCallsProveNothing: not every system counts a process's calls.
func TestUncountedCallsProveNothing(t *testing.T) {
	c := studytest.ClaimOf(t, Study(), "reads-32k-calls")
	e := studytest.Planted(10, func(_ string, _ int, m *result.Measurement) { m.Elapsed = 1 }, c.Takes()...)
	if f := c.Judge(e); f.Verdict != study.NotChecked || f.Measured != "" {
		t.Errorf("%+v", f)
	}
}

// TestEveryReadingSeesTheFile runs all arms, with a size that is no multiple of
// anything.
func TestEveryReadingSeesTheFile(t *testing.T) {
	t.Parallel()
	sizes := []int64{1, 100_003}
	if testing.Short() {
		sizes = sizes[1:]
	}
	for _, size := range sizes {
		s := Study()
		e := study.EvidenceOf(studytest.RunStudy(t, s, study.Choice{Preset: study.Full(), Count: size, Rounds: 1, Buffers: []holdfast.Size{1, 64, 4096, 32 << 10}}))
		if e.Rounds() != 1 {
			t.Errorf("%d bytes: %d rounds", size, e.Rounds())
		}
		studytest.LooksFilled(t, s.Show(e))
		c, ok := e.Cell(warmBlocks(4096))
		calls := study.CallsOf(size, 4096)
		if got := e.Median(c.Name, study.Reads); !ok || got == got && got < float64(calls) {
			t.Errorf("%d bytes by 4096: %v calls, want %d", size, got, calls)
		}
	}
}

func TestReadsShowsWhatIsMissing(t *testing.T) {
	studytest.LooksFilled(t, showReads(studytest.Planted(0, nil)))
	studytest.LooksFilled(t, showReads(studytest.Planted(3, func(_ string, _ int, m *result.Measurement) { m.Elapsed, m.Size = 1000, 1000 }, warmBlocks(4096), readName(scanner, result.Warm))))
}

// TestCallsAreShownByTheBufferAsked: one that is smaller than a record is no other.
func TestCallsAreShownByTheBufferAsked(t *testing.T) {
	e := studytest.Planted(3, func(_ string, _ int, m *result.Measurement) { m.Elapsed, m.Records = 1000, 640 }, warmRecords(16), warmRecords(64))
	for i := range e.Run.Header.Cells {
		e.Run.Header.Cells[i].Group, e.Run.Header.Cells[i].Records = "records, warm", 640
	}
	var rows []string
	for _, row := range callsTable(e).Rows {
		rows = append(rows, strings.Join(row[:4], " "))
	}
	if want := []string{"16B bufio, straight 640 10", "64B bufio, straight 640 10"}; !slices.Equal(rows, want) {
		t.Errorf("the rows are %q, want %q", rows, want)
	}
}

func TestNothingIsColdWhereNothingCanBe(t *testing.T) {
	for _, a := range Study().Arms(study.Choice{NeverCold: "it lives in memory", Count: 100}.OfStudy()) {
		if cold := a.Cache == result.Cold; cold != (a.Missing != "") {
			t.Errorf("%s: missing %q", a.Name, a.Missing)
		}
	}
}

// TestNothingIsReadWhereNothingTellsOfThePageCache, as on Windows and macOS.
func TestNothingIsReadWhereNothingTellsOfThePageCache(t *testing.T) {
	for _, a := range Study().Arms(study.Choice{NeverCold: "not known", NeverWarm: "not known", Count: 100}.OfStudy()) {
		if a.Missing != "not known" {
			t.Errorf("%s: missing %q", a.Name, a.Missing)
		}
	}
}

// TestAReadThatIsWrongIsNoTrial changes one byte of the file, and swaps two.
func TestAReadThatIsWrongIsNoTrial(t *testing.T) {
	text := newReadText(10_000)
	for _, r := range []fileReading{lineReadings(text.size)[0], byteReadings(text.size)[3], computingReadings(text.size)[5], sweepReadings([]holdfast.Size{64}, text.size)[0]} {
		check := func(spoil func([]byte), ok bool) {
			t.Helper()
			path := filepath.Join(t.TempDir(), "file")
			content := make([]byte, text.size)
			text.at(0, content)
			spoil(content)
			if err := os.WriteFile(path, content, 0o666); err != nil {
				t.Fatal(err)
			}
			f, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			seen, err := r.run(f, r.bytes)
			if err != nil {
				t.Fatal(err)
			}
			if same := seen == text.want(r.bytes, r.kind); same != ok {
				t.Errorf("%s: %+v is what was written: %t", r.way, seen, same)
			}
		}
		check(func([]byte) {}, true)
		check(func(b []byte) { b[5000] ^= 1 }, false)
		check(func(b []byte) { b[0], b[1] = b[1], b[0] }, false)
	}
}

func TestAShortFileIsAContentError(t *testing.T) {
	g := studytest.WorkDir(t)
	text := newReadText(10_000)
	task := lineReadings(text.size)[0].task(text)
	task.Make = func(path string) error { return newReadText(5_000).write(path) }
	var wrong *trial.ContentError
	if _, err := task.Run(t.Context(), g, trial.NotCounting, 1, 1); !errors.As(err, &wrong) {
		t.Errorf("a file of half the size: %v", err)
	}
}

// TestBrokenBufferFlipsItsVerdict runs the claim's arms for real, then with a
// buffer of 4 KiB in the arm that is to have 32.
func TestBrokenBufferFlipsItsVerdict(t *testing.T) {
	claim := studytest.ClaimOf(t, Study(), "reads-32k-calls")
	check := func(broken bool, want study.Verdict) {
		t.Helper()
		s := Study()
		s.Arms = func(c study.Choice) []study.Arm {
			arms := readsArms(c)
			at := func(name string) *study.Arm {
				return &arms[slices.IndexFunc(arms, func(a study.Arm) bool { return a.Name == name })]
			}
			if broken {
				at(warmRecords(32 * holdfast.KiB)).Task = at(warmRecords(4 * holdfast.KiB)).Task
			}
			return arms
		}
		e := study.EvidenceOf(studytest.RunStudy(t, s, study.Choice{Preset: study.Quick(), Count: 1 << 20, Rounds: 10, Only: claim.Takes()}))
		if e.Trials(claim.Takes()[0])[0].IO == nil {
			t.Skip("this system does not count a process's calls")
		}
		if f := claim.Find(e); f.Verdict != want {
			t.Errorf("broken %t: %+v, want %q", broken, f, want)
		}
	}
	check(false, study.Holds)
	check(true, study.NeverSo)
}
