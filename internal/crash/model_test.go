package crash

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// left are the trees that a power cut behind a log may leave, in words.
func left(l *Log) (all []string) {
	d := newDisk(l, nil)
	for d.position < len(l.Entries) {
		d.advance()
	}
	seen := map[string]bool{}
	var states []State
	d.states(rand.New(rand.NewPCG(1, 1)), 4000, &states, func(s *State) {
		if s.Crash != Power {
			return
		}
		t := d.tree(s)
		words := slices.Clone(t.Dirs)
		for _, name := range slices.Sorted(maps.Keys(t.Files)) {
			words = append(words, fmt.Sprintf("%s=%s", name, t.Files[name]))
		}
		seen[strings.Join(words, " ")] = true
	})
	return slices.Sorted(maps.Keys(seen))
}

// TestPowerCutLeavesWhatPosixAllows lists all that is left behind short logs of files.
func TestPowerCutLeavesWhatPosixAllows(t *testing.T) {
	const a, b, dir, sub = 2, 3, DirBit | 4, DirBit | 5
	name := func(edits ...Edit) Entry { return Entry{Op: Name, Edits: edits} }
	write := func(file uint64, at int64, data string) Entry {
		return Entry{Op: Write, File: file, Offset: at, Data: []byte(data)}
	}
	sync := Entry{Op: Flush, UpTo: -1}
	of := func(file uint64) Entry { e := sync; e.File = file; return e }
	check := func(what string, entries []Entry, want ...string) {
		t.Helper()
		for i := range entries {
			if entries[i].UpTo < 0 {
				entries[i].UpTo = i
			}
		}
		slices.Sort(want)
		if got := left(&Log{Sector: 4, Entries: entries}); !slices.Equal(got, want) {
			t.Errorf("%s: %q is left, want %q", what, got, want)
		}
	}
	check("a file", []Entry{name(Edit{Root, "f", a}), write(a, 0, "12")}, "", "f=", "f=12")
	check("a synced file without its name", []Entry{name(Edit{Root, "f", a}), write(a, 0, "12"), of(a)}, "", "f=12")
	check("a synced name without its bytes", []Entry{name(Edit{Root, "f", a}), write(a, 0, "12"), of(Root)}, "f=", "f=12")
	check("both", []Entry{name(Edit{Root, "f", a}), write(a, 0, "12"), of(a), of(Root)}, "f=12")
	check("bytes behind the sync", []Entry{name(Edit{Root, "f", a}), write(a, 0, "12"), of(a), of(Root), write(a, 2, "34"), write(a, 4, "56")},
		"f=12", "f=1234", "f=12\x00\x0056", "f=123456")
	check("a torn write", []Entry{name(Edit{Root, "f", a}), of(Root), write(a, 0, "12345678")}, "f=", "f=1234", "f=\x00\x00\x00\x005678", "f=12345678")
	check("a truncation", []Entry{name(Edit{Root, "f", a}), write(a, 0, "1234"), of(a), of(Root), {Op: Resize, File: a, Offset: 1}, {Op: Resize, File: a, Offset: 2}},
		"f=1234", "f=1", "f=1\x00", "f=12")
	there := []Entry{name(Edit{Root, "f", a}), name(Edit{Root, "t", b}), name(Edit{Root, "d", dir}), write(a, 0, "old"), write(b, 0, "new"), sync}
	behind := func(more ...Entry) []Entry { return append(slices.Clone(there), more...) }
	check("a rename is whole", behind(name(Edit{Root, "t", 0}, Edit{Root, "f", b})), "d f=old t=new", "d f=new")
	check("a synced rename", behind(name(Edit{Root, "t", 0}, Edit{Root, "f", b}), of(Root)), "d f=new")
	check("the sync of the file that was renamed", behind(name(Edit{Root, "t", 0}, Edit{Root, "f", b}), of(b)), "d f=old t=new", "d f=new")
	check("a rename to another directory", behind(name(Edit{Root, "t", 0}, Edit{dir, "f", b})), "d f=old t=new", "d d/f=new f=old")
	check("and the sync of one of them", behind(name(Edit{Root, "t", 0}, Edit{dir, "f", b}), of(dir)), "d d/f=new f=old")
	check("a link", behind(name(Edit{Root, "l", a})), "d f=old t=new", "d f=old l=old t=new")
	check("a removal", behind(name(Edit{Root, "f", 0})), "d f=old t=new", "d t=new")
	check("an exchange", behind(name(Edit{Root, "f", b}, Edit{Root, "t", a})), "d f=old t=new", "d f=new t=old")
	check("a name in a directory without one", behind(name(Edit{dir, "s", sub}), name(Edit{sub, "g", a}), of(sub)), "d f=old t=new", "d d/s d/s/g=old f=old t=new")
	check("names of one file in their order", []Entry{name(Edit{Root, "t", a}), name(Edit{Root, "t", 0}, Edit{Root, "f", a})}, "", "t=", "f=")
}

