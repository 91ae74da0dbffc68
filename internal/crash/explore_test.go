//go:build go1.25

package crash

import (
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
)

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

// TestPiecesAreTheBytesOfAState compares the pieces for a level that makes images with the
// explorer's state.
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
	same := func(cells int) []int { return slices.Repeat([]int{1}, cells) }
	for cells, first := range map[int]time.Duration{1: 12 * time.Second, 3: 12 * time.Second, 4: 12 * time.Second, 5: 6 * time.Second, 8: 6 * time.Second, 11: 4 * time.Second, 12: 4 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			const all, together = 12 * time.Second, 4
			began := time.Now()
			var mu sync.Mutex
			begun, ended, most, least := 0, 0, 0, all
			Share(same(cells), together, began.Add(all), func(_ int, long time.Duration) bool {
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
	Share(same(9), 1, time.Now(), func(int, time.Duration) bool { calls++; return calls < 3 })
	if calls != 3 {
		t.Errorf("%d calls, and the third stopped them", calls)
	}
	var longs []time.Duration
	synctest.Test(t, func(t *testing.T) {
		Share([]int{1, 4, 1}, 1, time.Now().Add(6*time.Second), func(_ int, long time.Duration) bool {
			longs = append(longs, long)
			time.Sleep(long)
			return true
		})
	})
	if !slices.Equal(longs, []time.Duration{time.Second, 4 * time.Second, time.Second}) {
		t.Errorf("weights of 1, 4 and 1 got %v of 6 s", longs)
	}
}

// TestLevelsShareTheTime: a cell of level fault takes three times as long as one of level kill, and one of level hostile twice as long. Levels that
// are not run get nothing.
func TestLevelsShareTheTime(t *testing.T) {
	w := &Workload{Name: "whole", Policies: []holdfast.Policy{holdfast.Durable(), holdfast.Unbuffered()},
		Targets: func(holdfast.Policy) []Target { return []Target{{Path: "a", Object: true, Whole: true}} }}
	check := func(want map[Level]float64, levels ...Level) {
		t.Helper()
		if got := (Options{Levels: levels, Workloads: []*Workload{w}}).parts(); !maps.Equal(got, want) {
			t.Errorf("%v share %v, want %v", levels, got, want)
		}
	}
	check(map[Level]float64{Memory: 2, Kill: 0.5, Fault: 1.5, Hostile: 1, PowerCut: 1}, Levels...)
	check(map[Level]float64{Kill: 0.5, Fault: 1.5}, Kill, Fault)
	check(map[Level]float64{Memory: 2, Hostile: 1}, Memory, Hostile)
	generated := *w
	generated.Policies = nil
	for level, want := range map[Level]int{Memory: 4, Kill: 3, Fault: 2, Hostile: 3} {
		o := Options{Levels: Levels, Workloads: []*Workload{&generated}, Time: time.Second}
		if n := len(o.Cells(level)); n != want {
			t.Errorf("level %s has %d policies of a workload, want %d", level, n, want)
		}
	}
}
