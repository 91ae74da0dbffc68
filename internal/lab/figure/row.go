package figure

import (
	"math"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/lab/result"
	"github.com/holdfast-go/holdfast/internal/lab/stat"
)

// A Row is the figures of one cell. What is not a Summary or a Comparison is the
// median of the trials, unless its comment says otherwise.
type Row struct {
	Cell    result.Cell `json:"cell"`
	Fastest bool        `json:"fastest"` // the cheapest of its group, which Cost is set against

	// Cost is the cost against the group's fastest, round by round: elapsed time
	// a record, or CPU time a record in an open loop.
	Cost  Comparison `json:"cost"`
	Costs []float64  `json:"-"` // nanoseconds a record, round by round

	Rate       Summary   `json:"records_per_s"`
	Time       Summary   `json:"elapsed_ns_per_record"`
	CPU        Summary   `json:"cpu_ns_per_record"`
	Served     Summary   `json:"served_per_s"` // records, from the first Write to the last
	Throughput Number    `json:"bytes_per_s"`
	Elapsed    Number    `json:"elapsed_ns"` // of a trial
	Stages     Stages    `json:"stages"`
	PerRecord  PerRecord `json:"per_record"`
	Calls      Calls     `json:"system_calls"`

	Values map[string]Number `json:"values,omitempty"` // what else a study's arm reports, medians; units are in the names

	Latency  Latency  `json:"latency"`                   // over all trials; in an open loop from when a record was due
	Service  *Latency `json:"service_latency,omitempty"` // in an open loop: from the call to its return
	Unserved int64    `json:"unserved_records"`          // in all trials together

	// Quantiles are of Latency; in an open loop of the times that a timer that is never late
	// would have seen. Those with too few samples are missing.
	Quantiles []Quantile `json:"quantiles,omitempty"`
	Replayed  bool       `json:"replayed,omitempty"`      // an open loop whose service times were replayed
	Behind    int        `json:"rounds_behind,omitempty"` // in which a writer never caught up with its schedule

	NetCPU Summary `json:"net_cpu_ns_per_record"` // CPU less that of the empty cell of the round, where there is one

	// Due is how many times the policy's longest period fell due in the shortest trial; -1 if
	// it has none.
	Due int `json:"periods_due"`

	Syncs        int64         `json:"syncs"`                      // in all trials together
	LongestSync  time.Duration `json:"longest_sync_ns,omitempty"`  // of all trials; 0 is none, or not known
	LongestFlush time.Duration `json:"longest_flush_ns,omitempty"` // likewise, of the flushes at the end

	Memory     holdfast.Size      `json:"buffers"`                // the most that a Writer holds in its own memory: 128KiB
	Before     []result.Residency `json:"cache_before,omitempty"` // before each trial, where it is known
	Steadiness *Steadiness        `json:"steadiness,omitempty"`
}

// Stages are the parts of a trial's elapsed time. The median of each is taken
// alone, so they need not add up.
type Stages struct {
	Open  Number `json:"open_ns"`
	Write Number `json:"write_ns"`
	Flush Number `json:"flush_ns"`
	Sync  Number `json:"sync_ns"`
	Close Number `json:"close_ns"`
	Read  Number `json:"read_ns"`
	Work  Number `json:"work_ns"`
}

// PerRecord is what the whole process used for a record.
type PerRecord struct {
	User              Number `json:"user_cpu_ns"`
	System            Number `json:"system_cpu_ns"`
	CPU               Number `json:"cpu_ns"`
	VoluntarySwitches Number `json:"voluntary_switches"`
	ForcedSwitches    Number `json:"involuntary_switches"`
	MinorFaults       Number `json:"minor_faults"`
	MajorFaults       Number `json:"major_faults"`
	BlocksIn          Number `json:"blocks_in"`
	BlocksOut         Number `json:"blocks_out"`
	Allocations       Number `json:"allocations"`
	Allocated         Number `json:"allocated_bytes"`
}

// Calls are system calls a record: those that the kernel counted in a separate trial, and
// those that the Writer counts itself.
type Calls struct {
	Observed  Number `json:"observed_per_record"` // absent where they can't be seen
	Writes    Number `json:"observed_writes_per_record"`
	Syncs     Number `json:"observed_syncs_per_record"`
	Source    string `json:"source,omitempty"`
	Predicted Number `json:"predicted_per_record"`
}

// A Latency is the distribution of the times of single Writes. A percentile is
// zero, and not in JSON, where too few Writes were timed for it.
type Latency struct {
	Count int64         `json:"count"`
	P50   time.Duration `json:"p50_ns,omitempty"`
	P90   time.Duration `json:"p90_ns,omitempty"`
	P99   time.Duration `json:"p99_ns,omitempty"`
	P999  time.Duration `json:"p999_ns,omitempty"`
	Max   time.Duration `json:"max_ns"` // of those that were timed
}

