package copying

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/lab/timing"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

// Further figures of a copy: the size of the whole, and the bytes and the time of the last part. In
// that part nothing is touched for the first time.
const (
	wholeBytes = "whole_bytes"
	tailBytes  = "tail_bytes"
	tailNs     = "tail_ns"
)

// stretch is how many times as long as the trial the whole takes: 1 for a trial of the
// whole. The fixed costs come once: opening, closing, and the loop's slower start on the first
// blocks of each file. Each further byte takes as long as one of the last half.
func stretch(t result.Trial) float64 {
	return stretchBy(t, t.Values[tailNs]/t.Values[tailBytes])
}

// stretchBy is stretch with the cost of each further byte in nanoseconds.
func stretchBy(t result.Trial, perByte float64) float64 {
	whole, ok := t.Values[wholeBytes]
	if !ok || t.Values[tailBytes] == 0 || whole <= float64(t.Size) || t.Elapsed == 0 {
		return 1
	}
	return 1 + (whole-float64(t.Size))*perByte/float64(t.Elapsed)
}

// stretches has one stretch for each round of the cell. Of a form that syncs each write, a write of at
// most a block takes one sync, whatever it writes. Its cost is pooled over all these
// buffers, round by round. So a prediction falls as the buffer grows, as the syncs do.
func stretches(e study.Evidence, c copyCell) (all []float64) {
	each := e.Trials(c.name())
	ns, writes := make([]float64, len(each)), make([]float64, len(each))
	for _, other := range c.pool(e) {
		for i, t := range e.Trials(other.name()) {
			ns[i] += t.Values[tailNs]
			writes[i] += t.Values[tailBytes] / float64(other.buffer)
		}
	}
	for i, t := range each {
		all = append(all, stretchBy(t, ns[i]/writes[i]/float64(c.buffer)))
	}
	return all
}

// pool are the cells whose writes take as long as the cell's: itself among them.
func (c copyCell) pool(e study.Evidence) []copyCell {
	if !c.syncs() || c.form == timing.EndSynced || c.buffer > study.PageBytes {
		return []copyCell{c}
	}
	return slices.DeleteFunc(copyCells(e), func(other copyCell) bool { return other.form != c.form || other.buffer > study.PageBytes })
}

// A prediction is made from at least leastRounds rounds, and at least leastWrites writes that sync, of all rounds
// together. Of others a copy makes many more: see least.
const (
	leastRounds = 3
	leastWrites = 30
)

// notPredicted says why the whole can't be predicted from the copied part; empty: it can be, or was
// measured.
func notPredicted(e study.Evidence, c copyCell) string {
	writes := 0.0
	for _, other := range c.pool(e) {
		for _, t := range e.Trials(other.name()) {
			writes += t.Values[tailBytes] / float64(other.buffer)
		}
	}
	switch rounds := len(e.Trials(c.name())); {
	case !isPredicted(e, c) || writes == 0:
		return ""
	case rounds < leastRounds:
		return fmt.Sprintf("not predicted: %d of at least %d rounds", rounds, leastRounds)
	case c.syncs() && writes < leastWrites:
		return fmt.Sprintf("not predicted: %s of at least %d writes", study.Whole(writes), leastWrites)
	}
	return ""
}

// wholeElapsed is the time of the whole by the trial alone: for comparisons of buffers, which
// pooling would make alike.
func wholeElapsed(t result.Trial) float64 { return float64(t.Elapsed) * stretch(t) }

// isPredicted reports whether the arm copied less than the whole.
func isPredicted(e study.Evidence, c copyCell) bool {
	cell, ok := e.Cell(c.name())
	return ok && cell.Records < c.size
}

// userPart is the part of the arm's CPU time that was the program's own, over all
// rounds together; NaN: it is not known. The kernel divides a process's exact CPU time by
// the ticks of its clock: a short copy sees few, and many short ones see many.
func userPart(e study.Evidence, arm string) float64 {
	if study.IsUserMode(placeOf(e)) {
		return math.NaN()
	}
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
	// CPU time must last 20 ticks of the slowest clock, of 100 Hz, before it is parted.
	const leastParted = 200 * time.Millisecond
	if all < leastParted {
		return math.NaN()
	}
	return study.Possible(1 - userPart(e, arm))
}

// wholeTimes are one arm's times for the whole file, in nanoseconds.
type wholeTimes struct {
	elapsed, cpu               stat.Summary
	user, system               float64 // NaN: not known
	averageElapsed, averageCPU float64
	predicted                  bool
}

// wholeOf returns the times of the cell, NaN where none can be predicted.
func wholeOf(e study.Evidence, c copyCell) wholeTimes {
	var elapsed, cpu []float64
	sumElapsed, sumCPU := 0.0, 0.0
	trials, unknown := e.Trials(c.name()), notPredicted(e, c) != ""
	for i, s := range stretches(e, c) {
		t := trials[i]
		if unknown {
			s = math.NaN()
		}
		elapsed, cpu = append(elapsed, s*float64(t.Elapsed)), append(cpu, s*float64(t.CPU()))
		sumElapsed, sumCPU = sumElapsed+elapsed[i], sumCPU+cpu[i]
	}
	n := float64(len(elapsed))
	w := wholeTimes{elapsed: stat.Summarize(elapsed), cpu: stat.Summarize(cpu), averageElapsed: sumElapsed / n, averageCPU: sumCPU / n, predicted: isPredicted(e, c)}
	if w.predicted && !w.elapsed.HasInterval() && len(elapsed) > 0 {
		w.elapsed.Low, w.elapsed.High = slices.Min(elapsed), slices.Max(elapsed)
	}
	w.user = w.cpu.Median * userPart(e, c.name())
	w.system = w.cpu.Median - w.user
	return w
}
