package prove

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/racetest"
)

// fewer is how many times fewer states there are where each takes longer, or time is short.
func fewer() int {
	if testing.Short() || racetest.Enabled {
		return 20
	}
	return 1
}

// TestNoStateInMemoryBreaksAPromise judges at least a million states of all workloads, each under some of its generated
// policies, and the controls.
func TestNoStateInMemoryBreaksAPromise(t *testing.T) {
	var states int64
	began := time.Now()
	for _, c := range (Options{Workloads: Workloads(), Seed: rand.Uint64()}).Cells(Memory) {
		w, p, seed := c.Workload, c.Policy, rand.Uint64()
		v := &Verdict{Policy: p, Loss: w.lossOf(p), Seed: seed}
		number := 8000
		if len(w.Targets(p)) < 10 && w.Targets(p)[0].Object == false {
			number = 80_000 // all that is pending is at one file's end
		}
		if err := v.exploreRuns(w, number/fewer(), recording{records: 1200 / min(4, fewer())}, time.Time{}); err != nil {
			t.Errorf("%s under %v, seed %d: %v", w.Name, p, seed, err)
		}
		states += v.Tally.States
		switch liar := w.Control != "" && w.Control != "correct"; {
		case liar && v.Failure == nil:
			t.Errorf("%s was not caught, seed %d", w.Name, seed)
		case !liar && v.Failure != nil:
			v.Failure.Shrink()
			t.Errorf("%s under %v, seed %d: %s: %s %+v", w.Name, p, seed, v.Failure.Violation.Rule, v.Failure.Words, v.Failure.State)
		}
		t.Logf("%s %v %d %v", w.Name, p, v.Tally.States, time.Since(began))
	}
	t.Logf("%d states in %v", states, time.Since(began))
	if states < 1_000_000/int64(fewer()) {
		t.Errorf("only %d states", states)
	}
}

// TestTimeThatIsOverLeavesVerdictsOut gives no time at all: the controls are judged, and some cells more.
func TestTimeThatIsOverLeavesVerdictsOut(t *testing.T) {
	o := Options{Policies: []holdfast.Policy{holdfast.Unbuffered(), holdfast.Durable()}, Workloads: Workloads(), Levels: []Level{Memory}, States: 100, Time: 1}
	verdicts, err := Prove(t.Context(), o)
	if err != nil || len(verdicts) != len(o.Cells(Memory)) {
		t.Fatal(len(verdicts), err)
	}
	judged := 0
	for i, v := range verdicts {
		switch left := v.Verdict == NoTime; {
		case v.Control != "" && v.Verdict != Held, left != (v.Tally.States == 0):
			t.Errorf("%d, %s: %s with %d states", i, v.Workload, v.Verdict, v.Tally.States)
		case v.Control == "" && !left:
			judged++
		}
	}
	if judged != atOnce {
		t.Errorf("%d cells are judged, want %d", judged, atOnce)
	}
}

// TestAnHourUnderEachPeriodicPolicy runs in fake time, so that what is lost is judged by its age.
func TestAnHourUnderEachPeriodicPolicy(t *testing.T) {
	hour := time.Hour / time.Duration(fewer())
	for _, p := range []holdfast.Policy{
		holdfast.Periodic(time.Second),
		{Buffer: 64 * holdfast.KiB, FlushEvery: 100 * time.Millisecond, Sync: holdfast.SyncEvery(time.Second)},
		{Buffer: 4 * holdfast.KiB, FlushBytes: holdfast.KiB, Sync: holdfast.SyncEvery(10 * time.Second)},
		{Buffer: 4 * holdfast.KiB, FlushEvery: 50 * time.Millisecond},
	} {
		for _, w := range []*Workload{Find("writer"), Find("append")} {
			synctest.Test(t, func(t *testing.T) {
				v := &Verdict{Policy: p, Loss: w.lossOf(p), Seed: rand.Uint64()}
				began := time.Now()
				how := recording{fake: true, delay: 2 * time.Millisecond,
					until: func() bool { return time.Since(began) > hour },
					pause: func(r *rand.Rand) { time.Sleep(time.Duration(r.IntN(3000)) * time.Millisecond) }}
				if err := v.exploreRuns(w, 8_000/fewer(), how, time.Time{}); err != nil {
					t.Error(err)
				}
				if v.Failure != nil {
					v.Failure.Shrink()
					t.Errorf("%s under %v, seed %d: %s: %s", w.Name, p, v.Seed, v.Failure.Violation.Rule, v.Failure.Words)
				}
				if v.Tally.Most.Age == 0 {
					t.Error("nothing was lost, so that no age was judged")
				}
				t.Logf("%-8s %v: %d states, %v, oldest lost %v", w.Name, p, v.Tally.States, time.Since(began), v.Tally.Most.Age)
			})
		}
	}
}

