package trial

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/machine"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/probe"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
	"github.com/holdfast-go/holdfast/stats"
)

// An Append is a workload: a number of writers, each a goroutine, append records
// of one size to one file.
//
// The clock measures these five stages, apart and together: Open makes the file, or opens it. Write
// lasts from the release of the writers until Write has returned for the last record. Then come Flush;
// Sync, under policies that sync by time or at close; and Close. All cells run the five stages in this
// order; a stage without work for the policy costs nothing.
type Append struct {
	Policy      holdfast.Policy
	RecordBytes int64
	Writers     int
	Records     int64 // by all writers together, at least one each

	// Stride: one Write of every Stride is timed, because reading the clock costs as much as a buffered
	// Write. It is odd, so that it does not fall into step with the filling of buffers, whose sizes are
	// powers of two.
	Stride int

	// Turns: if more than one, Run runs the workload Turns times. A short trial may be disturbed or
	// not, and does not show by itself which.
	Turns int

	// Control is the number of records that are written without a Writer after each turn, see [plain];
	// 0 is no control.
	Control int64

	// Rate is the number of records a second that are due, see [schedule]. With 0 each writer writes
	// again as soon as Write returns.
	Rate float64

	// Settle is the time at the beginning in which the service times of an open loop are not counted: the first Writes to a
	// file take longer, and a short trial would have relatively more of them.
	Settle time.Duration

	// Cache is the required state of the page cache, empty for a new file.
	Cache result.Cache

	// Steady lets the writers write until the throughput is steady, but no more
	// than Records and no longer than Longest; see [steadiness].
	Steady  bool
	Longest time.Duration

	// Empty writes nothing: the trial then costs only the measuring.
	Empty bool

	Count Counting

	// Open makes the target; nil makes a Writer under the Policy.
	Open func(path string) (Target, error)
}

// A Target accepts the records of a trial. A [holdfast.Writer] is one.
type Target interface {
	Write(record []byte) (int, error)
	Flush() error
	Sync() error
	Close() error
	Written() int64
	Stats() stats.Counts
}

// PreparedBytes returns the number of bytes that a trial of size bytes writes and removes again before
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
	var controls []time.Duration
	turns := make([]result.Measurement, max(1, a.Turns))
	for i := range turns {
		if turns[i], err = a.turn(ctx, g, i == 0); err != nil {
			return m, err
		}
		if a.Control > 0 {
			c, err := a.control().turn(ctx, g, false)
			if err != nil {
				return m, err
			}
			controls = append(controls, c.Write)
		}
	}
	if m = turns[0]; a.Turns > 1 {
		m, err = result.Together(turns, stat.Supports)
	}
	m.Controls = controls
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

// measure runs everything that is timed, and its preparation. counts is the number of records that each
// writer wrote.
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
	if a.Empty {
		workers.step = clockStep()
	}
	return m, counts, workers.record(&m)
}

