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
	"github.com/holdfast-go/holdfast/internal/result"
	"github.com/holdfast-go/holdfast/internal/stat"
)

// An Append is a workload: a number of writers, each a goroutine, append records
// of one size to one new file, as fast as Write lets them.
//
// In the clock, apart and together: Open makes the file (Create); Write lasts from
// the release of the writers until the last has its last record accepted; Flush;
// Sync, under policies that sync by time or at close; Close. All cells do these
// five in this order; a step that the policy has nothing to do for costs nothing.
type Append struct {
	Policy      holdfast.Policy
	RecordBytes int64
	Writers     int
	Records     int64 // of all writers together, at least one each

	// Stride is how many Writes go by for each one that is timed: reading the
	// clock costs as much as a buffered Write. It is odd, so that it does not
	// fall into step with the filling of buffers, which are powers of two.
	Stride int
}

// prepareMost bounds the memory that is prepared: what a long trial takes beyond
// it costs it little.
const prepareMost = 64 << 20

// Run runs the workload once on a new file, checks every byte of it, and removes
// it. It stops soon after ctx is done, with ctx's error.
func (a Append) Run(ctx context.Context, g *Ground, countCalls bool) (result.Measurement, error) {
	path, err := g.fresh()
	if err != nil {
		return result.Measurement{}, err
	}
	if err := PrepareMemory(g.dir, min(a.Records*a.RecordBytes, prepareMost)); err != nil {
		return result.Measurement{}, err
	}
	g.settle()
	m, err := a.measure(ctx, path, countCalls)
	if err == nil {
		err = verify(path, int(a.RecordBytes), a.shares())
	}
	if removeErr := os.Remove(path); removeErr != nil && !errors.Is(removeErr, os.ErrNotExist) {
		err = errors.Join(err, removeErr)
	}
	g.settle()
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

// measure is all that is in the clock, and what has to be ready before.
func (a Append) measure(ctx context.Context, path string, countCalls bool) (result.Measurement, error) {
	m := result.Measurement{Records: a.Records, Size: a.Records * a.RecordBytes}
	crew := a.newCrew(ctx)
	defer crew.dismiss()
	meter, err := startMeter(countCalls)
	if err != nil {
		return m, err
	}
	w, err := holdfast.Create(path, a.Policy)
	m.Open = meter.lap()
	if err != nil {
		return m, errors.Join(err, meter.stop(&m))
	}
	err = crew.write(w)
	m.Write = meter.lap()
	err = errors.Join(err, a.finish(w, meter, &m), meter.stop(&m))
	if err != nil {
		return m, err
	}
	m.Writer = result.WriterCalls(w.Stats())
	m.Latency, err = crew.latency()
	return m, err
}

// finish takes the file from the last Write to its end.
func (a Append) finish(w *holdfast.Writer, meter *meter, m *result.Measurement) error {
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

// A crew is the writers of one trial, ready before the clock starts.
type crew struct {
	hands   []*hand
	start   chan *holdfast.Writer // closed without a Writer if there is nothing to write
	done    sync.WaitGroup
	stopped atomic.Bool // by the context
	forget  func() bool
	ctx     context.Context
}

// A hand is one writer.
type hand struct {
	source *source
	share  int64
	stride int64
	times  *hdrhistogram.Histogram
	err    error
}

func (a Append) newCrew(ctx context.Context) *crew {
	c := &crew{start: make(chan *holdfast.Writer), ctx: ctx}
	c.forget = context.AfterFunc(ctx, func() { c.stopped.Store(true) })
	for i, share := range a.shares() {
		h := &hand{source: newSource(i, int(a.RecordBytes)), share: share, stride: int64(a.Stride), times: result.NewHistogram()}
		c.hands = append(c.hands, h)
		c.done.Go(func() {
			if w, ok := <-c.start; ok {
				h.err = h.write(w, &c.stopped)
			}
		})
	}
	return c
}

// write lets every hand write to w and waits for them.
func (c *crew) write(w *holdfast.Writer) error {
	for range c.hands {
		c.start <- w
	}
	c.done.Wait()
	errs := []error{c.ctx.Err()}
	for _, h := range c.hands {
		errs = append(errs, h.err)
	}
	return errors.Join(errs...)
}

// dismiss ends the hands that were never started.
func (c *crew) dismiss() {
	close(c.start)
	c.done.Wait()
	c.forget()
}

// latency returns the distribution of all hands' timed Writes.
func (c *crew) latency() (result.Latency, error) {
	all := result.NewHistogram()
	for _, h := range c.hands {
		all.Merge(h.times)
	}
	return result.NewLatency(all, stat.Supports)
}

func (h *hand) write(w *holdfast.Writer, stopped *atomic.Bool) error {
	for i := int64(0); i < h.share && !stopped.Load(); i++ {
		record := h.source.record()
		timed := i%h.stride == h.stride-1
		if !timed {
			if _, err := w.Write(record); err != nil {
				return err
			}
			continue
		}
		begun := time.Now()
		_, err := w.Write(record)
		result.Record(h.times, time.Since(begun))
		if err != nil {
			return err
		}
	}
	return nil
}
