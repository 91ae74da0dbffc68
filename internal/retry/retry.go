// Package retry decides which failed calls are retried, and after which pause.
package retry

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast/internal/handles"
)

// An Op is a call of a disk, under its name in a [files.Error].
type Op string

const (
	OpOpen     Op = "open"
	OpRead     Op = "read"
	OpWrite    Op = "write"
	OpTruncate Op = "truncate"
	OpSync     Op = "sync"
	OpClose    Op = "close"
	OpRename   Op = "rename"
	OpStat     Op = "stat"
	OpMkdir    Op = "mkdir"
	OpChmod    Op = "chmod"
	OpChown    Op = "chown"
	OpResolve  Op = "resolve"

	OpListAttributes Op = "list attributes"
	OpSetAttribute   Op = "set attribute"
)

// A remedy is the reaction to a failed call.
type remedy int8

const (
	GiveUp     remedy = iota // the call would fail again, or must not be repeated
	atOnce                   // retry at once
	afterPause               // retry after a pause
	AfterSpare               // retry at once if a descriptor can be closed, else after a pause
)

// RemedyFor returns the remedy for an error of op. Nothing else decides that; a test compares the
// table in docs/files.md with it.
func RemedyFor(op Op, err error) remedy {
	// After a failed sync the kernel has dropped the bytes that it could not write, and the next
	// sync reports success for them. After a failed close the descriptor may belong to another
	// file.
	if op == OpSync || op == OpClose {
		return GiveUp
	}
	errno, ok := errnoOf(err)
	if !ok {
		return GiveUp
	}
	switch errno {
	case syscall.EINTR: // a signal interrupted the call before it did anything
		return atOnce
	case syscall.EMFILE, syscall.ENFILE: // other processes may close theirs
		return AfterSpare
	case syscall.ENOSPC, syscall.EDQUOT, // space may become free
		syscall.ENOMEM, syscall.ENOBUFS, // also in the kernel
		syscall.EAGAIN: // the pipe may get a reader, or the lease on the file may end
		return afterPause
	case syscall.EBUSY: // the name is in use, and the call did nothing
		if op != OpWrite {
			return afterPause
		}
	case syscall.EIO, syscall.ETIMEDOUT:
		// A second lookup of a path may succeed. Other calls may have been done in part, and no
		// byte may be written twice.
		if op == OpOpen || op == OpStat || op == OpResolve {
			return afterPause
		}
	}
	// One of these is ESTALE: the kernel has already looked the path up again, and a descriptor
	// stays stale.
	return GiveUp
}

// Is reports whether an error is one of these of Unix, such as ENOSPC: on Windows also under the number of
// Windows, which [errors.Is] takes for another error.
func Is(err error, these ...syscall.Errno) bool {
	for _, errno := range these {
		if errors.Is(err, errno) {
			return true
		}
	}
	errno, ok := errnoOf(err)
	return ok && slices.Contains(these, errno)
}

// errnoOf returns the system's error number in an error.
func errnoOf(err error) (syscall.Errno, bool) {
	if errno, ok := err.(syscall.Errno); ok {
		return commonErrno(errno), true
	}
	return wrappedErrno(err)
}

// wrappedErrno is a separate function because the target of As escapes to the heap.
func wrappedErrno(err error) (errno syscall.Errno, ok bool) {
	ok = errors.As(err, &errno)
	return commonErrno(errno), ok
}

// Limits bound the retries of a call and their pauses. 0 is the default.
type Limits struct {
	Attempts int           // the most attempts of a call, including the first
	Base     time.Duration // the longest first pause
	Cap      time.Duration // the longest pause
}

// The defaults of limits.
const (
	DefaultAttempts = 4
	DefaultBase     = 100 * time.Millisecond
	DefaultCap      = time.Second
)

func (l Limits) WithDefaults() Limits {
	l.Attempts = cmp.Or(l.Attempts, DefaultAttempts)
	l.Base = cmp.Or(l.Base, DefaultBase)
	l.Cap = cmp.Or(l.Cap, DefaultCap)
	return l
}

// A Tries counts the attempts of the calls for one file. It is used like this, and
// allocates nothing:
//
//	t := f.tries()
//	for {
//		fd, err = f.disk.OpenFile(directory, name, flag, perm)
//		if err == nil || !t.again(ctx, opOpen, &err) {
//			break
//		}
//	}
//	t.progress()
//
// Attempts bounds each call: progress begins the next call, or the rest of a short write.
type Tries struct {
	Limits  Limits                                      // with their defaults filled in
	Handles *handles.Cache                              // may close an idle descriptor; or nil
	Retries *atomic.Int64                               // counts the retries after a pause, of all files; or nil
	Paused  func(op Op, err error, pause time.Duration) // called before each pause; or nil

	paused int // retries of the current call after a pause
	atOnce int // retries in a row without a pause
	all    int // retries of all calls after a pause
}

// mostAtOnce bounds the retries in a row without a pause, in case signals never end.
const mostAtOnce = 1000

// Attempts returns the number of attempts for the file: one, plus one for each pause.
func (t *Tries) Attempts() int { return 1 + t.all }

// Progress records that the call has succeeded, or done a part.
func (t *Tries) Progress() { t.paused, t.atOnce = 0, 0 }

// Again reports whether to retry the failed call of op now; *err is its error. It may pause first.
// If ctx ends meanwhile, Again joins the context's cause to *err.
func (t *Tries) Again(ctx context.Context, op Op, err *error) bool {
	remedy := RemedyFor(op, *err)
	if remedy == GiveUp {
		return false
	}
	if ctx.Err() != nil {
		*err = errors.Join(*err, context.Cause(ctx))
		return false
	}
	if t.atOnce < mostAtOnce && (remedy == atOnce || remedy == AfterSpare && t.Handles != nil && t.Handles.Spare()) {
		t.atOnce++
		return true
	}
	return t.pause(ctx, op, err)
}

// Insist makes a call of op until it succeeds or the retries end. It is for rare calls.
func (t *Tries) Insist(ctx context.Context, op Op, call func() error) error {
	for {
		err := call()
		if err == nil || !t.Again(ctx, op, &err) {
			t.Progress()
			return err
		}
	}
}

// pause waits before the next attempt, if there is one left.
func (t *Tries) pause(ctx context.Context, op Op, err *error) bool {
	if t.paused+1 >= t.Limits.Attempts {
		return false
	}
	pause := t.Limits.pause(t.paused)
	if t.Paused != nil {
		t.Paused(op, *err, pause)
	}
	timer := time.NewTimer(pause)
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
	if t.Retries != nil {
		t.Retries.Add(1)
	}
	return true
}

// pause returns the pause after n retries: Base doubled n times, at most Cap, and of that a random
// part above a half. So the callers that one full disk stopped don't all come back at once.
func (l Limits) pause(n int) time.Duration {
	d := min(l.Base, l.Cap)
	for ; n > 0 && d < l.Cap; n-- {
		d += min(d, l.Cap-d)
	}
	if half := d/2 + d%2; half > 0 {
		d -= rand.N(half)
	}
	return d
}
