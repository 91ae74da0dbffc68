package study

import (
	"math"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
)

// A Metric is a figure of one trial, NaN where it was not measured. Times are in
// nanoseconds.
type Metric func(result.Trial) float64

// Elapsed is the time of a trial.
func Elapsed(t result.Trial) float64 { return float64(t.Elapsed) }

// PerRecord is the time of one record.
func PerRecord(t result.Trial) float64 { return float64(t.Elapsed) / float64(t.Records) }

// Value is what the arm recorded under that name.
func Value(name string) Metric {
	return func(t result.Trial) float64 {
		v, ok := t.Values[name]
		if !ok {
			return math.NaN()
		}
		return v
	}
}

// Each divides a figure of a trial by its records.
func Each(of Metric) Metric {
	return func(t result.Trial) float64 { return of(t) / float64(t.Records) }
}

// Writes are the write calls that the kernel counted.
func Writes(t result.Trial) float64 {
	if t.IO == nil {
		return math.NaN()
	}
	return float64(t.IO.Writes)
}

// Reads are the read calls that the kernel counted.
func Reads(t result.Trial) float64 {
	if t.IO == nil {
		return math.NaN()
	}
	return float64(t.IO.Reads)
}

// CPUUnparted is reported by a trial in User-Mode Linux. The kernel inside counts most of
// its own work as the program's, so that user and system time are not known.
const CPUUnparted = "cpu_unparted"

// UserCPU and SystemCPU are those of a trial.
func UserCPU(t result.Trial) float64   { return ifParted(t, t.User) }
func SystemCPU(t result.Trial) float64 { return ifParted(t, t.System) }

func ifParted(t result.Trial, d time.Duration) float64 {
	if t.Values[CPUUnparted] != 0 {
		return math.NaN()
	}
	return float64(d)
}

// UserTime, SystemTime and CPUTime are those of one record.
func UserTime(t result.Trial) float64   { return UserCPU(t) / float64(t.Records) }
func SystemTime(t result.Trial) float64 { return SystemCPU(t) / float64(t.Records) }
func CPUTime(t result.Trial) float64    { return float64(t.CPU()) / float64(t.Records) }

// CPUsUsed is how many were at work at once, on average.
func CPUsUsed(t result.Trial) float64 { return float64(t.CPU()) / float64(t.Elapsed) }

// Mebibytes are those of a second.
func Mebibytes(t result.Trial) float64 { return float64(t.Size) / (1 << 20) / t.Elapsed.Seconds() }

// CallsOf returns ⌈size/of⌉: how many calls of that size it takes.
func CallsOf(size, of int64) int64 { return (size + of - 1) / of }

// Allocations are those of a trial, of any size.
func Allocations(t result.Trial) float64 { return float64(t.Allocations) }

// VoluntarySwitches are those of threads that went to sleep. The operation does not cause
// the switch of a thread that has used up its time.
func VoluntarySwitches(t result.Trial) float64 { return float64(t.VoluntarySwitches) }

// AllSwitches are voluntary ones and those that were forced.
func AllSwitches(t result.Trial) float64 { return float64(t.VoluntarySwitches + t.ForcedSwitches) }

// Allocated is how many bytes a trial has allocated.
func Allocated(t result.Trial) float64 { return float64(t.Allocated) }

// The names of what an arm reports that counts its memory as a Go benchmark does.
const (
	AllocsPerOp = "allocs_per_op"
	BytesPerOp  = "allocated_bytes_per_op"
)
