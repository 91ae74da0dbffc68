package files

import (
	"cmp"
	"context"
	"math"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/deadline"
	"github.com/holdfast-go/holdfast/internal/durable"
	"github.com/holdfast-go/holdfast/internal/errjoin"
	"github.com/holdfast-go/holdfast/internal/keyed"
)

// flusher is the scheduler of flushes: it has the memory in which bytes gather, and knows which stream's bytes
// go to the kernel next, because they are due, or because memory or a call needs it. streams.mu guards it.
//
// Bytes that are due by time are flushed by goroutines, at most Options.Workers, and by none while
// nothing is due. The period is the same for all streams. So each queue is in the order of its due
// times, and one timer serves both.
type flusher struct {
	*streams
	open *openFiles

	memory  streamMemory
	waiting streamQueue // have bytes to flush and no flush under way, by the age of the oldest byte
	stuck   streamQueue // their last flush failed; by the time of that
	flushAt int         // waiting bytes that start the flush of a stream

	inFlight       int    // streams that are being flushed
	healthyFlushes int    // of these, streams whose last flush had not failed
	ended          signal // a flush has ended: memory may be free

	period  time.Duration // until bytes are due; 0: no bound by time
	timer   *time.Timer   // nil without a period
	at      time.Time     // when timer fires; zero while it is not set
	workers int           // goroutines that flush what is due
}

func (f *flusher) init(o *openFiles) {
	f.streams, f.open = o.streams, o
	f.memory.init(int64(f.policy.Buffer), int64(f.options.Memory))
	f.flushAt = int(cmp.Or(f.policy.FlushBytes, math.MaxInt))
	// A byte that is due for a sync must not wait in memory for the sync before.
	f.period = deadline.Shortest(f.policy.FlushEvery, f.policy.Sync.Every)
	if f.period > 0 {
		f.timer = time.AfterFunc(math.MaxInt64, func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.at = time.Time{}
			f.startLocked()
		})
		f.timer.Stop()
	}
}

// now returns the time if a stream's place in a queue needs it.
func (f *flusher) now() time.Time {
	if f.period == 0 {
		return time.Time{}
	}
	return time.Now()
}

// bufferLocked waits until memory has room for data, copies it whole, and starts the clock of its flush. It
// reports false if memory is held by streams that can't be flushed.
func (f *flusher) bufferLocked(ctx context.Context, s *stream, data []byte) (taken bool, err error) {
	for room := true; room; {
		if err := f.readyLocked(ctx, s); err != nil {
			return false, err
		}
		full := s.wait != nil && int64(len(s.wait.bytes)+len(data)) > f.memory.largest
		switch {
		case s.exclusive, full && s.busy:
			err = f.awaitStreamLocked(ctx, s)
		case full:
			err = refused(f.flushStepLocked(ctx, s))
		case f.memory.putLocked(&s.buffer, data):
			s.age.Begin()
			s.accepted += int64(len(data))
			if s.queue == nil { // its clock does not run yet
				s.since = f.now()
				f.waiting.addLocked(s)
				f.armLocked()
			}
			return true, nil
		default:
			room, err = f.makeRoomLocked(ctx, s)
		}
		if err != nil {
			return false, err
		}
	}
	return false, nil
}

// bypassLocked hands data to the kernel from the caller's memory. It first flushes all that was accepted
// before. It returns how many bytes are accepted.
func (f *flusher) bypassLocked(ctx context.Context, s *stream, data []byte) (n int, err error) {
	for {
		if err := f.readyLocked(ctx, s); err != nil {
			return 0, err
		}
		if s.busy {
			err = f.awaitStreamLocked(ctx, s)
		} else if s.waitsLocked() > 0 {
			err = refused(f.flushStepLocked(ctx, s))
		} else {
			break
		}
		if err != nil {
			return 0, err
		}
	}
	s.exclusive = true // no other call puts bytes meanwhile
	s.age.Begin()
	n, fail := f.writeLocked(ctx, s, data, false)
	s.exclusive = false
	if fail == nil {
		return n, nil
	}
	fail.Offset, fail.Outcome = int64(n), holdfast.OutcomeUntouched
	if n > 0 {
		fail.Outcome = holdfast.OutcomePartial
	}
	return n, fail
}

// makeRoomLocked does one step towards free memory: it flushes the stream with the
// oldest bytes, or waits for a flush under way. It reports false if that failed, or if all
// memory is held by streams that can't be flushed. It waits for none of these.
func (f *flusher) makeRoomLocked(ctx context.Context, caller *stream) (room bool, err error) {
	f.counts.Waits++
	s := f.waiting.idleLocked()
	switch {
	case s != nil:
		room = f.flushBehindLocked(ctx, s) == nil // a failure is the stream's to report, and moves it from waiting to stuck
		err = context.Cause(ctx)
	case f.healthyFlushes > 0:
		room, err = true, f.awaitLocked(ctx, &f.ended)
	default:
		f.retryStuckLocked()
	}
	if err != nil {
		err = appendError(caller.given, opWait, err)
	}
	return room, err
}

