package files

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/errjoin"
	"github.com/holdfast-go/holdfast/internal/keyed"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// Flush hands all that was accepted by Append before the call, for every path, to the
// kernel. It returns every failure of that, joined with the failures in the background
// that no call has returned yet. The bytes stay in memory, and the next call tries again.
// It waits for the kernel; the end of ctx ends the wait between two writes.
// Any number of goroutines may call it.
func (f *Set) Flush(ctx context.Context) error {
	return f.forAll(ctx, f.flusher.flushAllLocked)
}

// Sync makes all that was accepted by Append before the call durable, for every path,
// with the files' names, and under every policy. On nil all of it survives the death of
// the machine. It returns every failure, joined with the failures in the background that
// no call has returned yet. A failed sync is final for its path, and every call returns it.
// A removed file is reported once. Any number of goroutines may call it.
//
// If the sync of a directory fails, files that are closed and forgotten may have lost
// their names. The error names the directory then, and may concern any file there.
//
// Under sync=never, files that were closed to make room for others are synced with
// their whole file system. That does not report every earlier failure. It is an error
// where the system can't do it. Use sync=close to have files synced when they are closed.
func (f *Set) Sync(ctx context.Context) error {
	return f.forAll(ctx, f.syncer.makeDurableLocked)
}

// forAll does one step with all streams.
func (f *Set) forAll(ctx context.Context, step func(context.Context, []target) error) error {
	t := &f.streams
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closing {
		return errFilesClosed
	}
	t.calls++
	targets := t.targetsLocked()
	earlier := unreportedLocked(targets)
	err := step(ctx, targets)
	err = errjoin.Join(earlier, err, unreportedLocked(targets), t.lostNamesLocked())
	t.restTargetsLocked(targets)
	t.doneLocked()
	return err
}

// unreportedLocked returns the failures in the background that no call has returned yet,
// and the final failures.
func unreportedLocked(targets []target) error {
	var errs []error
	for _, g := range targets {
		errs = append(errs, g.stream.unreported)
		g.stream.unreported = nil
		errs = append(errs, g.stream.removalLocked(), g.stream.final)
	}
	return errjoin.Join(errs...)
}

// Release hands what was accepted for a path to the kernel, makes it durable unless
// the policy is sync=never, and closes the file. Call it before a rename or a
// removal, as log rotation does. The next Append opens the path anew. It returns what
// fails; the file is closed all the same. It waits for the disk; the end of ctx ends the
// wait. A path that nothing was appended to is no error.
func (f *Set) Release(ctx context.Context, path string) error {
	absolute, err := f.pathOf(path)
	if err != nil {
		return err
	}
	t := &f.streams
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closing {
		return appendError(path, opAppend, errFilesClosed)
	}
	// The path may be forgotten, and its name not be durable yet.
	s, err := t.useLocked(absolute, path)
	if err != nil {
		return nil
	}
	t.calls++
	defer t.doneLocked()
	defer t.restLocked(s)
	targets := []target{{s, s.accepted}}
	earlier := unreportedLocked(targets)
	err = f.finishLocked(ctx, targets)
	if x := t.fileOf(s); x != nil {
		err = errjoin.Join(err, f.open.shutLocked(ctx, x))
	}
	return errjoin.Join(earlier, err, unreportedLocked(targets), f.lostNameLocked(ctx, s))
}

// Discard gives up what [Set.Append] has accepted for a path and could not write, such as the log of
// a tenant whose directory is gone. It returns how many bytes it dropped from memory: they are in no
// file. It closes the file, after a sync where the policy syncs, and forgets the path with its
// failures, a failed sync too. The next Append opens the path anew.
//
// The error is the failures of the path that no call has returned yet; the path is given up all the
// same. If ctx ended first, which is an [Error] with Op wait, or the Set is closed, nothing is dropped.
// OnError is told of the lost bytes too. Other calls that wait for the path return an error.
//
// Note: Release does not drop what it fails to write, because a rotation calls it on a full disk too.
// The bytes are written when there is room again.
func (f *Set) Discard(ctx context.Context, path string) (lost int64, err error) {
	absolute, err := f.pathOf(path)
	if err != nil {
		return 0, err
	}
	t := &f.streams
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closing {
		return 0, appendError(path, opDiscard, errFilesClosed)
	}
	s := t.paths[absolute]
	if s == nil {
		return 0, nil
	}
	t.calls++
	defer t.doneLocked()
	s.users++
	defer t.restLocked(s)
	return f.discardLocked(ctx, s)
}

func (f *Set) discardLocked(ctx context.Context, s *stream) (lost int64, err error) {
	t := &f.streams
	for s.busy {
		if err := t.awaitStreamLocked(ctx, s); err != nil {
			return 0, err
		}
	}
	if x := t.fileOf(s); x != nil {
		s.busy = true // no other call opens the file meanwhile
		err := f.open.shutLocked(ctx, x)
		s.busy = false
		s.changed.wakeLocked()
		if err != nil {
			f.flusher.armLocked()
			return 0, err
		}
	}
	if t.paths[s.name.path] != s { // another call was faster
		return 0, nil
	}
	err = unreportedLocked([]target{{stream: s}})
	lost = s.waitsLocked()
	why := errDiscarded
	if lost > 0 {
		if failed, ok := s.failed.(*Error); ok {
			why = fmt.Errorf("%w: %w", errDiscarded, failed.Err)
		}
		t.reportLocked(&Error{Path: s.given, Op: string(opDiscard), Outcome: holdfast.OutcomePartial, Lost: lost,
			Err: fmt.Errorf("the last %d bytes accepted are lost: %w", lost, why)}, 0)
	}
	t.forgetLocked(s)
	f.flusher.dropLocked(s)
	// The calls that still use the stream see its end.
	s.lost = append(s.lost, span{s.flushed, s.accepted})
	s.flushed, s.failed = s.accepted, nil
	s.final = &Error{Path: s.given, Op: string(opDiscard), Err: why}
	return lost, err
}

