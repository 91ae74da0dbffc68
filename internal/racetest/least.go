package racetest

import "runtime/debug"

// Least returns the least of up to ten counts, and the first that is at most enough. A count of
// allocations is of the whole process: now and then another goroutine's are in it. No garbage is
// collected meanwhile, because that empties the pools.
func Least(enough float64, count func() float64) float64 {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	least := count()
	for round := 1; round < 10 && least > enough; round++ {
		least = min(least, count())
	}
	return least
}
