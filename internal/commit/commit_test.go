//go:build go1.25

package commit

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// An owner makes work that takes a second, and fails at will.
type owner struct {
	sync.Mutex
	Group[int]
	working  atomic.Int64
	batches  []int // the work of each
	unheards []error
	fails    func(batch int) error
	panics   func(batch int)
}

func newOwner() *owner {
	o := &owner{fails: func(int) error { return nil }, panics: func(int) {}}
	o.Init(o, o.lead, func(err error) { o.unheards = append(o.unheards, err) })
	return o
}

func (o *owner) lead(work *int) error {
	if o.working.Add(1) > 1 {
		panic("two batches at a time")
	}
	defer o.working.Add(-1)
	batch := len(o.batches)
	o.batches = append(o.batches, *work)
	o.Unlock()
	defer o.Lock()
	time.Sleep(time.Second)
	o.panics(batch)
	return o.fails(batch)
}

// call is one call that wants 1 more of the work.
func (o *owner) call(ctx context.Context) error {
	o.Lock()
	b := o.Join()
	b.Work++
	return o.Do(ctx, b)
}

// TestCallsThatComeMeanwhileShareTheNextBatch has one call lead, 20 wait for the next batch and, during that, 3 more.
func TestCallsThatComeMeanwhileShareTheNextBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOwner()
		var calls sync.WaitGroup
		start := time.Now()
		want := func(n int, done time.Duration) {
			for range n {
				calls.Go(func() {
					if err := o.call(t.Context()); err != nil || time.Since(start) != done {
						t.Errorf("a call = %v after %v, want nil after %v", err, time.Since(start), done)
					}
				})
				calls.Go(func() {
					if err := o.call(context.Background()); err != nil || time.Since(start) != done {
						t.Errorf("a call = %v after %v, want nil after %v", err, time.Since(start), done)
					}
				})
				synctest.Wait()
			}
		}
		o.Lock()
		b := o.Join()
		b.Work++
		if !o.Leading() {
			t.Error("no batch is about to be though a call has joined it")
		}
		calls.Go(func() { _ = o.Do(context.Background(), b) })
		synctest.Wait()
		want(10, 2*time.Second)
		time.Sleep(1500 * time.Millisecond)
		want(2, 3*time.Second)
		calls.Wait()
		if len(o.batches) != 3 || o.batches[1] != 20 || o.batches[2] != 4 {
			t.Errorf("batches of %v, want 1, 20 and 4", o.batches)
		}
		if o.Leading() {
			t.Error("a batch is at work though no call waits")
		}
	})
}

// TestACallThatLeavesEndsNoBatch ends the context of the first call of a batch, which led it, and the contexts of all calls.
func TestACallThatLeavesEndsNoBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, failed := newOwner(), errors.New("failed")
		o.fails = func(batch int) error {
			if batch == 2 {
				return failed
			}
			return nil
		}
		why := errors.New("why")
		ctx, cancel := context.WithCancelCause(context.Background())
		var calls sync.WaitGroup
		leaves := func() {
			calls.Go(func() {
				if err := o.call(ctx); err != why {
					t.Errorf("the call that left = %v", err)
				}
			})
			synctest.Wait()
		}
		calls.Go(func() { _ = o.call(context.Background()) })
		synctest.Wait()
		leaves()
		calls.Go(func() {
			if err := o.call(context.Background()); err != nil {
				t.Errorf("the call that stayed = %v", err)
			}
		})
		time.Sleep(1500 * time.Millisecond)
		leaves() // for batch 2, which fails when nobody is there to hear it
		cancel(why)
		calls.Wait()
		o.Wait()
		if len(o.batches) != 3 || len(o.unheards) != 1 || o.unheards[0] != failed {
			t.Errorf("batches of %v, and unheard %v; want 3 batches, and the failure of the last", o.batches, o.unheards)
		}
		if err := o.call(ctx); err != why {
			t.Errorf("a call whose context had ended = %v", err)
		}
		o.Wait()
	})
}