// TestASectorComesWithWhatAFailedSyncLeftInIt: the page cache still has the lost bytes, unless they were written over, and the next write to
// their sector takes them along. Other sectors stay lost.
func TestASectorComesWithWhatAFailedSyncLeftInIt(t *testing.T) {
	write := func(at int64, b byte, n int) Entry {
		return Entry{Op: Write, File: 7, Offset: at, Data: bytes.Repeat([]byte{b}, n)}
	}
	l := &Log{Sector: 512, Entries: []Entry{write(0, 'a', 600), {Op: Lose, File: 7, UpTo: 1}, write(520, 'o', 10), write(600, 'b', 100), {Op: Flush, File: 7, UpTo: 4},
		write(2000, 'c', 10), {Op: Lose, File: 7, UpTo: 6}, write(1900, 'd', 20), {Op: Flush, File: 7, UpTo: 8}}}
	d := newDisk(l, nil)
	for d.position < len(l.Entries) {
		d.advance()
	}
	want := make([]byte, 2010)
	for _, part := range []Entry{write(512, 'a', 88), write(520, 'o', 10), write(600, 'b', 100), write(1900, 'd', 20), write(2000, 'c', 10)} {
		copy(want[part.Offset:], part.Data)
	}
	if got := d.content(d.file(7), &State{Crash: Power, Position: d.position}); !bytes.Equal(got, want) {
		t.Errorf("%q\nwant\n%q", got, want)
	}
}

// TestExplorationKeepsErrorsOfTheMachineApart holds that only a run's own error is a broken promise.
func TestExplorationKeepsErrorsOfTheMachineApart(t *testing.T) {
	w := plain
	judged := func(second error) (*Verdict, error) {
		v := Cell{Workload: w, Policy: holdfast.EachDurable()}.Verdict(PowerCut, 1)
		return v, v.Explore(w, Exploration{States: 1000, Record: func(number int, seed uint64, there Tree) (*Log, error) {
			if number > 0 {
				return nil, second
			}
			return w.record(v.Policy, seed, Recording{Records: 5})
		}})
	}
	if v, err := judged(&RunError{fmt.Errorf("it stumbles")}); err != nil || v.Failure == nil || v.Failure.Violation.Rule != "again" {
		t.Errorf("%+v, %v", v, err)
	}
	if v, err := judged(fmt.Errorf("no memory")); err == nil || v.Failure != nil {
		t.Errorf("%+v, %v", v, err)
	}
}

