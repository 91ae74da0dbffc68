package lines

import (
	"bytes"
	"context"
	"errors"
	"os"
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

// TestLinesHaveThePublishedBytes holds the texts to the figures that were checked
// against the original programs.
func TestLinesHaveThePublishedBytes(t *testing.T) {
	check := func(text lineText, count, want int64) {
		t.Helper()
		if got := text.bytes(count); got != want {
			t.Errorf("%d of %q have %d bytes, want %d", count, text.format, got, want)
		}
	}
	check(lineText{format: unbufferedLine}, 100_000, 4_188_890)
	check(lineText{format: bufferedLine}, 100_000, 3_988_890)
	check(lineText{format: "%d" + valueTail}, valueRecords, valueBytes)
	check(lineText{format: constantLine}, 10_000, 50_000)
}

// made are the first count lines of a text.
func made(text lineText, count int64) []byte {
	var all []byte
	for i := range count {
		all = text.append(all, i)
	}
	return all
}

func TestBytesOfLinesAreThoseThatAreMade(t *testing.T) {
	for _, text := range []lineText{{bufferedLine, 0}, {bufferedLine, 1}, {bufferedLine, 20}, {bufferedLine, 128}, {constantLine, 0}, {constantLine, 9}} {
		for _, count := range []int64{0, 1, 9, 10, 11, 99, 100, 101, 1001} {
			if got, want := text.bytes(count), int64(len(made(text, count))); got != want {
				t.Errorf("%d lines %q of size %d: %d bytes, want %d", count, text.format, text.size, got, want)
			}
		}
	}
	if got := string(made(lineText{bufferedLine, 40}, 1)); got != "Line 0: This is buffered write data....\n" {
		t.Errorf("a padded line is %q", got)
	}
	if got := string(made(lineText{bufferedLine, 8}, 2)); got != "Line 0:\nLine 1:\n" {
		t.Errorf("cut lines are %q", got)
	}
}

func TestLinesAreVerified(t *testing.T) {
	text := lineText{format: bufferedLine}
	lines := func(numbers ...int64) []byte {
		var b []byte
		for _, i := range numbers {
			b = text.append(b, i)
		}
		return b
	}
	check := func(content []byte, writers int, right bool) {
		t.Helper()
		err := text.verify(bytes.NewReader(content), 6, writers)
		var wrong *trial.ContentError
		if right && err != nil || !right && !errors.As(err, &wrong) {
			t.Errorf("%d writers: %v of\n%s", writers, err, content)
		}
	}
	check(lines(0, 1, 2, 3, 4, 5), 1, true)
	check(lines(0, 1, 2, 3, 4, 5), 2, true)
	check(lines(1, 3, 0, 2, 5, 4), 2, true)
	check(lines(1, 0, 2, 3, 4, 5), 1, false)
	check(lines(0, 1, 2, 3, 4), 1, false)
	check(lines(0, 1, 2, 3, 4, 5, 6), 1, false)
	check(lines(0, 1, 2, 2, 4, 5), 1, false)
	check(lines(2, 0, 1, 3, 4, 5), 2, false)
	check(lines(0, 1, 2, 3, 4, 5, 0), 2, false)
	check(lines(0, 1, 2, 3, 4, 5)[:100], 1, false)
	check(nil, 1, false)
}

func TestLinesHaveTheirArms(t *testing.T) {
	names := func(c study.Choice) []string {
		var all []string
		for _, a := range lineArms(c) {
			if slices.Contains(all, a.Name) {
				t.Errorf("%q stands twice", a.Name)
			}
			if a.Time <= 0 || a.Records <= 0 || a.RecordBytes <= 0 || a.Does == "" || !strings.HasPrefix(a.Name, a.Group+"/") {
				t.Errorf("%+v", a)
			}
			all = append(all, a.Name)
		}
		return all
	}
	for _, p := range []study.Preset{study.Quick(), study.Default(), study.Full(), study.Audit()} {
		names(study.Choice{Preset: p})
	}
	chosen := names(study.Choice{
		Preset: study.Quick(), Records: []holdfast.Size{64, 256}, Buffers: []holdfast.Size{0, 512, 512},
		Policies: []holdfast.Policy{holdfast.EachDurable()},
	})
	for _, want := range []string{"equal 64B/write", "equal 256B/bufio 512B", "equal 256B/holdfast buffer=0,sync=each"} {
		if !slices.Contains(chosen, want) {
			t.Errorf("there is no arm %q in %q", want, chosen)
		}
	}
}

func TestCountIsThatOfTheLines(t *testing.T) {
	for _, a := range lineArms(study.Choice{Preset: study.Default(), Count: 700}) {
		switch a.Group {
		case groupPublished, groupEqual, groupPipe, groupSocket, groupForgotten:
			if a.Writers == 1 && a.Records != 700 {
				t.Errorf("%s writes %d records, want 700", a.Name, a.Records)
			}
		}
	}
}

// smallLines has counts that a test can run in no time.
func smallLines() study.Study {
	s := Study()
	s.Arms = func(c study.Choice) []study.Arm {
		n := lineCounts{lines: 300, million: 400, synced: 20, stream: 300, constant: 100, ops: 1, killed: 200}
		return slices.DeleteFunc(n.arms(c), func(a study.Arm) bool {
			return slices.Contains([]string{groupBursty, groupLoaded, groupHTTP, groupExtents, groupTouched}, a.Group)
		})
	}
	return s
}

// TestLinesRun runs every arm for real, and shows what it found.
func TestLinesRun(t *testing.T) {
	run := studytest.RunStudy(t, smallLines(), study.Choice{Preset: study.Quick(), Rounds: 1, Seed: 1})
	e := study.EvidenceOf(run)
	if e.Rounds() != 1 {
		t.Fatalf("%d rounds are whole", e.Rounds())
	}
	for _, arm := range e.Arms() {
		checkCalls(t, e, arm.Name)
	}
	studytest.LooksRight(t, showLines(e))
	for _, c := range lineClaims() {
		if f := c.Find(e); f.Verdict == "" || f.Why == "" {
			t.Errorf("%s: %+v", c.Name, f)
		}
	}
	if got := study.Worst(e.Trials(crashWrite), lostLines); got != 0 {
		t.Errorf("a killed process lost %v lines that it had given to the kernel", got)
	}
	if got := study.Worst(e.Trials(groupForgotten+"/holdfast 4KiB"), lostBytes); got != 0 {
		t.Errorf("a Close lost %v bytes", got)
	}
	for _, c := range e.Arms() {
		if c.Group == groupCrash && isOurs(c.Name) && !keeps(e.Trials(c.Name), c.Policy.Loss().Process) {
			t.Errorf("%s lost more than %v: %v", c.Name, c.Policy.Loss().Process, e.Trials(c.Name)[0].Values)
		}
	}
}

// checkCalls compares the kernel's count of write calls with the predicted count; the runtime may
// have made a few more.
func checkCalls(t *testing.T, e study.Evidence, arm string) {
	t.Helper()
	got, want := e.Median(arm, study.Writes), e.Median(arm, study.Value(predictedCalls))
	if strings.HasPrefix(arm, groupValues+"/holdfast") {
		return // its Close writes both of its buffers in one call, or in two
	}
	if got < want || got > want+10 {
		t.Errorf("%s: %v write calls, %v were predicted", arm, got, want)
	}
}

func TestLinesAreShownWithoutRoundsAndArms(t *testing.T) {
	plant := func(_ string, _ int, m *result.Measurement) { m.Elapsed = time.Second }
	for _, rounds := range []int{0, 1, 3, 10} {
		for _, arms := range [][]string{nil, {publishedUnbuffered}, {publishedUnbuffered, publishedBuffered}, {valuesWrite}, {crashBufio, equalWrite, equalBufio4, equalFormat}, {millionWrite, forgottenBufio, "socket/write"}} {
			e := studytest.Planted(rounds, plant, arms...)
			e.Run.Header.Missing = []result.Missing{{Cell: "socket/write", Why: "no network"}, {Cell: "equal/write, O_DSYNC", Why: "no flag"}}
			studytest.LooksRight(t, showLines(e))
		}
	}
}

// TestWhatIsLeftWithoutFormatting: a round in which nothing is left makes no ratio.
func TestWhatIsLeftWithoutFormatting(t *testing.T) {
	check := func(write, buffered, format time.Duration, want string) {
		t.Helper()
		took := map[string]time.Duration{equalWrite: write, equalBufio4: buffered, equalFormat: format}
		e := studytest.Planted(10, func(arm string, _ int, m *result.Measurement) { m.Elapsed = took[arm] }, equalWrite, equalBufio4, equalFormat)
		if got := orNoise(study.Figure(netRatio(e, equalWrite, equalBufio4), study.Times)); got != want {
			t.Errorf("%v, %v and %v: %q, want %q", write, buffered, format, got, want)
		}
		studytest.LooksRight(t, showLines(e))
	}
	check(1100, 200, 100, "10x")
	check(1100, 100, 100, "the noise is larger than the rest")
	check(1100, 90, 100, "the noise is larger than the rest")
}

// TestNoTimeIsNegative: where the formatting alone took longer, what is left is noise.
func TestNoTimeIsNegative(t *testing.T) {
	took := map[string]time.Duration{equalWrite: 1100, equalBufio4: 90, equalFormat: 100}
	e := studytest.Planted(10, func(arm string, _ int, m *result.Measurement) { m.Elapsed = took[arm] }, equalWrite, equalBufio4, equalFormat)
	var left []string
	for _, row := range lineTimes(e, groupEqual).Rows {
		left = append(left, row[4])
	}
	if want := []string{"1µs", "noise", study.Dash}; !slices.Equal(left, want) {
		t.Errorf("without formatting %q are left, want %q", left, want)
	}
}

// TestBenchmarksCountAsPublished compares the allocations of the published benchmark with the
// published count, in the arm and in a Go benchmark's own count.
func TestBenchmarksCountAsPublished(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates otherwise")
	}
	s := Study()
	s.Arms = func(study.Choice) []study.Arm { return valueArms(3) }
	e := study.EvidenceOf(studytest.RunStudy(t, s, study.Choice{Preset: study.Quick(), Rounds: 1, Seed: 1}))
	for _, c := range valueClaims()[1:] {
		if f := c.Find(e); f.Verdict != study.Holds {
			t.Errorf("%s: %+v", c.Name, f)
		}
	}
	if got := e.Median(valuesWrite, callsPerOp); got < 20_000 || got > 20_010 {
		t.Errorf("%v write calls without a buffer, want 20,000", got)
	}
	if got := e.Median(valuesBufio, callsPerOp); got < 6 || got > 7 {
		t.Errorf("%v write calls with a buffer, want 6", got)
	}
}

