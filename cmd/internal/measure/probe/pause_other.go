//go:build !linux

package probe

import "time"

// Pause sleeps for d as exactly as the runtime can.
func Pause(d time.Duration) { time.Sleep(d) }
