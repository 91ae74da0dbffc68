package files

import (
	"fmt"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/keyed"
	"github.com/holdfast-go/holdfast/internal/retry"
)

// mostLost bounds how many losses a stream remembers for the calls that wait: more than
// one only if a call was not woken between two.
const mostLost = 8

// loseLocked counts the stream's bytes below an offset that are not durable as lost: their
// file was removed, and no name leads to them. The next flush opens the path anew.
func (t *streams) loseLocked(s *stream, below int64) {
	gone := span{s.durable, below}
	only := !s.dirUnsynced || s.births == s.site.birth
	if only { // no other file's name waits to be durable
		gone.from = max(s.safe, s.lostTo)
	}
	if gone.to <= gone.from {
		return
	}
	if s.lost = append(s.lost, gone); len(s.lost) > mostLost {
		s.lost[1].from = s.lost[0].from // bytes between them are called lost too
		s.lost = s.lost[1:]
	}
	if t.policy.Sync.Waits() { // the calls that wait report their own
		s.gone += gone.within(s.unwaited)
	} else {
		s.gone += gone.to - gone.from
	}
	s.durable, s.lostTo = below, below
	t.countLocked(s)
	t.reportLocked(removal(s, gone.to-gone.from), 0)
	if only {
		s.site = nameSite{}
	}
	s.dirUnsynced, s.last = true, keyed.Key{}
	s.births++
}

// removalLocked returns what went with removed files and no call has reported, or nil.
func (s *stream) removalLocked() error {
	n := s.gone
	if n == 0 {
		return nil
	}
	s.gone = 0
	return removal(s, n)
}

func removal(s *stream, n int64) *Error {
	return &Error{Path: s.given, Op: string(retry.OpSync), Attempts: 1, Outcome: holdfast.OutcomeUntouched, Lost: n,
		Err: fmt.Errorf("%d bytes appended before are in no file: %w", n, holdfast.ErrUnlinked)}
}