func TestPeriodicIsSafeForManyGoroutines(t *testing.T) {
	r := lineRun{text: lineText{format: bufferedLine}, count: 4000, writers: 4, way: goBuffer(512, 50*time.Microsecond)}
	path := t.TempDir() + "/file"
	w, err := r.way.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(r.write(t.Context(), w), w.Close(), r.text.verifyFile(path, r.count, r.writers)); err != nil {
		t.Error(err)
	}
}

func TestKilledWriterRefusesWrongArguments(t *testing.T) {
	check := func(want string, args ...string) {
		t.Helper()
		err := writeUntilKilled(t.Context(), args, nil, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", args, err)
		}
	}
	check("not 1 arguments", "go")
	check("buffer", "go", "buffer=x", "path")
}

func TestFileOfAKilledWriterIsRead(t *testing.T) {
	check := func(content string, lines int64, right bool) {
		t.Helper()
		path := t.TempDir() + "/file"
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		got, size, err := readLines(path)
		if right != (err == nil) || right && (got != lines || size != int64(len(content))) {
			t.Errorf("%d lines in %d bytes, %v of %q", got, size, err, content)
		}
	}
	three := string(made(killedText, 3))
	check("", 0, true)
	check(three, 3, true)
	check(three[:len(three)-1], 2, true)
	check(three[:len(three)-1]+"\x00", 0, false)
	check(three+three, 0, false)
	check(three[1:], 0, false)
}

