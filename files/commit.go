package files

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/retry"
)

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

// joinLocked waits, without the lock, for the step that covers the stream, or makes it. All streams share
// the steps.
func (t *streams) joinLocked(ctx context.Context, s *stream) error {
	b := t.commit.Join()
	if i := s.goal; i < len(b.Work) && b.Work[i].stream == s {
		b.Work[i].end = s.accepted
	} else {
		s.users++
		s.goal = len(b.Work)
		b.Work = append(b.Work, goal{s, s.accepted})
	}
	defer t.mu.Lock()
	return t.commit.Do(ctx, b)
}

// stepLocked makes the streams of a batch durable. What fails is the streams'. The end of a context does
// not end it: it is for others too.
func (t *streams) stepLocked(goals *[]goal) error {
	start := time.Now()
	t.makeDurableLocked(context.Background(), *goals)
	t.commit.Took(time.Since(start))
	t.restGoalsLocked(*goals)
	return nil
}
