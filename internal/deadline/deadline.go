// Package deadline is timers that run only while bytes wait for them.
package deadline

import (
	"math"
	"sync"
	"time"
)

// A Timer is a timer that runs only while bytes wait. With a period of 0 there is no timer. Its user guards it.
type Timer struct {
	period  time.Duration
	timer   *time.Timer
	running bool
}

// Init makes the timer. It calls fire after the period, each time that it was set. If device is not nil, no more than
// abreast timers of one device are in their calls at once; the others wait for their turn. Device is asked when
// the timer fires, and 0 stands for none.
func (d *Timer) Init(period time.Duration, device func() uint64, fire func()) {
	if d.period = period; period == 0 {
		return
	}
	call := fire
	if device != nil {
		call = func() { inTurn(device(), fire) }
	}
	d.timer = time.AfterFunc(math.MaxInt64, call)
	d.timer.Stop()
}

// Set has the timer run, from now on if it did not, or stops it. The call that it makes begins with Set(false).
func (d *Timer) Set(runs bool) {
	if d.period == 0 || d.running == runs {
		return
	}
	if d.running = runs; runs {
		d.timer.Reset(d.period)
	} else {
		d.timer.Stop()
	}
}

// Running reports whether the timer runs. One with a period of 0 counts as running.
func (d *Timer) Running() bool { return d.period == 0 || d.running }

// abreast is how many timers of a device are in their calls at once: each may hold a thread in a system call for as long as the
// disk takes. Thousands of files can come due together, and a disk has no use of more than its queue.
const abreast = 64

// turns is the calls of timers, by device. It is one for the process, as the threads are.
var turns = struct {
	sync.Mutex
	devices map[uint64]*queue
}{devices: map[uint64]*queue{}}

// A queue is how many calls of a device are under way, and those that wait.
type queue struct {
	running int
	waiting []func()
}

// inTurn makes a call, or leaves it to those that make calls of the device now.
func inTurn(device uint64, call func()) {
	if device == 0 {
		call()
		return
	}
	turns.Lock()
	q := turns.devices[device]
	if q == nil {
		q = new(queue)
		turns.devices[device] = q
	}
	if q.running == abreast {
		q.waiting = append(q.waiting, call)
		turns.Unlock()
		return
	}
	q.running++
	turns.Unlock()
	q.run(device, call)
}

// run makes a call, and has the next one made that waits.
func (q *queue) run(device uint64, call func()) {
	defer func() { // also if the call ends its goroutine
		turns.Lock()
		defer turns.Unlock()
		if len(q.waiting) > 0 {
			next := q.waiting[0]
			q.waiting = q.waiting[1:]
			go q.run(device, next)
			return
		}
		if q.running--; q.running == 0 {
			delete(turns.devices, device)
		}
	}()
	call()
}

// Shortest returns the smallest of the periods that are set, or 0.
func Shortest(periods ...time.Duration) time.Duration {
	var least time.Duration
	for _, d := range periods {
		if d > 0 && (least == 0 || d < least) {
			least = d
		}
	}
	return least
}
