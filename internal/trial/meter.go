package trial

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/holdfast-go/holdfast/internal/machine"
	"github.com/holdfast-go/holdfast/internal/result"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// A meter measures what the whole process does between start and stop, and what
// the machine does meanwhile.
type meter struct {
	started  time.Time
	lapped   time.Time
	usage    sys.Usage
	memory   runtime.MemStats
	io       sys.ProcessIO
	ioErr    error
	observer *machine.Observer
	activity machine.Activity
	counting Counting
	calls    *sys.SyscallCounter // with Tracepoints only
}

// startMeter collects garbage first, so that no trial pays for the one before it.
func startMeter(o *machine.Observer, counting Counting) (*meter, error) {
	runtime.GC()
	m := &meter{observer: o, activity: o.Read(), counting: counting}
	m.io, m.ioErr = sys.ReadProcessIO()
	runtime.ReadMemStats(&m.memory)
	if err := m.startCounting(); err != nil {
		return nil, err
	}
	var err error
	m.usage, err = usage()
	m.started = time.Now()
	m.lapped = m.started
	return m, err
}

// usage is zero where the system does not tell.
func usage() (sys.Usage, error) {
	u, err := sys.ProcessUsage()
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return u, fmt.Errorf("usage of the process: %w", err)
	}
	return u, nil
}

// lap returns the time since the last lap.
func (m *meter) lap() time.Duration {
	now := time.Now()
	d := now.Sub(m.lapped)
	m.lapped = now
	return d
}

// stop ends the clock at the last lap and fills in what was measured around it.
func (m *meter) stop(into *result.Measurement) error {
	into.Elapsed = m.lapped.Sub(m.started)
	used, err := usage()
	if err != nil {
		return err
	}
	into.Usage = usedSince(used, m.usage)
	if err := m.stopCounting(into); err != nil {
		return err
	}
	var after runtime.MemStats
	runtime.ReadMemStats(&after)
	into.Allocations = int64(after.Mallocs - m.memory.Mallocs)
	into.Allocated = int64(after.TotalAlloc - m.memory.TotalAlloc)
	if io, err := sys.ReadProcessIO(); err == nil && m.ioErr == nil {
		// The first reading is itself a read of the second.
		into.IO = &result.IO{Reads: io.ReadCalls - m.io.ReadCalls - 1, Writes: io.WriteCalls - m.io.WriteCalls}
	}
	activity := m.observer.Read().Since(m.activity)
	into.Activity = &activity
	return nil
}

func usedSince(u, before sys.Usage) result.Usage {
	return result.Usage{
		User: u.User - before.User, System: u.System - before.System,
		VoluntarySwitches: u.VoluntarySwitches - before.VoluntarySwitches,
		ForcedSwitches:    u.InvoluntarySwitches - before.InvoluntarySwitches,
		MinorFaults:       u.MinorFaults - before.MinorFaults,
		MajorFaults:       u.MajorFaults - before.MajorFaults,
		BlocksIn:          u.BlocksIn - before.BlocksIn,
		BlocksOut:         u.BlocksOut - before.BlocksOut,
	}
}