// TestFailureIsReplayedExactly holds that what is kept of a failure fails again, in the same way,
// and that it was made small.
func TestFailureIsReplayedExactly(t *testing.T) {
	for _, name := range []string{"liar-no-sync", "liar-no-directory", "liar-name-first", "liar-memory"} {
		w := Find(name)
		p := holdfast.EachDurable()
		v := &Verdict{Policy: p, Loss: w.lossOf(p), Seed: 3}
		if err := v.inMemory(w, 5000, time.Hour); err != nil || v.Failure == nil {
			t.Fatal(name, err)
		}
		v.Failure.Shrink()
		var kept Failure
		text, err := json.Marshal(v.Failure)
		if err = errors.Join(err, json.Unmarshal(text, &kept)); err != nil {
			t.Fatal(err)
		}
		if got, err := kept.Replay(); err != nil || !reflect.DeepEqual(got, v.Failure.Violation) {
			t.Errorf("%s: replayed %v, %v, want %v", name, got, err, v.Failure.Violation)
		}
		if n := len(kept.Log.Entries) - kept.Log.Start; n > 12 {
			t.Errorf("%s: %d entries are kept", name, n)
		}
		if s := kept.State; s.Mask != 0 && s.Mask&(s.Mask-1) != 0 || s.Rest {
			t.Errorf("%s: more is pending than need be: %+v", name, s)
		}
		t.Log(kept.Words)
	}
}

// TestExplanationNamesTheEntries holds the words of a known failure.
func TestExplanationNamesTheEntries(t *testing.T) {
	l := &Log{Sector: 512, Start: 2}
	note := func(kind NoteKind, n uint64) Entry {
		return Entry{Op: Noted, Note: &Note{Kind: kind, N: n, Bytes: 100}}
	}
	record := func(n uint64) Entry {
		return Entry{Op: Write, File: 7, Offset: int64(n) * 100, Data: Record{N: n, Size: 100}.Append(nil)}
	}
	l.Entries = []Entry{{Op: Name, Edits: []Edit{{Root, "log", 7}}}, {Op: Flush, UpTo: 1},
		note(Begun, 2), record(0), {Op: Flush, File: 7, UpTo: 4}, note(Durable, 1), record(1), note(Durable, 2), note(Begun, 3)}
	x := &explorer{targets: []Target{{Path: "log"}}, loss: holdfast.Durable().Loss()}
	_, f := x.explore(l, 100, 1)
	if f == nil {
		t.Fatal("nothing was found")
	}
	f.Targets, f.Loss = x.targets, x.loss
	f.Shrink()
	const want = "log: record 1 of writer 0 was acknowledged, and only those up to 0 are there. record 1 was acknowledged at log entry 7; " +
		"its write at 6 was pending; no flush that covers it came between; the crash came before entry 8"
	if f.Words != want {
		t.Errorf("%s\nwant\n%s", f.Words, want)
	}
	if want := (State{Crash: Power, Position: 8}); f.State != want {
		t.Errorf("%+v, want %+v", f.State, want)
	}
}

// TestPiecesAreTheBytesOfAState compares what a level gets that makes images with what the
// explorer judges.
func TestPiecesAreTheBytesOfAState(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	l := &Log{Sector: 64}
	for i := range 60 {
		data := make([]byte, 1+r.IntN(300))
		for k := range data {
			data[k] = byte(i + 1)
		}
		l.Entries = append(l.Entries, Entry{Op: Write, File: 5, Offset: int64(r.IntN(500)), Data: data})
	}
	d := newDisk(l, nil)
	var seen []State
	torn := 0
	for d.position < len(l.Entries) {
		d.advance()
		d.states(r, 40, &seen, func(s *State) {
			var made []byte
			l.Pieces(d.pending, s, func(at int64, data []byte) {
				made = (&Entry{Op: Write, Offset: at, Data: data}).onto(made)
			})
			if s.Tear != 0 {
				torn++
			}
			if want := d.content(d.file(5), s); !slices.Equal(made, want) {
				t.Fatalf("%+v: %d bytes, want %d", *s, len(made), len(want))
			}
		})
	}
	if torn == 0 {
		t.Error("no write was torn")
	}
}

// TestCellsShareTheTime lets each of some cells take all that it may, in fake time. Together they take
// what there is, and none gets less than the first. The last may be fewer than can be worked on at a time.
func TestCellsShareTheTime(t *testing.T) {
	for cells, first := range map[int]time.Duration{1: 12 * time.Second, 3: 12 * time.Second, 4: 12 * time.Second, 5: 6 * time.Second, 8: 6 * time.Second, 11: 4 * time.Second, 12: 4 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			const all, together = 12 * time.Second, 4
			began := time.Now()
			var mu sync.Mutex
			begun, ended, most, least := 0, 0, 0, all
			Share(cells, together, began.Add(all), func(_ int, long time.Duration) bool {
				mu.Lock()
				begun++
				most, least = max(most, begun-ended), min(least, long)
				mu.Unlock()
				time.Sleep(long)
				mu.Lock()
				defer mu.Unlock()
				ended++
				return true
			})
			if took := time.Since(began); took != all || least != first || ended != cells || most != min(cells, together) {
				t.Errorf("%d of %d cells in %v, %d at a time, the shortest %v", ended, cells, took, most, least)
			}
		})
	}
	calls := 0
	Share(9, 1, time.Now(), func(int, time.Duration) bool { calls++; return calls < 3 })
	if calls != 3 {
		t.Errorf("%d calls, and the third stopped them", calls)
	}
}
