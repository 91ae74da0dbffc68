package files

import (
	"context"

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
// buffer. A sync=group call that has to open the file does the same: if it can't, nothing is accepted.
//
// An error is a [*Error]. Its Offset says how much of data was accepted or is in
// the file; the rest is not, and may be given again. A path that can't be opened, and for which
// nothing was ever accepted, is a *fs.PathError: see [Error]. With holdfast.OutcomeUncertain all was
// accepted, and it is not known whether it is durable. The next Append for the path returns a
// failure in the background, and accepts nothing then. While a write fails, each call for the path
// tries again and is refused. A failed sync is final for the path.
//
// A sync notices that another program has removed the file: [holdfast.ErrUnlinked]. A call
// that lost its own data with it returns Offset 0. Bytes of earlier calls that were not yet
// durable are counted in Lost, once, by the next call. After that the path is opened anew.
//
// Without [Options].Lines, Append does not look at the file's end. After a crash
// that may be a part of a record, and what another process has lost in a failed sync may be zeros.
// The caller must handle both.
//
// A relative path is resolved against the working directory at the time of the call. That takes a system
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
	absolute, err := f.pathOf(path)
	if err != nil {
		return err
	}
	t := &f.streams
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.paths[absolute]; s != nil && f.hasRoomLocked(s, len(data)) {
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
	err = f.appendLocked(ctx, s, data)
	if failed, ok := err.(*Error); ok && s.accepted == 0 {
		return asPathError(failed)
	}
	return err
}

// hasRoomLocked reports whether n more bytes may be copied behind the waiting bytes,
// without any other check. Then their clocks run already, and no call waits for a
// sync.
func (f *Set) hasRoomLocked(s *stream, n int) bool {
	return s.wait != nil && len(s.wait.bytes) > 0 && len(s.wait.bytes)+n <= cap(s.wait.bytes) && len(s.wait.bytes)+n < f.flusher.flushAt &&
		!s.exclusive && s.failed == nil && s.unreported == nil && s.final == nil && !f.streams.closing &&
		!f.options.Policy.Sync.Waits() && f.syncer.timer.Running() && s.age.Running()
}

// appendLocked accepts data when that needs more than a copy.
func (f *Set) appendLocked(ctx context.Context, s *stream, data []byte) error {
	if len(data) == 0 {
		return f.flusher.refusalLocked(s)
	}
	sync := f.options.Policy.Sync.Mode
	// A call of a group that has to open the file does so before its bytes are accepted: where that fails,
	// they are not in memory, and its caller may give them again.
	bypass := int64(len(data)) > f.flusher.memory.largest || sync == holdfast.SyncEach || sync == holdfast.SyncGroup && !f.open.has(s)
	if !bypass {
		taken, err := f.flusher.bufferLocked(ctx, s, data)
		if err != nil {
			return err
		}
		bypass = !taken
	}
	if bypass {
		n, fail := f.flusher.bypassLocked(ctx, s, data)
		if n > 0 {
			f.acceptedLocked()
		}
		if fail != nil {
			return fail
		}
	} else {
		f.acceptedLocked()
	}
	if f.options.Policy.Sync.Waits() {
		return f.syncer.commitLocked(ctx, s, int64(len(data)))
	}
	if f.flusher.overLocked(s) {
		f.flusher.flushBehindLocked(ctx, s) // the data is accepted: the next call reports a failure
	}
	return nil
}

// acceptedLocked counts a call that had bytes accepted, and starts the clock of their sync.
func (f *Set) acceptedLocked() {
	f.streams.counts.Writes++
	f.syncer.timer.Set(true)
}