// clockStep returns the time from one step of the clock to the next. If that is longer than a Write, as
// on Windows, most Writes seem to take no time. So the cell that writes nothing has the step among its
// times, as one more.
func clockStep() time.Duration {
	for begun := probe.Now(); probe.Since(begun) == 0; {
	}
	begun, step := probe.Now(), time.Duration(0)
	for step == 0 {
		step = probe.Since(begun)
	}
	return step
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

// workers are the writers of one trial, ready before the clock starts.
type workers struct {
	all     []*worker
	begin   chan begin // closed without a target if there is nothing to write
	done    sync.WaitGroup
	stopped atomic.Bool // by the context, or since the throughput is steady
	forget  func() bool
	ctx     context.Context
	open    bool // an open loop
	settle  time.Duration
	steady  *steadiness // nil unless it is waited for
	oldest  time.Duration
	step    time.Duration // of the clock, in the cell that writes nowhere
}

// A begin starts a worker: what it writes to, and the time from which its records are due.
type begin struct {
	target Target
	at     probe.Instant
}

// A worker is one writing goroutine.
type worker struct {
	source   *source
	share    int64
	stride   int64
	schedule schedule
	response *hdrhistogram.Histogram // closed loop: times of the timed Writes
	service  *hdrhistogram.Histogram // open loop only
	replayed *hdrhistogram.Histogram // open loop only: the response with a timer that is never late
	behind   time.Duration           // open loop only: the shortest delay in the last quarter
	written  int64
	unserved int64
	err      error
}

func (a Append) newWorkers(ctx context.Context, g *WorkDir) *workers {
	c := &workers{begin: make(chan begin), ctx: ctx, open: a.Rate > 0, settle: a.Settle}
	if a.Steady {
		c.steady = &steadiness{memory: dirtyMemory(g.observer), longest: a.Longest}
	}
	c.forget = context.AfterFunc(ctx, func() { c.stopped.Store(true) })
	for i, share := range a.shares() {
		h := &worker{source: newSource(i, int(a.RecordBytes)), share: share, stride: int64(a.Stride), schedule: a.schedule(i), response: result.NewHistogram()}
		c.all = append(c.all, h)
		c.done.Go(func() {
			b, ok := <-c.begin
			switch {
			case !ok:
			case c.open:
				h.err = h.keepSchedule(b, c)
			default:
				h.err = h.write(b.target, &c.stopped)
			}
		})
	}
	return c
}

// dirtyMemory returns a function that fills the machine's dirty memory into a sample.
func dirtyMemory(o *machine.Observer) func(*result.Sample) {
	return func(s *result.Sample) {
		activity := o.Read()
		if activity.Dirty != nil && activity.Writeback != nil {
			s.Dirty, s.Writeback = *activity.Dirty, *activity.Writeback
		}
		if limits, ok := machine.ReadDirtyLimits(); ok {
			s.Throttle = limits.Throttle
		}
	}
}

// schedule returns the schedule of one writer.
func (a Append) schedule(writer int) schedule {
	if a.Rate <= 0 {
		return schedule{}
	}
	one := float64(time.Second) / a.Rate
	return schedule{
		first:    time.Duration(one * float64(writer)),
		step:     time.Duration(one * float64(a.Writers)),
		patience: max(leastPatience, Patience*time.Duration(one*float64(a.Records))),
	}
}

// shares returns the number of records for each writer. They differ by one at most.
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

// write lets every worker write to w and waits for them.
func (c *workers) write(w Target) error {
	b := begin{w, probe.Now()}
	for range c.all {
		c.begin <- b
	}
	if c.steady != nil {
		c.steady.await(w, b.at, c)
	}
	if c.open {
		c.oldest = c.watchAge(w)
	}
	c.done.Wait()
	errs := []error{c.ctx.Err()}
	for _, h := range c.all {
		errs = append(errs, h.err)
	}
	return errors.Join(errs...)
}

// dismiss ends the workers that were never started.
func (c *workers) dismiss() {
	close(c.begin)
	c.done.Wait()
	c.forget()
}

// counts returns how many records each worker has written.
func (c *workers) counts() []int64 {
	counts := make([]int64, len(c.all))
	for i, h := range c.all {
		counts[i] = h.written
	}
	return counts
}

// record fills in the results of the workers.
func (c *workers) record(m *result.Measurement) (err error) {
	response, service, replayed := result.NewHistogram(), result.NewHistogram(), result.NewHistogram()
	for _, h := range c.all {
		response.Merge(h.response)
		if c.open {
			service.Merge(h.service)
			replayed.Merge(h.replayed)
		}
		m.Unserved += h.unserved
		m.Behind = max(m.Behind, h.behind)
	}
	if c.step > 0 {
		result.Record(response, c.step)
		result.Record(service, c.step)
	}
	if c.open {
		m.Service, m.Replayed = new(result.Latency), new(result.Latency)
		if *m.Service, err = result.NewLatency(service, stat.Supports); err != nil {
			return err
		}
		if *m.Replayed, err = result.NewLatency(replayed, stat.Supports); err != nil {
			return err
		}
	}
	if c.steady != nil {
		m.Samples, m.Steady = c.steady.samples, c.steady.reached
	}
	m.Latency, err = result.NewLatency(response, stat.Supports)
	return err
}

// write writes the worker's records one after the other: a closed loop. The last Write of each stride
// is timed.
func (h *worker) write(w Target, stopped *atomic.Bool) error {
	for untimed := h.stride - 1; h.written < h.share && !stopped.Load(); h.written++ {
		record := h.source.record()
		if untimed > 0 {
			untimed--
			if _, err := w.Write(record); err != nil {
				return err
			}
			continue
		}
		untimed = h.stride - 1
		begun := probe.Now()
		_, err := w.Write(record)
		result.Record(h.response, probe.Since(begun))
		if err != nil {
			return err
		}
	}
	return nil
}
