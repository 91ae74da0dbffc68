// Package retry says which failed call may be made again, and after which pause.
package retry

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast/internal/handles"
)

// An Op is a call of a disk, by the name that a [files.Error] has for it.
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

// A remedy says what to do about a call that failed.
type remedy int8

const (
	GiveUp     remedy = iota // the call would fail again, or must not be made again
	atOnce                   // it is made again at once
	afterPause               // it is made again after a pause
	AfterSpare               // it is made again at once if a descriptor can be spared, else after a pause
)

// RemedyFor returns what may be done about an error of op. Nothing else decides that; a test
// compares the table in docs/files.md with it.
func RemedyFor(op Op, err error) remedy {
	// After a failed sync the kernel has dropped what it could not write, and the next
	// sync reports success for it. After a failed close the descriptor is no longer ours.
	if op == OpSync || op == OpClose {
		return GiveUp
	}
	errno, ok := errnoOf(err)
	if !ok {
		return GiveUp
	}
	switch errno {
	case syscall.EINTR: // a signal came before anything was done
		return atOnce
	case syscall.EMFILE, syscall.ENFILE: // other processes may close theirs
		return AfterSpare
	case syscall.ENOSPC, syscall.EDQUOT, // room may be made
		syscall.ENOMEM, syscall.ENOBUFS, // as may the kernel
		syscall.EAGAIN: // the pipe may get a reader, or the lease on the file may end
		return afterPause
	case syscall.EBUSY: // the name is in use, and nothing was done
		if op != OpWrite {
			return afterPause
		}
	case syscall.EIO, syscall.ETIMEDOUT:
		// A path may be read on a second try. Other calls may have been done in part, and no
		// byte may be written twice.
		if op == OpOpen || op == OpStat || op == OpResolve {
			return afterPause
		}
	}
	// Among these is ESTALE: the kernel itself has looked the path up anew, and a
	// descriptor stays stale.
	return GiveUp
}

// errnoOf finds the system's error number in an error.
func errnoOf(err error) (syscall.Errno, bool) {
	if errno, ok := err.(syscall.Errno); ok {
		return commonErrno(errno), true
	}
	return wrappedErrno(err)
}

// wrappedErrno is a function of its own because As makes its target take memory.
func wrappedErrno(err error) (errno syscall.Errno, ok bool) {
	ok = errors.As(err, &errno)
	return commonErrno(errno), ok
}

// Limits are how often a call is made again, and after which pauses. 0 is the default.
type Limits struct {
	Attempts int           // for each call, the first included
	Base     time.Duration // the longest first pause
	Cap      time.Duration // the longest of all
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

// A Tries counts how often the calls for one file were made. It is used like this,
// and takes no memory of its own:
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
// Attempts is for each call: progress begins with the next one, or with the rest
// of a write that was cut short.
type Tries struct {
	Limits  Limits                                      // with their defaults filled in
	Handles *handles.Cache                              // what may be able to spare a descriptor, or nil
	Retries *atomic.Int64                               // of all files: how often a call was made again after a pause, or nil
	Paused  func(op Op, err error, pause time.Duration) // is called before each pause; or nil

	paused int // how often the present call was made again after a pause
	atOnce int // and in a row without one
	all    int // how often any call was made again after a pause
}

// mostAtOnce bounds how often in a row a call is made again without a pause, in
// case that signals never end.
const mostAtOnce = 1000

// Attempts returns how often the file was tried: once, and once for each pause.
func (t *Tries) Attempts() int { return 1 + t.all }

// Progress records that the call has done something.
func (t *Tries) Progress() { t.paused, t.atOnce = 0, 0 }

// Again reports whether to make the failed call of op again now; *err is its error. It may
// pause first. If ctx ends meanwhile, Again joins the cause to *err.
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

// Insist makes a call of op as often as it takes. It is for calls that are rare.
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

// pause returns how long to wait after n retries. It is Base doubled n times, at most Cap,
// and of that a random part, more than a half. So the callers that one full disk stopped do
// not all come back at once.
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