var errDiscarded = errors.New("the path was discarded")

// lostNameLocked returns why a stream's name may be lost: a forgotten file may have had it.
// If the stream was forgotten and names were lost, it looks up where the path leads now.
func (f *Set) lostNameLocked(ctx context.Context, s *stream) error {
	t := &f.streams
	if s.births > 0 || len(t.forgotten.lost) == 0 {
		return t.lostNamesOfLocked(s.site.dir, s.dir)
	}
	t.mu.Unlock()
	var is sys.Stat
	tries := t.tries(s.given)
	at, err := t.resolve(ctx, &tries, s.name.path)
	if err == nil {
		var name sys.Name
		if name, err = sys.NewName(at.dir); err == nil {
			is, err = t.disk.StatPath(name)
		}
	}
	t.mu.Lock()
	if err != nil {
		return t.lostNamesLocked() // any of them
	}
	return t.lostNamesOfLocked(keyed.Key{Device: is.Device, Inode: is.Inode}, s.name.dir, at.dir)
}

// Close refuses new calls with an error that is os.ErrClosed, and waits for those
// under way. It flushes all that was appended, and syncs it unless the policy is
// sync=never. It closes every descriptor, even if a step before failed. It returns
// every failure that no call has returned yet. Another Close waits for the first and
// returns what it returned. The iterator of a WriteAll must not call it: Close would
// wait for that WriteAll.
func (f *Set) Close() error {
	f.close.Do(func() {
		f.mu.Lock()
		f.closing = true
		f.mu.Unlock()
		f.calls.Wait()
		discarded := f.discardUnfinished()
		f.closeErr = errjoin.Join(f.closeStreams(), discarded)
		f.marks.CloseAll()
		f.handles.CloseAll()
	})
	return f.closeErr
}

// discardUnfinished discards what no call committed.
func (f *Set) discardUnfinished() error {
	f.mu.Lock()
	unfinished := slices.Collect(maps.Keys(f.unfinished))
	f.mu.Unlock()
	var errs []error
	for _, u := range unfinished {
		errs = append(errs, u.abandon())
	}
	return errjoin.Join(errs...)
}

// closeStreams refuses new calls and ends the calls that wait for memory. It waits for the others,
// flushes and syncs all as the policy says, and closes every file. It returns every
// failure that no call has returned.
func (f *Set) closeStreams() error {
	t := &f.streams
	t.mu.Lock()
	defer t.mu.Unlock()
	f.stopLocked()
	targets := t.targetsLocked()
	failed := []error{unreportedLocked(targets)}
	f.finishLocked(context.Background(), targets) // failures are the streams', but for names
	if t.policy.Sync.Mode != holdfast.SyncNever {
		_, err := t.syncNamesLocked(context.Background(), targets)
		failed = append(failed, err)
	}
	for _, g := range targets {
		if x := t.fileOf(g.stream); x != nil {
			f.open.shutLocked(context.Background(), x)
		}
	}
	failed = append(failed, t.lostLocked(targets), unreportedLocked(targets), t.lostNamesLocked())
	t.restTargetsLocked(targets)
	t.mu.Unlock()
	f.open.dropErrseq(f.open.errseq)
	t.mu.Lock()
	return errjoin.Join(failed...)
}

// finishLocked hands what is accepted to the kernel, and makes it durable unless the policy is sync=never.
func (f *Set) finishLocked(ctx context.Context, targets []target) error {
	if f.options.Policy.Sync.Mode == holdfast.SyncNever {
		return f.flusher.flushAllLocked(ctx, targets)
	}
	return f.syncer.makeDurableLocked(ctx, targets)
}

// stopLocked lets no call begin, and returns when none is under way.
func (f *Set) stopLocked() {
	t := &f.streams
	t.closing = true
	f.flusher.stopLocked()
	for _, s := range t.paths {
		s.changed.wakeLocked()
	}
	for t.calls > 0 {
		t.awaitLocked(context.Background(), &t.idle)
	}
	t.mu.Unlock()
	t.background.Wait()
	f.syncer.commit.Wait()
	t.mu.Lock()
	f.syncer.timer.Set(false) // a call under way may have set it
}

// lostLocked says which bytes could not be written.
func (t *streams) lostLocked(targets []target) error {
	var errs []error
	for _, g := range targets {
		s := g.stream
		failed, ok := s.failed.(*Error)
		if !ok {
			continue
		}
		lost := *failed
		lost.Outcome, lost.Lost = holdfast.OutcomePartial, s.waitsLocked()
		lost.Err = fmt.Errorf("the last %d bytes accepted are lost: %w", s.waitsLocked(), failed.Err)
		errs = append(errs, &lost)
		t.reportLocked(&lost, 0)
	}
	return errjoin.Join(errs...)
}
