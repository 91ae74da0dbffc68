package holdfast

import (
	"context"
	"runtime"
	"time"
)

// streamCommit is the group commit of all streams. One goroutine at a time leads: it
// lets others join, makes the streams of all who have joined durable in one step, and
// wakes them. Those who come meanwhile wait for the next batch.
type streamCommit struct {
	lead chan struct{} // holds one value while nobody leads
	next *streamBatch  // who joins now; guarded by streams.mu

	sync     time.Duration // how long the last step took; guarded by streams.mu, as the rest
	expected int           // how many may come: the last batch, and who waited meanwhile
	patience int           // the window is sync >> (joinShift + patience)
}

// A streamBatch is the appends that one durable step is for.
type streamBatch struct {
	goals  []goal // of each stream one; in use
	joined int
	done   chan struct{}
}

func (c *streamCommit) init() {
	c.lead = make(chan struct{}, 1)
	c.lead <- struct{}{}
	c.next = newStreamBatch()
}

func newStreamBatch() *streamBatch { return &streamBatch{done: make(chan struct{})} }

// commitLocked returns when all that the stream has accepted is durable; n bytes of
// that are the caller's.
func (t *streams) commitLocked(ctx context.Context, s *stream, n int64) error {
	end := s.accepted
	if t.policy.Sync == SyncEach {
		t.makeDurableLocked(ctx, []goal{{s, end}})
	} else if err := t.joinLocked(ctx, s); err != nil {
		return &FileError{Path: s.name.path, Op: string(opWait), Offset: n, Outcome: OutcomeUncertain, Err: err}
	}
	switch {
	case s.durable >= end && !s.nameless:
		return nil
	case s.final != nil:
		return notDurable(s.final, n)
	case s.failed != nil:
		return notDurable(s.failed, n)
	case s.durable >= end && s.unnamed != nil:
		return &FileError{Path: s.name.path, Op: string(opOpen), Offset: n, Outcome: OutcomeUncertain, Err: s.unnamed}
	}
	return &FileError{Path: s.name.path, Op: string(opWait), Offset: n, Outcome: OutcomeUncertain, Err: causeOf(ctx)}
}

// causeOf returns why a step was given up.
func causeOf(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return errFilesClosed
}

// notDurable returns a failure as that of a call whose n bytes were accepted.
func notDurable(err error, n int64) error {
	failed, ok := err.(*FileError)
	if !ok {
		return err
	}
	mine := *failed
	mine.Offset, mine.Outcome = n, OutcomeUncertain
	return &mine
}

// joinLocked waits, without the lock, for the step that covers the stream, or makes it.
func (t *streams) joinLocked(ctx context.Context, s *stream) error {
	b := t.commit.next
	b.addLocked(s)
	t.mu.Unlock()
	defer t.mu.Lock()
	for {
		select {
		case <-b.done:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-t.commit.lead:
			t.lead(ctx, b)
		}
	}
}

// addLocked counts one more append, of this stream.
func (b *streamBatch) addLocked(s *stream) {
	b.joined++
	if s.batch == b {
		b.goals[s.goal].end = s.accepted
		return
	}
	s.batch, s.goal = b, len(b.goals)
	s.users++
	b.goals = append(b.goals, goal{s, s.accepted})
}

// lead makes the step for batch b unless it is done. It has the lead. The end of a
// context does not end a step that is for others too.
func (t *streams) lead(ctx context.Context, b *streamBatch) {
	select {
	case <-b.done:
		t.commit.lead <- struct{}{}
		return
	default:
	}
	if ctx.Done() == nil {
		t.step(b)
	} else {
		t.background.Go(func() { t.step(b) })
	}
}

func (t *streams) step(b *streamBatch) {
	c := &t.commit
	t.mu.Lock()
	t.awaitJoinersLocked(b)
	c.next = newStreamBatch()
	start := time.Now()
	t.makeDurableLocked(background, b.goals)
	c.sync = time.Since(start)
	c.expected = b.joined + c.next.joined
	t.restGoalsLocked(b.goals)
	b.goals = nil // streams remember the batch
	t.mu.Unlock()
	close(b.done)
	c.lead <- struct{}{}
}

// awaitJoinersLocked lets those whom the last step released join this one; without
// that the first of them would make a tiny step and the rest wait for it. See
// joinWindow.
func (t *streams) awaitJoinersLocked(b *streamBatch) {
	c := &t.commit
	window := c.sync >> (joinShift + c.patience)
	if b.joined >= c.expected || window == 0 {
		return
	}
	start := time.Now()
	for i := 0; i < maxYields && b.joined < c.expected && time.Since(start) < window; i++ {
		t.mu.Unlock()
		runtime.Gosched()
		t.mu.Lock()
	}
	if b.joined >= c.expected {
		c.patience = 0
	} else if c.patience < maxPatience {
		c.patience++
	}
}
