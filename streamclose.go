package holdfast

import (
	"context"
	"fmt"
	"maps"
	"slices"
)

// Flush hands all that was accepted by Append before the call, for every path, to the
// kernel. It returns what fails of that, joined, and what has failed in the background
// and no call has told; the bytes stay in memory, and the next call tries again. It
// waits for the kernel; the end of ctx ends the wait between two writes.
// Any number of goroutines may call it.
func (f *Files) Flush(ctx context.Context) error {
	return f.streams.forAll(ctx, f.streams.flushAllLocked)
}

// Sync makes all that was accepted by Append before the call durable, for every path,
// with the files' names, and under every policy. On nil all of it survives the death of
// the machine. It returns what fails, joined, and what has failed in the background
// and no call has told. A failed sync is final for its path, and told by every call.
// Any number of goroutines may call it.
//
// If the sync of a folder fails, files of which nothing is kept any more may have lost
// their names: the error names the folder then, and speaks of any file there.
//
// Under sync=never, files that were closed to make room for others are synced with
// the whole file system that they are on, which does not tell every failure before, and
// where the system can't do that it is an error: use a policy of sync=close to have them
// synced when they are closed.
func (f *Files) Sync(ctx context.Context) error {
	return f.streams.forAll(ctx, f.streams.makeDurableLocked)
}

// forAll does one step with all streams.
func (t *streams) forAll(ctx context.Context, step func(context.Context, []goal) error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closing {
		return errFilesClosed
	}
	t.calls++
	goals := t.goalsLocked()
	told := t.tellLocked(goals)
	err := step(ctx, goals)
	t.restGoalsLocked(goals)
	t.doneLocked()
	return joinAll(told, err, t.lostNamesLocked())
}

// lostNamesLocked returns in which folders names were lost of files that were forgotten.
func (t *streams) lostNamesLocked() error {
	return joinAll(slices.Collect(maps.Values(t.lostNames))...)
}

// tellLocked returns what has failed in the background and no call has told, and the
// failures that are final.
func (t *streams) tellLocked(goals []goal) error {
	var errs []error
	for _, g := range goals {
		errs = append(errs, g.stream.unreported)
		g.stream.unreported = nil
		errs = append(errs, g.stream.final)
	}
	return joinAll(errs...)
}

// Release hands what was accepted for a path to the kernel, makes it durable unless
// the policy is sync=never, and closes the file: to rename or remove it, as log
// rotation does. The next Append opens the path anew. It returns what fails; the file
// is closed all the same. A path that nothing was appended to is no error.
func (f *Files) Release(ctx context.Context, path string) error {
	t := &f.streams
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closing {
		return appendError(path, opAppend, errFilesClosed)
	}
	// The path may be forgotten, and its name not be durable yet.
	s, err := t.useLocked(path)
	if err != nil {
		return nil
	}
	t.calls++
	defer t.doneLocked()
	defer t.restLocked(s)
	goals := []goal{{s, s.accepted}}
	told := t.tellLocked(goals)
	err = t.settleStreamLocked(ctx, goals)
	return joinAll(told, err, t.tellLocked(goals), t.lostNames[s.name.folder])
}

// settleStreamLocked flushes a stream, syncs it if that is the policy's, and closes its
// file.
func (t *streams) settleStreamLocked(ctx context.Context, goals []goal) error {
	step := t.flushAllLocked
	if t.policy.syncs() {
		step = t.makeDurableLocked
	}
	err := step(ctx, goals)
	if x := t.openFile(goals[0].stream); x != nil {
		err = joinAll(err, t.shutLocked(ctx, x))
	}
	return err
}

// settle flushes what waits for a path before the whole file is written. Where the
// system does not tell which file a name is, it closes the path's too: it may be
// another soon.
func (t *streams) settle(ctx context.Context, path string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.paths[path]
	if s == nil {
		return nil
	}
	s.users++
	defer t.restLocked(s)
	if err := t.flushLocked(ctx, s, s.accepted); err != nil {
		return err
	}
	if x := t.openFile(s); x != nil && x.key == (turnKey{}) {
		return t.shutLocked(ctx, x)
	}
	return nil
}

// torn returns the failure that has left a path's bytes in the file in parts: what
// comes between would stand in the middle of a call's.
func (t *streams) torn(path string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.paths[path]; s != nil && s.begun > 0 {
		return s.failed
	}
	return nil
}

// shutLocked closes a file, and waits for that without the lock.
func (t *streams) shutLocked(ctx context.Context, x *streamFile) error {
	t.mu.Unlock()
	defer t.mu.Lock()
	t.letGo(x)
	if err := x.awaitDrop(ctx); err != nil {
		return appendError(x.stream.name.path, opWait, err)
	}
	return nil
}

// doneLocked ends a call.
func (t *streams) doneLocked() {
	t.calls--
	if t.calls == 0 && t.closing {
		t.ended.tellLocked()
	}
}

// close refuses new calls and releases those that wait for memory, waits for the
// others, and then flushes and syncs all as the policy says and closes every file. It
// returns every failure that no call has told.
func (t *streams) close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopLocked()
	goals := t.goalsLocked()
	told := t.tellLocked(goals)
	step := t.flushAllLocked
	if t.policy.syncs() {
		step = t.makeDurableLocked
	}
	step(background, goals) // what fails is the streams', but for names
	if t.policy.syncs() {
		told = joinAll(told, t.syncNamesLocked(background, goals))
	}
	t.shutAllLocked(goals)
	told = joinAll(told, t.lostLocked(goals), t.tellLocked(goals), t.lostNamesLocked())
	t.restGoalsLocked(goals)
	t.mu.Unlock()
	t.closeWitness()
	t.mu.Lock()
	return told
}

// stopLocked lets no call begin, and returns when none is under way.
func (t *streams) stopLocked() {
	t.closing = true
	t.due.stopLocked()
	t.syncTimer.disarm()
	for _, s := range t.paths {
		s.changed.tellLocked()
	}
	t.ended.tellLocked()
	for t.calls > 0 {
		t.awaitLocked(background, &t.ended)
	}
	t.mu.Unlock()
	t.background.Wait()
	t.mu.Lock()
}

// shutAllLocked closes the streams' files.
func (t *streams) shutAllLocked(goals []goal) {
	for _, g := range goals {
		if x := t.openFile(g.stream); x != nil {
			t.shutLocked(background, x)
		}
	}
}

// lostLocked says which bytes could not be written.
func (t *streams) lostLocked(goals []goal) error {
	var errs []error
	for _, g := range goals {
		s := g.stream
		failed, ok := s.failed.(*FileError)
		if !ok {
			continue
		}
		lost := *failed
		lost.Outcome, lost.Lost = OutcomePartial, s.waitsLocked()
		lost.Err = fmt.Errorf("the last %d bytes accepted are lost: %w", s.waitsLocked(), failed.Err)
		errs = append(errs, &lost)
	}
	return joinAll(errs...)
}

// joinAll joins errors, and those that are joined in them, without saying the same
// thing twice.
func joinAll(errs ...error) error {
	var flat []error
	for _, err := range errs {
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			flat = append(flat, joined.Unwrap()...)
		} else {
			flat = append(flat, err)
		}
	}
	return joinDistinct(flat...)
}
