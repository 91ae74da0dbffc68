package result_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/machine"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// enough is a rule for percentiles: ten samples beyond them.
func enough(n int64, p float64) bool { return float64(n)*min(p, 1-p) > 9.99 }

// planted returns a run of two cells and two rounds with every field set.
func planted(t *testing.T) result.Run {
	t.Helper()
	run := result.Run{Header: result.Header{
		SchemaVersion: result.SchemaVersion, Program: "holdfast test", Study: "policy", Question: "what is it worth",
		StartedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Dir: "/data", WorkDir: "holdfast-bench-1", Seed: 42,
		Plan:              result.Plan{Preset: "quick", Rounds: 2, Width: 0.05, Estimate: time.Second, Limit: 2 * time.Second, Size: 1 << 20, Room: 1 << 10},
		Machine:           []machine.Fact{{Name: "CPUs", Value: "2", Source: "asked"}},
		SystemCallsUnseen: "no tracefs",
		Cells: []result.Cell{
			{Name: "a", Policy: holdfast.Unbuffered(), RecordBytes: 128, Writers: 1, Records: 10, LatencyStride: 31},
			{Name: "b", Twin: "a", Policy: holdfast.Durable(), RecordBytes: 128, Writers: 64, Records: 64, LatencyStride: 1, Rate: 1000, Cache: result.Cold, Steady: true},
		},
	}}
	for round := range 3 {
		for i, cell := range []string{"b", "a"} {
			run.Trials = append(run.Trials, plantedTrial(t, cell, round, i+1))
		}
	}
	run.End = &result.End{State: result.Complete, Rounds: 2, Elapsed: 3 * time.Second, Width: 0.04, ClockJump: time.Hour}
	return run
}

func plantedTrial(t *testing.T, cell string, round, position int) *result.Trial {
	t.Helper()
	h := result.NewHistogram()
	for i := range 1000 {
		result.Record(h, time.Duration(i+1)*time.Microsecond)
	}
	latency, err := result.NewLatency(h, enough)
	if err != nil {
		t.Fatal(err)
	}
	busy := time.Second
	return &result.Trial{Cell: cell, Round: round, Position: position, StartNs: 7, Measurement: result.Measurement{
		Records: 10, Size: 1280, Elapsed: 15, Open: 1, Write: 2, Flush: 3, Sync: 4, Close: 5,
		Usage:       result.Usage{User: 6, System: 7, VoluntarySwitches: 8, ForcedSwitches: 9, MinorFaults: 10, MajorFaults: 11, BlocksIn: 12, BlocksOut: 13},
		SystemCalls: &result.SystemCalls{Total: 3, Writes: 2, Syncs: 1, Source: "tracepoints", Records: 5},
		Before:      &result.Residency{Pages: 4, Resident: 3, Source: "asked"}, Service: &latency, Unserved: 2,
		Samples:  []result.Sample{{At: 1, Size: 2, Dirty: 3, Writeback: 4, Throttle: 5}},
		Activity: &machine.Activity{CPUBusy: &busy},
		Writer:   result.WriterCalls{Writes: 10, Flushes: 2, Syncs: 1, SystemCalls: 3, Waits: 4},
		Latency:  latency, Allocations: 8, Allocated: 9,
	}}
}

// write writes the run to a new file and returns its text.
func write(t *testing.T, run result.Run) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "results.jsonl")
	f, err := result.Create(path, run.Header)
	if err != nil {
		t.Fatal(err)
	}
	for _, control := range run.Controls {
		if err := f.Control(control); err != nil {
			t.Fatal(err)
		}
	}
	for _, trial := range run.Trials {
		if err := f.Trial(*trial); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(*run.End); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var controls = []result.Control{{Round: 1, Write: 2, Fdatasync: 3}, {Round: 2, Write: 5, Fdatasync: 6}}

func TestReadReturnsWhatWasWritten(t *testing.T) {
	want := planted(t)
	want.Controls = controls
	got, err := result.Read(strings.NewReader(write(t, want)))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v\nwant %+v", got, want)
	}
	if got.Mark() != "" || !got.Complete() {
		t.Errorf("a complete run is marked %q", got.Mark())
	}
}

func TestKeysCarryUnitsAndPolicyIsText(t *testing.T) {
	text := write(t, planted(t))
	for _, want := range []string{`"schema_version":3`, `"elapsed_ns":15`, `"size_bytes":1280`, `"policy":"buffer=64KiB,sync=group"`, `"user_cpu_ns":6`, `"p99_ns":`} {
		if !strings.Contains(text, want) {
			t.Errorf("the file lacks %s", want)
		}
	}
	if strings.Contains(text, "p999_ns") {
		t.Error("a p99.9 of 1000 samples is in the file")
	}
}

