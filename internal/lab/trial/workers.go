package trial

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/holdfast-go/holdfast/internal/lab/machine"
	"github.com/holdfast-go/holdfast/internal/lab/result"
	"github.com/holdfast-go/holdfast/internal/lab/stat"
)

// workers are the writers of one trial, ready before the clock starts.
type workers struct {
	all     []*worker
	begin   chan begin // closed without a target if there is nothing to write
	done    sync.WaitGroup
	stopped atomic.Bool // by the context, or because the throughput is steady
	forget  func() bool
	ctx     context.Context
	open    bool        // an open loop
	steady  *steadiness // nil unless it is waited for
	oldest  time.Duration
}

// A begin starts a worker: what it writes to, and the time from which its records are due.
type begin struct {
	target Target
	at     time.Time
}

// A worker is one writer.
type worker struct {
	source   *source
	share    int64
	stride   int64
	schedule schedule
	response *hdrhistogram.Histogram // closed loop: of the Writes that are timed
	service  *hdrhistogram.Histogram // open loop only
	replayed *hdrhistogram.Histogram // open loop only: the response with a timer that is never late
	behind   time.Duration           // likewise, the shortest wait of the last quarter
	written  int64
	unserved int64
	err      error
}

func (a Append) newWorkers(ctx context.Context, g *WorkDir) *workers {
	c := &workers{begin: make(chan begin), ctx: ctx, open: a.Rate > 0}
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

// dirtyMemory returns a function that fills in a sample with what the machine reports.
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

// schedule returns that of one writer.
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

// shares returns how many records each writer writes. They differ by one at most.
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
	b := begin{w, time.Now()}
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

// record fills in what the workers saw.
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

// write writes the worker's records one after the other: a closed loop. The last of
// each stride is timed.
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
		begun := time.Now()
		_, err := w.Write(record)
		result.Record(h.response, time.Since(begun))
		if err != nil {
			return err
		}
	}
	return nil
}