// retryStuckLocked has one stream that could not be flushed tried again beside the call, unless a flush is
// under way.
func (f *flusher) retryStuckLocked() {
	s := f.stuck.idleLocked()
	if s == nil || f.inFlight > 0 {
		return
	}
	s.users++
	f.background.Add(1)
	go func() {
		defer f.background.Done()
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.inFlight == 0 && !s.busy && s.failed != nil {
			f.flushBehindLocked(context.Background(), s)
		}
		f.restLocked(s)
	}()
}

// readyLocked returns why the stream accepts nothing now. If its last flush failed
// it tries once more.
func (f *flusher) readyLocked(ctx context.Context, s *stream) error {
	for {
		if err := f.refusalLocked(s); err != nil {
			return err
		}
		if s.failed == nil {
			return nil
		}
		if s.busy {
			if err := f.awaitStreamLocked(ctx, s); err != nil {
				return err
			}
			continue
		}
		if err := f.flushStepLocked(ctx, s); err != nil {
			s.unreported = nil
			return refused(err)
		}
	}
}

// refusalLocked returns why no call may go on with the stream. It returns a failure of
// the background only once.
func (f *flusher) refusalLocked(s *stream) error {
	if f.closing {
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

// flushLocked hands what the stream holds below end to the kernel, or waits for the call
// that does.
func (f *flusher) flushLocked(ctx context.Context, s *stream, end int64) error {
	for s.flushed < end {
		if s.busy {
			if err := f.awaitStreamLocked(ctx, s); err != nil {
				return err
			}
			continue
		}
		if err := f.flushStepLocked(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// flushStepLocked hands a block of the stream's bytes to the kernel, without the
// lock. No call may be busy with the stream.
func (f *flusher) flushStepLocked(ctx context.Context, s *stream) error {
	// A stuck stream is tried once at each call, and so is every other stream meanwhile.
	// Most failures that pass are a full disk, which fails all streams.
	once := f.stuck.oldest != nil
	since := s.since
	s.leaveLocked()
	if s.flight == nil {
		s.flight, s.wait, s.before = s.wait, nil, len(s.wait.bytes)
	} else if s.wait != nil {
		f.waiting.addLocked(s)
	}
	healthy := 0
	if s.failed == nil {
		healthy = 1
	}
	f.inFlight, f.healthyFlushes = f.inFlight+1, f.healthyFlushes+healthy
	_, fail := f.writeLocked(ctx, s, s.flight.bytes[s.begun:], once)
	f.inFlight, f.healthyFlushes = f.inFlight-1, f.healthyFlushes-healthy
	if s.begun == len(s.flight.bytes) {
		f.memory.giveLocked(s.flight)
		s.flight, s.begun = nil, 0
	}
	f.requeueLocked(s, fail, since)
	f.ended.wakeLocked()
	f.armLocked()
	if f.overLocked(s) {
		f.background.Add(1)
		go func() {
			defer f.background.Done()
			// bytes that came meanwhile
			f.mu.Lock()
			defer f.mu.Unlock()
			if f.overLocked(s) {
				f.flushBehindLocked(context.Background(), s)
			}
		}()
	}
	f.tidyLocked(s)
	if fail != nil {
		return fail
	}
	return nil
}

// writeLocked hands p to the kernel, without the lock. The call is busy with the stream meanwhile.
func (f *flusher) writeLocked(ctx context.Context, s *stream, p []byte, once bool) (n int, fail *Error) {
	s.busy = true
	f.mu.Unlock()
	start := time.Now()
	n, fail = f.open.write(ctx, s, p, once)
	took := time.Since(start)
	f.mu.Lock()
	s.busy = false
	f.counts.Flushes++
	f.counts.Flush.Add(took)
	switch {
	case fail == nil:
		s.failing = false
	case fail.Op != string(opWait) && !s.failing: // the end of a call's context is no failure
		s.failing = true
		f.reportLocked(fail, s.waitsLocked())
	}
	s.changed.wakeLocked()
	return n, fail
}

// requeueLocked puts the stream after a flush into the queue where it belongs.
func (f *flusher) requeueLocked(s *stream, fail *Error, since time.Time) {
	switch {
	case fail == nil:
		s.failed = nil
		return
	case fail.Op != string(opWait):
		s.failed = fail
	}
	s.leaveLocked()
	if s.failed != nil {
		s.since = f.now()
		f.stuck.addLocked(s)
	} else {
		s.since = since
		f.waiting.addFirstLocked(s)
	}
}

// flushBehindLocked is flushStepLocked for calls that concern other streams: the next call
// for this stream returns a failure.
func (f *flusher) flushBehindLocked(ctx context.Context, s *stream) error {
	again := s.failed != nil
	s.users++
	err := f.flushStepLocked(ctx, s)
	s.noteLocked(err, again)
	f.restLocked(s)
	return err
}

// overLocked reports whether a flush by bytes is due.
func (f *flusher) overLocked(s *stream) bool {
	return s.wait != nil && len(s.wait.bytes) >= f.flushAt && !s.busy && s.failed == nil && !f.closing
}

// stopLocked ends the flushes by time, and the waits for memory.
func (f *flusher) stopLocked() {
	if f.timer != nil {
		f.timer.Stop()
	}
	f.ended.wakeLocked()
}

// dropLocked gives up the bytes that a stream holds. No call is busy with it.
func (f *flusher) dropLocked(s *stream) {
	s.leaveLocked()
	for _, b := range []*block{s.flight, s.wait} {
		if b != nil {
			f.memory.giveLocked(b)
		}
	}
	s.buffer = buffer{}
	f.ended.wakeLocked()
}

// emptyLocked reports whether all that was accepted is in the kernel.
func (f *flusher) emptyLocked() bool {
	return f.inFlight == 0 && f.waiting.oldest == nil && f.stuck.oldest == nil
}

// armLocked sets the timer for the next due time. That may come before what it is set for: a stream with
// a call busy is left out, and takes its place again after that.
func (f *flusher) armLocked() {
	if f.period == 0 || f.closing || f.workers == f.options.Workers {
		return
	}
	s := f.waiting.idleLocked()
	if x := f.stuck.idleLocked(); s == nil || x != nil && x.since.Before(s.since) {
		s = x
	}
	if s == nil {
		return
	}
	if at := s.since.Add(f.period); f.at.IsZero() || at.Before(f.at) {
		f.at = at
		f.timer.Reset(time.Until(at))
	}
}

// startLocked starts one more goroutine if there is work for it.
func (f *flusher) startLocked() {
	if f.closing || f.workers >= f.options.Workers || f.nextLocked() == nil {
		f.armLocked()
		return
	}
	f.workers++
	f.background.Add(1)
	go func() {
		defer f.background.Done()
		f.flushDue()
	}()
}

// flushDue flushes what is due until nothing is.
func (f *flusher) flushDue() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for s := f.nextLocked(); s != nil && !f.closing; s = f.nextLocked() {
		f.flushBehindLocked(context.Background(), s)
		f.startLocked()
	}
	f.workers--
	f.armLocked()
}

// nextLocked returns a stream with bytes, or a retry, that are due.
func (f *flusher) nextLocked() *stream {
	now := time.Now()
	for _, q := range []*streamQueue{&f.waiting, &f.stuck} {
		if s := q.idleLocked(); s != nil && !now.Before(s.since.Add(f.period)) {
			return s
		}
	}
	return nil
}

// flushAllLocked flushes the streams up to their targets, some at a time, and returns
// what failed.
func (f *flusher) flushAllLocked(ctx context.Context, targets []target) error {
	errs := make([]error, len(targets))
	f.mu.Unlock()
	durable.Abreast(f.options.Workers, len(targets), func(i int) {
		g := targets[i]
		f.mu.Lock()
		defer f.mu.Unlock()
		errs[i] = f.flushLocked(ctx, g.stream, g.end)
	})
	f.mu.Lock()
	return errjoin.Join(errs...)
}

// settle flushes what waits for a path before the whole file is written. Where the
// system reports no inodes, it closes the path's file too: the name may soon be another's.
func (f *flusher) settle(ctx context.Context, path string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.paths) == 0 {
		return nil
	}
	path, err := f.pathOf(path)
	if err != nil {
		return err
	}
	s := f.paths[path]
	if s == nil {
		return nil
	}
	s.users++
	defer f.restLocked(s)
	if err := f.flushLocked(ctx, s, s.accepted); err != nil {
		return err
	}
	if x := f.fileOf(s); x != nil && x.key == (keyed.Key{}) {
		return f.open.shutLocked(ctx, x)
	}
	return nil
}

// torn returns the failure that left only a part of a call's bytes in a path's file.
// Other bytes written now would come in the middle of them.
func (f *flusher) torn(path string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.paths) == 0 {
		return nil
	}
	path, err := f.pathOf(path)
	if err != nil {
		return err
	}
	if s := f.paths[path]; s != nil && s.begun > 0 && s.begun < len(s.flight.bytes) {
		return s.failed
	}
	return nil
}
