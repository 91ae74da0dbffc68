package deadline

import (
	"container/heap"
	"math"
	"sync"
	"time"
)

// abreast is the most calls of fire at once per queue: each may hold a thread in a system call for
// as long as the disk takes. Thousands of files can come due together, and a disk has no use for
// more than its queue.
const abreast = 64

// A clock has the timers of many files. Package time starts a goroutine for each of its timers
// that is due, before the first of them runs: for 5,000 files at once, 5,000 and more. A clock
// has one of package time's timers, its alarm, and hands what is due to at most abreast goroutines
// for each queue.
type clock struct {
	zero time.Time // its time is counted from here; set once

	mu     sync.Mutex
	timers heaped
	alarm  *time.Timer
	rings  int64 // the time for which the alarm is set; 0: it is not
	queues map[place]*queue
}

// shared is the clock of the process. It is global, as threads are.
var shared = sync.OnceValue(newClock)

func newClock() *clock {
	c := &clock{zero: time.Now(), queues: map[place]*queue{}}
	c.alarm = time.AfterFunc(math.MaxInt64, c.ring)
	c.alarm.Stop()
	return c
}

// now returns the time, which is above 0.
func (c *clock) now() int64 { return int64(time.Since(c.zero)) + 1 }

// start lets fire be called after the timer's period.
func (c *clock) start(d *Timer) {
	d.due.Store(c.now() + int64(d.period))
	if d.held.CompareAndSwap(false, true) { // else it is looked at in time: its due only grows
		c.mu.Lock()
		defer c.mu.Unlock()
		c.holdLocked(d)
	}
}

// holdLocked puts a timer into the heap.
func (c *clock) holdLocked(d *Timer) {
	d.at = d.due.Load()
	heap.Push(&c.timers, d)
	c.setLocked()
}

// setLocked sets the alarm for the first timer.
func (c *clock) setLocked() {
	if len(c.timers) == 0 {
		return
	}
	if first := c.timers[0].at; c.rings == 0 || first < c.rings {
		c.rings = first
		c.alarm.Reset(time.Duration(first - c.now()))
	}
}

// drop takes a stopped timer out of the heap.
func (c *clock) drop(d *Timer) {
	if !d.held.Load() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if d.held.Load() {
		heap.Remove(&c.timers, d.place)
		d.held.Store(false)
	}
}

// ring is called by the alarm. It hands over what is due, some timers at a time: who starts a timer meanwhile
// may hold a lock.
func (c *clock) ring() {
	for c.ringSome() {
	}
}

func (c *clock) ringSome() (more bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	for range abreast {
		if len(c.timers) == 0 || c.timers[0].at > now {
			c.rings = 0
			c.setLocked()
			return false
		}
		d := heap.Pop(&c.timers).(*Timer)
		d.held.Store(false)
		due := d.due.Load()
		switch {
		case due == 0: // stopped, and whoever starts it puts it here again
		case due > now:
			if d.held.CompareAndSwap(false, true) {
				c.holdLocked(d)
			}
		default:
			c.enqueueLocked(d)
		}
	}
	return true
}

// A place is where the calls of a queue may wait for long. A device that hangs in 64 syncs still takes
// writes into memory, so flushes have a queue of their own: they must start in time behind any syncs.
type place struct {
	device uint64
	waits  Waits
}

// A queue has the timers of a place that are due. clock.mu guards it.
type queue struct {
	place   place
	running int // number of goroutines that call fire
	waiting []*Timer
}

// enqueueLocked lets a goroutine call fire.
func (c *clock) enqueueLocked(d *Timer) {
	at := place{*d.device, d.waits}
	if at.device == 0 {
		go d.fire()
		return
	}
	q := c.queues[at]
	if q == nil {
		q = &queue{place: at}
		c.queues[at] = q
	}
	q.waiting = append(q.waiting, d)
	if q.running < abreast {
		q.running++
		go c.work(q)
	}
}

// work calls fire for timers of a queue until none waits.
func (c *clock) work(q *queue) {
	ended := false
	defer func() {
		if !ended { // fire has ended the goroutine
			go c.work(q)
		}
	}()
	for d := c.next(q); d != nil; d = c.next(q) {
		d.fire()
	}
	ended = true
}

// next returns the first timer of a queue. For nil the goroutine must end.
func (c *clock) next(q *queue) (d *Timer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(q.waiting) > 0 {
		d, q.waiting[0] = q.waiting[0], nil
		q.waiting = q.waiting[1:]
		return d
	}
	if q.running--; q.running == 0 {
		delete(c.queues, q.place)
	}
	return nil
}

// heaped is a heap of timers by the time at which they are looked at.
type heaped []*Timer

func (h heaped) Len() int           { return len(h) }
func (h heaped) Less(i, j int) bool { return h[i].at < h[j].at }
func (h heaped) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

func (h *heaped) Push(x any) {
	d := x.(*Timer)
	d.place = len(*h)
	*h = append(*h, d)
}

func (h *heaped) Pop() any {
	last := len(*h) - 1
	d := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return d
}