// TestACallJoinsTheBatchAtWork if that makes what it wants: it then waits for no other. It hears what the batch's leader does.
func TestACallJoinsTheBatchAtWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, failed := newOwner(), errors.New("failed")
		o.fails = func(int) error { return failed }
		joins := func(ctx context.Context, wants int) (joined bool, err error) {
			o.Lock()
			b := o.JoinCurrent(func(work *int) bool { return *work >= wants })
			if b == nil {
				o.Unlock()
				return false, nil
			}
			return true, o.Do(ctx, b)
		}
		check := func(ctx context.Context, wants int, want bool, wantErr error) {
			t.Helper()
			if joined, err := joins(ctx, wants); joined != want || err != wantErr {
				t.Errorf("a call that wants %d: joined %v, %v; want %v, %v", wants, joined, err, want, wantErr)
			}
		}
		check(t.Context(), 0, false, nil) // none is at work
		ctx, cancel := context.WithCancel(context.Background())
		go o.call(ctx)
		synctest.Wait()
		check(t.Context(), 2, false, nil)
		start := time.Now()
		check(t.Context(), 1, true, failed)
		if time.Since(start) != time.Second {
			t.Errorf("it waited for %v", time.Since(start))
		}
		check(t.Context(), 1, false, nil) // it is over
		go o.call(ctx)
		synctest.Wait()
		go check(ctx, 1, true, context.Canceled)
		synctest.Wait()
		cancel()
		o.Wait()
		if len(o.batches) != 2 || len(o.unheards) != 1 {
			t.Errorf("batches of %v, unheard %v", o.batches, o.unheards)
		}
	})
}

// TestAFailureIsOfItsBatchAlone lets every second batch fail.
func TestAFailureIsOfItsBatchAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, failed := newOwner(), errors.New("failed")
		o.fails = func(batch int) error {
			if batch%2 == 1 {
				return failed
			}
			return nil
		}
		var calls sync.WaitGroup
		start := time.Now()
		for range 8 {
			calls.Go(func() {
				for range 6 {
					err := o.call(context.Background())
					if odd := int(time.Since(start)/time.Second)%2 == 0; odd != (err == failed) {
						t.Errorf("a call of the batch that ended after %v = %v", time.Since(start), err)
					}
				}
			})
		}
		calls.Wait()
	})
}

// TestABatchThatPanicsPassesTheLeadOn panics in the first batch, and ends the goroutine of the second.
func TestABatchThatPanicsPassesTheLeadOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOwner()
		o.panics = func(batch int) {
			switch batch {
			case 0:
				panic("at work")
			case 1:
				runtime.Goexit()
			}
		}
		var calls sync.WaitGroup
		var panicked, failed atomic.Int64
		for range 3 {
			for range 2 {
				calls.Go(func() {
					defer func() {
						if recover() != nil {
							panicked.Add(1)
						}
					}()
					if err := o.call(context.Background()); err == errPanicked {
						failed.Add(1)
					} else if err != nil {
						t.Error(err)
					}
				})
			}
			synctest.Wait()
			time.Sleep(600 * time.Millisecond) // no call comes at the moment at which a batch ends
		}
		calls.Wait()
		// The first to come leads alone; the others of the first second join the second batch.
		if panicked.Load() != 1 || failed.Load() < 1 || len(o.batches) != 3 {
			t.Errorf("%d panics, %d failures and %d batches", panicked.Load(), failed.Load(), len(o.batches))
		}
	})
}

// TestALoneGoroutineAllocatesNothing commits again and again.
func TestALoneGoroutineAllocatesNothing(t *testing.T) {
	var o owner
	o.Init(&o, func(*int) error { return nil }, func(error) {})
	if n := testing.AllocsPerRun(100, func() {
		if err := o.call(context.Background()); err != nil {
			t.Error(err)
		}
	}); n != 0 {
		t.Errorf("a call allocates %v times", n)
	}
}

// TestEveryCallEnds lets goroutines come, leave, fail and panic as they like, and counts the work that was asked for.
func TestEveryCallEnds(t *testing.T) {
	var o owner
	failed := errors.New("failed")
	var made, batches atomic.Int64
	o.Init(&o, func(work *int) error {
		o.Unlock()
		defer o.Lock()
		runtime.Gosched()
		made.Add(int64(*work))
		if n := batches.Add(1); n%5 == 0 {
			return failed
		}
		return nil
	}, func(error) {})
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	const goroutines, each = 64, 200
	var calls sync.WaitGroup
	for i := range goroutines {
		calls.Go(func() {
			ctx := context.Background()
			if i%4 == 0 {
				ctx = ended
			}
			for range each {
				if err := o.call(ctx); err != nil && err != failed && err != context.Canceled {
					t.Error(err)
				}
			}
		})
	}
	calls.Wait()
	o.Wait()
	if made.Load() != goroutines*each {
		t.Errorf("%d of %d calls were worked for", made.Load(), goroutines*each)
	}
}
