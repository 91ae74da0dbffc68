// Package deadline has timers that run only while bytes wait for them.
package deadline

import (
	"math"
	"sync/atomic"
	"time"
)

// A Timer calls a function a period after bytes began to wait. With a period of 0 it does nothing.
// It is not safe for concurrent use.
type Timer struct {
	period  time.Duration
	running bool
	fire    func()

	timer  *time.Timer // its own; nil: it is one of clock's
	clock  *clock
	device *uint64
	waits  Waits

	// due is when fire is called, by clock's time, or 0. held says that clock has the Timer: it
	// looks at due at the time at, or before. So to stop the Timer and to set it again, as a busy
	// Writer does, takes no lock.
	due   atomic.Int64
	held  atomic.Bool
	at    int64 // guarded by clock.mu
	place int   // in clock.timers; guarded by clock.mu
}

// A Placed file knows its file system. A Writer asks it once, for its timers.
type Placed interface {
	// FileSystemDevice returns the number of the file system's device. It is 0 if a write or a sync may wait
	// for something else than that.
	FileSystemDevice() uint64
}

// Waits says what a timer's call may wait for.
type Waits bool

const (
	ForSync  Waits = false // of its own, or of another goroutine
	ForWrite Waits = true  // and for no sync
)

// Init makes the timer. It calls fire a period after each Set(true). If device is not nil, at most
// abreast timers of one device that wait for a sync call fire at once, and at most as many of those that
// wait for a write alone. The others wait for their turn without a goroutine. *device is read when the
// timer is due; 0 means no limit.
func (d *Timer) Init(period time.Duration, device *uint64, waits Waits, fire func()) {
	switch d.period, d.waits, d.fire = period, waits, fire; {
	case period == 0:
	case device != nil && !isFake(time.Now()):
		d.clock, d.device = shared(), device
	default:
		d.timer = time.AfterFunc(math.MaxInt64, fire)
		d.timer.Stop()
	}
}

// isFake reports whether a time is that of a bubble of testing/synctest, which begins with the year 2000.
// Each bubble has its own time and its own goroutines, so no clock can have the timers of two.
func isFake(now time.Time) bool { return now.Year() < 2020 }

// Set starts the timer if it does not run, or stops it. fire must begin with Set(false).
func (d *Timer) Set(runs bool) {
	if d.period == 0 || d.running == runs {
		return
	}
	d.running = runs
	switch {
	case d.clock != nil && runs:
		d.clock.start(d)
	case d.clock != nil:
		d.due.Store(0)
	case runs:
		d.timer.Reset(d.period)
	default:
		d.timer.Stop()
	}
}

// Release is Set(false) when the timer is no longer needed: nothing refers to it from now on.
func (d *Timer) Release() {
	d.Set(false)
	if d.clock != nil {
		d.clock.drop(d)
	}
}

// Running reports whether the timer runs. A timer with a period of 0 counts as running.
func (d *Timer) Running() bool { return d.period == 0 || d.running }

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