// TestLossIsWhatWasAcceptedAndIsNotInTheFile: five lines were reported.
func TestLossIsWhatWasAcceptedAndIsNotInTheFile(t *testing.T) {
	start := time.Unix(1000, 0)
	known := []acceptance{{2, start}, {4, start.Add(time.Second)}, {5, start.Add(2 * time.Second)}}
	check := func(lines int64, lost int64, age time.Duration) {
		t.Helper()
		task := trial.Task{Do: func(_ context.Context, c *trial.Clock) error {
			if err := os.WriteFile(c.Path, made(killedText, lines), 0o600); err != nil {
				return err
			}
			return tellLoss(c, known, start.Add(3*time.Second))
		}}
		got := studytest.RunOnce(t, task, 1).Values
		bytes := killedText.bytes(5) - killedText.bytes(5-lost)
		if got[acceptedLines] != 5 || got[lostLines] != float64(lost) || got[lostBytes] != float64(bytes) || got[lostAge] != float64(age) {
			t.Errorf("%d lines in the file: %v, want %d lost, the oldest for %v", lines, got, lost, age)
		}
	}
	check(6, 0, 0)
	check(5, 0, 0)
	check(4, 1, time.Second)
	check(3, 2, 2*time.Second)
	check(0, 5, 3*time.Second)
}

