package trial

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/internal/isolate"
	"github.com/holdfast-go/holdfast/internal/sys"
)

func newWorkDir(t *testing.T) *WorkDir {
	t.Helper()
	g, err := OpenWorkDir(t.TempDir(), true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	return g
}

func isEmpty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		t.Errorf("%s is left in %s", e.Name(), dir)
	}
}

func TestAppendMeasuresEveryKindOfPolicy(t *testing.T) {
	for _, text := range []string{"buffer=0", "buffer=4KiB", "buffer=64KiB,flush=1ms", "buffer=64KiB,flush=100ms,sync=1s", "buffer=64KiB,sync=close", "buffer=64KiB,sync=group", "buffer=0,sync=each"} {
		for _, writers := range []int{1, 3} {
			t.Run(fmt.Sprintf("%s/writers=%d", text, writers), func(t *testing.T) {
				policy, err := holdfast.ParsePolicy(text)
				if err != nil {
					t.Fatal(err)
				}
				g := newWorkDir(t)
				m, err := Append{Policy: policy, RecordBytes: 100, Writers: writers, Records: 100, Stride: 1}.Run(t.Context(), g)
				if err != nil {
					t.Fatal(err)
				}
				stages := m.Open + m.Write + m.Flush + m.Sync + m.Close
				if m.Elapsed != stages || m.Elapsed <= 0 {
					t.Errorf("elapsed %v, the stages together %v", m.Elapsed, stages)
				}
				if m.Records != 100 || m.Size != 10000 || m.Writer.Writes != 100 || m.Latency.Count != 100 {
					t.Errorf("%+v", m)
				}
				isEmpty(t, g.Dir())
			})
		}
	}
}

func TestTurnsAreTrialsOfTheirOwn(t *testing.T) {
	g := newWorkDir(t)
	m, err := Append{Policy: holdfast.Buffered(4096), RecordBytes: 100, Writers: 3, Records: 100, Stride: 1, Turns: 3}.Run(t.Context(), g)
	if err != nil {
		t.Fatal(err)
	}
	sum := time.Duration(0)
	for _, one := range m.Turns {
		sum += one
	}
	if len(m.Turns) != 3 || sum != m.Write || m.Elapsed != m.Open+m.Write+m.Flush+m.Sync+m.Close {
		t.Errorf("turns %v, write %v of %v", m.Turns, m.Write, m.Elapsed)
	}
	if m.Records != 300 || m.Size != 30000 || m.Writer.Writes != 300 || m.Latency.Count != 300 || g.files != 3 {
		t.Errorf("%d files, %+v", g.files, m)
	}
	isEmpty(t, g.Dir())
}

func TestLatencyIsTimedByStride(t *testing.T) {
	m, err := Append{RecordBytes: 16, Writers: 2, Records: 2 * 100, Stride: 31}.Run(t.Context(), newWorkDir(t))
	if err != nil || m.Latency.Count != 2*3 {
		t.Errorf("%d of 2 x 100 Writes were timed, %v", m.Latency.Count, err)
	}
}

func TestSharesAddUp(t *testing.T) {
	check := func(records int64, writers int, want ...int64) {
		t.Helper()
		if got := (Append{Records: records, Writers: writers}).shares(); !slices.Equal(got, want) {
			t.Errorf("%d records by %d: %v, want %v", records, writers, got, want)
		}
	}
	check(6, 3, 2, 2, 2)
	check(7, 3, 3, 2, 2)
	check(2, 3, 1, 1, 0)
}

func TestCancelledTrialLeavesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	g := newWorkDir(t)
	_, err := Append{RecordBytes: 16, Writers: 4, Records: 1 << 40, Stride: 31}.Run(ctx, g)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Run: %v", err)
	}
	isEmpty(t, g.Dir())
}

func TestFailedOpenLeavesNoWriterBehind(t *testing.T) {
	g := newWorkDir(t)
	g.Close()
	before := runtime.NumGoroutine()
	if _, err := (Append{RecordBytes: 16, Writers: 64, Records: 64, Stride: 1}).Run(t.Context(), g); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Run: %v", err)
	}
	for start := time.Now(); runtime.NumGoroutine() > before; runtime.Gosched() { // the result is known before the goroutine has ended
		if time.Since(start) > time.Minute {
			t.Fatalf("%d goroutines before, %d after", before, runtime.NumGoroutine())
		}
	}
}

