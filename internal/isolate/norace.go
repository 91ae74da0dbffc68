//go:build !race

package isolate

// RaceEnabled says that the race detector is on.
const RaceEnabled = false
