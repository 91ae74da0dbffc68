package holdfast

import "context"

// Append adds data to the end of the file at path, which is made if it is not
// there, as the policy says.
//
// The data of one call stands together in the file, and one goroutine's calls for a
// path keep their order. Nil means, where the policy waits for no sync, that the data
// is accepted and kept until it is written; and under sync=group and sync=each, that
// it is durable, with the file's name. Data larger than the policy's Buffer goes straight to
// the kernel.
//
// An error is a [*FileError]. Its Offset says how much of data was accepted or is in
// the file; the rest is not, and may be given again. With OutcomeUncertain all was
// accepted, and it is not known whether it is durable. What failed in the background
// is told by the next Append for the path, which accepts nothing then. While a write
// fails, each call for the path tries again and is refused. A failed sync is final for
// the path.
//
// Append waits while the memory of all files is used up, and for writes and syncs
// as the policy says; the end of ctx ends the wait. It does not keep data. Any
// number of goroutines may call it.
func (f *Files) Append(ctx context.Context, path string, data []byte) error {
	if ctx.Err() != nil {
		return appendError(path, opWait, context.Cause(ctx))
	}
	t := &f.streams
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.paths[path]; s != nil && t.roomLocked(s, len(data)) {
		s.wait.bytes = append(s.wait.bytes, data...)
		s.accepted += int64(len(data))
		return nil
	}
	s, err := t.useLocked(path)
	if err != nil {
		return appendError(path, opOpen, err)
	}
	t.calls++
	defer t.doneLocked()
	defer t.restLocked(s)
	return t.appendLocked(ctx, s, data)
}

// roomLocked reports whether n more bytes may be copied behind those that wait, with
// nothing to be looked at: their clocks run already, and no call waits for a sync.
func (t *streams) roomLocked(s *stream, n int) bool {
	return s.wait != nil && len(s.wait.bytes) > 0 && len(s.wait.bytes)+n <= cap(s.wait.bytes) &&
		!s.exclusive && s.failed == nil && s.unreported == nil && s.final == nil && !t.closing &&
		!t.policy.acknowledgesDurable() && t.syncTimer.running()
}

// appendLocked accepts data when that needs more than a copy.
func (t *streams) appendLocked(ctx context.Context, s *stream, data []byte) error {
	straight := int64(len(data)) > t.memory.largest || t.policy.Sync == SyncEach
	if len(data) == 0 {
		return t.refusalLocked(s)
	}
	if straight {
		return t.appendStraightLocked(ctx, s, data)
	}
	if err := t.takeLocked(ctx, s, data); err != nil {
		return err
	}
	if t.policy.Sync == SyncGroup {
		return t.commitLocked(ctx, s, int64(len(data)))
	}
	return nil
}

// takeLocked waits until memory has room for data, and copies it whole.
func (t *streams) takeLocked(ctx context.Context, s *stream, data []byte) error {
	for {
		if err := t.readyLocked(ctx, s); err != nil {
			return err
		}
		var err error
		switch {
		case s.exclusive:
			err = t.awaitLocked(ctx, &s.changed)
		case s.wait != nil && int64(len(s.wait.bytes)+len(data)) > t.memory.largest:
			if s.busy {
				err = t.awaitLocked(ctx, &s.changed)
			} else if err := t.flushStepLocked(ctx, s); err != nil {
				return refused(err)
			}
		case t.putLocked(s, data):
			t.acceptedLocked(s)
			return nil
		default:
			err = t.makeRoomLocked(ctx)
		}
		if err != nil {
			return appendError(s.name.path, opWait, err)
		}
	}
}

// acceptedLocked starts the clocks of bytes that were put.
func (t *streams) acceptedLocked(s *stream) {
	if s.queue == nil && s.wait != nil {
		s.since = t.due.now()
		t.waiting.addLocked(s)
		t.due.armLocked()
	}
	t.syncTimer.arm()
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
				return appendError(s.name.path, opWait, err)
			}
			continue
		}
		if err := t.flushStepLocked(ctx, s); err != nil {
			s.unreported = nil
			return refused(err)
		}
	}
}

// refusalLocked returns why no call may go on with the stream, and tells a failure of
// the background for the first and only time.
func (t *streams) refusalLocked(s *stream) error {
	if t.closing {
		return appendError(s.name.path, opAppend, errFilesClosed)
	}
	if err := s.unreported; err != nil && s.final == nil {
		s.unreported = nil
		return refused(err)
	}
	s.unreported = nil
	return s.final
}

// appendStraightLocked hands data to the kernel from the caller's memory, behind all
// that was accepted before it.
func (t *streams) appendStraightLocked(ctx context.Context, s *stream, data []byte) error {
	if err := t.clearWayLocked(ctx, s); err != nil {
		return err
	}
	n, err := t.writeStraightLocked(ctx, s, data)
	if n > 0 {
		t.syncTimer.arm()
	}
	if err == nil && t.policy.acknowledgesDurable() {
		err = t.commitLocked(ctx, s, int64(n))
	}
	return err
}

// clearWayLocked flushes the stream until it is empty and the caller is the one who
// is busy with it.
func (t *streams) clearWayLocked(ctx context.Context, s *stream) error {
	for {
		if err := t.readyLocked(ctx, s); err != nil {
			return err
		}
		var err error
		switch {
		case s.busy:
			err = t.awaitLocked(ctx, &s.changed)
		case s.waitsLocked() > 0:
			if err := t.flushStepLocked(ctx, s); err != nil {
				return refused(err)
			}
		default:
			return nil
		}
		if err != nil {
			return appendError(s.name.path, opWait, err)
		}
	}
}

// writeStraightLocked writes data while nobody else puts bytes.
func (t *streams) writeStraightLocked(ctx context.Context, s *stream, data []byte) (n int, err error) {
	s.busy, s.exclusive = true, true
	t.mu.Unlock()
	n, fail := t.write(ctx, s, data, false)
	t.mu.Lock()
	s.busy, s.exclusive = false, false
	t.counts.flushes++
	s.accepted += int64(n)
	s.flushed += int64(n)
	s.changed.tellLocked()
	if fail == nil {
		return n, nil
	}
	fail.Offset, fail.Outcome = int64(n), OutcomeUntouched
	if n > 0 {
		fail.Outcome = OutcomePartial
	}
	return n, fail
}

func appendError(path string, op fileOp, err error) error {
	return &FileError{Path: path, Op: string(op), Err: err}
}

// refused returns the error of an earlier failure as that of a call whose data was
// not accepted.
func refused(err error) error {
	if failed, ok := err.(*FileError); ok {
		again := *failed
		again.Offset, again.Outcome = 0, OutcomeUntouched
		return &again
	}
	return err
}
