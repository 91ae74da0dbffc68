package holdfast

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"syscall"
	"time"
)

// ErrTemporary is what a [FileError] is, for errors.Is, if its cause may pass by
// itself: a full disk, a used-up quota, no memory, no descriptor left. Such a call
// has changed nothing more than the error says, and may be made again later, for
// what the error's Offset leaves. An error of a sync or a close is never of these.
var ErrTemporary = errors.New("holdfast: the cause may pass")

// Is reports whether target is [ErrTemporary] and the cause may pass.
func (e *FileError) Is(target error) bool {
	// What another FileError says of its own call is asked of that one.
	return target == ErrTemporary && !errors.As(e.Err, new(*FileError)) && remedyFor(fileOp(e.Op), e.Err) != giveUp
}

// A fileOp is a call of a disk, by the name that a [FileError] has for it.
type fileOp string

const (
	opOpen     fileOp = "open"
	opWrite    fileOp = "write"
	opTruncate fileOp = "truncate"
	opSync     fileOp = "sync"
	opClose    fileOp = "close"
	opRename   fileOp = "rename"
	opStat     fileOp = "stat"
	opMkdir    fileOp = "mkdir"
	opChmod    fileOp = "chmod"
	opChown    fileOp = "chown"
	opResolve  fileOp = "resolve"
)

// A remedy is what is done about a call that failed.
type remedy int8

const (
	giveUp     remedy = iota // the call would fail again, or must not be made again
	atOnce                   // it is made again at once
	afterPause               // it is made again after a pause
	afterSpare               // it is made again at once if a descriptor can be spared, else after a pause
)

// remedyFor says what may be done about an error of op. It is the one place that
// does; the table in docs/files.md is held to it.
func remedyFor(op fileOp, err error) remedy {
	// After a failed sync the kernel has dropped what it could not write, and the next
	// sync reports success for it. After a failed close the descriptor is no longer ours.
	if op == opSync || op == opClose {
		return giveUp
	}
	errno, ok := errnoOf(err)
	if !ok {
		return giveUp
	}
	switch errno {
	case syscall.EINTR: // a signal came before anything was done
		return atOnce
	case syscall.EMFILE, syscall.ENFILE: // others may close theirs
		return afterSpare
	case syscall.ENOSPC, syscall.EDQUOT, // somebody may make room
		syscall.ENOMEM, syscall.ENOBUFS, // as may the kernel
		syscall.EAGAIN: // who reads the pipe, or holds a lease on the file, may come
		return afterPause
	case syscall.EBUSY: // somebody has the name in use, and nothing was done
		if op != opWrite {
			return afterPause
		}
	case syscall.EIO, syscall.ETIMEDOUT:
		// A path may be read on a second try. Of anything else it isn't known how much of
		// it was done, and no byte may be written twice.
		if op == opOpen || op == opStat || op == opResolve {
			return afterPause
		}
	}
	// Among these is ESTALE: the kernel itself has looked the path up anew, and a
	// descriptor stays stale.
	return giveUp
}

// errnoOf finds the system's error number in an error.
func errnoOf(err error) (syscall.Errno, bool) {
	if errno, ok := err.(syscall.Errno); ok {
		return commonErrno(errno), true
	}
	return wrappedErrno(err)
}

// wrappedErrno is apart because As makes its target take memory.
func wrappedErrno(err error) (errno syscall.Errno, ok bool) {
	ok = errors.As(err, &errno)
	return commonErrno(errno), ok
}

// A tries counts how often the calls for one file were made. It is used like this,
// and takes no memory of its own:
//
//	t := f.tries()
//	for {
//		fd, err = f.disk.OpenFile(folder, name, flag, perm)
//		if err == nil || !t.again(ctx, opOpen, &err) {
//			break
//		}
//	}
//	t.progress()
//
// Attempts is for each call: progress begins with the next one, or with the rest
// of a write that was cut short.
type tries struct {
	retry   Retry         // with its defaults filled in
	handles *handles      // what may be able to spare a descriptor, or nil
	retries *atomic.Int64 // of all files: how often a call was made again after a pause, or nil

	paused int // how often the present call was made again after a pause
	atOnce int // and in a row without one
	all    int // how often any call was made again after a pause
}

// tries begins to count for one file.
func (f *Files) tries() tries {
	return tries{retry: f.options.Retry, handles: &f.handles, retries: &f.retries}
}

// mostAtOnce bounds how often in a row a call is made again without a pause, in
// case that signals never end.
const mostAtOnce = 1000

// attempts returns how often the file was tried: once, and once for each pause.
func (t *tries) attempts() int { return 1 + t.all }

// progress is told that the call has done something.
func (t *tries) progress() { t.paused, t.atOnce = 0, 0 }

// again reports whether the call of op that failed with *err is to be made again
// now. It may have paused for that. If ctx ended meanwhile its cause is joined to *err.
func (t *tries) again(ctx context.Context, op fileOp, err *error) bool {
	remedy := remedyFor(op, *err)
	if remedy == giveUp {
		return false
	}
	if ctx.Err() != nil {
		*err = errors.Join(*err, context.Cause(ctx))
		return false
	}
	if t.atOnce < mostAtOnce && (remedy == atOnce || remedy == afterSpare && t.handles != nil && t.handles.spare()) {
		t.atOnce++
		return true
	}
	return t.pause(ctx, err)
}

// insist makes a call of op as often as it takes. It is for calls that are rare.
func (t *tries) insist(ctx context.Context, op fileOp, call func() error) error {
	for {
		err := call()
		if err == nil || !t.again(ctx, op, &err) {
			t.progress()
			return err
		}
	}
}

// pause waits before the next attempt, if there is one left.
func (t *tries) pause(ctx context.Context, err *error) bool {
	if t.paused+1 >= t.retry.Attempts {
		return false
	}
	timer := time.NewTimer(t.retry.pause(t.paused))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		*err = errors.Join(*err, context.Cause(ctx))
		return false
	}
	t.paused++
	t.all++
	t.atOnce = 0
	if t.retries != nil {
		t.retries.Add(1)
	}
	return true
}

// pause returns how long to wait after n retries: Base doubled n times, at most
// Cap, and of that a random part, more than a half, so that those whom one full
// disk stopped do not all come back at once.
func (r Retry) pause(n int) time.Duration {
	d := min(r.Base, r.Cap)
	for ; n > 0 && d < r.Cap; n-- {
		d += min(d, r.Cap-d)
	}
	if half := d/2 + d%2; half > 0 {
		d -= rand.N(half)
	}
	return d
}