// TestEveryPrefixIsReadable cuts the file in many places after its header.
func TestEveryPrefixIsReadable(t *testing.T) {
	isolate.Once(t)
	run := planted(t)
	text := write(t, run)
	head := strings.Index(text, "\n") + 1
	for cut := head; cut < len(text); cut += 7 {
		got, err := result.Read(strings.NewReader(text[:cut]))
		if err != nil {
			t.Fatalf("cut at byte %d: %v", cut, err)
		}
		whole := strings.HasSuffix(text[:cut], "\n")
		if got.Torn == whole {
			t.Fatalf("cut at byte %d: torn is %v", cut, got.Torn)
		}
		if got.Mark() == "" || got.Complete() {
			t.Fatalf("cut at byte %d: not marked", cut)
		}
		if want := strings.Count(text[head:cut], "\n"); len(got.Trials) != want {
			t.Fatalf("cut at byte %d: %d trials, want %d", cut, len(got.Trials), want)
		}
	}
}

// TestVersionOneIsReadable reads a file that a release with version 1 wrote.
func TestVersionOneIsReadable(t *testing.T) {
	text, err := os.ReadFile("testdata/version1.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	run, err := result.Read(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if run.Header.SchemaVersion != 1 || run.Rounds() != 2 || !run.Complete() || len(run.Trials) != 9 {
		t.Errorf("version %d, %d rounds, %d trials, %q", run.Header.SchemaVersion, run.Rounds(), len(run.Trials), run.Mark())
	}
	if first := run.Trials[0]; first.System != 3978*time.Microsecond || first.SystemCalls.Syncs != 25 || first.Latency.P50 == 0 {
		t.Errorf("the first trial is %+v", first)
	}
	path := filepath.Join(t.TempDir(), "results.jsonl")
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := result.Resume(path, result.Resumption{}, nil); !errors.Is(err, result.ErrOlder) {
		t.Errorf("Resume: %v", err)
	}
	if after, _ := os.ReadFile(path); !bytes.Equal(after, text) {
		t.Error("Resume has changed a file that it refused")
	}
}

// TestResumeGoesOnAfterEveryCut cuts a file at many places after its header, and finishes it: the
// complete lines stay, in order.
func TestResumeGoesOnAfterEveryCut(t *testing.T) {
	run := planted(t)
	text := write(t, run)
	path := filepath.Join(t.TempDir(), "results.jsonl")
	for cut := strings.Index(text, "\n") + 1; cut <= len(text); cut += 97 {
		if err := os.WriteFile(path, []byte(text[:cut]), 0o644); err != nil {
			t.Fatal(err)
		}
		before, file, err := result.Resume(path, result.Resumption{Program: "again", StartedAt: run.Header.StartedAt}, nil)
		if err != nil {
			t.Fatalf("cut at byte %d: %v", cut, err)
		}
		if err := errors.Join(file.Trial(*run.Trials[0]), file.Close(*run.End)); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		after, err := result.Read(f)
		f.Close()
		if err != nil || after.Torn || len(after.Resumed) != 1 || after.Resumed[0].Program != "again" || after.End == nil {
			t.Fatalf("cut at byte %d: %+v, %v", cut, after.Resumed, err)
		}
		if want := append(slices.Clone(before.Trials), run.Trials[0]); !reflect.DeepEqual(after.Trials, want) {
			t.Fatalf("cut at byte %d: %d trials, want %d", cut, len(after.Trials), len(want))
		}
	}
}

