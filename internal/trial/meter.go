package trial

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/result"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// A meter measures what the whole process does between start and stop.
type meter struct {
	started      time.Time
	lapped       time.Time
	user, system time.Duration
	memory       runtime.MemStats
	calls        *sys.SyscallCounter // nil where calls are not counted
}

// startMeter collects garbage first, so that no trial pays for the one before it.
func startMeter(countCalls bool) (*meter, error) {
	runtime.GC()
	m := &meter{}
	runtime.ReadMemStats(&m.memory)
	if countCalls {
		calls, err := sys.StartSyscallCounter()
		if err != nil {
			return nil, fmt.Errorf("count system calls: %w", err)
		}
		m.calls = calls
	}
	usage, err := sys.ProcessUsage()
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return nil, fmt.Errorf("cpu times: %w", err)
	}
	m.user, m.system = usage.User, usage.System
	m.started = time.Now()
	m.lapped = m.started
	return m, nil
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
	usage, err := sys.ProcessUsage()
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("cpu times: %w", err)
	}
	into.User, into.System = usage.User-m.user, usage.System-m.system
	if err := m.stopCounting(into); err != nil {
		return err
	}
	var after runtime.MemStats
	runtime.ReadMemStats(&after)
	into.Allocations = int64(after.Mallocs - m.memory.Mallocs)
	into.Allocated = int64(after.TotalAlloc - m.memory.TotalAlloc)
	return nil
}

func (m *meter) stopCounting(into *result.Measurement) error {
	if m.calls == nil {
		return nil
	}
	counts, err := m.calls.Stop()
	m.calls = nil
	if err != nil {
		return fmt.Errorf("count system calls: %w", err)
	}
	into.SystemCalls = &result.SystemCalls{Total: counts.Total, Writes: counts.Writes, Syncs: counts.Syncs}
	return nil
}

// CallsUnseen says why system calls can't be counted here, or is empty.
func CallsUnseen() string {
	c, err := sys.StartSyscallCounter()
	if err == nil {
		_, err = c.Stop()
	}
	if err == nil {
		return ""
	}
	reason := strings.TrimPrefix(err.Error(), "system calls can't be counted: ")
	return strings.TrimSuffix(reason, ": "+errors.ErrUnsupported.Error())
}
