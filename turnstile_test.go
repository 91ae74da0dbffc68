package holdfast

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// pass has a queued ticket wait in a goroutine of its own, do something and leave.
func pass(t *testing.T, s *turnstile, mine *ticket, do func()) {
	go func() {
		if err := s.await(t.Context(), mine); err != nil {
			t.Error(err)
		}
		do()
		s.leave(mine)
	}()
}

func TestTurnsComeInTheOrderOfTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s turnstile
		key := turnKey{path: "file"}
		var first ticket
		s.queue(key, &first)
		var want, got []int // got is unguarded: the race detector sees if two are let through
		for i := range 100 {
			mine := new(ticket)
			s.queue(key, mine)
			pass(t, &s, mine, func() { got = append(got, i) })
			want = append(want, i)
		}
		synctest.Wait()
		if len(got) > 0 {
			t.Errorf("%v did not wait for the first", got)
		}
		s.leave(&first)
		synctest.Wait()
		if !slices.Equal(got, want) {
			t.Errorf("%v", got)
		}
		if len(s.last) != 0 {
			t.Errorf("%d queues are left", len(s.last))
		}
	})
}

func TestKeysDoNotWaitForEachOther(t *testing.T) {
	var s turnstile
	keys := []turnKey{{path: "a"}, {path: "b"}, {device: 1, inode: 2}, {device: 2, inode: 1}, {path: "a", inode: 1}}
	tickets := make([]ticket, len(keys))
	for i, k := range keys {
		s.queue(k, &tickets[i])
		if err := s.await(t.Context(), &tickets[i]); err != nil {
			t.Error(err)
		}
	}
	for i := range tickets {
		s.leave(&tickets[i])
	}
	if len(s.last) != 0 {
		t.Errorf("%d queues are left", len(s.last))
	}
}

func TestWhoLeavesEarlyHoldsNobodyUp(t *testing.T) {
	for leaves := range 4 { // each place but the first
		t.Run(fmt.Sprint(leaves), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var s turnstile
				key := turnKey{path: "file"}
				var first ticket
				s.queue(key, &first)
				ctx, cancel := context.WithCancelCause(t.Context())
				why := errors.New("why")
				var got, want []int
				for i := range 4 {
					mine := new(ticket)
					s.queue(key, mine)
					if i != leaves {
						pass(t, &s, mine, func() { got = append(got, i) })
						want = append(want, i)
						continue
					}
					go func() {
						if err := s.await(ctx, mine); err != why {
							t.Errorf("%v, want the cause", err)
						}
						s.leave(mine)
					}()
				}
				synctest.Wait()
				cancel(why)
				synctest.Wait()
				if len(got) > 0 {
					t.Errorf("%v did not wait for the first", got)
				}
				var late ticket
				s.queue(key, &late)
				s.leave(&first)
				if err := s.await(t.Context(), &late); err != nil {
					t.Error(err)
				}
				if !slices.Equal(got, want) {
					t.Errorf("%v, want %v", got, want)
				}
				s.leave(&late)
				if len(s.last) != 0 {
					t.Errorf("%d queues are left", len(s.last))
				}
			})
		})
	}
}

func TestOneAtATimeForEachOfManyKeys(t *testing.T) {
	var s turnstile
	var all sync.WaitGroup
	inside := make([]atomic.Int32, 10)
	for range 100 {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(rand.Uint64(), 0))
			for range 200 {
				n := rng.IntN(len(inside))
				ctx, cancel := context.WithCancel(t.Context())
				var mine ticket
				s.queue(turnKey{inode: uint64(n)}, &mine)
				if rng.IntN(4) == 0 {
					cancel()
				}
				if s.await(ctx, &mine) == nil {
					if inside[n].Add(1) != 1 {
						t.Error("two at once")
					}
					inside[n].Add(-1)
				}
				s.leave(&mine)
				cancel()
			}
		})
	}
	all.Wait()
	if len(s.last) != 0 {
		t.Errorf("%d queues are left", len(s.last))
	}
}

func TestATurnThatNobodyWaitsForAllocatesNothing(t *testing.T) {
	var s turnstile
	var mine ticket
	ctx := context.Background()
	if n := testing.AllocsPerRun(100, func() {
		s.queue(turnKey{path: "file"}, &mine)
		if err := s.await(ctx, &mine); err != nil {
			t.Error(err)
		}
		s.leave(&mine)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