// TestResumeLeavesABrokenHeaderAlone cuts a file within its first line, the line feed included.
func TestResumeLeavesABrokenHeaderAlone(t *testing.T) {
	text := write(t, planted(t))
	text = text[:strings.Index(text, "\n")]
	path := filepath.Join(t.TempDir(), "results.jsonl")
	for cut := range len(text) + 1 {
		if err := os.WriteFile(path, []byte(text[:cut]), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, _, err := result.Resume(path, result.Resumption{}, nil); !errors.Is(err, result.ErrNotResults) && !errors.Is(err, result.ErrNoHeader) {
			t.Fatalf("cut at byte %d: %v", cut, err)
		}
		if after, _ := os.ReadFile(path); string(after) != text[:cut] {
			t.Fatalf("cut at byte %d: the file holds %.40q", cut, after)
		}
	}
}

// TestNULsAtTheEndAreATornLine plants the file that a power cut leaves if it had grown: zeros behind
// the last bytes that reached the disk.
func TestNULsAtTheEndAreATornLine(t *testing.T) {
	isolate.Once(t)
	text := write(t, planted(t))
	head := strings.Index(text, "\n") + 1
	path := filepath.Join(t.TempDir(), "results.jsonl")
	for _, nuls := range []int{1, 511, 4096} {
		for cut := head; cut <= len(text); cut += 97 {
			planted := text[:cut] + strings.Repeat("\x00", nuls)
			got, err := result.Read(strings.NewReader(planted))
			whole := strings.Count(text[:cut], "\n")
			if err != nil || !got.Torn || got.TornAt != whole+1 || got.Complete() {
				t.Fatalf("%d NULs from byte %d: torn %v at line %d, want %d; %v", nuls, cut, got.Torn, got.TornAt, whole+1, err)
			}
			if err := os.WriteFile(path, []byte(planted), 0o644); err != nil {
				t.Fatal(err)
			}
			_, file, err := result.Resume(path, result.Resumption{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := file.Close(result.End{}); err != nil {
				t.Fatal(err)
			}
			if after, _ := os.ReadFile(path); bytes.ContainsRune(after, 0) || bytes.Count(after, []byte("\n")) != whole+2 {
				t.Fatalf("%d NULs from byte %d: %d lines after it went on", nuls, cut, bytes.Count(after, []byte("\n")))
			}
		}
	}
}

func TestResumptionEndsTheEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.jsonl")
	if err := os.WriteFile(path, []byte(write(t, planted(t))), 0o644); err != nil {
		t.Fatal(err)
	}
	_, goesOn, err := result.Resume(path, result.Resumption{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer goesOn.Close(result.End{})
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if run, err := result.Read(f); err != nil || run.End != nil || run.Complete() || run.Mark() == "" {
		t.Errorf("a run that goes on has the end %+v, %v", run.End, err)
	}
}

func TestResumeLeavesOtherFilesAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mine")
	if err := os.WriteFile(path, []byte("mine\nno line feed"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := result.Resume(path, result.Resumption{}, nil); !errors.Is(err, result.ErrNotResults) {
		t.Errorf("Resume: %v", err)
	}
	if text, _ := os.ReadFile(path); string(text) != "mine\nno line feed" {
		t.Errorf("the file holds %q", text)
	}
}

func TestOutOfTimeIsCompleteWithEnoughRounds(t *testing.T) {
	check := func(rounds int, complete bool) {
		t.Helper()
		run := planted(t)
		run.Header.Plan.Rounds = rounds
		run.End.State, run.End.Reason = result.OutOfTime, "45s were up"
		if run.Complete() != complete || (run.Mark() == "") != complete {
			t.Errorf("2 of %d rounds: complete is %v, %q", rounds, run.Complete(), run.Mark())
		}
	}
	check(2, true)
	check(3, false)
}

func TestCacheHolds(t *testing.T) {
	check := func(c result.Cache, pages, resident int64, want bool) {
		t.Helper()
		if got := c.Holds(result.Residency{Pages: pages, Resident: resident}); got != want {
			t.Errorf("%q with %d of %d pages: %v", c, resident, pages, got)
		}
	}
	check(result.Warm, 257, 257, true)
	check(result.Warm, 257, 256, false)
	check(result.TryCold, 257, 256, true)
	for _, c := range []result.Cache{result.Cold, result.Dropped, result.Remount} {
		check(c, 257, 0, true)
		check(c, 257, 1, false)
		check(c, 0, 0, false) // not known
	}
	check(result.Warm, 0, 0, false)
	check(result.NewFile, 0, 0, true)
}

func TestOnlyWholeRoundsCount(t *testing.T) {
	run := planted(t)
	check := func(trials, rounds int) {
		t.Helper()
		run := run
		run.Trials = run.Trials[:trials]
		if run.Rounds() != rounds || len(run.Rounded("a")) != rounds || len(run.Rounded("b")) != rounds {
			t.Errorf("%d trials: %d rounds, %d of a, %d of b; want %d", trials, run.Rounds(), len(run.Rounded("a")), len(run.Rounded("b")), rounds)
		}
	}
	check(0, 0)
	check(2, 0) // the warm-up
	check(3, 0)
	check(4, 1)
	check(5, 1)
	check(6, 2)
}

// TestPacedCellsAreNotInEveryRound: a round is complete with the cells that run in it.
func TestPacedCellsAreNotInEveryRound(t *testing.T) {
	run := result.Run{Header: result.Header{Cells: []result.Cell{{Name: "a"}, {Name: "p", Every: 2}}}}
	for round, cells := range []string{"ap", "ap", "a", "pa", "a", "a"} {
		for _, c := range cells {
			run.Trials = append(run.Trials, &result.Trial{Cell: string(c), Round: round})
		}
	}
	if run.Rounds() != 4 || len(run.Rounded("a")) != 4 || len(run.Rounded("p")) != 2 { // the fifth lacks its trial of p
		t.Errorf("%d rounds, %d trials of a, %d of p", run.Rounds(), len(run.Rounded("a")), len(run.Rounded("p")))
	}
}

func TestReadRefuses(t *testing.T) {
	good := write(t, planted(t))
	head := good[:strings.Index(good, "\n")+1]
	check := func(text string, line int, sentence string) {
		t.Helper()
		_, err := result.Read(strings.NewReader(text))
		var format *result.FormatError
		if !errors.As(err, &format) || format.Line != line || !strings.Contains(err.Error(), sentence) {
			t.Errorf("%.40q…: %v; want line %d: …%s", text, err, line, sentence)
		}
	}
	check("", 1, "not a results file")
	check("\n", 1, "not a results file")
	check("hello\n", 1, "not a results file")
	check(`{"kind":"trial"}`+"\n", 1, "not a results file")
	check(`{"kind":"header"}`+"\n", 1, "not a results file")
	check(strings.Replace(good, `"schema_version":3`, `"schema_version":4`, 1), 1, "newer holdfast")
	check(head[:len(head)-1], 1, "ends within its first line")
	check(head[:len(head)/2], 1, "ends within its first line")
	check("\x00\x00\x00", 1, "ends within its first line")
	check(strings.Repeat("\x00", len(head))+good[len(head):], 1, "not a results file")
	check(strings.Replace(good, `{"kind":"trial"`, strings.Repeat("\x00", 15), 1), 2, "NUL bytes")
	check(head+head, 2, "second header")
	check(head+"{\n", 2, "unexpected end")
	check(head+`{"kind":"trial","cell":"c"}`+"\n", 2, `"c" is not in the header`)
	check(head+`{"kind":"trial","cell":"a"}`+"\n", 2, "0 records")
	check(head+`{"kind":"control","round":1,"empty_loop_ns":1,"write_ns":1,"fdatasync_ns":-1}`+"\n", 2, "the control of round 1 has a time that is not positive")
	check(strings.Replace(good, "sync=group", "sync=later", 1), 1, `"later"`)
}

func TestReadPassesOverUnknownKindsAndKeys(t *testing.T) {
	text := write(t, planted(t))
	head := strings.Index(text, "\n") + 1
	text = text[:head] + `{"kind":"weather","rain":true}` + "\n" + strings.ReplaceAll(text[head:], `"round":`, `"moon":1,"round":`)
	run, err := result.Read(strings.NewReader(text))
	if err != nil || len(run.Trials) != 6 {
		t.Errorf("%d trials, %v", len(run.Trials), err)
	}
}

func TestCreateLeavesAnExistingFileAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mine")
	if err := os.WriteFile(path, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := result.Create(path, result.Header{}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("Create: %v", err)
	}
	if text, _ := os.ReadFile(path); string(text) != "mine" {
		t.Errorf("the file holds %q", text)
	}
}

func ofWrite(t *result.Trial) *result.Latency { return &t.Latency }

func TestMergedLatencySupportsMore(t *testing.T) {
	run := planted(t)
	one, err := result.MergeLatency([]result.Trial{*run.Trials[0]}, ofWrite, enough)
	if err != nil || one.Count != 1000 || one.P99 == 0 || one.P999 != 0 {
		t.Errorf("one trial: %+v, %v", one, err)
	}
	ten := make([]result.Trial, 0, 10)
	for range 10 {
		ten = append(ten, *run.Trials[0])
	}
	all, err := result.MergeLatency(ten, ofWrite, enough)
	if err != nil || all.Count != 10000 || all.P999 == 0 {
		t.Errorf("ten trials: %+v, %v", all, err)
	}
	if all.P50 != one.P50 || all.Max != one.Max {
		t.Errorf("p50 %v and %v, max %v and %v", one.P50, all.P50, one.Max, all.Max)
	}
}

func TestWriteIsWhatReadReads(t *testing.T) {
	run := planted(t)
	run.Controls = controls
	again := &result.Trial{Cell: run.Trials[0].Cell, Round: 0, Position: 1, Measurement: run.Trials[0].Measurement}
	run.Trials = append(run.Trials, again, run.Trials[1])
	run.Resumed = []result.Resumption{{Program: "second"}, {Program: "third, which did nothing"}}
	for _, e := range []*result.End{nil, {State: result.Complete, Rounds: 1}} {
		run.End = e
		var b bytes.Buffer
		if err := result.Write(&b, run); err != nil {
			t.Fatal(err)
		}
		text := b.String()
		got, err := result.Read(&b)
		if err != nil || !reflect.DeepEqual(got, run) {
			t.Errorf("%v: %+v, want %+v", err, got, run)
		}
		// The second process begins at its round 0.
		lines := strings.Split(text, "\n")
		at := slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, `"second"`) })
		if want := len(run.Trials) + len(run.Controls) - 1; at != want {
			t.Errorf("the resumption is line %d, want %d", at+1, want+1)
		}
	}
}

func TestReadRefusesMoreTrialsThanAReportHolds(t *testing.T) {
	isolate.Once(t)
	var b strings.Builder
	b.WriteString(`{"kind":"header","schema_version":2,"cells":[{"name":"c"}]}` + "\n")
	for range result.MostTrials + 1 {
		b.WriteString(`{"kind":"trial","cell":"c","round":1,"records":1,"elapsed_ns":1}` + "\n")
	}
	_, err := result.Read(strings.NewReader(b.String()))
	var format *result.FormatError
	if !errors.Is(err, result.ErrTooMany) || !errors.As(err, &format) || format.Line != result.MostTrials+2 {
		t.Errorf("%v", err)
	}
}

// TestARoundOfRestingCellsIsComplete: cells that rest are in no later round, in the file as in memory, and a round without the cells
// that are awake is not complete.
func TestARoundOfRestingCellsIsComplete(t *testing.T) {
	run := planted(t) // rounds 1 and 2 of a and b
	run.Rests = []result.Rest{{Round: 2, Cells: []string{"b"}}}
	run.Trials = append(run.Trials, plantedTrial(t, "a", 3, 1), plantedTrial(t, "a", 4, 1), plantedTrial(t, "b", 4, 2), plantedTrial(t, "a", 5, 1))
	var b bytes.Buffer
	if err := result.Write(&b, run); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	if at, last := strings.Index(text, `{"kind":"rest","round":2,"cells":["b"]}`), strings.LastIndex(text, `"round":2`); at < 0 || at > strings.Index(text, `"round":3`) || last < at {
		t.Errorf("the rest is not between the rounds 2 and 3:\n%s", text)
	}
	got, err := result.Read(&b)
	if err != nil || !reflect.DeepEqual(got, run) {
		t.Fatalf("%v: %+v, want %+v", err, got, run)
	}
	rounds := func(cell string) (all []int) {
		for _, trial := range got.Rounded(cell) {
			all = append(all, trial.Round)
		}
		return all
	}
	if n := got.Rounds(); n != 4 || !slices.Equal(rounds("a"), []int{1, 2, 3, 5}) || !slices.Equal(rounds("b"), []int{1, 2}) {
		t.Errorf("%d rounds, a in %v, b in %v", n, rounds("a"), rounds("b"))
	}
	if got.Resting("b", 2) || !got.Resting("b", 3) || got.Resting("a", 3) {
		t.Errorf("b rests in 2: %v, in 3: %v, a in 3: %v", got.Resting("b", 2), got.Resting("b", 3), got.Resting("a", 3))
	}

	for _, line := range []string{`{"kind":"rest","round":2,"cells":["c"]}`, `{"kind":"rest","cells":["b"]}`} {
		if _, err := result.Read(strings.NewReader(text + line + "\n")); err == nil {
			t.Errorf("%s is read", line)
		}
	}

	placed := got
	placed.Header.Cells = slices.Clone(got.Header.Cells)
	for i, c := range placed.Header.Cells {
		placed.Header.Cells[i] = c.Placed("xfs")
	}
	placed.Rests, placed.Trials = []result.Rest{{Round: 2, Cells: []string{placed.Header.Cells[1].Name}}}, nil
	for _, trial := range got.Trials {
		named := *trial
		named.Cell = result.Named("xfs", trial.Cell)
		placed.Trials = append(placed.Trials, &named)
	}
	if on := placed.On("xfs"); on.Rounds() != 4 || !on.Resting("b", 3) {
		t.Errorf("on xfs %d rounds, b rests: %v", on.Rounds(), on.Resting("b", 3))
	}
}
