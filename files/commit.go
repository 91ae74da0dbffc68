package files

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/retry"
)

// commitLocked returns when all that the stream has accepted is durable. The last n bytes
// of it are the caller's.
func (y *syncer) commitLocked(ctx context.Context, s *stream, n int64) error {
	mine := span{s.accepted - n, s.accepted}
	var ended error
	for again := true; again; {
		if y.policy.Sync.Mode == holdfast.SyncEach {
			y.makeDurableLocked(ctx, []target{{s, mine.to}})
			break
		}
		ended = y.joinLocked(ctx, s)
		// A step may have failed, and another call has written meanwhile what it could not.
		isOver := ended == nil && s.failed == nil && s.final == nil && s.dirErr == nil
		again = isOver && s.safe < mine.to && mine.within(s.lost) == 0 && !y.closing
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
	case s.durable >= mine.to && s.dirErr != nil:
		return &Error{Path: s.given, Op: string(retry.OpOpen), Offset: n, Outcome: holdfast.OutcomeUncertain, Err: s.dirErr}
	}
	why := context.Cause(ctx)
	if why == nil {
		why = errFilesClosed
	}
	return &Error{Path: s.given, Op: string(opWait), Offset: n, Outcome: holdfast.OutcomeUncertain, Err: why}
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
