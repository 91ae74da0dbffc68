//go:build go1.25

package errorqueue

import (
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestEachIsCalledOnceAndInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q Queue[int]
		q.Add(1) // nothing wants it
		var got []int
		inside := 0
		q.To(func(n int) {
			inside++
			if inside != 1 {
				t.Error("two calls at a time")
			}
			if n < 100 {
				q.Add(n + 100) // a call's failure comes after it, and not within
			}
			got = append(got, n)
			time.Sleep(time.Second) // for another call to begin
			inside--
		})
		for n := range 10 {
			q.Add(n)
		}
		time.Sleep(time.Minute)
		q.Add(50)
		time.Sleep(time.Minute)
		synctest.Wait() // the calls' effects are visible from here on
		slices.Sort(got[:20])
		want := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 50, 150}
		if !slices.Equal(got, want) {
			t.Errorf("called with %v", got)
		}
	})
}

func TestACallThatEndsItsGoroutineIsOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q Queue[int]
		calls := 0
		q.To(func(int) { calls++; runtime.Goexit() })
		q.Add(1)
		q.Add(2)
		synctest.Wait()
		q.Add(3)
		synctest.Wait()
		if calls != 3 {
			t.Errorf("%d calls of 3", calls)
		}
		q.To(nil)
		q.Add(4)
	})
}

// TestNobodyIsCalledAnyMore lets the function go while it is called, and another failure waits.
func TestNobodyIsCalledAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q Queue[int]
		calls := 0
		q.To(func(int) {
			calls++
			time.Sleep(time.Second)
		})
		q.Add(1)
		q.Add(2)
		synctest.Wait()
		q.To(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		if calls != 1 {
			t.Errorf("%d calls, and the second failure came to nobody", calls)
		}
	})
}
