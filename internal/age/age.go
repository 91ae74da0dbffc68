// Package age knows since when the oldest byte waits that is not durable. It looks at the clock
// only for the first byte after each sync has begun.
package age

import "time"

// A Clock has two generations of bytes: those that came before the sync in flight began, and
// those that came since. So it may say that a byte is older than it is, by the time between two
// syncs. Its user guards it.
type Clock struct {
	running bool      // a byte came since the last Turn
	since   time.Time // when it came
	turned  time.Time // the last Turn

	older bool // the generation before has bytes that are not durable
	from  time.Time
	end   int64 // the offset behind them
}

// Running reports whether the next byte needs no Begin.
func (c *Clock) Running() bool { return c.running }

// Begin says that a byte has come.
func (c *Clock) Begin() {
	if !c.running {
		c.running, c.since = true, time.Now()
	}
}

// Turn says that a sync begins, when end bytes were accepted.
func (c *Clock) Turn(end int64) {
	if c.older || !c.running {
		return // what came meanwhile is of the next Turn
	}
	c.older, c.from, c.end = true, c.since, end
	c.running, c.turned = false, time.Now()
}

// Durable says that so many bytes are durable.
func (c *Clock) Durable(bytes int64) {
	if bytes >= c.end {
		c.older = false
	}
}

// Oldest returns when the oldest byte came, if there are bytes that are not durable. It is the
// zero Time if none ever came.
func (c *Clock) Oldest() time.Time {
	switch {
	case c.older:
		return c.from
	case c.running:
		return c.since
	}
	return c.turned
}
