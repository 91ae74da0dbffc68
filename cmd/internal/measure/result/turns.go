package result

import "time"

// Together combines the measurements of a trial's turns, in their order: see [Measurement.Turns]. The
// turns are closed loops on new files, and count no system calls.
func Together(turns []Measurement, supports func(n int64, p float64) bool) (all Measurement, err error) {
	trials := make([]Trial, len(turns))
	for i, m := range turns {
		trials[i].Measurement = m
		if i > 0 {
			m = all.plus(m)
		}
		m.Turns = append(all.Turns, turns[i].Write)
		all = m
	}
	all.Latency, err = MergeLatency(trials, func(t *Trial) *Latency { return &t.Latency }, supports)
	return all, err
}

// plus adds up two measurements. The distribution of the times of Writes is left to the caller.
func (m Measurement) plus(next Measurement) Measurement {
	m.Records += next.Records
	m.Size += next.Size
	for _, stage := range []struct{ to, more *time.Duration }{
		{&m.Elapsed, &next.Elapsed}, {&m.Open, &next.Open}, {&m.Write, &next.Write}, {&m.Flush, &next.Flush}, {&m.Sync, &next.Sync}, {&m.Close, &next.Close},
		{&m.User, &next.User}, {&m.System, &next.System},
	} {
		*stage.to += *stage.more
	}
	for _, count := range []struct{ to, more *int64 }{
		{&m.VoluntarySwitches, &next.VoluntarySwitches}, {&m.ForcedSwitches, &next.ForcedSwitches},
		{&m.MinorFaults, &next.MinorFaults}, {&m.MajorFaults, &next.MajorFaults}, {&m.BlocksIn, &next.BlocksIn}, {&m.BlocksOut, &next.BlocksOut},
		{&m.Writer.Writes, &next.Writer.Writes}, {&m.Writer.Flushes, &next.Writer.Flushes}, {&m.Writer.Syncs, &next.Writer.Syncs},
		{&m.Writer.SystemCalls, &next.Writer.SystemCalls}, {&m.Writer.Waits, &next.Writer.Waits},
		{&m.SyncsWriting, &next.SyncsWriting}, {&m.Allocations, &next.Allocations}, {&m.Allocated, &next.Allocated},
	} {
		*count.to += *count.more
	}
	m.Writer.LongestSync = max(m.Writer.LongestSync, next.Writer.LongestSync)
	if m.IO != nil && next.IO != nil {
		m.IO = &IO{Reads: m.IO.Reads + next.IO.Reads, Writes: m.IO.Writes + next.IO.Writes}
	}
	if m.Activity != nil && next.Activity != nil {
		both := m.Activity.Plus(*next.Activity)
		m.Activity = &both
	}
	return m
}
