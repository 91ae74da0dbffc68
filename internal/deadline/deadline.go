// Package deadline has timers that run only while bytes wait for them.
package deadline

import (
	"math"
	"sync"
	"time"
)

// A Timer calls a function a period after bytes began to wait. With a period of 0 it does nothing.
// It is not safe for concurrent use.
type Timer struct {
	period  time.Duration
	timer   *time.Timer
	running bool
}

// Init makes the timer. It calls fire a period after each Set(true). If device is not nil, at most
// abreast timers of one device call fire at once; the others wait for their turn. device is called
// when the timer fires; 0 means no limit.
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

// Set starts the timer if it does not run, or stops it. fire must begin with Set(false).
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

// Running reports whether the timer runs. A timer with a period of 0 counts as running.
func (d *Timer) Running() bool { return d.period == 0 || d.running }

// abreast is the most calls of fire at once per device: each may hold a thread in a system call for
// as long as the disk takes. Thousands of files can come due together, and a disk has no use for
// more than its queue.
const abreast = 64

// turns holds the calls of timers, by device. It is global, as threads are.
var turns = struct {
	sync.Mutex
	devices map[uint64]*queue
}{devices: map[uint64]*queue{}}

// A queue holds the number of running calls of a device, and the waiting calls.
type queue struct {
	running int
	waiting []func()
}

// inTurn makes a call now, or queues it for a goroutine that makes calls of the device.
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

// run makes a call, and then starts the next waiting one.
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

// Shortest returns the shortest period above 0, or 0.
func Shortest(periods ...time.Duration) time.Duration {
	var least time.Duration
	for _, d := range periods {
		if d > 0 && (least == 0 || d < least) {
			least = d
		}
	}
	return least
}
