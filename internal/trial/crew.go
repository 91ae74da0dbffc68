package trial

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/holdfast-go/holdfast/internal/result"
	"github.com/holdfast-go/holdfast/internal/stat"
)

// A crew is the writers of one trial, ready before the clock starts.
type crew struct {
	hands   []*hand
	begin   chan begin // closed without a target if there is nothing to write
	done    sync.WaitGroup
	stopped atomic.Bool // by the context, or because the throughput is steady
	forget  func() bool
	ctx     context.Context
	open    bool        // an open loop
	steady  *steadiness // nil unless it is waited for
}

// begin tells a hand what to write to, and since when its records are due.
type begin struct {
	target Target
	at     time.Time
}

// A hand is one writer.
type hand struct {
	source   *source
	share    int64
	stride   int64
	pace     pace
	response *hdrhistogram.Histogram // closed loop: of the Writes that are timed
	service  *hdrhistogram.Histogram // open loop only
	written  int64
	unserved int64
	err      error
}

func (a Append) newCrew(ctx context.Context, g *Ground) *crew {
	c := &crew{begin: make(chan begin), ctx: ctx, open: a.Rate > 0}
	if a.Steady {
		c.steady = &steadiness{memory: waiting(g.observer), longest: a.Longest}
	}
	c.forget = context.AfterFunc(ctx, func() { c.stopped.Store(true) })
	for i, share := range a.shares() {
		h := &hand{source: newSource(i, int(a.RecordBytes)), share: share, stride: int64(a.Stride), pace: a.pace(i), response: result.NewHistogram()}
		c.hands = append(c.hands, h)
		c.done.Go(func() { h.work(c) })
	}
	return c
}

// write lets every hand write to w and waits for them.
func (c *crew) write(w Target) error {
	b := begin{w, time.Now()}
	for range c.hands {
		c.begin <- b
	}
	if c.steady != nil {
		c.steady.await(w, b.at, c)
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
	close(c.begin)
	c.done.Wait()
	c.forget()
}

// counts returns how many records each hand has written.
func (c *crew) counts() []int64 {
	counts := make([]int64, len(c.hands))
	for i, h := range c.hands {
		counts[i] = h.written
	}
	return counts
}

// tell fills in what the hands saw.
func (c *crew) tell(m *result.Measurement) (err error) {
	response, service := result.NewHistogram(), result.NewHistogram()
	for _, h := range c.hands {
		response.Merge(h.response)
		if c.open {
			service.Merge(h.service)
		}
		m.Unserved += h.unserved
	}
	if c.open {
		m.Service = new(result.Latency)
		if *m.Service, err = result.NewLatency(service, stat.Supports); err != nil {
			return err
		}
	}
	if c.steady != nil {
		m.Samples, m.Steady = c.steady.samples, c.steady.reached
	}
	m.Latency, err = result.NewLatency(response, stat.Supports)
	return err
}

func (h *hand) work(c *crew) {
	b, ok := <-c.begin
	switch {
	case !ok:
	case c.open:
		h.err = h.keepPace(b, c)
	default:
		h.err = h.write(b.target, &c.stopped)
	}
}

// write writes the hand's records one after the other: a closed loop. The last of
// each stride is timed.
func (h *hand) write(w Target, stopped *atomic.Bool) error {
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