func TestWorkDirIsFreshAndGoesAway(t *testing.T) {
	parent := t.TempDir()
	mine := filepath.Join(parent, "mine")
	if err := os.WriteFile(mine, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	g, err := OpenWorkDir(parent, true)
	if err != nil {
		t.Fatal(err)
	}
	if g.Dir() == parent || filepath.Dir(g.Dir()) != parent {
		t.Errorf("the work directory of %s is %s", parent, g.Dir())
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	entries, _ := os.ReadDir(parent)
	if len(entries) != 1 || entries[0].Name() != "mine" {
		t.Errorf("left: %v", entries)
	}
}

func TestWorkDirNeverTakesAnExistingName(t *testing.T) {
	g := newWorkDir(t)
	isolate.Symlink(t, filepath.Join(t.TempDir(), "elsewhere"), filepath.Join(g.Dir(), "1"))
	if _, err := g.fresh(); !errors.Is(err, fs.ErrExist) {
		t.Errorf("fresh: %v", err)
	}
}

func TestWorkDirRefuses(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenWorkDir(file, true); !errors.Is(err, ErrNotDir) {
		t.Errorf("a file: %v", err)
	}
	if _, err := OpenWorkDir(filepath.Join(dir, "none"), true); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no directory: %v", err)
	}
	var room *RoomError
	if err := newWorkDir(t).Need(1 << 62); !errors.As(err, &room) || room.Need != 1<<62 || room.Free <= 0 {
		t.Errorf("need of 4 EiB: %v", err)
	}
	if err := newWorkDir(t).Need(1); err != nil {
		t.Errorf("need of a byte: %v", err)
	}
	if err := newWorkDir(t).NeedFiles(1); err != nil {
		t.Errorf("need of a file: %v", err)
	}
	free, err := sys.FreeFiles(t.TempDir())
	if errors.Is(err, errors.ErrUnsupported) {
		return
	}
	if err := newWorkDir(t).NeedFiles(math.MaxInt64); !errors.As(err, &room) || !room.Files || room.Need != math.MaxInt64 {
		t.Errorf("need of so many files, with room for %d: %v", free, err)
	}
}

func TestWorkDirRefusesMemory(t *testing.T) {
	const shm = "/dev/shm"
	if info, err := os.Stat(shm); err != nil || !info.IsDir() || runtime.GOOS != "linux" {
		t.Skip("there is no", shm, "here")
	}
	g, err := OpenWorkDir(shm, false)
	if err == nil {
		g.Close()
	}
	if !errors.Is(err, ErrMemoryOnly) {
		t.Errorf("OpenWorkDir: %v", err)
	}
}

// A recorder watches a matrix of cells without work.
type recorder struct {
	steps  []Step
	trials []result.Trial
	fail   error // from Done
}

func (r *recorder) Begin(s Step) { r.steps = append(r.steps, s) }
func (r *recorder) Done(t result.Trial) error {
	r.trials = append(r.trials, t)
	return r.fail
}

// order returns the names of the cells by round.
func (r *recorder) order() map[int][]string {
	order := map[int][]string{}
	for _, t := range r.trials {
		order[t.Round] = append(order[t.Round], t.Cell)
	}
	return order
}

// idle returns a matrix of cells that take the time given.
func idle(cells, rounds int, each time.Duration, ran func(cell string, counted bool)) Matrix {
	m := Matrix{Rounds: rounds, Seed: 7}
	for i := range cells {
		name := fmt.Sprint("cell ", i)
		m.Cells = append(m.Cells, Cell{
			Cell: result.Cell{Name: name}, Estimate: each,
			Run: func(_ context.Context, _ *WorkDir, counted bool) (result.Measurement, error) {
				ran(name, counted)
				<-time.After(each) // by the clock of synctest
				return result.Measurement{Records: 1, Elapsed: each}, nil
			},
		})
	}
	return m
}

func TestEveryRoundRunsEveryCellOnceInANewOrder(t *testing.T) {
	InFakeTime(t, func(t *testing.T) {
		var r recorder
		m := idle(9, 10, time.Second, func(string, bool) {})
		if rounds, stop, err := m.Run(t.Context(), nil, &r); rounds != 10 || stop != AllRounds || err != nil {
			t.Fatalf("%d rounds, %q, %v", rounds, stop, err)
		}
		orders := map[string]bool{}
		for round, names := range r.order() {
			orders[strings.Join(names, ",")] = true
			slices.Sort(names)
			if len(slices.Compact(names)) != 9 {
				t.Errorf("round %d ran %v", round, names)
			}
		}
		if len(orders) != 11 {
			t.Errorf("11 rounds have %d orders", len(orders))
		}
	})
}

func TestOrderComesFromTheSeedAlone(t *testing.T) {
	orders := func(seed uint64) (all [][]int) {
		m := Matrix{Cells: make([]Cell, 8), Seed: seed}
		for round := range 5 {
			all = append(all, m.Order(round))
		}
		return all
	}
	if !reflect.DeepEqual(orders(1), orders(1)) {
		t.Error("one seed, two orders")
	}
	if reflect.DeepEqual(orders(1), orders(2)) {
		t.Error("two seeds, one order")
	}
	// A later release must not run an earlier release's seed in another order.
	if got, want := (Matrix{Cells: make([]Cell, 8), Seed: 1}).Order(1), []int{3, 6, 2, 1, 4, 5, 7, 0}; !slices.Equal(got, want) {
		t.Errorf("order of seed 1, round 1: %v, want %v", got, want)
	}
}

func TestEveryCellComesFirstAboutEquallyOften(t *testing.T) {
	m := Matrix{Cells: make([]Cell, 4), Seed: 3}
	first := make([]int, 4)
	for round := range 4000 {
		first[m.Order(round)[0]]++
	}
	for i, n := range first {
		if n < 850 || n > 1150 {
			t.Errorf("cell %d comes first in %d of 4000 rounds", i, n)
		}
	}
}

func TestOnlyRoundZeroIsAWarmUp(t *testing.T) {
	InFakeTime(t, func(t *testing.T) {
		var counted []bool
		m := idle(2, 2, time.Second, func(_ string, c bool) { counted = append(counted, c) })
		if _, _, err := m.Run(t.Context(), nil, &recorder{}); err != nil {
			t.Fatal(err)
		}
		if want := []bool{true, true, false, false, false, false}; !slices.Equal(counted, want) {
			t.Errorf("warm-ups: %v", counted)
		}
	})
}

func TestStepsTellTheTimeLeft(t *testing.T) {
	InFakeTime(t, func(t *testing.T) {
		var r recorder
		m := idle(2, 3, time.Second, func(string, bool) {})
		if _, _, err := m.Run(t.Context(), nil, &r); err != nil {
			t.Fatal(err)
		}
		for i, s := range r.steps {
			if want := time.Duration(8-i) * time.Second; s.Left != want || s.Trial != i+1 || s.Trials != 8 || s.Round != i/2 {
				t.Errorf("step %d: %+v, want %v left", i, s, want)
			}
		}
	})
}

func TestLimitEndsAfterAWholeRound(t *testing.T) {
	InFakeTime(t, func(t *testing.T) {
		check := func(limit time.Duration, want int, why Stop) {
			t.Helper()
			m := idle(2, 10, time.Second, func(string, bool) {})
			m.Limit = limit
			var r recorder
			rounds, stop, err := m.Run(t.Context(), nil, &r)
			if rounds != want || stop != why || err != nil || len(r.trials) != 2*(want+1) {
				t.Errorf("limit %v: %d rounds, %q, %d trials, %v; want %d, %q", limit, rounds, stop, len(r.trials), err, want, why)
			}
		}
		check(time.Nanosecond, 1, AtLimit)
		check(8*time.Second, 3, AtLimit)
		check(9*time.Second, 3, AtLimit)
		check(10*time.Second, 4, AtLimit)
		check(time.Hour, 10, AllRounds)
	})
}

// TestStopRule: rounds go on until they are settled, however many were planned, or
// until the time is up. The rule is called only after complete rounds.
func TestStopRule(t *testing.T) {
	InFakeTime(t, func(t *testing.T) {
		check := func(settledAfter int, limit time.Duration, want int, why Stop) {
			t.Helper()
			m := idle(2, 10, time.Second, func(string, bool) {})
			m.Limit = limit
			var r recorder
			m.Settled = func() bool {
				if len(r.trials)%2 != 0 {
					t.Errorf("asked after %d trials", len(r.trials))
				}
				return len(r.trials)/2-1 >= settledAfter
			}
			rounds, stop, err := m.Run(t.Context(), nil, &r)
			if rounds != want || stop != why || err != nil {
				t.Errorf("settled after %d, limit %v: %d rounds, %q, %v; want %d, %q", settledAfter, limit, rounds, stop, err, want, why)
			}
		}
		check(3, time.Hour, 3, IsSettled)
		check(40, time.Hour, 40, IsSettled)
		check(41, time.Hour, 43, IsSettled) // with many rounds the rule is not called after each
		check(1<<30, 0, 1000, AllRounds)
		check(40, 60*time.Second, 29, AtLimit)
		check(0, time.Nanosecond, 1, IsSettled)
	})
}

func TestRunGoesOnAfterTheRoundsOfAnEarlierPart(t *testing.T) {
	InFakeTime(t, func(t *testing.T) {
		var r recorder
		m := idle(3, 10, time.Second, func(string, bool) {})
		m.Whole, m.Before = 6, 7 // the seventh was interrupted
		rounds, stop, err := m.Run(t.Context(), nil, &r)
		if rounds != 10 || stop != AllRounds || err != nil {
			t.Errorf("%d rounds, %q, %v", rounds, stop, err)
		}
		var begun []int
		for _, trial := range r.trials {
			if !slices.Contains(begun, trial.Round) {
				begun = append(begun, trial.Round)
			}
		}
		if !slices.Equal(begun, []int{0, 8, 9, 10, 11}) {
			t.Errorf("ran rounds %v", begun)
		}
		if first := r.steps[0]; first.Trials != 5*3 || first.Left != 15*time.Second {
			t.Errorf("the first step is %+v", first)
		}
		if second, last := r.steps[3], r.steps[14]; second.Round != 7 || last.Round != 10 {
			t.Errorf("got rounds %d to %d", second.Round, last.Round)
		}
	})
}

func TestRunStopsWhenCancelled(t *testing.T) {
	InFakeTime(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		ran := 0
		m := idle(2, 10, time.Second, func(string, bool) {
			if ran++; ran == 5 {
				cancel()
			}
		})
		rounds, _, err := m.Run(ctx, nil, &recorder{})
		if rounds != 1 || !errors.Is(err, context.Canceled) || ran != 5 {
			t.Errorf("%d rounds, %d trials, %v", rounds, ran, err)
		}
	})
}

