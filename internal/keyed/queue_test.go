//go:build go1.25

package keyed

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
func pass(t *testing.T, s *Queue, mine *Ticket, do func()) {
	go func() {
		if err := s.Await(t.Context(), mine); err != nil {
			t.Error(err)
		}
		do()
		s.Leave(mine)
	}()
}

func TestTurnsComeInTheOrderOfTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Queue
		key := Key{Path: "file"}
		var first Ticket
		s.Join(key, &first)
		var want, got []int // got is unguarded: the race detector sees if two are let through
		for i := range 100 {
			mine := new(Ticket)
			s.Join(key, mine)
			pass(t, &s, mine, func() { got = append(got, i) })
			want = append(want, i)
		}
		synctest.Wait()
		if len(got) > 0 {
			t.Errorf("%v did not wait for the first", got)
		}
		s.Leave(&first)
		synctest.Wait()
		if !slices.Equal(got, want) {
			t.Errorf("%v", got)
		}
		if len(s.Last) != 0 {
			t.Errorf("%d queues are left", len(s.Last))
		}
	})
}

func TestKeysDoNotWaitForEachOther(t *testing.T) {
	var s Queue
	keys := []Key{{Path: "a"}, {Path: "b"}, {Device: 1, Inode: 2}, {Device: 2, Inode: 1}, {Path: "a", Inode: 1}}
	tickets := make([]Ticket, len(keys))
	for i, k := range keys {
		s.Join(k, &tickets[i])
		if err := s.Await(t.Context(), &tickets[i]); err != nil {
			t.Error(err)
		}
	}
	for i := range tickets {
		s.Leave(&tickets[i])
	}
	if len(s.Last) != 0 {
		t.Errorf("%d queues are left", len(s.Last))
	}
}

func TestLeavingEarlyHoldsNoOtherUp(t *testing.T) {
	for leaves := range 4 { // each place but the first
		t.Run(fmt.Sprint(leaves), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var s Queue
				key := Key{Path: "file"}
				var first Ticket
				s.Join(key, &first)
				ctx, cancel := context.WithCancelCause(t.Context())
				why := errors.New("why")
				var got, want []int
				for i := range 4 {
					mine := new(Ticket)
					s.Join(key, mine)
					if i != leaves {
						pass(t, &s, mine, func() { got = append(got, i) })
						want = append(want, i)
						continue
					}
					go func() {
						if err := s.Await(ctx, mine); err != why {
							t.Errorf("%v, want the cause", err)
						}
						s.Leave(mine)
					}()
				}
				synctest.Wait()
				cancel(why)
				synctest.Wait()
				if len(got) > 0 {
					t.Errorf("%v did not wait for the first", got)
				}
				var late Ticket
				s.Join(key, &late)
				s.Leave(&first)
				if err := s.Await(t.Context(), &late); err != nil {
					t.Error(err)
				}
				if !slices.Equal(got, want) {
					t.Errorf("%v, want %v", got, want)
				}
				s.Leave(&late)
				if len(s.Last) != 0 {
					t.Errorf("%d queues are left", len(s.Last))
				}
			})
		})
	}
}

func TestOneAtATimeForEachOfManyKeys(t *testing.T) {
	var s Queue
	var all sync.WaitGroup
	inside := make([]atomic.Int32, 10)
	for range 100 {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(rand.Uint64(), 0))
			for range 200 {
				n := rng.IntN(len(inside))
				ctx, cancel := context.WithCancel(t.Context())
				var mine Ticket
				s.Join(Key{Inode: uint64(n)}, &mine)
				if rng.IntN(4) == 0 {
					cancel()
				}
				if s.Await(ctx, &mine) == nil {
					if inside[n].Add(1) != 1 {
						t.Error("two at once")
					}
					inside[n].Add(-1)
				}
				s.Leave(&mine)
				cancel()
			}
		})
	}
	all.Wait()
	if len(s.Last) != 0 {
		t.Errorf("%d queues are left", len(s.Last))
	}
}

func TestAnUncontendedTurnAllocatesNothing(t *testing.T) {
	var s Queue
	var mine Ticket
	ctx := context.Background()
	if n := testing.AllocsPerRun(100, func() {
		s.Join(Key{Path: "file"}, &mine)
		if err := s.Await(ctx, &mine); err != nil {
			t.Error(err)
		}
		s.Leave(&mine)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
