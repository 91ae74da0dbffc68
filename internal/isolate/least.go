package isolate

import "runtime/debug"

// Least returns the least of up to ten counts, or the first that is at most enough. A count of
// allocations covers the whole process, and sometimes another goroutine allocates. The garbage
// collector is off meanwhile, because it empties the pools.
func Least(enough float64, count func() float64) float64 {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	least := count()
	for round := 1; round < 10 && least > enough; round++ {
		least = min(least, count())
	}
	return least
}