func TestRunStopsAtTheFirstError(t *testing.T) {
	InFakeTime(t, func(t *testing.T) {
		full := errors.New("disk full")
		m := idle(2, 10, time.Second, func(string, bool) {})
		if _, _, err := m.Run(t.Context(), nil, &recorder{fail: full}); !errors.Is(err, full) {
			t.Errorf("Run: %v", err)
		}
		m.Cells[1].Run = func(context.Context, *WorkDir, bool) (result.Measurement, error) { return result.Measurement{}, full }
		_, _, err := m.Run(t.Context(), nil, &recorder{})
		if !errors.Is(err, full) || !strings.Contains(err.Error(), "cell 1, round 0") {
			t.Errorf("Run: %v", err)
		}
	})
}

// TestRestingCellsRunNoMore: the others get the time and the bytes that are left.
func TestRestingCellsRunNoMore(t *testing.T) {
	InFakeTime(t, func(t *testing.T) {
		before := 0
		run := func(limit time.Duration, mostRounds int) (r recorder, rounds int, stop Stop) {
			m := idle(4, 10, time.Second, func(string, bool) {})
			for i := range m.Cells {
				m.Cells[i].Records, m.Cells[i].RecordBytes = 1000, 100
			}
			m.Limit, m.MostRounds, m.Whole, m.Before = limit, mostRounds, before, before
			m.Settled = func() bool { return false }
			m.Resting = func(cell string, round int) bool { return cell != "cell 2" && round > 3 }
			rounds, stop, err := m.Run(t.Context(), nil, &r)
			if err != nil {
				t.Fatal(err)
			}
			return r, rounds, stop
		}
		// Warm-up and three rounds take 16 s, each further round one.
		r, rounds, stop := run(26*time.Second, 0)
		if rounds != 13 || stop != AtLimit {
			t.Errorf("%d rounds, %q", rounds, stop)
		}
		for round, names := range r.order() {
			if want := 4; round > 3 {
				if !slices.Equal(names, []string{"cell 2"}) {
					t.Errorf("round %d runs %v", round, names)
				}
			} else if len(names) != want {
				t.Errorf("round %d runs %v", round, names)
			}
		}
		// Four rounds of bytes are three rounds and four of a fourth.
		if _, rounds, stop := run(time.Hour, 4); rounds != 7 || stop != AllRounds {
			t.Errorf("with four rounds' bytes %d rounds, %q", rounds, stop)
		}
		// A run that is continued knows that cells rested in two of its five rounds.
		before = 5
		if r, rounds, stop := run(time.Hour, 4); rounds != 7 || stop != AllRounds || !slices.Equal(r.order()[7], []string{"cell 2"}) {
			t.Errorf("continued after round 5: %d rounds, %q; they ran %v", rounds, stop, r.order())
		}
	})
}
