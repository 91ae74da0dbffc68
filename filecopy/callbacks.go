package filecopy

import (
	"context"
	"io/fs"
	"runtime"
)

// callbacks calls the functions in Options. If one panics in a goroutine of the call, the caller
// could not recover. So the call ends as if ctx had ended, cleans up, and then panics with the same
// value in the caller's goroutine.
type callbacks struct {
	cancel context.CancelFunc // ends the call
	ended  bool               // a function has panicked or ended its goroutine: none is called any more
	cause  any                // the panic value; nil: it called runtime.Goexit
	ours   bool               // they are called in goroutines of this package
}

// guard wraps the functions in o by callbacks. It returns nil if there are none.
func guard(ctx context.Context, o *Options, ours bool) (context.Context, *callbacks) {
	if o.Each == nil && o.Progress == nil && o.Filter == nil {
		return ctx, nil
	}
	c := &callbacks{ours: ours}
	ctx, c.cancel = context.WithCancel(ctx)
	if each := o.Each; each != nil {
		o.Each = func(r Result) { c.run(func() { each(r) }) }
	}
	if progress := o.Progress; progress != nil {
		o.Progress = func(p Progress) { c.run(func() { progress(p) }) }
	}
	if filter := o.Filter; filter != nil {
		o.Filter = func(source, destination string, kind fs.FileMode) (copies bool) {
			c.run(func() { copies = filter(source, destination, kind) })
			return copies
		}
	}
	return ctx, c
}

// run is called by one goroutine at a time.
func (c *callbacks) run(f func()) {
	if c.ended {
		return
	}
	c.ended = true
	defer func() {
		if c.ended {
			c.cause = recover()
			c.cancel()
			if c.cause == nil && c.ours { // a worker that ended its goroutine would leave All waiting
				panic("copy: Each, Progress or Filter called runtime.Goexit, as FailNow of a test does, in a goroutine of All; return from it")
			}
		}
	}()
	f()
	c.ended = false
}

// end is called after the last goroutine of the call.
func (c *callbacks) end() {
	if c == nil {
		return
	}
	c.cancel()
	switch {
	case c.cause != nil:
		panic(c.cause)
	case c.ended:
		runtime.Goexit()
	}
}
