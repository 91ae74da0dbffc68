package trial

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/result"
)

// An Append is a workload: a number of writers, each a goroutine, append records
// of one size to one file.
//
// In the clock, apart and together: Open makes the file, or opens it; Write lasts
// from the release of the writers until the last has its last record accepted;
// Flush; Sync, under policies that sync by time or at close; Close. All cells do
// these five in this order; a step that the policy has nothing to do for costs
// nothing.
type Append struct {
	Policy      holdfast.Policy
	RecordBytes int64
	Writers     int
	Records     int64 // of all writers together, at least one each

	// Stride is how many Writes go by for each one that is timed: reading the
	// clock costs as much as a buffered Write. It is odd, so that it does not
	// fall into step with the filling of buffers, which are powers of two.
	Stride int

	// Rate is the records a second that are due, see [pace]; 0 lets each writer
	// write as fast as Write lets it.
	Rate float64

	// Cache is what is asked of the page cache, empty for a new file.
	Cache result.Cache

	// Steady lets the writers write until the throughput is steady, but no more
	// than Records and no longer than Longest; see [steadiness].
	Steady  bool
	Longest time.Duration

	// Empty writes to nothing at all: what the trial takes is what measuring takes.
	Empty bool

	Count Counting

	// Open makes what is written to; nil is a Writer under the Policy.
	Open func(path string) (Target, error)
}

// A Target takes the records of a trial. A [holdfast.Writer] is one.
type Target interface {
	Write(record []byte) (int, error)
	Flush() error
	Sync() error
	Close() error
	Written() int64
	Stats() holdfast.Stats
}

// PreparedBytes is how much is written and removed again before a trial of size
// bytes.
func PreparedBytes(size int64) int64 { return memoryWrites * min(size, prepareMost) }

// prepareMost bounds the memory that is prepared: what a long trial takes beyond
// it costs it little.
const prepareMost = 64 << 20

// Run runs the workload once on a file of its own, checks every byte of it, and
// removes it. It stops soon after ctx is done, with ctx's error.
func (a Append) Run(ctx context.Context, g *Ground) (result.Measurement, error) {
	path, err := g.fresh()
	if err != nil {
		return result.Measurement{}, err
	}
	m, err := a.onGround(ctx, g, path)
	if removeErr := os.Remove(path); removeErr != nil && !errors.Is(removeErr, os.ErrNotExist) {
		err = errors.Join(err, removeErr)
	}
	g.settle()
	return m, err
}

// onGround is Run without the removal.
func (a Append) onGround(ctx context.Context, g *Ground, path string) (result.Measurement, error) {
	if !a.Empty {
		if err := PrepareMemory(g.dir, min(a.Records*a.RecordBytes, prepareMost)); err != nil {
			return result.Measurement{}, err
		}
		g.settle()
	}
	before, err := a.prepareFile(g, path)
	if err != nil {
		return result.Measurement{}, err
	}
	m, counts, err := a.measure(ctx, g, path)
	m.Before = before
	if err == nil && !a.Empty {
		err = verify(path, a.head(), int(a.RecordBytes), counts)
	}
	return m, err
}

// shares returns how many records each writer writes: equal, but for a remainder.
func (a Append) shares() []int64 {
	shares := make([]int64, a.Writers)
	for i := range shares {
		shares[i] = a.Records / int64(a.Writers)
		if int64(i) < a.Records%int64(a.Writers) {
			shares[i]++
		}
	}
	return shares
}

// measure is all that is in the clock, and what has to be ready before. counts
// says how many records each writer wrote.
func (a Append) measure(ctx context.Context, g *Ground, path string) (m result.Measurement, counts []int64, err error) {
	crew := a.newCrew(ctx, g)
	defer crew.dismiss()
	meter, err := startMeter(g.observer, a.Count)
	if err != nil {
		return m, nil, err
	}
	w, err := a.open(path)
	m.Open = meter.lap()
	if err != nil {
		return m, nil, errors.Join(err, meter.stop(&m))
	}
	err = crew.write(w)
	m.Write = meter.lap()
	err = errors.Join(err, a.finish(w, meter, &m), meter.stop(&m))
	if err != nil {
		return m, nil, err
	}
	m.Writer = result.WriterCalls(w.Stats())
	counts = crew.counts()
	for _, n := range counts {
		m.Records += n
	}
	m.Size = m.Records * a.RecordBytes
	return m, counts, crew.tell(&m)
}

func (a Append) open(path string) (Target, error) {
	switch {
	case a.Empty:
		return nowhere{}, nil
	case a.Open != nil:
		return a.Open(path)
	case a.ontoFile():
		return holdfast.Append(path, a.Policy)
	}
	return holdfast.Create(path, a.Policy)
}

// finish takes the file from the last Write to its end.
func (a Append) finish(w Target, meter *meter, m *result.Measurement) error {
	errFlush := w.Flush()
	m.Flush = meter.lap()
	var errSync error
	if a.Policy.Sync > 0 || a.Policy.Sync == holdfast.SyncClose {
		errSync = w.Sync()
	}
	m.Sync = meter.lap()
	errClose := w.Close()
	m.Close = meter.lap()
	return errors.Join(errFlush, errSync, errClose)
}
