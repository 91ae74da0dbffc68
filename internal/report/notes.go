package report

import (
	"fmt"
	"math"
	"time"

	"github.com/holdfast-go/holdfast/internal/stat"
)

// calls writes a number of system calls a record.
func calls(x float64) string {
	switch {
	case math.IsNaN(x):
		return none
	case x < 0.00005:
		return "0"
	case x < 0.01:
		return fmt.Sprintf("%.4f", x)
	default:
		return fmt.Sprintf("%.2f", x)
	}
}

// percentile writes a time, or nothing where too few Writes were timed.
func percentile(d time.Duration) string {
	if d == 0 {
		return none
	}
	return duration(d)
}

// cautious reports whether the rounds are too few to prove anything.
func (f figures) cautious() bool { return f.rounds < stat.VerdictRounds }

// notes say how to read the tables, and what is doubtful about them.
func (f figures) notes() []string {
	notes := []string{
		"records/s: median of the rounds and its 95 % interval. cost: time of a record against the fastest, round by round. " +
			"elapsed: one trial, from open to close. user, system, calls: CPU time and system calls of the whole process, for each record. " +
			"p50, p99: time of one Write.",
		"noise: " + f.noise(),
	}
	if reason := f.run.Header.SystemCallsUnseen; reason != "" {
		notes = append(notes, "calls: not observable here: "+reason)
	}
	if f.outliers > 0 {
		notes = append(notes, fmt.Sprintf("outliers: %d of %s, and they count like all others", f.outliers, plural(f.trials, "trial")))
	}
	for _, d := range f.doubts {
		notes = append(notes, "doubtful: "+d)
	}
	return notes
}
