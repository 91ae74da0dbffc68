package latency

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/studytest"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

// TestLatencyRunsAndShows runs every arm of a quick run, with a few records.
func TestLatencyRunsAndShows(t *testing.T) {
	t.Parallel()
	run := studytest.RunStudy(t, Study(), study.Choice{Preset: study.Quick(), Rounds: 1, Count: 100, Seed: 3})
	e := study.EvidenceOf(run)
	if e.Rounds() != 1 {
		t.Fatalf("%d whole rounds, want 1", e.Rounds())
	}
	for _, a := range e.Arms() {
		tr := e.Trials(a.Name)[0]
		if a.Group == inSight && tr.Values["visible_count"] != float64(a.Records) {
			t.Errorf("%s: %v of %d records were seen", a.Name, tr.Values["visible_count"], a.Records)
		}
		if a.Group == inWrites && tr.Latency.Count != a.Records {
			t.Errorf("%s: %d of %d Writes were timed", a.Name, tr.Latency.Count, a.Records)
		}
	}
	studytest.LooksFilled(t, Study().Show(e))
}

func TestLatencyShowsWhatIsMissing(t *testing.T) {
	e := studytest.Planted(3, func(string, int, *result.Measurement) {}, plainWrite)
	e.Run.Header.Missing = []result.Missing{{Cell: smallSight, Why: "no clock"}}
	s := Study().Show(e)
	studytest.LooksFilled(t, s)
	sight := s.Tables[slices.IndexFunc(s.Tables, func(t study.Table) bool { return strings.HasPrefix(t.Title, "Until another") })]
	if len(sight.Rows) != 1 || sight.Rows[0][1] != study.Dash || !strings.Contains(strings.Join(sight.Notes, " "), "no clock") {
		t.Errorf("%+v", sight)
	}
	studytest.LooksFilled(t, Study().Show(study.EvidenceOf(result.Run{})))
}

