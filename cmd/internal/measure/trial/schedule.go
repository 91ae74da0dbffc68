package trial

import (
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/probe"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
)

// A schedule is the times at which a writer's records are due. In an open loop they are due by the
// clock, whether or not the previous ones are done. The latency is the response time, from when the
// record was due until its Write returned. A stall of a second then counts for each record that was due
// in it, and not for one alone (that would be coordinated omission).
//
// The records of all writers together are due in equal steps, and the writers
// take turns.
type schedule struct {
	first, step time.Duration
	patience    time.Duration // since the start: the worker then gives up
}

// Patience bounds an open loop, as a multiple of its planned time. After it the records that are not
// written are given up.
const Patience = 3

// leastPatience is the least patience, for short trials, whose writers the system may wake late.
const leastPatience = 200 * time.Millisecond

func (p schedule) due(i int64) time.Duration { return p.first + time.Duration(i)*p.step }

// keepSchedule writes each record when it is due, or as soon afterwards as it can.
//
// It sleeps until then and never spins, because spinning would use the CPU time that is measured. So a
// response time includes the delay with which the system woke the writer. In an idle process that is up
// to a millisecond, the unit of the poller (epoll_wait(2)).
//
// A policy is judged without that delay: the measured service times are replayed with a timer that is
// never late. A record starts when it is due, or when the one before it ends (Lindley's recursion for
// the waiting time in a queue).
func (h *worker) keepSchedule(b begin, c *workers) error {
	h.service, h.replayed = result.NewHistogram(), result.NewHistogram()
	free := time.Duration(0) // when the replayed writer has written the records so far
	h.behind = h.schedule.patience
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ; h.written < h.share && !c.stopped.Load(); h.written++ {
		now := probe.Since(b.at)
		due := h.schedule.due(h.written)
		if now > h.schedule.patience && h.written > 0 { // a trial without records would be no trial
			// A record that is not written counts with the time that it has waited.
			for i := h.written; i < h.share; i++ {
				result.Record(h.response, now-h.schedule.due(i))
				result.Record(h.replayed, now-h.schedule.due(i))
				h.unserved++
			}
			h.behind = now - h.schedule.due(h.share-1)
			return nil
		}
		if now < due {
			timer.Reset(due - now)
			select {
			case <-timer.C:
			case <-c.ctx.Done(): // the next record may be due in an hour
				return nil
			}
		}
		begun := probe.Since(b.at)
		_, err := b.target.Write(h.source.record())
		done := probe.Since(b.at)
		if err != nil {
			return err
		}
		if due >= c.settle {
			result.Record(h.service, done-begun)
		}
		result.Record(h.response, done-due)
		waited := max(0, free-due)
		free = due + waited + done - begun
		result.Record(h.replayed, free-due)
		if h.written >= h.share-max(1, h.share/4) {
			h.behind = min(h.behind, waited)
		}
	}
	return nil
}