func newRow(run result.Run, c result.Cell, trials []result.Trial) (r Row, err error) {
	served := func(t result.Trial) float64 {
		if t.Write <= 0 { // the trial does not report how long its Writes took
			return math.NaN()
		}
		return float64(t.Records) / t.Write.Seconds()
	}
	r = Row{
		Cell:       c,
		Costs:      LoadOf(c).Costs(trials),
		Rate:       summarize(each(trials, func(t result.Trial) float64 { return float64(t.Records) / t.Elapsed.Seconds() })),
		Time:       summarize(result.Costs(trials)),
		CPU:        summarize(each(trials, perRecord(cpu))),
		Served:     summarize(each(trials, served)),
		Throughput: median(trials, func(t result.Trial) float64 { return float64(t.Size) / t.Elapsed.Seconds() }),
		Elapsed:    median(trials, func(t result.Trial) float64 { return float64(t.Elapsed) }),
		Stages:     newStages(trials),
		PerRecord:  newPerRecord(trials),
		Calls:      newCalls(run, c, trials),
		Memory:     2 * c.Policy.Buffer,
		Values:     medianValues(trials),
		NetCPU:     netCPU(run, c, trials),
		Due:        due(c, trials),
	}
	for _, t := range trials {
		r.Unserved += t.Unserved
		r.Syncs += t.Writer.Syncs
		if t.Behind > 0 {
			r.Behind++
		}
		r.LongestSync = max(r.LongestSync, t.Writer.LongestSync)
		r.LongestFlush = max(r.LongestFlush, t.Flush)
		if t.Before != nil {
			r.Before = append(r.Before, *t.Before)
		}
	}
	if c.Steady {
		r.Steadiness = newSteadiness(trials)
	}
	r.Latency, err = merge(trials, func(t result.Trial) *result.Latency { return &t.Latency })
	if err != nil {
		return r, err
	}
	latency := func(t result.Trial) *result.Latency { return &t.Latency }
	if r.Replayed = c.Rate > 0 && trials[0].Replayed != nil; r.Replayed {
		latency = func(t result.Trial) *result.Latency { return t.Replayed }
	}
	if r.Quantiles, err = quantiles(trials, latency); err != nil || !LoadOf(c).ByCPU() {
		return r, err
	}
	service, err := merge(trials, func(t result.Trial) *result.Latency { return t.Service })
	r.Service = &service
	return r, err
}

// medianValues returns the medians of the trials that report the value.
func medianValues(trials []result.Trial) map[string]Number {
	samples := map[string][]float64{}
	for _, t := range trials {
		for name, v := range t.Values {
			samples[name] = append(samples[name], v)
		}
	}
	values := map[string]Number{}
	for name, list := range samples {
		values[name] = Number(stat.Quantile(list, 0.5))
	}
	return values
}

func newStages(trials []result.Trial) Stages {
	stage := func(of func(result.Trial) time.Duration) Number {
		return median(trials, func(t result.Trial) float64 { return float64(of(t)) })
	}
	return Stages{
		Open:  stage(func(t result.Trial) time.Duration { return t.Open }),
		Write: stage(func(t result.Trial) time.Duration { return t.Write }),
		Flush: stage(func(t result.Trial) time.Duration { return t.Flush }),
		Sync:  stage(func(t result.Trial) time.Duration { return t.Sync }),
		Close: stage(func(t result.Trial) time.Duration { return t.Close }),
		Read:  stage(func(t result.Trial) time.Duration { return t.Read }),
		Work:  stage(func(t result.Trial) time.Duration { return t.Work }),
	}
}

func newPerRecord(trials []result.Trial) PerRecord {
	of := func(count func(result.Trial) int64) Number {
		return median(trials, perRecord(func(t result.Trial) float64 { return float64(count(t)) }))
	}
	return PerRecord{
		User:              of(func(t result.Trial) int64 { return int64(t.User) }),
		System:            of(func(t result.Trial) int64 { return int64(t.System) }),
		CPU:               median(trials, perRecord(cpu)),
		VoluntarySwitches: of(func(t result.Trial) int64 { return t.VoluntarySwitches }),
		ForcedSwitches:    of(func(t result.Trial) int64 { return t.ForcedSwitches }),
		MinorFaults:       of(func(t result.Trial) int64 { return t.MinorFaults }),
		MajorFaults:       of(func(t result.Trial) int64 { return t.MajorFaults }),
		BlocksIn:          of(func(t result.Trial) int64 { return t.BlocksIn }),
		BlocksOut:         of(func(t result.Trial) int64 { return t.BlocksOut }),
		Allocations:       of(func(t result.Trial) int64 { return t.Allocations }),
		Allocated:         of(func(t result.Trial) int64 { return t.Allocated }),
	}
}

func newCalls(run result.Run, c result.Cell, trials []result.Trial) Calls {
	predicted := median(trials, perRecord(func(t result.Trial) float64 { return float64(t.Writer.SystemCalls) }))
	calls := Calls{Observed: absent, Writes: absent, Syncs: absent, Predicted: predicted}
	t, ok := run.Counted(c.Name)
	if !ok {
		return calls
	}
	records := float64(t.Records)
	if t.SystemCalls.Records > 0 {
		records = float64(t.SystemCalls.Records)
	}
	calls.Observed = Number(float64(t.SystemCalls.Total) / records)
	calls.Writes = Number(float64(t.SystemCalls.Writes) / records)
	calls.Syncs = Number(float64(t.SystemCalls.Syncs) / records)
	calls.Source = t.SystemCalls.Source
	return calls
}

// merge merges the distributions of the trials.
func merge(trials []result.Trial, of func(result.Trial) *result.Latency) (Latency, error) {
	l, err := result.MergeLatency(trials, of, stat.Supports)
	return Latency{l.Count, l.P50, l.P90, l.P99, l.P999, l.Max}, err
}

// each returns a figure of every trial.
func each(trials []result.Trial, of func(result.Trial) float64) []float64 {
	values := make([]float64, len(trials))
	for i, t := range trials {
		values[i] = of(t)
	}
	return values
}

func median(trials []result.Trial, of func(result.Trial) float64) Number {
	return Number(stat.Quantile(each(trials, of), 0.5))
}

func cpu(t result.Trial) float64 { return float64(t.CPU()) }

// perRecord divides a figure of a trial by its records.
func perRecord(of func(result.Trial) float64) func(result.Trial) float64 {
	return func(t result.Trial) float64 { return of(t) / float64(t.Records) }
}
