// Package commit is group commit: calls that wait for the same work, such as the sync of one file,
// share it. It decides who does the work and who waits; the owner of a [Group] does the work. Start
// with Group.
package commit

import (
	"context"
	"errors"
	"sync"
	"time"
)

// A Group makes batches, one after the other. The first call that joins a batch leads it. It waits
// until the batch before is over, lets others join for a while (see window), closes the batch and
// makes its work. Calls that come meanwhile join the next batch.
//
// So every batch has a leader from its beginning, and a leader waits only for the batch before and
// for its own work. No call waits longer than two batches, after any failure and any leaving of
// calls.
//
// The owner's lock guards a Group and its batches.
type Group[W any] struct {
	mu         sync.Locker
	lead       func(*W) error
	unreturned func(error)

	next    *Batch[W]     // the batch that calls join
	current *Batch[W]     // the batch at work
	leading bool          // a batch is at work, or its leader lets others join
	turn    chan struct{} // signals the leader of next that the batch before is over
	spare   *Batch[W]     // reused after a batch of one call, so that a lone goroutine allocates nothing
	window  window

	background sync.WaitGroup
}

// A Batch is a set of calls that share one piece of work.
type Batch[W any] struct {
	Work W // the work of all its calls; each call adds to it between Join and Do

	calls   int           // number of calls that have joined
	present int           // number of these that will still return err
	led     bool          // it has a leader
	ended   bool          // err is known
	over    chan struct{} // closed after ended; nil while no call waits for it
	err     error
}

// errPanicked is the outcome of a batch whose work has panicked or ended its goroutine. The owner
// knows the actual error.
var errPanicked = errors.New("commit: the call that led this batch has panicked")

// Init sets the owner's lock and functions. Lead makes the work of a batch. It is called with the
// lock, by one goroutine at a time, and may release the lock meanwhile. Unreturned is called, with
// the lock, with the error of a batch if all its calls have left.
func (g *Group[W]) Init(mu sync.Locker, lead func(*W) error, unreturned func(error)) {
	g.mu, g.lead, g.unreturned = mu, lead, unreturned
}

// Join returns the next batch, with the caller in it. The caller has the lock, adds to the batch's
// Work, and calls Do before it releases the lock.
func (g *Group[W]) Join() *Batch[W] {
	b := g.next
	if b == nil {
		if b, g.spare = g.spare, nil; b == nil {
			b = new(Batch[W])
		}
		g.next = b
	}
	b.calls++
	b.present++
	g.window.joined(b.calls)
	return b
}

// JoinCurrent returns the batch at work, with the caller in it, if makes reports that its Work
// covers the caller, else nil. Then the caller adds nothing to Work and calls Do, as after Join.
// The owner's lead records in Work, with the lock, what the batch covers.
func (g *Group[W]) JoinCurrent(makes func(*W) bool) *Batch[W] {
	b := g.current
	if b == nil || !makes(&b.Work) {
		return nil
	}
	b.present++
	return b
}

// Do returns the outcome of the batch when it is over. It is called with the lock and returns
// without it: hundreds of calls that end at once would queue for a lock that they don't need.
//
// If ctx ends first, Do returns the context's cause, and the batch continues for its other calls.
// Therefore a call whose ctx can end starts a goroutine that leads.
func (g *Group[W]) Do(ctx context.Context, b *Batch[W]) error {
	mayLeave := ctx.Done() != nil
	if !b.led {
		b.led = true
		if !mayLeave {
			return g.run(b)
		}
		g.background.Add(1)
		go func() {
			defer g.background.Done()
			g.mu.Lock()
			_ = g.run(b) // the calls of the batch return the error
		}()
	}
	if b.over == nil {
		b.over = make(chan struct{})
	}
	over := b.over
	g.mu.Unlock()
	if !mayLeave {
		<-over
		return b.err
	}
	select {
	case <-over:
		return b.err
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if b.ended {
		return b.err
	}
	b.present--
	return context.Cause(ctx)
}

// run leads a batch. It is called with the lock and returns without it.
func (g *Group[W]) run(b *Batch[W]) (err error) {
	if g.leading {
		g.makeTurn()
		g.mu.Unlock()
		<-g.turn
		g.mu.Lock()
	}
	g.leading = true
	g.window.await(g.mu, &b.calls)
	g.next, g.current = nil, b
	err = errPanicked
	defer func() { g.end(b, err) }()
	err = g.lead(&b.Work)
	return err
}

// end ends a batch and wakes the leader of the next. It wakes that leader first, which has work to
// do, and then the calls of this batch, which have none. It wakes them without the lock, because
// they need it soon.
func (g *Group[W]) end(b *Batch[W], err error) {
	b.ended, b.err = true, err
	g.current = nil
	g.window.finished(b.calls, g.waiting())
	next := g.next != nil
	if g.leading = next; next {
		g.makeTurn() // the leader of next may not run yet
	}
	if b.present == 0 && err != nil {
		g.unreturned(err)
	}
	over := b.over
	if over == nil {
		*b = Batch[W]{}
		g.spare = b
	}
	g.mu.Unlock()
	if next {
		g.turn <- struct{}{}
	}
	if over != nil {
		close(over)
	}
}

func (g *Group[W]) makeTurn() {
	if g.turn == nil {
		g.turn = make(chan struct{}, 1)
	}
}

// waiting returns the number of calls in the next batch.
func (g *Group[W]) waiting() int {
	if g.next == nil {
		return 0
	}
	return g.next.calls
}

// Leading reports whether a batch is at work or about to be.
func (g *Group[W]) Leading() bool { return g.leading || g.next != nil }

// Hurry ends the wait of a leader for more calls, now or at its next batch, because memory is full
// or the owner closes.
func (g *Group[W]) Hurry() { g.window.hurry() }

// Took records the duration of the shared work: see window.
func (g *Group[W]) Took(d time.Duration) { g.window.work = d }

// Wait waits, without the lock, until no goroutine leads for a call that may leave. No batch may
// begin meanwhile.
func (g *Group[W]) Wait() { g.background.Wait() }
