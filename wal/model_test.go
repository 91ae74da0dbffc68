//go:build go1.25

package wal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// noDsync is a disk that can't write and sync in one call.
type noDsync struct{ *fault.Disk }

func (noDsync) WriteAtDurably(int, []byte, int64) (int, error) { return 0, errors.ErrUnsupported }

// allocating is a disk that gives a file its room without zeros.
type allocating struct{ *fault.Disk }

func (d allocating) Allocate(fd int, _, n int64, _ bool) error { return d.Truncate(fd, n) }
func (allocating) AllocatesFaster(int) bool                    { return false }

// onSystems runs a test on each system's way. Where clocks stand still, as here for one that
// allocates, a log prepares no zeros.
func onSystems(t *testing.T, name string, test func(t *testing.T, under func(*fault.Disk) disk)) {
	t.Run(name+",dsync=true", func(t *testing.T) {
		t.Parallel()
		test(t, func(d *fault.Disk) disk { return d })
	})
	t.Run(name+",dsync=false", func(t *testing.T) {
		t.Parallel()
		test(t, func(d *fault.Disk) disk { return noDsync{d} })
	})
	t.Run(name+",allocating", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			test(t, func(d *fault.Disk) disk { return allocating{d} })
		})
	})
}

// newDisk returns a disk as a crash has left it.
func newDisk(t testing.TB, m *fault.Image) *fault.Disk {
	t.Helper()
	isolate.Once(t, isolate.Ordinary) // such a disk asks for no rights
	d := fault.NewDisk()
	if err := d.MkdirAll("/log"); err != nil {
		t.Fatal(err)
	}
	if m == nil {
		return d
	}
	for name, data := range m.Files {
		if err := d.WriteFile(name, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// A model lists a log's allowed contents: one acknowledged version after the other.
type model struct {
	t testing.TB

	mu      sync.Mutex
	first   uint64
	records [][]byte        // from first on, all that were accepted
	batch   []int           // the batch of each
	durable uint64          // acknowledged up to here
	before  uint64          // a TruncateBefore to this index is under way
	after   *uint64         // a TruncateAfter to this index is under way
	reset   uint64          // a truncation is under way that leaves the log empty, to go on with this index
	ordered map[string]bool // the states that the judges have seen, to count that they differ
	batches int
	large   bool // some records are larger than a segment
}

func newModel(t testing.TB) *model { return &model{t: t, first: 1, ordered: map[string]bool{}} }

func (m *model) last() uint64 { return m.first + uint64(len(m.records)) - 1 }

func recordsOf(l *Log, from uint64) (all [][]byte, err error) {
	for r, err := range l.Records(from) {
		if err != nil {
			return all, err
		}
		if r.Index != from+uint64(len(all)) {
			return all, fmt.Errorf("record %d stands where %d should", r.Index, from+uint64(len(all)))
		}
		all = append(all, bytes.Clone(r.Data))
	}
	return all, nil
}

// judge opens what a crash has left and compares.
func (m *model) judge(image *fault.Image) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := newDisk(m.t, image)
	l, found, err := open(d, "/log", Options{SegmentSize: leastSegment, Policy: holdfast.Durable()})
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	defer l.Close()
	m.ordered[fmt.Sprint(found)] = true
	got, err := recordsOf(l, found.First)
	if err != nil {
		return err
	}
	if uint64(len(got)) != found.Last+1-found.First || int64(len(got)) != found.Records || found.Last != l.Durable() {
		return fmt.Errorf("%+v, with %d records, durable %d", found, len(got), l.Durable())
	}
	if err := m.judgeRecords(found.First, got); err != nil {
		return fmt.Errorf("%+v, of %d to %d, durable %d, in flight %v, %v, %v: %w", found, m.first, m.last(), m.durable, m.before, m.after, m.reset, err)
	}
	if err := agrees(image.Files, found.First, got, nil); err != nil {
		return err
	}
	// The calls after that must not bring back anything.
	if _, err := l.Append([]byte("more"), []byte("of it")); err != nil {
		return err
	}
	if err := l.Close(); err != nil {
		return err
	}
	l, again, err := open(d, "/log", Options{SegmentSize: leastSegment, Policy: holdfast.Durable()})
	if err != nil {
		return fmt.Errorf("again: %w", err)
	}
	defer l.Close()
	after, err := recordsOf(l, again.First)
	if err != nil || again.First != found.First || again.Torn != 0 {
		return fmt.Errorf("again %+v, after %+v: %w", again, found, err)
	}
	if want := append(slices.Clone(got), []byte("more"), []byte("of it")); !slices.EqualFunc(after, want, bytes.Equal) {
		return fmt.Errorf("again: %.20q, not %.20q (%+v, %+v)", after, want, found, again)
	}
	return nil
}

// judgeRecords compares records with the accepted and acknowledged ones.
func (m *model) judgeRecords(first uint64, got [][]byte) error {
	end := first + uint64(len(got)) // behind the last
	if m.reset > 0 && first == m.reset && len(got) == 0 {
		return nil
	}
	switch {
	case first != m.first && (first < m.first || first > m.before): // a segment may begin between them
		return fmt.Errorf("it begins with %d", first)
	case m.after != nil && end == *m.after+1: // it was cut
	case end <= m.durable && end < m.last()+1:
		return fmt.Errorf("it ends with %d", end-1)
	case end > m.last()+1:
		return fmt.Errorf("it ends with %d, which was never accepted", end-1)
	case end <= m.last() && end > m.first && m.batch[end-m.first] == m.batch[end-1-m.first]:
		return fmt.Errorf("it ends with %d, in the middle of a batch", end-1)
	}
	for i, r := range got {
		if want := m.records[first-m.first+uint64(i)]; !bytes.Equal(r, want) {
			return fmt.Errorf("record %d is %.20q, not %.20q", first+uint64(i), r, want)
		}
	}
	return nil
}

// accept enters a batch as if the log had accepted it. Whether it has, the next says.
func (m *model) accept(records [][]byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.batches++
	for _, r := range records {
		m.records = append(m.records, bytes.Clone(r))
		m.batch = append(m.batch, m.batches)
	}
}

// acknowledged is called with the log's durable position.
func (m *model) acknowledged(index uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.durable = max(m.durable, index)
}

// cutTo leaves the records from first to last.
func (m *model) cutTo(first, last uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.before, m.after, m.reset = 0, nil, 0
	if first > m.last() || first < m.first {
		m.records, m.batch = nil, nil
	} else {
		m.records, m.batch = m.records[first-m.first:], m.batch[first-m.first:]
	}
	m.first = first
	if n := int(last + 1 - first); n < len(m.records) {
		m.records, m.batch = m.records[:n], m.batch[:n]
	}
	m.durable = m.last()
}

func (m *model) inFlight(before uint64, after *uint64, reset uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.before, m.after, m.reset = before, after, reset
}

// batchOf returns records to append, of all sizes that fit into a segment.
func batchOf(r *rand.Rand, n *int) (records [][]byte) {
	sizes := []int{0, 1, 7, 30, 100, 500, 1000}
	for range 1 + r.IntN(3)*r.IntN(2) {
		*n++
		records = append(records, append(fmt.Appendf(nil, "%d.", *n), bytes.Repeat([]byte{byte(*n)}, sizes[r.IntN(len(sizes))])...))
	}
	return records
}

// batchOf may return a record that is larger than a segment.
func (m *model) batchOf(r *rand.Rand, n *int) (records [][]byte) {
	records = batchOf(r, n)
	if m.large && r.IntN(20) == 0 {
		records[0] = append(records[0], make([]byte, leastSegment/2+r.IntN(2*leastSegment))...)
	}
	return records
}

// step makes one random call, and enters it into the model.
func (m *model) step(l *Log, r *rand.Rand, n *int) error {
	switch r.IntN(12) {
	case 0, 1, 2:
		batch := m.batchOf(r, n)
		m.accept(batch)
		last, err := l.Enqueue(batch...)
		if last != m.last() && err == nil {
			return fmt.Errorf("Enqueue = %d, want %d", last, m.last())
		}
		return err
	case 3:
		err := l.Wait(context.Background(), l.Last())
		if err == nil {
			m.acknowledged(l.Last())
		}
		return err
	case 4:
		index := m.first + uint64(r.IntN(len(m.records)+1))
		m.inFlight(index, nil, 0)
		err := l.TruncateBefore(index)
		if err == nil {
			durable := m.durable
			m.cutTo(index, m.last())
			m.mu.Lock()
			m.durable = max(durable, index-1)
			m.mu.Unlock()
		}
		return err
	case 5:
		index := m.first - 1 + uint64(r.IntN(len(m.records)+1))
		if len(m.records) == 0 && index > 0 {
			return m.beginAgain(l, r.Uint64N(index))
		}
		m.inFlight(0, &index, 0)
		err := l.TruncateAfter(index)
		if err == nil {
			m.cutTo(m.first, index)
		}
		return err
	case 6:
		if r.IntN(4) > 0 {
			return nil
		}
		index := m.last() + 2 + uint64(r.IntN(5))
		m.inFlight(0, nil, index)
		err := l.TruncateBefore(index)
		if err == nil {
			m.cutTo(index, index-1)
			if r.IntN(2) == 0 {
				return m.beginAgain(l, r.Uint64N(index-1))
			}
		}
		return err
	default:
		batch := m.batchOf(r, n)
		m.accept(batch)
		last, err := l.Append(batch...)
		if err != nil {
			return err
		}
		if last != m.last() {
			return fmt.Errorf("Append = %d, want %d", last, m.last())
		}
		if l.opts.Policy.Sync.Waits() {
			m.acknowledged(last)
		}
		return nil
	}
}

// beginAgain has an empty log go on behind a smaller index.
func (m *model) beginAgain(l *Log, index uint64) error {
	m.inFlight(0, nil, index+1)
	err := l.TruncateAfter(index)
	if err == nil {
		m.cutTo(index+1, index)
	}
	return err
}

var testPolicies = []holdfast.Policy{
	holdfast.Durable(),
	holdfast.EachDurable(),
	holdfast.Unbuffered(),
	holdfast.Buffered(2 * holdfast.KiB),
	{Buffer: 4096, FlushBytes: 512, Sync: holdfast.Sync{Mode: holdfast.SyncPeriodic, Bytes: 4096}},
	{Sync: holdfast.Sync{Mode: holdfast.SyncClose}},
}

// TestWhatACrashLeavesIsWhatWasAcknowledged cuts the power at the start and at the end of
// every call that a random run makes of the disk. Then it checks the log. Now and then the run goes
// on with the disk that a crash has left.
func TestWhatACrashLeavesIsWhatWasAcknowledged(t *testing.T) {
	isolate.Once(t, isolate.Ordinary)
	runs, steps, one := 1, 40, 3 // one call in this number is cut
	if testing.Short() || isolate.RaceEnabled {
		runs, steps, one = 1, 12, 6
	}
	for _, p := range testPolicies {
		onSystems(t, p.String(), func(t *testing.T, under func(*fault.Disk) disk) {
			for seed := range uint64(runs) {
				crashes(t, p, under, seed, steps, one)
			}
		})
	}
}

func crashes(t *testing.T, p holdfast.Policy, under func(*fault.Disk) disk, seed uint64, steps, one int) {
	r := rand.New(rand.NewPCG(seed, 7))
	cuts := rand.New(rand.NewPCG(seed, 8)) // the watch function's
	ends := rand.New(rand.NewPCG(seed, 9))
	m := newModel(t)
	m.large = true
	watched := func(d *fault.Disk) func(fault.DiskCall) {
		var mu sync.Mutex
		return func(c fault.DiskCall) {
			mu.Lock()
			defer mu.Unlock()
			if t.Failed() || cuts.IntN(one) > 0 {
				return
			}
			image := d.PowerCut(cuts)
			if cuts.IntN(8) == 0 {
				image = d.ProcessCrash()
			}
			if err := m.judge(image); err != nil {
				t.Errorf("seed %d, at %v %d of %s (end %v): %v", seed, c.Op, c.N, c.Path, !c.End.IsZero(), err)
			}
		}
	}
	var image *fault.Image
	n := 0
	for generation := range 3 {
		o := Options{Policy: p, SegmentSize: leastSegment << (2 * generation)} // 8, 32 and 128 KiB
		d := newDisk(t, image)
		d.Watch(watched(d))
		l, found, err := open(under(d), "/log", o)
		if err != nil {
			t.Fatalf("seed %d, generation %d: %v", seed, generation, err)
		}
		if generation > 0 {
			m.cutTo(found.First, found.Last)
		}
		for range steps {
			if err := m.step(l, r, &n); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if t.Failed() {
				break
			}
			if got, err := recordsOf(l, m.first); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			} else if min := m.durable; uint64(len(got))+m.first <= min {
				t.Fatalf("seed %d: read %d records from %d, durable %d", seed, len(got), m.first, min)
			} else if err := m.judgeRecords(m.first, got); err != nil {
				t.Fatalf("seed %d: read: %v", seed, err)
			}
			if got := l.Durable(); got < m.durable || l.First() != m.first || l.Last() != m.last() {
				t.Fatalf("seed %d: %d to %d, durable %d; want %d to %d, %d", seed, l.First(), l.Last(), got, m.first, m.last(), m.durable)
			}
			m.acknowledged(l.Durable())
		}
		if ends.IntN(2) == 0 {
			image = d.PowerCut(ends)
			d.Watch(nil)
			l.Close()
		} else {
			if err := l.Close(); err != nil {
				t.Fatalf("seed %d: close: %v", seed, err)
			}
			if p.Sync.Mode != holdfast.SyncNever {
				m.acknowledged(m.last())
			}
			image = d.PowerCut(ends)
			if err := m.judge(image); err != nil {
				t.Fatalf("seed %d: after Close: %v", seed, err)
			}
		}
		if v := d.Violations(); len(v) > 0 {
			t.Fatalf("seed %d: %v", seed, v)
		}
		if d.Open() != 0 {
			t.Fatalf("seed %d: %d descriptors are open", seed, d.Open())
		}
		if t.Failed() {
			return
		}
	}
	if len(m.ordered) < 5 {
		t.Errorf("seed %d: the ends left only %d different logs", seed, len(m.ordered))
	}
}
