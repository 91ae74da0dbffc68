package copying

import (
	"math"
	"time"

	"github.com/holdfast-go/holdfast/internal/lab/result"
	"github.com/holdfast-go/holdfast/internal/lab/stat"
	"github.com/holdfast-go/holdfast/internal/lab/study"
)

// What a copy reports besides: how many bytes the whole is, and the bytes and the time of
// its last part. In that part nothing is touched for the first time.
const (
	wholeBytes = "whole_bytes"
	tailBytes  = "tail_bytes"
	tailNs     = "tail_ns"
)

// stretch is how many times as long as the trial the whole takes: 1 for a trial of the
// whole. The fixed costs, which are opening, closing and what the beginning of the
// loop takes for the first blocks of each file, come once; each further byte takes as
// long as one of the last half.
func stretch(t result.Trial) float64 {
	whole, ok := t.Values[wholeBytes]
	tail := t.Values[tailBytes]
	if !ok || tail == 0 || whole <= float64(t.Size) || t.Elapsed == 0 {
		return 1
	}
	rest := (whole - float64(t.Size)) * t.Values[tailNs] / tail
	return 1 + rest/float64(t.Elapsed)
}

// Times of the whole. CPU time goes with the elapsed time.
func wholeElapsed(t result.Trial) float64 { return float64(t.Elapsed) * stretch(t) }
func wholeCPU(t result.Trial) float64     { return float64(t.CPU()) * stretch(t) }

// isPredicted reports whether the arm copied less than the whole.
func isPredicted(e study.Evidence, c copyCell) bool {
	cell, ok := e.Cell(c.name())
	return ok && cell.Records < c.size
}

// userPart is the part of the arm's CPU time that was the program's own, over all
// rounds together. The kernel divides a process's exact CPU time by the ticks of its
// clock: a short copy sees few, and many short ones see many.
func userPart(e study.Evidence, arm string) float64 {
	user, all := 0.0, 0.0
	for _, t := range e.Trials(arm) {
		user, all = user+float64(t.User), all+float64(t.CPU())
	}
	return user / all
}

// kernelPart is the part of the arm's CPU time that was the kernel's; NaN: the run
// does not show it.
func kernelPart(e study.Evidence, arm string) float64 {
	var all time.Duration
	for _, t := range e.Trials(arm) {
		all += t.CPU()
	}
	// CPU time must last 20 ticks of the slowest clock, of 100 Hz, before it is parted. In
	// User-Mode Linux a process outside serves the system calls, and its time is not known.
	const leastParted = 200 * time.Millisecond
	if all < leastParted || study.IsUserMode(placeOf(e)) {
		return math.NaN()
	}
	return study.Possible(1 - userPart(e, arm))
}

// wholeTimes are what one arm takes for the whole file, in nanoseconds.
type wholeTimes struct {
	elapsed, cpu stat.Summary
	user, system float64
	predicted    bool
}

func wholeOf(e study.Evidence, c copyCell) wholeTimes {
	arm := c.name()
	w := wholeTimes{elapsed: e.Summary(arm, wholeElapsed), cpu: e.Summary(arm, wholeCPU), predicted: isPredicted(e, c)}
	w.user = w.cpu.Median * userPart(e, arm)
	w.system = w.cpu.Median - w.user
	return w
}
