// Package commit is group commit: calls that wait for the same work, such as the sync of one file,
// share it. It knows who makes the work and who waits, and nothing of files: the owner of a [Group]
// does the work. Start with Group.
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
// So every batch has a leader from its beginning on, and a leader waits for nothing but the one before
// and its own work. No wait lasts longer than two batches, whatever fails and whoever leaves.
//
// The owner's lock guards a Group and its batches.
type Group[W any] struct {
	mu      sync.Locker
	lead    func(*W) error
	unheard func(error)

	next    *Batch[W]     // calls join it
	current *Batch[W]     // is at work
	leading bool          // a batch is at work, or its leader lets others join
	turn    chan struct{} // tells the leader of next that the batch before is over
	spare   *Batch[W]     // of a leader that nobody joined, for the next: so that a lone goroutine allocates nothing
	window  window

	background sync.WaitGroup
}

// A Batch is the calls that share one piece of work.
type Batch[W any] struct {
	Work W // what the calls want; its owner adds to it between Join and Do

	calls int           // that have joined
	heard int           // how many of these are still there to return err
	led   bool          // it has a leader
	ended bool          // err is known
	over  chan struct{} // closed behind that; nil while no call waits for it
	err   error
}

// errPanicked is the outcome of a batch whose work has panicked or ended its goroutine. The owner
// knows better what happened.
var errPanicked = errors.New("commit: the call that led this batch has panicked")

// Init sets the owner's lock and what the owner does. Lead makes the work of a batch. It is called with the lock,
// by one goroutine at a time, and may release the lock meanwhile. Unheard gets, with the
// lock, the error of a batch if all its calls have left.
func (g *Group[W]) Init(mu sync.Locker, lead func(*W) error, unheard func(error)) {
	g.mu, g.lead, g.unheard = mu, lead, unheard
}

// Join returns the batch that will be made next, with the caller in it. The caller has the lock, adds to
// the batch's Work, and calls Do before it releases the lock.
func (g *Group[W]) Join() *Batch[W] {
	b := g.next
	if b == nil {
		if b, g.spare = g.spare, nil; b == nil {
			b = new(Batch[W])
		}
		g.next = b
	}
	b.calls++
	b.heard++
	g.window.joined(b.calls)
	return b
}

// JoinCurrent returns the batch at work, with the caller in it, if that makes what the caller wants, and nil else.
// It is as Join, but that the caller adds nothing to Work: the owner's lead says there, with the lock, what the batch makes.
func (g *Group[W]) JoinCurrent(makes func(*W) bool) *Batch[W] {
	b := g.current
	if b == nil || !makes(&b.Work) {
		return nil
	}
	b.heard++
	return b
}

// Do returns the outcome of the batch when it is over. It is called with the lock and returns without it:
// hundreds of calls that end at once would queue for a lock that they don't need.
//
// If ctx ends first, Do returns the cause of that. The batch is made all the same: others may be in it.
// Therefore a call whose ctx can end does not lead, but has a goroutine lead.
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
			_ = g.run(b) // the calls of the batch return it
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
	b.heard--
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

// end ends a batch and passes the lead on. It wakes the next leader first: that has work to do, and the
// calls of this batch have none. It wakes all without the lock, because they need it soon.
func (g *Group[W]) end(b *Batch[W], err error) {
	b.ended, b.err = true, err
	g.current = nil
	g.window.finished(b.calls, g.waiting())
	next := g.next != nil
	if g.leading = next; next {
		g.makeTurn() // its leader may not run yet
	}
	if b.heard == 0 && err != nil {
		g.unheard(err)
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

// waiting returns how many calls wait for the next batch.
func (g *Group[W]) waiting() int {
	if g.next == nil {
		return 0
	}
	return g.next.calls
}

// Leading reports whether a batch is at work or about to be.
func (g *Group[W]) Leading() bool { return g.leading || g.next != nil }

// Hurry ends the wait of a leader for others, or the next one's: nobody else can join, because memory is
// full, or nobody shall wait any more.
func (g *Group[W]) Hurry() { g.window.hurry() }

// Took records how long the work takes that calls share: see window.
func (g *Group[W]) Took(d time.Duration) { g.window.work = d }

// Wait waits, without the lock, until no goroutine leads on behalf of a call that may leave. No
// batch may begin meanwhile.
func (g *Group[W]) Wait() { g.background.Wait() }