// TestRunThatFailsByItselfBreaksAPromise: its disk has not failed.
func TestRunThatFailsByItselfBreaksAPromise(t *testing.T) {
	w := *plain
	for _, records := range []int{1, 5} {
		w.Run = func(r *Run) error {
			r.Records = records
			return errors.Join(plain.Run(r), errors.New("it stumbles"))
		}
		v := Cell{Workload: &w, Policy: holdfast.EachDurable()}.Verdict(Memory, 1)
		if err := v.byMemory(&w, 100, time.Second, nil); err != nil || v.Failure == nil || v.Failure.Violation.Rule != "again" {
			t.Fatalf("%d records: %+v, %v", records, v, err)
		}
		v.judge(map[string]bool{})
		if v.Verdict != Broken || !strings.Contains(v.Failure.Words, "it stumbles") {
			t.Errorf("%d records: %s, %q", records, v.Verdict, v.Failure.Words)
		}
	}
}

// TestNewestNameIsOftenThereWithoutTheNamesBefore holds that such states are explored: a sync of names that was left out leaves them.
func TestNewestNameIsOftenThereWithoutTheNamesBefore(t *testing.T) {
	const files, seeds = 20, 200
	l, pending := &Log{Sector: 512}, []int(nil)
	for n := range uint64(files) {
		l.Add(Entry{Op: Write, File: 10 + n, Data: []byte("x")})
		l.Add(Entry{Op: Name, Edits: []Edit{{Root, fmt.Sprint(n), 10 + n}}})
		pending = append(pending, int(2*n), int(2*n+1))
	}
	met := 0
	for seed := range uint64(seeds) {
		var seen []State
		l.States(len(pending), pending, rand.New(rand.NewPCG(seed, 0)), 6, &seen, func(s *State) {
			names, bytes := 0, 0
			for rank := range pending {
				if s.kept(rank) && rank%2 == 1 {
					names++
				} else if s.kept(rank) {
					bytes++
				}
			}
			if names == 1 && bytes == files && s.kept(len(pending)-1) {
				met++
			}
		})
	}
	if met < seeds/3 {
		t.Errorf("%d of %d positions had that state", met, seeds)
	}
}

// TestVersionThatItsWriterCutIsNotLost: a file that is truncated and written anew has no version meanwhile.
func TestVersionThatItsWriterCutIsNotLost(t *testing.T) {
	check := func(half, whole bool, begun uint64, lost int64) {
		t.Helper()
		c := NewChecker([]Target{{Path: "w0", Object: true, Whole: whole}}, holdfast.Loss{Power: holdfast.Bound{Bytes: holdfast.Unlimited, Time: holdfast.Unlimited}})
		c.Note(Note{Kind: Accepted, N: 3})
		c.Note(Note{Kind: Begun, N: begun})
		s := NewSurvivors(1)
		s.Half[0] = half
		if c.Judge(Power, s, 0, -1); c.Tally.Most.Records != lost {
			t.Errorf("half %v, whole %v, begun %d: %d are lost, want %d", half, whole, begun, c.Tally.Most.Records, lost)
		}
	}
	check(true, false, 4, 0)  // the writer of 4 has cut 3
	check(true, false, 3, 1)  // nobody has
	check(false, false, 4, 1) // no file is there
	check(true, true, 4, 1)   // it should never be cut
}

// TestPartOfATornRecordIsNotLost: a bound of bytes counts the missing bytes.
func TestPartOfATornRecordIsNotLost(t *testing.T) {
	const there = 30
	data := Record{Size: 100}.Append(nil)
	data = Record{N: 1, Size: 100}.Append(data)[:100+there]
	for bytes, ok := range map[holdfast.Size]bool{100 - there: true, 100 - there - 1: false} {
		targets := []Target{{Path: "log"}}
		c := NewChecker(targets, holdfast.Loss{Process: holdfast.Bound{Bytes: bytes, Time: holdfast.Unlimited}})
		for n := range uint64(2) {
			c.Note(Note{Kind: Accepted, N: n + 1, Bytes: 100})
		}
		s := NewSurvivors(1)
		s.Survey(targets, []uint32{0}, data)
		if v := c.Judge(Process, s, 0, -1); (v == nil) != ok {
			t.Errorf("allowed are %v: %v", bytes, v)
		}
	}
}
