package files

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/joinwindow"
	"github.com/holdfast-go/holdfast/internal/retry"
)

// streamCommit is the group commit of all streams. One goroutine at a time leads: it
// lets other calls join, makes the streams of the batch durable in one step, and wakes
// the calls. Calls that come meanwhile wait for the next batch.
type streamCommit struct {
	lead chan struct{} // holds one value while no goroutine leads
	next *streamBatch  // the batch that calls join now; guarded by streams.mu

	join joinwindow.Window // guarded by streams.mu, as the rest
}

// A streamBatch is the appends that one durable step is for.
type streamBatch struct {
	goals  []goal // of each stream one; in use
	joined int
	done   chan struct{}
}

func (c *streamCommit) init() {
	c.lead = make(chan struct{}, 1)
	c.lead <- struct{}{}
	c.next = newStreamBatch()
}

func newStreamBatch() *streamBatch { return &streamBatch{done: make(chan struct{})} }

// commitLocked returns when all that the stream has accepted is durable. The last n bytes
// of it are the caller's.
func (t *streams) commitLocked(ctx context.Context, s *stream, n int64) error {
	mine := span{s.accepted - n, s.accepted}
	var ended error
	for again := true; again; {
		if t.policy.Sync.Mode == holdfast.SyncEach {
			t.makeDurableLocked(ctx, []goal{{s, mine.to}})
			break
		}
		ended = t.joinLocked(ctx, s)
		// A step may have failed, and another call has written meanwhile what it could not.
		isOver := ended == nil && s.failed == nil && s.final == nil && s.unnamed == nil
		again = isOver && s.safe < mine.to && mine.within(s.lost) == 0 && !t.closing
	}
	switch gone := mine.within(s.lost); {
	case gone > 0 && errors.Is(s.final, errDiscarded):
		if gone == n {
			return s.final
		}
		return notDurable(s.final, n-gone)
	case gone > 0:
		return &Error{Path: s.given, Op: string(retry.OpSync), Attempts: 1, Outcome: holdfast.OutcomeUntouched,
			Err: fmt.Errorf("the %d bytes are in no file; append them again: %w", n, holdfast.ErrUnlinked)}
	case s.safe >= mine.to:
		return nil
	}
	s.leaveBytesLocked(mine)
	switch {
	case ended != nil:
		return &Error{Path: s.given, Op: string(opWait), Offset: n, Outcome: holdfast.OutcomeUncertain, Err: ended}
	case s.final != nil:
		return notDurable(s.final, n)
	case s.failed != nil:
		return notDurable(s.failed, n)
	case s.durable >= mine.to && s.unnamed != nil:
		return &Error{Path: s.given, Op: string(retry.OpOpen), Offset: n, Outcome: holdfast.OutcomeUncertain, Err: s.unnamed}
	}
	why := context.Cause(ctx)
	if why == nil {
		why = errFilesClosed
	}
	return &Error{Path: s.given, Op: string(opWait), Offset: n, Outcome: holdfast.OutcomeUncertain, Err: why}
}

// leaveBytesLocked notes the bytes of a call that ends before they are known to be durable:
// if they get lost, a later call reports it.
func (s *stream) leaveBytesLocked(bytes span) {
	rest := s.unwaited[:0]
	for _, x := range s.unwaited {
		if x.to > s.durable {
			rest = append(rest, x)
		}
	}
	s.unwaited = append(rest, bytes)
}

// notDurable returns a failure as the error of a call that accepted n bytes.
func notDurable(err error, n int64) error {
	failed, ok := err.(*Error)
	if !ok {
		return err
	}
	mine := *failed
	mine.Offset, mine.Outcome = n, holdfast.OutcomeUncertain
	return &mine
}

// joinLocked waits, without the lock, for the step that covers the stream, or makes it.
func (t *streams) joinLocked(ctx context.Context, s *stream) error {
	b := t.commit.next
	b.joined++
	if s.batch == b {
		b.goals[s.goal].end = s.accepted
	} else {
		s.batch, s.goal = b, len(b.goals)
		s.users++
		b.goals = append(b.goals, goal{s, s.accepted})
	}
	t.commit.join.Arrived(b.joined)
	t.mu.Unlock()
	defer t.mu.Lock()
	for {
		select {
		case <-b.done:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-t.commit.lead:
			t.lead(ctx, b)
		}
	}
}

// lead makes the step for batch b unless it is done. It has the lead. The end of a
// context does not end a step that is for others too.
func (t *streams) lead(ctx context.Context, b *streamBatch) {
	select {
	case <-b.done:
		t.commit.lead <- struct{}{}
		return
	default:
	}
	if ctx.Done() == nil {
		t.step(b)
	} else {
		t.background.Go(func() { t.step(b) })
	}
}

func (t *streams) step(b *streamBatch) {
	c := &t.commit
	t.mu.Lock()
	c.join.Await(&t.mu, func() int { return b.joined }, nil)
	c.next = newStreamBatch()
	start := time.Now()
	t.makeDurableLocked(context.Background(), b.goals)
	c.join.Took(time.Since(start))
	c.join.Finished(b.joined, c.next.joined)
	t.restGoalsLocked(b.goals)
	b.goals = nil // streams remember the batch
	t.mu.Unlock()
	close(b.done)
	c.lead <- struct{}{}
}
