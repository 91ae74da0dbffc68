package trial

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/result"
)

// A pace says when a writer's records are due: in an open loop they come by the
// clock, whether or not the ones before are done. What is told is the response
// time, from when the record was due until its Write returned: a stall of a
// second then counts for each record that came in it, and not for one alone
// (what is called coordinated omission).
//
// The records of all writers together are due in equal steps, and the writers
// take turns.
type pace struct {
	first, step time.Duration
	patience    time.Duration // since the start: then what is due stays undone
}

// Patience is how many times as long as planned an open loop may take, before it
// gives up what is due.
const Patience = 3

// leastPatience is that of short trials, which the system may wake late.
const leastPatience = 200 * time.Millisecond

// pace returns that of one writer.
func (a Append) pace(writer int) pace {
	if a.Rate <= 0 {
		return pace{}
	}
	one := float64(time.Second) / a.Rate
	return pace{
		first:    time.Duration(one * float64(writer)),
		step:     time.Duration(one * float64(a.Writers)),
		patience: max(leastPatience, Patience*time.Duration(one*float64(a.Records))),
	}
}

func (p pace) due(i int64) time.Duration { return p.first + time.Duration(i)*p.step }

// keepPace writes each record when it is due, or as soon after as it can.
//
// It sleeps until then and never spins, which would take the CPU time that is
// measured; so a response time holds how late the system woke the writer: up to a
// millisecond in a process that does nothing else, whose poller counts in them
// (epoll_wait(2)). The empty cell shows how much that is.
func (h *hand) keepPace(b begin, c *crew) error {
	h.service = result.NewHistogram()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ; h.written < h.share && !c.stopped.Load(); h.written++ {
		now := time.Since(b.at)
		due := h.pace.due(h.written)
		if now > h.pace.patience {
			h.giveUp(now)
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
		begun := time.Since(b.at)
		_, err := b.target.Write(h.source.record())
		done := time.Since(b.at)
		if err != nil {
			return err
		}
		result.Record(h.service, done-begun)
		result.Record(h.response, done-due)
	}
	return nil
}

// giveUp counts what is due and not written with the time that it has waited.
func (h *hand) giveUp(now time.Duration) {
	for i := h.written; i < h.share; i++ {
		result.Record(h.response, now-h.pace.due(i))
		h.unserved++
	}
}
