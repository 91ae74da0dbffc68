//go:build go1.25

package wal

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// TestReadFindsWhatWasAppended reads at random, in order and backwards while the log grows and is cut at both
// ends, and compares with the appended records. Readers of several goroutines share the cursors that the log keeps.
func TestReadFindsWhatWasAppended(t *testing.T) {
	rounds := 200
	if testing.Short() || isolate.RaceEnabled {
		rounds = 40
	}
	for _, p := range []holdfast.Policy{holdfast.Durable(), holdfast.Buffered(2 * holdfast.KiB)} {
		d := newDisk(t, nil)
		l, _, err := open(d, "/log", Options{Policy: p, SegmentSize: 2 * leastSegment})
		if err != nil {
			t.Fatal(err)
		}
		m := newModel(t)
		r, n := rand.New(rand.NewPCG(1, 2)), 0
		for range rounds {
			for range 1 + r.IntN(20) {
				batch := batchOf(r, &n)
				m.accept(batch)
				if _, err := l.Append(batch...); err != nil {
					t.Fatal(err)
				}
			}
			switch r.IntN(12) {
			case 0:
				index := m.first + uint64(r.IntN(len(m.records)/2+1))
				if err := l.TruncateBefore(index); err != nil {
					t.Fatal(err)
				}
				m.cutTo(index, m.last())
			case 1:
				index := m.last() - uint64(r.IntN(min(30, len(m.records))))
				if err := l.TruncateAfter(index); err != nil {
					t.Fatal(err)
				}
				m.cutTo(m.first, index)
			}
			var readers sync.WaitGroup
			for reader := range 6 {
				seed := r.Uint64()
				readers.Go(func() {
					r := rand.New(rand.NewPCG(seed, 3))
					at := m.first + r.Uint64N(uint64(len(m.records)))
					for range 30 {
						switch reader % 3 {
						case 0:
							at++
						case 1:
							at--
						default:
							at = m.first + r.Uint64N(uint64(len(m.records))+2) - 1
						}
						got, err := l.Read(at)
						if at < m.first || at > m.last() {
							if !errors.Is(err, ErrNotFound) {
								t.Errorf("Read(%d) of %d to %d: %v", at, m.first, m.last(), err)
							}
							return
						}
						if err != nil || !bytes.Equal(got, m.records[at-m.first]) {
							t.Errorf("Read(%d) of %d to %d = %.20q, want %.20q: %v", at, m.first, m.last(), got, m.records[at-m.first], err)
							return
						}
					}
				})
			}
			readers.Wait()
			if t.Failed() {
				break
			}
		}
		if len(l.cursors) > keptCursors || l.reading > keptFiles {
			t.Errorf("%d cursors and %d descriptors are kept", len(l.cursors), l.reading)
		}
		if err := l.Close(); err != nil || d.Open() != 0 {
			t.Error(err, d.Open())
		}
		if _, err := l.Read(m.first); !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	}
}

// TestReadKeepsFewDescriptors of many segments, and none of a segment that is gone.
func TestReadKeepsFewDescriptors(t *testing.T) {
	d := newDisk(t, nil)
	l, _, err := open(d, "/log", small)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	before := d.Open()
	for range 3 * keptFiles {
		if _, err := l.Append(make([]byte, 4000)); err != nil {
			t.Fatal(err)
		}
	}
	for i := l.Last(); i > 0; i-- {
		if _, err := l.Read(i); err != nil {
			t.Fatal(err)
		}
	}
	l.background.Wait() // the spare file is made and closed
	if got := d.Open() - before; got > keptFiles || got < keptFiles/2 {
		t.Errorf("%d descriptors are kept", got)
	}
	if err := l.TruncateBefore(l.Last()); err != nil {
		t.Fatal(err)
	}
	if got := d.Open() - before; got > 1 {
		t.Errorf("%d descriptors are kept of segments that are gone", got)
	}
	if got, err := l.Read(l.Last()); err != nil || len(got) != 4000 {
		t.Error(len(got), err)
	}
}

// TestPlacesAreBounded: a log of any size remembers the more of it the smaller it is.
func TestPlacesAreBounded(t *testing.T) {
	var x placeIndex
	var all []*segment
	for range 400 {
		s := newSegment(header{size: 16 << 20, first: 1000})
		all = append(all, s)
		for at := int64(headerSize); at < 16<<20; at += 4096 {
			x.add(s, x.note(s, nil, 1000+uint64(at)/100, at), all)
		}
	}
	count, newest := 0, all[len(all)-1]
	for _, s := range all {
		count += len(s.places)
		for i := 1; i < len(s.places); i++ {
			if s.places[i].at <= s.places[i-1].at || int64(s.places[i].at-s.places[i-1].at) > 2*x.distance {
				t.Fatalf("places %v and %v at a distance of %d", s.places[i-1], s.places[i], x.distance)
			}
		}
	}
	if count != x.count || count > mostPlaces || count < mostPlaces/4 {
		t.Errorf("%d places, counted %d", count, x.count)
	}
	for _, at := range []int64{headerSize, 1 << 20, 16<<20 - 4096} {
		if got, _ := newest.before(1000 + uint64(at)/100); got > at || at-got > 2*x.distance {
			t.Errorf("of %d the place is %d", at, got)
		}
	}
}

// TestReadOfALargeBatchChecksItOnce: the next record of the same batch is there without a read.
func TestReadOfALargeBatchChecksItOnce(t *testing.T) {
	d := &counting{Disk: newDisk(t, nil)}
	l, _, err := open(d, "/log", Options{Policy: holdfast.Durable(), SegmentSize: holdfast.MiB})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var batch [][]byte
	for i := range 1000 {
		batch = append(batch, fmt.Appendf(nil, "record %0200d", i+1))
	}
	if _, err := l.Append(batch...); err != nil {
		t.Fatal(err)
	}
	d.read = 0
	for i := range batch {
		if got, err := l.Read(uint64(i + 1)); err != nil || !bytes.Equal(got, batch[i]) {
			t.Fatal(i, err)
		}
	}
	if d.read > 2*1000*220 {
		t.Errorf("%d bytes were read of a batch", d.read)
	}
}

// TestAKeptReaderSeesACut: records appended behind a cut have the indices of records it has read.
func TestAKeptReaderSeesACut(t *testing.T) {
	d := newDisk(t, nil)
	l, _, err := open(d, "/log", small)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, what := range []string{"first", "second", "third"} {
		for i := l.Last(); i < 10; i++ {
			if _, err := l.Append([]byte(what)); err != nil {
				t.Fatal(err)
			}
		}
		for _, i := range []uint64{10, 8, 6, 4} { // each by a reader of its own, which the next round takes for the same
			if got, err := l.Read(i); err != nil || string(got) != what && i > 5 {
				t.Errorf("Read(%d) = %q, %v; want %q", i, got, err, what)
			}
		}
		if err := l.TruncateAfter(5); err != nil {
			t.Fatal(err)
		}
	}
}
