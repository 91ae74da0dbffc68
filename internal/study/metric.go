package study

import (
	"math"

	"github.com/holdfast-go/holdfast/internal/result"
)

// A Metric is a figure of one trial, NaN where it was not measured. Times are in
// nanoseconds.
type Metric func(result.Trial) float64

// Elapsed is the time of a trial.
func Elapsed(t result.Trial) float64 { return float64(t.Elapsed) }

// PerRecord is the time of one record.
func PerRecord(t result.Trial) float64 { return float64(t.Elapsed) / float64(t.Records) }

// Value is what the arm told under that name.
func Value(name string) Metric {
	return func(t result.Trial) float64 {
		v, ok := t.Values[name]
		if !ok {
			return math.NaN()
		}
		return v
	}
}

// each divides a figure of a trial by its records.
func each(of Metric) Metric {
	return func(t result.Trial) float64 { return of(t) / float64(t.Records) }
}

// Writes and Reads are the calls that the kernel counted.
func Writes(t result.Trial) float64 {
	if t.IO == nil {
		return math.NaN()
	}
	return float64(t.IO.Writes)
}

func Reads(t result.Trial) float64 {
	if t.IO == nil {
		return math.NaN()
	}
	return float64(t.IO.Reads)
}

// CPU time of one record.
func userTime(t result.Trial) float64   { return float64(t.User) / float64(t.Records) }
func systemTime(t result.Trial) float64 { return float64(t.System) / float64(t.Records) }
func cpuTime(t result.Trial) float64    { return float64(t.CPU()) / float64(t.Records) }

// cpusUsed is how many were at work at once, on average.
func cpusUsed(t result.Trial) float64 { return float64(t.CPU()) / float64(t.Elapsed) }

// mebibytes are those of a second.
func mebibytes(t result.Trial) float64 { return float64(t.Size) / (1 << 20) / t.Elapsed.Seconds() }

// parts returns ⌈size/of⌉: how many calls of that size it takes.
func parts(size, of int64) int64 { return (size + of - 1) / of }

func allocations(t result.Trial) float64 { return float64(t.Allocations) }

func minorFaults(t result.Trial) float64 { return float64(t.MinorFaults) }

// voluntarySwitches are those of threads that went to sleep: a thread whose time was
// up was none of the operation's doing.
func voluntarySwitches(t result.Trial) float64 { return float64(t.VoluntarySwitches) }

func allSwitches(t result.Trial) float64 { return float64(t.VoluntarySwitches + t.ForcedSwitches) }

func allocated(t result.Trial) float64 { return float64(t.Allocated) }