func TestLatencyTakesItsSettings(t *testing.T) {
	check := func(c study.Choice, group string, want ...string) {
		t.Helper()
		var got []string
		for _, a := range Study().Arms(c) {
			if a.Group == group {
				got = append(got, study.Short(a.Name))
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%+v: %s: %q, want %q", c, group, got, want)
		}
	}
	one := holdfast.Buffered(16 * holdfast.KiB)
	check(study.Choice{Buffers: []holdfast.Size{8 * holdfast.KiB}}, inWrites, "nothing", "os.File", "bufio 8KiB", "holdfast buffer=8KiB,sync=never")
	check(study.Choice{Policies: []holdfast.Policy{one, one}}, inOpenLoop, "nothing", "os.File", "bufio 64KiB", "holdfast buffer=16KiB,sync=never")
	check(study.Choice{Preset: study.Quick()}, inKilled, "os.File", "bufio 4KiB", "bufio 64KiB", "bufio 256KiB, flushed every 20ms", "holdfast buffer=256KiB,flush=20ms,sync=never")
	for _, a := range Study().Arms(study.Choice{Count: 7}) {
		if a.Group != inMemory && a.Records != 7 {
			t.Errorf("%s: %d records, want 7", a.Name, a.Records)
		}
	}
}

func TestLatencyRefusesWhatItCantMeasure(t *testing.T) {
	check := func(c study.Choice, want string) {
		t.Helper()
		_, _, missing := Study().Matrix(c)
		if !slices.ContainsFunc(missing, func(m result.Missing) bool { return strings.Contains(m.Why, want) }) {
			t.Errorf("%v: %v, want %q", c.Records, missing, want)
		}
	}
	check(study.Choice{Records: []holdfast.Size{19}}, "19B has no room")
	check(study.Choice{Records: []holdfast.Size{study.MaxRecord + 1}}, "too large")
	check(study.Choice{Records: []holdfast.Size{64, 128}}, "give one record size, not 2")
	check(study.Choice{Buffers: []holdfast.Size{holdfast.GiB}}, "of memory")
	if _, _, missing := Study().Matrix(study.Choice{Records: []holdfast.Size{20}}); len(missing) > 0 && noSharedClock() == "" {
		t.Errorf("records of 20 bytes: %v", missing)
	}
}

func TestSinkReportsWhatToExpect(t *testing.T) {
	check := func(o sink, name string, calls int64, wait time.Duration, promise string) {
		t.Helper()
		if got := o.name(); got != name {
			t.Errorf("named %q, want %q", got, name)
		}
		if got := o.calls(1000, 128); got != calls {
			t.Errorf("%s: %d calls for 1000 records, want %d", name, got, calls)
		}
		if got := o.wait(1000, 128); got != wait {
			t.Errorf("%s: a record waits %v, want %v", name, got, wait)
		}
		if got := o.promise().String(); got != promise {
			t.Errorf("%s: %s, want %s", name, got, promise)
		}
	}
	buffer := holdfast.Buffered(4 * holdfast.KiB)
	check(sink{by: byFile}, "os.File", 1000, 0, "nothing")
	check(sink{by: byNothing}, "nothing", 0, 0, "nothing")
	check(sink{byBufio, buffer}, "bufio 4KiB", 32, 6400*time.Microsecond, "up to 4KiB")
	check(sink{byBufio, holdfast.Buffered(100)}, "bufio 100B", 1000, 0, "up to 100B")
	check(sink{byBufio, flushed(holdfast.MiB, time.Millisecond)}, "bufio 1MiB, flushed every 1ms", 1, time.Millisecond, "the last 1ms + one flush, up to 1MiB")
	check(sink{byHoldfast, buffer}, "holdfast buffer=4KiB,sync=never", 32, 6400*time.Microsecond, "up to 8KiB")
	check(sink{byHoldfast, flushed(holdfast.MiB, time.Second)}, "holdfast buffer=1MiB,flush=1s,sync=never", 1, 200*time.Millisecond, "the last 1s + one flush, up to 2MiB")
	check(sink{byHoldfast, holdfast.Durable()}, "holdfast buffer=64KiB,sync=group", 1000, 0, "nothing")
}

func TestSlowestShare(t *testing.T) {
	h := result.NewHistogram()
	for range 99 {
		result.Record(h, 20)
	}
	result.Record(h, 110)
	check := func(h *hdrhistogram.Histogram, part, clock, want float64) {
		t.Helper()
		l, err := result.NewLatency(h, func(int64, float64) bool { return true })
		if got := slowestShare(l, part, clock); err != nil || math.Abs(got-want) > 0.001 {
			t.Errorf("the slowest %v, less %v each: %v, want %v, %v", part, clock, got, want, err)
		}
	}
	check(h, 0.01, 10, 100./(99*10+100))
	check(h, 0.01, 20, 1)
	check(h, 1, 10, 1)
	check(h, 0.02, 10, 110./(99*10+100))
}

func TestStampedRecordReportsWhatIsWrong(t *testing.T) {
	r := newStamped(32)
	r.fill(7, 99)
	if r.wrong(7) != "" || r.at() != 99 {
		t.Errorf("%q, made at %d", r.wrong(7), r.at())
	}
	if got := r.wrong(8); got != "record 7 stands where record 8 is due" {
		t.Error(got)
	}
	for i := range r {
		r[i] ^= 1
		if r.wrong(7) != "record 7 has wrong bytes" {
			t.Errorf("byte %d may be anything", i)
		}
		r[i] ^= 1
	}
}

// stampedFile makes a file of whole records and some bytes more.
func stampedFile(t *testing.T, numbers []int64, more int) string {
	t.Helper()
	var all []byte
	for _, n := range numbers {
		all = append(all, newStamped(32).fill(n, 0)...)
	}
	all = append(all, newStamped(32).fill(int64(len(numbers)), 0)[:more]...)
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, all, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestContentThatIsNotAsWrittenFailsTheTrial(t *testing.T) {
	check := func(numbers []int64, more int, ok bool) {
		t.Helper()
		err := checkStamped(stampedFile(t, numbers, more), 3, 32)
		var content *trial.ContentError
		if ok != (err == nil) || !ok && !errors.As(err, &content) {
			t.Errorf("records %v and %d bytes: %v", numbers, more, err)
		}
	}
	check([]int64{0, 1, 2}, 0, true)
	check([]int64{0, 1, 2}, 1, false)
	check([]int64{0, 1}, 0, false)
	check([]int64{0, 1, 2, 3}, 0, false)
	check([]int64{0, 2, 1}, 0, false)
	check([]int64{0, 1, 1}, 0, false)
}

func TestLossIsWhatWasAcceptedAndIsNotThere(t *testing.T) {
	accepted := []time.Duration{10, 20, 30, 40, 50}
	check := func(numbers []int64, more int, want killedLoss) {
		t.Helper()
		got, err := lossOf(stampedFile(t, numbers, more), accepted, 32)
		if err != nil || got != want {
			t.Errorf("%d records and %d bytes: %+v, want %+v, %v", len(numbers), more, got, want, err)
		}
	}
	check([]int64{0, 1, 2, 3, 4}, 0, killedLoss{accepted: 5, readable: 5})
	check([]int64{0, 1, 2, 3, 4, 5}, 3, killedLoss{accepted: 5, readable: 6})
	check([]int64{0, 1}, 5, killedLoss{accepted: 5, readable: 2, lost: 3, lostBytes: 91, age: 20})
	check(nil, 0, killedLoss{accepted: 5, lost: 5, lostBytes: 160, age: 40})
	if _, err := lossOf(stampedFile(t, []int64{0, 2}, 0), accepted, 32); err == nil {
		t.Error("a file without its record 1 has lost nothing")
	}
}

// TestKilledLossIsWithinThePromise kills real processes.
func TestKilledLossIsWithinThePromise(t *testing.T) {
	t.Parallel()
	needSharedClock(t)
	for _, o := range []sink{
		{by: byFile}, {byBufio, holdfast.Buffered(4 * holdfast.KiB)}, {byBufio, flushed(64*holdfast.KiB, time.Millisecond)},
		{byHoldfast, holdfast.Buffered(4 * holdfast.KiB)}, {byHoldfast, holdfast.Durable()},
	} {
		m, err := o.killedWrites(100, 64).Run(t.Context(), studytest.WorkDir(t), trial.NotCounting, 100, 6400)
		if err != nil {
			t.Errorf("%s: %v", o.name(), err)
			continue
		}
		if lost, most := m.Values["lost_bytes"], o.promise().Bytes; lost > float64(most) || m.Values["accepted_records"] < 100 {
			t.Errorf("%s: %v, want at most %v lost", o.name(), m.Values, most)
		}
	}
}

func TestKilledWriterThatFailsIsReported(t *testing.T) {
	needSharedClock(t)
	g := studytest.WorkDir(t)
	_, err := sink{by: "hope"}.killedWrites(100, 64).Run(t.Context(), g, trial.NotCounting, 100, 6400)
	if err == nil || !strings.Contains(err.Error(), `after 0 of`) || !strings.Contains(err.Error(), `nothing writes by "hope"`) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	second := g.Second
	g.Second = nil
	if _, err := (sink{by: byFile}).killedWrites(100, 64).Run(ctx, g, trial.NotCounting, 100, 6400); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("without a second process: %v", err)
	}
	g.Second = second
	cancel()
	if _, err := (sink{by: byFile}).killedWrites(100, 64).Run(ctx, g, trial.NotCounting, 100, 6400); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// pieces returns what it holds a piece at a time, with an empty read after each.
type pieces struct {
	all   [][]byte
	pause bool
	over  chan struct{} // closed at the end
}

func (p *pieces) Read(b []byte) (int, error) {
	if p.pause = !p.pause; p.pause || len(p.all) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.all[0])
	if p.all = p.all[1:]; len(p.all) == 0 {
		close(p.over)
	}
	return n, nil
}

func TestWatchSeesRecordsThatComeInPieces(t *testing.T) {
	needSharedClock(t)
	var all []byte
	for i := range int64(10) {
		all = append(all, newStamped(32).fill(i, 0)...)
	}
	check := func(all []byte, size int, records int64, wrong string) {
		t.Helper()
		p := &pieces{all: slices.Collect(slices.Chunk(all, size)), over: make(chan struct{})}
		s, err := watch(p, 32, p.over)
		if err != nil || s.Records != records || s.Wrong != wrong || s.Delays.Count != records {
			t.Errorf("pieces of %d: %+v, want %d records, %v", size, s, records, err)
		}
	}
	for _, size := range []int{1, 31, 32, 33, 320} {
		check(all, size, 10, "")
	}
	check(all[:100], 7, 3, "")
	check(all[32:], 50, 0, "record 1 stands where record 0 is due")
	torn := bytes.Clone(all)
	torn[70] = '!'
	check(torn, 50, 2, "record 2 has wrong bytes")
}

func needSharedClock(t *testing.T) {
	t.Helper()
	if why := noSharedClock(); why != "" {
		t.Skip(why)
	}
}

// inTrial has a clock for do.
func inTrial(t *testing.T, g *trial.WorkDir, do func(context.Context, *trial.Clock) error) error {
	t.Helper()
	_, err := trial.Task{Do: do}.Run(t.Context(), g, trial.NotCounting, 1, 1)
	return err
}

// TestKilledWatcherFailsTheTrial: the writer stops, and the error says what happened.
func TestKilledWatcherFailsTheTrial(t *testing.T) {
	needSharedClock(t)
	err := inTrial(t, studytest.WorkDir(t), func(ctx context.Context, c *trial.Clock) error {
		f, err := os.Create(c.Path)
		if err != nil {
			return err
		}
		defer f.Close()
		w, err := startWatcher(ctx, c, 64)
		if err != nil {
			return err
		}
		if err := w.Cmd.Process.Kill(); err != nil {
			return err
		}
		<-w.ctx.Done()
		const hours = 1 << 30 // of records, if nothing stopped the writer
		_, err = w.end(writeByBeat(w.ctx, f, hours, 64, result.NewHistogram()))
		if w.Cmd.ProcessState == nil {
			t.Error("the process was not waited for")
		}
		return err
	})
	if !errors.Is(err, errWatcherEnded) || !strings.Contains(err.Error(), "killed") {
		t.Error(err)
	}
}

// TestWatcherThatDoesNotStartFailsTheTrial: its own words are in the error.
func TestWatcherThatDoesNotStartFailsTheTrial(t *testing.T) {
	needSharedClock(t)
	err := inTrial(t, studytest.WorkDir(t), func(ctx context.Context, c *trial.Clock) error {
		_, err := startWatcher(ctx, c, 64)
		return err
	})
	if !errors.Is(err, errWatcherEnded) || !strings.Contains(err.Error(), "no such file") {
		t.Error(err)
	}
}

// A troubled file calls trouble at its third Write.
type troubled struct {
	*os.File
	writes  int
	trouble func() error
}

func (f *troubled) Write(p []byte) (int, error) {
	if f.writes++; f.writes == 3 {
		if err := f.trouble(); err != nil {
			return 0, err
		}
	}
	return f.File.Write(p)
}

// TestTroubleInTheMiddleLeavesNoWatcher: a failed Write, or a user that ends it all.
func TestTroubleInTheMiddleLeavesNoWatcher(t *testing.T) {
	needSharedClock(t)
	full, g := errors.New("the disk is full"), studytest.WorkDir(t)
	check := func(trouble func(cancel func()) error, want error) {
		t.Helper()
		before := descriptors(t)
		err := inTrial(t, g, func(ctx context.Context, c *trial.Clock) error {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			file, err := os.Create(c.Path)
			if err != nil {
				return err
			}
			f := &troubled{File: file, trouble: func() error { return trouble(cancel) }}
			_, err = watched(ctx, c, f, 1<<30, 64)
			return err
		})
		if !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
		if after := descriptors(t); after > before {
			t.Errorf("%d descriptors are left", after-before)
		}
	}
	check(func(func()) error { return full }, full)
	check(func(cancel func()) error { cancel(); return nil }, context.Canceled)
}

// descriptors returns how many are open; 0 where the system has no list of them.
func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(list)
}

