// Package oldest tracks the age of the oldest byte that is not durable. It reads the clock only for
// the first byte after the start of each sync.
package oldest

import "time"

// epoch is the zero of the times here: a time.Time has three times the size, and its clock takes
// twice as long to read. It lies before every reading, so 0 means no time.
var epoch = time.Now().Add(-1)

// A Clock has two generations of bytes: before the start of the sync in flight, and since then. So
// it may report a byte as older than it is, by up to the time between two syncs. It is not safe for
// concurrent use.
type Clock struct {
	running bool          // a byte has come since the last Turn
	since   time.Duration // the time of that byte
	turned  time.Duration // the time of the last Turn

	older bool // the generation before the last Turn has bytes that are not durable
	from  time.Duration
	end   int64 // the offset after them
}

// Running reports whether the next byte needs no Begin.
func (c *Clock) Running() bool { return c.running }

// Begin records that a byte has come.
func (c *Clock) Begin() {
	if !c.running {
		c.running, c.since = true, time.Since(epoch)
	}
}

// Turn records the start of a sync, when end bytes were accepted.
func (c *Clock) Turn(end int64) {
	if c.older || !c.running {
		return // newer bytes belong to the next Turn
	}
	c.older, c.from, c.end = true, c.since, end
	c.running, c.turned = false, time.Since(epoch)
}

// Durable records that the first bytes bytes are durable.
func (c *Clock) Durable(bytes int64) {
	if bytes >= c.end {
		c.older = false
	}
}

// Oldest returns the arrival of the oldest byte that is not durable, if there is one. It is the
// zero Time if no byte ever came.
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
