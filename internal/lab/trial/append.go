package trial

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/lab/result"
	"github.com/holdfast-go/holdfast/internal/lab/stat"
	"github.com/holdfast-go/holdfast/stats"
)

// An Append is a workload: a number of writers, each a goroutine, append records
// of one size to one file.
//
// These are in the clock, apart and together. Open makes the file, or opens it. Write
// lasts from the release of the writers until Write has returned for the last record.
// Then come Flush; Sync, under policies that sync by time or at close; and Close. All
// cells do these five in this order; a step without work for the policy costs nothing.
type Append struct {
	Policy      holdfast.Policy
	RecordBytes int64
	Writers     int
	Records     int64 // of all writers together, at least one each

	// Stride: one of so many Writes is timed, because reading the clock costs as much
	// as a buffered Write. It is odd, so that it does not fall into step with the
	// filling of buffers, which are powers of two.
	Stride int

	// Turns: with more than one, Run runs the workload so many times. A short trial is
	// disturbed or it is not, and by itself does not show which.
	Turns int

	// Rate is the records a second that are due, see [schedule]. With 0 each writer
	// writes again as soon as Write returns.
	Rate float64

	// Cache is the state of the page cache that is asked for, empty for a new file.
	Cache result.Cache

	// Steady lets the writers write until the throughput is steady, but no more
	// than Records and no longer than Longest; see [steadiness].
	Steady  bool
	Longest time.Duration

	// Empty writes nowhere: the trial takes what measuring takes.
	Empty bool

	Count Counting

	// Open makes the target; nil makes a Writer under the Policy.
	Open func(path string) (Target, error)
}

// A Target takes the records of a trial. A [holdfast.Writer] is one.
type Target interface {
	Write(record []byte) (int, error)
	Flush() error
	Sync() error
	Close() error
	Written() int64
	Stats() stats.Counts
}

// PreparedBytes returns how much a trial of size bytes writes and removes again before
// its clock starts.
func PreparedBytes(size int64) int64 { return memoryWrites * min(size, prepareMost) }

// prepareMost bounds the memory that is prepared: in a long trial, memory beyond it
// costs little.
const prepareMost = 64 << 20

// Run runs the workload on files of its own, checks every byte of them, and
// removes them. It stops soon after ctx is done, with ctx's error.
func (a Append) Run(ctx context.Context, g *WorkDir) (m result.Measurement, err error) {
	defer g.quiesce()
	if !a.Empty {
		// The file that a turn removes leaves its memory to the next turn.
		if err := PrepareMemory(g.dir, min(a.Records*a.RecordBytes, prepareMost)); err != nil {
			return m, err
		}
	}
	if a.Turns <= 1 {
		return a.turn(ctx, g, true)
	}
	turns, loop := make([]result.Measurement, a.Turns), emptyLoop()
	for i := range turns {
		if turns[i], err = a.turn(ctx, g, i == 0); err != nil {
			return m, err
		}
		loop = min(loop, emptyLoop())
	}
	m, err = result.Together(turns, stat.Supports)
	m.EmptyLoop = loop
	return m, err
}

// turn runs the workload once.
func (a Append) turn(ctx context.Context, g *WorkDir, first bool) (result.Measurement, error) {
	path, err := g.fresh()
	if err != nil {
		return result.Measurement{}, err
	}
	if !a.Empty && (first || a.Policy.Sync.Mode != holdfast.SyncNever) {
		g.quiesce()
	}
	m, err := a.inWorkDir(ctx, g, path)
	if removeErr := os.Remove(path); removeErr != nil && !errors.Is(removeErr, os.ErrNotExist) {
		err = errors.Join(err, removeErr)
	}
	return m, err
}

// inWorkDir is turn without the removal.
func (a Append) inWorkDir(ctx context.Context, g *WorkDir, path string) (result.Measurement, error) {
	var before *result.Residency // nil for a new file
	var headSize int64
	if a.ontoFile() {
		if err := writeHead(path); err != nil {
			return result.Measurement{}, err
		}
		var err error
		if before, err = setCache(g, path, a.Cache); err != nil {
			return result.Measurement{}, err
		}
		headSize = headBytes
	}
	m, counts, err := a.measure(ctx, g, path)
	m.Before = before
	if err == nil && !a.Empty {
		err = verify(path, headSize, int(a.RecordBytes), counts)
	}
	return m, err
}

// measure does all that is in the clock, and what must be ready before. counts
// says how many records each writer wrote.
func (a Append) measure(ctx context.Context, g *WorkDir, path string) (m result.Measurement, counts []int64, err error) {
	workers := a.newWorkers(ctx, g)
	defer workers.dismiss()
	meter, err := startMeter(g.observer, a.Count)
	if err != nil {
		return m, nil, err
	}
	w, err := a.open(path)
	m.Open = meter.lap()
	if err != nil {
		return m, nil, errors.Join(err, meter.stop(&m))
	}
	err = workers.write(w)
	m.Write = meter.lap()
	m.SyncsWriting, m.Oldest = w.Stats().Syncs, workers.oldest
	errFlush := w.Flush()
	m.Flush = meter.lap()
	var errSync error
	if mode := a.Policy.Sync.Mode; mode == holdfast.SyncPeriodic || mode == holdfast.SyncClose {
		errSync = w.Sync()
	}
	m.Sync = meter.lap()
	errClose := w.Close()
	m.Close = meter.lap()
	err = errors.Join(err, errFlush, errSync, errClose, meter.stop(&m))
	if err != nil {
		return m, nil, err
	}
	m.Writer = callsOf(w.Stats())
	counts = workers.counts()
	for _, n := range counts {
		m.Records += n
	}
	m.Size = m.Records * a.RecordBytes
	return m, counts, workers.record(&m)
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
