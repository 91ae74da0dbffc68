// Package deadline is timers that run only while bytes wait for them.
package deadline

import (
	"math"
	"time"
)

// A Timer is a timer that runs only while bytes wait. With a period of 0 there is no timer,
// and it counts as running.
type Timer struct {
	period time.Duration
	timer  *time.Timer
	armed  bool
}

func (d *Timer) Init(period time.Duration, fire func()) {
	if d.period = period; period > 0 {
		d.timer = time.AfterFunc(math.MaxInt64, fire)
		d.timer.Stop()
	}
}

func (d *Timer) Running() bool { return d.period == 0 || d.armed }

func (d *Timer) Arm() {
	if !d.Running() {
		d.armed = true
		d.timer.Reset(d.period)
	}
}

func (d *Timer) Disarm() {
	if d.armed {
		d.armed = false
		d.timer.Stop()
	}
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
