// Package oldest knows since when the oldest byte waits that is not durable. It looks at the clock
// only for the first byte after each sync has begun.
package oldest

import "time"

// epoch is what times are kept from: a time.Time has three times the size, and its clock takes twice as
// long to read. It lies before every reading, so 0 is none.
var epoch = time.Now().Add(-1)

// A Clock has two generations of bytes: those that came before the sync in flight began, and
// those that came since. So it may say that a byte is older than it is, by the time between two
// syncs. Its user guards it.
type Clock struct {
	running bool          // a byte came since the last Turn
	since   time.Duration // when it came
	turned  time.Duration // the last Turn

	older bool // the generation before has bytes that are not durable
	from  time.Duration
	end   int64 // the offset behind them
}

// Running reports whether the next byte needs no Begin.
func (c *Clock) Running() bool { return c.running }

// Begin says that a byte has come.
func (c *Clock) Begin() {
	if !c.running {
		c.running, c.since = true, time.Since(epoch)
	}
}

// Turn says that a sync begins, when end bytes were accepted.
func (c *Clock) Turn(end int64) {
	if c.older || !c.running {
		return // what came meanwhile is of the next Turn
	}
	c.older, c.from, c.end = true, c.since, end
	c.running, c.turned = false, time.Since(epoch)
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
	at := c.turned
	switch {
	case c.older:
		at = c.from
	case c.running:
		at = c.since
	}
	if at == 0 {
		return time.Time{}
	}
	return epoch.Add(at)
}