func TestLossIsHeldToItsBound(t *testing.T) {
	check := func(lost float64, age time.Duration, b holdfast.Bound, want bool) {
		t.Helper()
		trials := []result.Trial{
			{Measurement: result.Measurement{Values: map[string]float64{lostBytes: 0, lostAge: 0}}},
			{Measurement: result.Measurement{Values: map[string]float64{lostBytes: lost, lostAge: float64(age)}}},
		}
		if got := keeps(trials, b); got != want {
			t.Errorf("%v bytes of %v under %v: kept is %v", lost, age, b, got)
		}
	}
	bytes := holdfast.Bound{Bytes: 100, Time: holdfast.Unlimited}
	check(100, time.Hour, bytes, true)
	check(101, 0, bytes, false)
	age := holdfast.Bound{Bytes: holdfast.Unlimited, Time: time.Second}
	check(1e9, time.Second+lineFlight, age, true)
	check(1, time.Second+lineFlight+1, age, false)
	check(0, 0, holdfast.Bound{}, true)
	check(1, 0, holdfast.Bound{}, false)
}

func TestSyncWithinARunIsInThePrediction(t *testing.T) {
	check := func(r lineRun, want int64) {
		t.Helper()
		if got, ok := r.calls(); !ok || got != want {
			t.Errorf("%d calls, want %d", got, want)
		}
	}
	text := lineText{bufferedLine, 100}
	check(lineRun{text: text, count: 100, way: goBuffer(1000, 0)}, 10)
	check(lineRun{text: text, count: 100, way: goBuffer(1000, 0), every: 15}, 13)
	check(lineRun{text: text, count: 100, way: study.Way{By: study.Golang}, every: 15}, 100)
	check(lineRun{text: text, count: 101, way: goBuffer(1000, 0)}, 11)
	if _, ok := (lineRun{text: text, count: 9, way: study.Way{By: study.Ours, Policy: holdfast.Durable()}}).calls(); ok {
		t.Error("calls of a group commit are predicted")
	}
}

// The published benchmark, as a Go benchmark.

func BenchmarkWriteNotBuffered(b *testing.B) { benchmarkValues(b, valueRun{by: study.Golang}) }
func BenchmarkWriteBuffered(b *testing.B) {
	benchmarkValues(b, valueRun{by: study.Golang, size: valueBuffer})
}
func BenchmarkWriteNotBufferedKept(b *testing.B) {
	benchmarkValues(b, valueRun{by: study.Golang, kept: true})
}
func BenchmarkWriteBufferedKept(b *testing.B) {
	benchmarkValues(b, valueRun{by: study.Golang, size: valueBuffer, kept: true})
}
func BenchmarkWriteHoldfast(b *testing.B) {
	benchmarkValues(b, valueRun{by: study.Ours, size: valueBuffer})
}

func benchmarkValues(b *testing.B, r valueRun) {
	b.ReportAllocs()
	for b.Loop() {
		if err := r.op(""); err != nil {
			b.Fatal(err)
		}
	}
}