// TestSecondProcessesLeaveNothing: neither a process nor a descriptor.
func TestSecondProcessesLeaveNothing(t *testing.T) {
	needSharedClock(t)
	g := studytest.WorkDir(t)
	o := sink{byBufio, holdfast.Buffered(4 * holdfast.KiB)}
	run := func() {
		if _, err := o.watchedWrites(20, 64).Run(t.Context(), g, trial.NotCounting, 20, 1280); err != nil {
			t.Fatal(err)
		}
		if _, err := o.killedWrites(20, 64).Run(t.Context(), g, trial.NotCounting, 20, 1280); err != nil {
			t.Fatal(err)
		}
	}
	run()
	before := descriptors(t)
	run()
	if after := descriptors(t); after > before { // the collector may close some of earlier tests
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}

func TestRolesRefuseWhatTheyCantDo(t *testing.T) {
	check := func(args ...string) {
		t.Helper()
		if err := study.RunRole(t.Context(), Roles, args, strings.NewReader(""), io.Discard); err == nil {
			t.Errorf("%q was done", args)
		}
	}
	path := filepath.Join(t.TempDir(), "file")
	check(watchRole)
	check(watchRole, path, "64")
	check(watchRole, t.TempDir(), "-1")
	check(stampRole, path)
	check(stampRole, path, byFile, "nonsense", "64")
	check(stampRole, path, byFile, "sync=never", "8")
}

// TestOpenLoopGivesUpWhatIsDue: records that were not written count with their wait.
func TestOpenLoopGivesUpWhatIsDue(t *testing.T) {
	h := result.NewHistogram()
	b := beat{time.Now().Add(-time.Second), 100 * time.Millisecond}
	b.giveUp(h, 8, 20)
	if h.TotalCount() != 12 || h.Max() < int64(150*time.Millisecond) || h.Min() > 1 {
		t.Errorf("%d records waited from %d to %d ns", h.TotalCount(), h.Min(), h.Max())
	}
}

func TestBeatEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := newBeat(1).await(ctx, 1000); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
