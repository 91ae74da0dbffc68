//go:build !windows

package probe

import "time"

// An Instant is a reading of the clock with the shortest steps.
type Instant = time.Time

// Now reads the clock.
func Now() Instant { return time.Now() }

// Since returns the time since an Instant.
func Since(i Instant) time.Duration { return time.Since(i) }
