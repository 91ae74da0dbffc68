package machine

import "time"

// An Activity is the work of the whole computer, or of this process's control group, since its start,
// and the present value of some gauges. A count that could not be read is nil, and left out of the
// JSON: it is not zero.
//
// The counts go on while they are read, so an Activity is not of one instant. CPU time is counted
// in steps of 10 ms (see [Observer.Read]).
type Activity struct {
	// Cumulative.

	CPUBusy  *time.Duration `json:"cpu_busy_ns,omitempty"`  // of all CPUs and programs, ours too; waiting for I/O is not busy
	CPUSteal *time.Duration `json:"cpu_steal_ns,omitempty"` // time that the host gave to others while a CPU of ours had work

	// Time in which some task waited for CPU, I/O or memory, by pressure stall information; our own
	// tasks count too.
	CPUPressure    *time.Duration `json:"cpu_pressure_ns,omitempty"`
	IOPressure     *time.Duration `json:"io_pressure_ns,omitempty"`
	MemoryPressure *time.Duration `json:"memory_pressure_ns,omitempty"`

	// Throttles counts the periods in which the quota of our control group, or of one above it, ran
	// out. Throttled is the time for which its CPUs then stood still.
	Throttles *int64         `json:"cgroup_throttles,omitempty"`
	Throttled *time.Duration `json:"cgroup_throttled_ns,omitempty"`

	ThermalThrottles *int64 `json:"thermal_throttles,omitempty"` // of all cores and packages

	SwappedIn  *int64 `json:"swapped_in_bytes,omitempty"`
	SwappedOut *int64 `json:"swapped_out_bytes,omitempty"`

	// Of the device that holds the directory, for all processes.
	DeviceRead    *int64         `json:"device_read_bytes,omitempty"`
	DeviceWritten *int64         `json:"device_written_bytes,omitempty"`
	DeviceFlushes *int64         `json:"device_flushes,omitempty"` // of its volatile cache
	DeviceBusy    *time.Duration `json:"device_busy_ns,omitempty"` // time with at least one request in flight

	// Gauges.

	Load      *float64 `json:"load_1min,omitempty"`         // tasks that run or wait for a CPU or disk, averaged over a minute
	Frequency *int64   `json:"cpu_frequency_khz,omitempty"` // mean of the CPUs that were asked
	Dirty     *int64   `json:"dirty_bytes,omitempty"`       // in memory, to be written
	Writeback *int64   `json:"writeback_bytes,omitempty"`   // being written
}

// Since returns the activity after an earlier reading of the same Observer: the differences of the
// cumulative counts, and the gauges of a. A count that is unknown in one of the two, or that fell, is
// unknown.
func (a Activity) Since(before Activity) Activity {
	a.CPUBusy = since(a.CPUBusy, before.CPUBusy)
	a.CPUSteal = since(a.CPUSteal, before.CPUSteal)
	a.CPUPressure = since(a.CPUPressure, before.CPUPressure)
	a.IOPressure = since(a.IOPressure, before.IOPressure)
	a.MemoryPressure = since(a.MemoryPressure, before.MemoryPressure)
	a.Throttles = since(a.Throttles, before.Throttles)
	a.Throttled = since(a.Throttled, before.Throttled)
	a.ThermalThrottles = since(a.ThermalThrottles, before.ThermalThrottles)
	a.SwappedIn = since(a.SwappedIn, before.SwappedIn)
	a.SwappedOut = since(a.SwappedOut, before.SwappedOut)
	a.DeviceRead = since(a.DeviceRead, before.DeviceRead)
	a.DeviceWritten = since(a.DeviceWritten, before.DeviceWritten)
	a.DeviceFlushes = since(a.DeviceFlushes, before.DeviceFlushes)
	a.DeviceBusy = since(a.DeviceBusy, before.DeviceBusy)
	return a
}

// Plus returns the activity of both periods: the sums of the differences that Since returned, and the
// gauges of the later one. A count that is unknown in one of the two is unknown.
func (a Activity) Plus(later Activity) Activity {
	later.CPUBusy = plus(a.CPUBusy, later.CPUBusy)
	later.CPUSteal = plus(a.CPUSteal, later.CPUSteal)
	later.CPUPressure = plus(a.CPUPressure, later.CPUPressure)
	later.IOPressure = plus(a.IOPressure, later.IOPressure)
	later.MemoryPressure = plus(a.MemoryPressure, later.MemoryPressure)
	later.Throttles = plus(a.Throttles, later.Throttles)
	later.Throttled = plus(a.Throttled, later.Throttled)
	later.ThermalThrottles = plus(a.ThermalThrottles, later.ThermalThrottles)
	later.SwappedIn = plus(a.SwappedIn, later.SwappedIn)
	later.SwappedOut = plus(a.SwappedOut, later.SwappedOut)
	later.DeviceRead = plus(a.DeviceRead, later.DeviceRead)
	later.DeviceWritten = plus(a.DeviceWritten, later.DeviceWritten)
	later.DeviceFlushes = plus(a.DeviceFlushes, later.DeviceFlushes)
	later.DeviceBusy = plus(a.DeviceBusy, later.DeviceBusy)
	return later
}

func plus[T int64 | time.Duration](a, b *T) *T {
	if a == nil || b == nil {
		return nil
	}
	sum := *a + *b
	return &sum
}

func since[T int64 | time.Duration](now, before *T) *T {
	if now == nil || before == nil || *now < *before {
		return nil
	}
	difference := *now - *before
	return &difference
}
