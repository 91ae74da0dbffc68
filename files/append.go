package files

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/retry"
)

// Append adds data to the end of the file at path, which is made if it is not
// there, as the policy says.
//
// The data of one call stands together in the file, and one goroutine's calls for a
// path keep their order. Where the policy waits for no sync, nil means that the data is
// accepted and kept until it is written. Under sync=group and sync=each, nil means that
// it is durable, with the file's name. Data larger than the policy's Buffer bypasses the
// buffer. So does that of a sync=group call that has to open the file: if it can't, nothing is accepted.
//
// An error is a [*Error]. Its Offset says how much of data was accepted or is in
// the file; the rest is not, and may be given again. With holdfast.OutcomeUncertain all was
// accepted, and it is not known whether it is durable. What failed in the background
// is returned by the next Append for the path, which accepts nothing then. While a write
// fails, each call for the path tries again and is refused. A failed sync is final for
// the path.
//
// A sync notices that another program has removed the file: [holdfast.ErrUnlinked]. A call
// that lost its own data with it returns Offset 0. Bytes of earlier calls that were not yet
// durable are counted in Lost, once, by the next call. After that the path is opened anew.
//
// Without [Options].Lines, Append does not look at what the file ends with. After a crash
// that may be a part of a record, which the caller must handle.
//
// A relative path is that of the working directory at the time of the call. It takes a system
// call more.
//
// Append waits while the memory of all files is used up, and for writes and syncs
// as the policy says. Paths that can't be written stop no other: while they hold the memory, it
// writes data at once, past the buffer. [Set.Discard] gives such a path up. The end of ctx ends the wait. It does not keep data. Any
// number of goroutines may call it.
func (f *Set) Append(ctx context.Context, path string, data []byte) error {
	if ctx.Err() != nil {
		return appendError(path, opWait, context.Cause(ctx))
	}
	absolute, err := pathOf(path)
	if err != nil {
		return err
	}
	t := &f.streams
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.paths[absolute]; s != nil && t.roomLocked(s, len(data)) {
		s.wait.bytes = append(s.wait.bytes, data...)
		s.accepted += int64(len(data))
		t.counts.Writes++
		return nil
	}
	s, err := t.useLocked(absolute, path)
	if err != nil {
		return appendError(path, retry.OpOpen, err)
	}
	t.calls++
	defer t.doneLocked()
	defer t.restLocked(s)
	return t.appendLocked(ctx, s, data)
}

// roomLocked reports whether n more bytes may be copied behind those that wait,
// without any other check. Then their clocks run already, and no call waits for a
// sync.
func (t *streams) roomLocked(s *stream, n int) bool {
	return s.wait != nil && len(s.wait.bytes) > 0 && len(s.wait.bytes)+n <= cap(s.wait.bytes) && len(s.wait.bytes)+n < t.flushAt &&
		!s.exclusive && s.failed == nil && s.unreported == nil && s.final == nil && !t.closing &&
		!t.policy.Sync.Waits() && t.syncTimer.Running() && s.age.Running()
}

// appendLocked accepts data when that needs more than a copy.
func (t *streams) appendLocked(ctx context.Context, s *stream, data []byte) error {
	if len(data) == 0 {
		return t.refusalLocked(s)
	}
	sync := t.policy.Sync.Mode
	// A call of a group that has to open the file does so before its bytes are accepted: where that fails,
	// they are not in memory, and its caller may give them again.
	if int64(len(data)) > t.memory.largest || sync == holdfast.SyncEach || sync == holdfast.SyncGroup && !t.isOpen(s) {
		return t.appendDirectLocked(ctx, s, data)
	}
	if taken, err := t.takeLocked(ctx, s, data); err != nil {
		return err
	} else if !taken {
		return t.appendDirectLocked(ctx, s, data)
	}
	if sync == holdfast.SyncGroup {
		return t.commitLocked(ctx, s, int64(len(data)))
	}
	if t.overLocked(s) {
		t.flushBehindLocked(ctx, s) // the data is accepted: the next call reports a failure
	}
	return nil
}

