package holdfast

import (
	"context"
	"errors"
	"io"
	"time"
)

// opWait and opAppend are what a FileError has for calls that never came to a
// system call.
const (
	opWait   fileOp = "wait"
	opAppend fileOp = "append"
)

// flushLocked hands what the stream holds below end to the kernel, or waits for who
// does.
func (t *streams) flushLocked(ctx context.Context, s *stream, end int64) error {
	for s.flushed < end {
		if s.busy {
			if err := t.awaitStreamLocked(ctx, s); err != nil {
				return err
			}
			continue
		}
		if err := t.flushStepLocked(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// awaitStreamLocked waits until something has changed about the stream.
func (t *streams) awaitStreamLocked(ctx context.Context, s *stream) error {
	s.users++
	err := t.awaitLocked(ctx, &s.changed)
	s.users--
	if err != nil {
		return appendError(s.name.path, opWait, err)
	}
	return nil
}

// flushStepLocked hands a block of the stream's bytes to the kernel, without the
// lock. Nobody may be busy with the stream.
func (t *streams) flushStepLocked(ctx context.Context, s *stream) error {
	// Who is stuck is tried once at each call, and so is all else meanwhile: most
	// failures that pass are of a disk that is full for all.
	once := t.stuck.oldest != nil
	since := t.takeFlightLocked(s)
	hopes := 0
	if s.failed == nil {
		hopes = 1
	}
	t.flights, t.hopes = t.flights+1, t.hopes+hopes
	t.mu.Unlock()
	_, fail := t.write(ctx, s, s.flight.bytes[s.begun:], once)
	t.mu.Lock()
	t.flights, t.hopes = t.flights-1, t.hopes-hopes
	s.busy = false
	t.counts.flushes++
	if s.begun == len(s.flight.bytes) {
		t.memory.giveLocked(s.flight)
		s.flight, s.begun = nil, 0
	}
	t.landLocked(s, fail, since)
	s.changed.tellLocked()
	t.ended.tellLocked()
	t.due.armLocked()
	t.tidyLocked(s)
	if fail != nil {
		return fail
	}
	return nil
}

// takeFlightLocked makes the caller the one who is busy with the stream and what
// waits the bytes to write, if none are left from before. It returns since when
// they wait.
func (t *streams) takeFlightLocked(s *stream) (since time.Time) {
	since = s.since
	s.busy = true
	s.leaveLocked()
	if s.flight == nil {
		s.flight, s.wait = s.wait, nil
	} else if s.wait != nil {
		t.waiting.addLocked(s)
	}
	return since
}

// landLocked puts the stream after a flush into the queue where it belongs.
func (t *streams) landLocked(s *stream, fail *FileError, since time.Time) {
	switch {
	case fail == nil:
		s.failed = nil
		return
	case fail.Op != string(opWait):
		s.failed = fail
	}
	s.leaveLocked()
	if s.failed != nil {
		s.since = t.due.now()
		t.stuck.addLocked(s)
	} else {
		s.since = since
		t.waiting.addFirstLocked(s)
	}
}

// noteLocked keeps what failed in the background for the next call for the path. A
// failure that repeats the one before has been told or is kept already.
func (s *stream) noteLocked(err error, again bool) {
	if err != nil && !again && s.unreported == nil && s.failed != nil {
		s.unreported = err
	}
}

// flushBehindLocked is flushStepLocked for those who were not asked for this
// stream: a failure is told by the next call that is.
func (t *streams) flushBehindLocked(ctx context.Context, s *stream) error {
	again := s.failed != nil
	s.users++
	err := t.flushStepLocked(ctx, s)
	s.noteLocked(err, again)
	t.restLocked(s)
	return err
}

// write writes p to the stream's file, with retries, or says how far it came. The
// caller is the one who is busy with the stream.
func (t *streams) write(ctx context.Context, s *stream, p []byte, once bool) (n int, fail *FileError) {
	tries := t.files.tries()
	if once {
		tries.retry.Attempts = 1
	}
	for {
		n, op, err := t.writeOnce(ctx, s, p, &tries)
		if err == nil {
			return n, nil
		}
		if err == errGone {
			continue
		}
		if n > 0 || !tries.again(ctx, op, &err) {
			return n, &FileError{Path: s.name.path, Op: string(op), Attempts: tries.attempts(), Outcome: OutcomeUncertain, Err: err}
		}
	}
}

// writeOnce writes p in one turn. Between two turns others may write to the file, so
// it does not end the turn for a pause when a part of p is written.
func (t *streams) writeOnce(ctx context.Context, s *stream, p []byte, tries *tries) (n int, op fileOp, err error) {
	h := &t.files.handles
	if err := h.begin(ctx); err != nil {
		return 0, opWait, err
	}
	defer h.end()
	x, op, err := t.useFile(ctx, s)
	if err != nil {
		return 0, op, err
	}
	// What was written must be known before the descriptor may be evicted.
	defer h.rest(&x.handle)
	defer func() { t.credit(s, n) }()
	if x.key != (turnKey{}) {
		turns := &t.files.turns
		turns.queue(x.key, &s.ticket)
		defer turns.leave(&s.ticket)
		if err := turns.await(ctx, &s.ticket); err != nil {
			return 0, opWait, err
		}
	}
	if t.files.handles.isGone(&x.handle) {
		return 0, opOpen, errGone
	}
	return t.writeAll(ctx, x.fd, p, tries)
}

// errGone is that a file has to be opened anew: its name may be another file's by now.
var errGone = errors.New("the file is being closed")

func (t *streams) writeAll(ctx context.Context, fd int, p []byte, tries *tries) (n int, op fileOp, err error) {
	for n < len(p) {
		k, err := t.files.disk.Write(fd, p[n:])
		n += k
		if k > 0 {
			tries.progress()
		}
		if err == nil && k == 0 {
			err = io.ErrShortWrite
		}
		if err != nil && n < len(p) && (n == 0 || !tries.again(ctx, opWrite, &err)) {
			return n, opWrite, err
		}
	}
	return n, "", nil
}

// credit counts n bytes as the kernel's.
func (t *streams) credit(s *stream, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.flushed += int64(n)
	if s.exclusive {
		s.accepted += int64(n)
	} else {
		s.begun += n
	}
}
