package trial

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/machine"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/probe"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
)

// A meter measures the whole process between start and stop, and the machine's activity in that time.
type meter struct {
	started  probe.Instant
	lapped   probe.Instant
	usage    probe.Usage
	memory   runtime.MemStats
	io       probe.ProcessIO
	ioErr    error
	observer *machine.Observer
	activity machine.Activity
	counting Counting
	calls    *probe.SyscallCounter // with Tracepoints only
}

// startMeter collects garbage first, so that no trial pays for the one before it.
func startMeter(o *machine.Observer, counting Counting) (*meter, error) {
	runtime.GC()
	m := &meter{observer: o, activity: o.Read(), counting: counting}
	m.io, m.ioErr = probe.ReadProcessIO()
	runtime.ReadMemStats(&m.memory)
	var err error
	switch counting {
	case Tracepoints:
		if m.calls, err = probe.StartSyscallCounter(); err != nil {
			return nil, fmt.Errorf("count system calls: %w", err)
		}
	case Marks:
		if err := probe.MarkSyscalls(true); err != nil {
			return nil, err
		}
	}
	m.usage, err = usage()
	m.started = probe.Now()
	m.lapped = m.started
	return m, err
}

// usage is zero if the system does not report it.
func usage() (probe.Usage, error) {
	u, err := probe.ProcessUsage()
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return u, fmt.Errorf("usage of the process: %w", err)
	}
	return u, nil
}

// lap returns the time since the last lap.
func (m *meter) lap() time.Duration {
	now := probe.Now()
	d := now.Sub(m.lapped)
	m.lapped = now
	return d
}

// stop ends the clock at the last lap and fills in the measurements around it.
func (m *meter) stop(into *result.Measurement) error {
	into.Elapsed = m.lapped.Sub(m.started)
	used, err := usage()
	if err != nil {
		return err
	}
	into.Usage = result.Usage{
		User: used.User - m.usage.User, System: used.System - m.usage.System,
		VoluntarySwitches: used.VoluntarySwitches - m.usage.VoluntarySwitches,
		ForcedSwitches:    used.InvoluntarySwitches - m.usage.InvoluntarySwitches,
		MinorFaults:       used.MinorFaults - m.usage.MinorFaults,
		MajorFaults:       used.MajorFaults - m.usage.MajorFaults,
		BlocksIn:          used.BlocksIn - m.usage.BlocksIn,
		BlocksOut:         used.BlocksOut - m.usage.BlocksOut,
	}
	switch m.counting {
	case Tracepoints:
		counts, err := m.calls.Stop()
		if err != nil {
			return fmt.Errorf("count system calls: %w", err)
		}
		into.SystemCalls = systemCalls(counts, "tracepoints")
	case Marks:
		if err := probe.MarkSyscalls(false); err != nil {
			return err
		}
	}
	var after runtime.MemStats
	runtime.ReadMemStats(&after)
	into.Allocations = int64(after.Mallocs - m.memory.Mallocs)
	into.Allocated = int64(after.TotalAlloc - m.memory.TotalAlloc)
	if io, err := probe.ReadProcessIO(); err == nil && m.ioErr == nil {
		// The first reading is itself a read that the second one counts.
		into.IO = &result.IO{Reads: io.ReadCalls - m.io.ReadCalls - 1, Writes: io.WriteCalls - m.io.WriteCalls}
	}
	activity := m.observer.Read().Since(m.activity)
	into.Activity = &activity
	return nil
}