// takeLocked waits until memory has room for data, copies it whole, and starts its clocks. It
// reports false if memory is held by streams that can't be flushed.
func (t *streams) takeLocked(ctx context.Context, s *stream, data []byte) (taken bool, err error) {
	for room := true; room; {
		if err := t.readyLocked(ctx, s); err != nil {
			return false, err
		}
		var err error
		switch {
		case s.exclusive:
			err = t.awaitLocked(ctx, &s.changed)
		case s.wait != nil && int64(len(s.wait.bytes)+len(data)) > t.memory.largest:
			if s.busy {
				err = t.awaitLocked(ctx, &s.changed)
			} else if err := t.flushStepLocked(ctx, s); err != nil {
				return false, refused(err)
			}
		case t.putLocked(s, data):
			if s.queue == nil && s.wait != nil { // its clock does not run yet
				s.since = t.due.now()
				t.waiting.addLocked(s)
				t.due.armLocked()
			}
			t.syncTimer.Set(true)
			t.counts.Writes++
			return true, nil
		default:
			room, err = t.makeRoomLocked(ctx)
		}
		if err != nil {
			return false, appendError(s.given, opWait, err)
		}
	}
	return false, nil
}

// makeRoomLocked does one step towards free memory: it flushes the stream with the
// oldest bytes, or waits for a flush under way. It reports false if that failed, or if all
// memory is held by streams that can't be flushed. It waits for none of these: one at a time is
// tried again beside the call.
func (t *streams) makeRoomLocked(ctx context.Context) (bool, error) {
	t.counts.Waits++
	if s := t.waiting.idleLocked(); s != nil {
		err := t.flushBehindLocked(ctx, s) // a failure is the stream's to report, and moves it from waiting to stuck
		return err == nil, context.Cause(ctx)
	}
	if t.hopes > 0 {
		return true, t.awaitLocked(ctx, &t.ended)
	}
	if s := t.stuck.idleLocked(); s != nil && t.flights == 0 {
		s.users++
		t.background.Add(1)
		go func() {
			defer t.background.Done()
			t.mu.Lock()
			defer t.mu.Unlock()
			if t.flights == 0 && !s.busy && s.failed != nil {
				t.flushBehindLocked(context.Background(), s)
			}
			t.restLocked(s)
		}()
	}
	return false, nil
}

// readyLocked returns why the stream accepts nothing now. If its last flush failed
// it tries once more.
func (t *streams) readyLocked(ctx context.Context, s *stream) error {
	for {
		if err := t.refusalLocked(s); err != nil {
			return err
		}
		if s.failed == nil {
			return nil
		}
		if s.busy {
			if err := t.awaitLocked(ctx, &s.changed); err != nil {
				return appendError(s.given, opWait, err)
			}
			continue
		}
		if err := t.flushStepLocked(ctx, s); err != nil {
			s.unreported = nil
			return refused(err)
		}
	}
}

// refusalLocked returns why no call may go on with the stream. It returns a failure of
// the background only once.
func (t *streams) refusalLocked(s *stream) error {
	if t.closing {
		return appendError(s.given, opAppend, errFilesClosed)
	}
	if err := s.unreported; err != nil && s.final == nil {
		s.unreported = nil
		return refused(err)
	}
	s.unreported = nil
	if s.final != nil {
		return s.final
	}
	return s.removalLocked()
}

// appendDirectLocked hands data to the kernel from the caller's memory. It first flushes
// all that was accepted before.
func (t *streams) appendDirectLocked(ctx context.Context, s *stream, data []byte) error {
	for {
		if err := t.readyLocked(ctx, s); err != nil {
			return err
		}
		if !s.busy && s.waitsLocked() == 0 {
			break
		}
		if s.busy {
			if err := t.awaitLocked(ctx, &s.changed); err != nil {
				return appendError(s.given, opWait, err)
			}
		} else if err := t.flushStepLocked(ctx, s); err != nil {
			return refused(err)
		}
	}
	s.busy, s.exclusive = true, true // no other call puts bytes meanwhile
	s.age.Begin()
	t.mu.Unlock()
	start := time.Now()
	n, fail := t.write(ctx, s, data, false)
	took := time.Since(start)
	t.mu.Lock()
	s.busy, s.exclusive = false, false
	t.flushedLocked(s, took, fail)
	s.changed.wakeLocked()
	if n > 0 {
		t.counts.Writes++
		t.syncTimer.Set(true)
	}
	if fail != nil {
		fail.Offset, fail.Outcome = int64(n), holdfast.OutcomeUntouched
		if n > 0 {
			fail.Outcome = holdfast.OutcomePartial
		}
		return fail
	}
	if t.policy.Sync.Waits() {
		return t.commitLocked(ctx, s, int64(n))
	}
	return nil
}

func appendError(path string, op retry.Op, err error) error {
	return &Error{Path: path, Op: string(op), Err: err}
}

// refused returns the error of an earlier failure for a call that accepted no data.
func refused(err error) error {
	if failed, ok := err.(*Error); ok {
		again := *failed
		again.Offset, again.Outcome = 0, holdfast.OutcomeUntouched
		return &again
	}
	return err
}
