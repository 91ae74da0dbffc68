package study

import (
	"math"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
)

// A Metric is a figure of one trial, NaN if it was not measured. Times are in nanoseconds.
type Metric func(result.Trial) float64

// Elapsed is the time of a trial.
func Elapsed(t result.Trial) float64 { return float64(t.Elapsed) }

// PerRecord is the time of one record.
func PerRecord(t result.Trial) float64 { return float64(t.Elapsed) / float64(t.Records) }

// Value is the value that the arm recorded under that name.
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

// Writes is the number of write calls that the kernel counted.
func Writes(t result.Trial) float64 {
	if t.IO == nil {
		return math.NaN()
	}
	return float64(t.IO.Writes)
}

// Reads is the number of read calls that the kernel counted.
func Reads(t result.Trial) float64 {
	if t.IO == nil {
		return math.NaN()
	}
	return float64(t.IO.Reads)
}

// CPUUnparted is the name of a value that a trial in User-Mode Linux reports. The kernel inside counts
// most of its own work as the program's, so user and system time are not known.
const CPUUnparted = "cpu_unparted"

// UserCPU and SystemCPU are the CPU times of a trial.
func UserCPU(t result.Trial) float64   { return ifParted(t, t.User) }
func SystemCPU(t result.Trial) float64 { return ifParted(t, t.System) }

func ifParted(t result.Trial, d time.Duration) float64 {
	if t.Values[CPUUnparted] != 0 {
		return math.NaN()
	}
	return float64(d)
}

// UserTime, SystemTime and CPUTime are the CPU times of one record.
func UserTime(t result.Trial) float64   { return UserCPU(t) / float64(t.Records) }
func SystemTime(t result.Trial) float64 { return SystemCPU(t) / float64(t.Records) }
func CPUTime(t result.Trial) float64    { return float64(t.CPU()) / float64(t.Records) }

// CPUsUsed is the average number of CPUs in use.
func CPUsUsed(t result.Trial) float64 { return float64(t.CPU()) / float64(t.Elapsed) }

// Mebibytes is the throughput in MiB a second.
func Mebibytes(t result.Trial) float64 { return float64(t.Size) / (1 << 20) / t.Elapsed.Seconds() }

// CallsOf returns ⌈size/of⌉: the number of calls of that size.
func CallsOf(size, of int64) int64 { return (size + of - 1) / of }

// Allocations is the number of allocations in a trial, of any size.
func Allocations(t result.Trial) float64 { return float64(t.Allocations) }

// VoluntarySwitches is the number of context switches of threads that went to sleep. A switch because a
// thread has used up its time is not caused by the operation.
func VoluntarySwitches(t result.Trial) float64 { return float64(t.VoluntarySwitches) }

// AllSwitches is the number of voluntary and forced context switches.
func AllSwitches(t result.Trial) float64 { return float64(t.VoluntarySwitches + t.ForcedSwitches) }

// Allocated is the number of bytes that a trial has allocated.
func Allocated(t result.Trial) float64 { return float64(t.Allocated) }

// The names of the values of an arm that counts its memory as a Go benchmark does.
const (
	AllocsPerOp = "allocs_per_op"
	BytesPerOp  = "allocated_bytes_per_op"
)
