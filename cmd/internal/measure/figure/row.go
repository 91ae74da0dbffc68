package figure

import (
	"math"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
)

// A Row is the figures of one cell. A field that is neither a Summary nor a Comparison is the median of
// the trials, unless its comment says otherwise.
type Row struct {
	Cell    result.Cell `json:"cell"`
	Fastest bool        `json:"fastest"`           // the cheapest of its group, the denominator of Cost
	Alone   bool        `json:"fastest_alone"`     // Fastest, and all other judged cells are proven slower
	Control bool        `json:"control,omitempty"` // of paced cells: the one that Cost is set against

	// Cost is the ratio to the group's fastest cell, round by round: the net time to write a record
	// (see [Load.Costs] and [Net]). It has no verdict if Period was not reached.
	Cost Comparison `json:"cost"`
	// BoundBy is the period of the policy in whose trials Cost was measured, if it is shorter than the cell's own: the cell's cost is at
	// most this. 0: Cost comes from the cell's own trials.
	BoundBy time.Duration `json:"cost_by_period_ns,omitempty"`
	Costs   []float64     `json:"-"` // nanoseconds a record, round by round, net
	Period  *Period       `json:"period,omitempty"`
	Net     Net           `json:"net"`

	Rate       Summary   `json:"records_per_s"` // while they are written, net; at a rate, and of a study, from open to close
	Time       Summary   `json:"elapsed_ns_per_record"`
	CPU        Summary   `json:"cpu_ns_per_record"`
	Served     Summary   `json:"served_per_s"` // records, from the first Write to the last
	Throughput Number    `json:"bytes_per_s"`
	Elapsed    Number    `json:"elapsed_ns"` // of a trial
	Stages     Stages    `json:"stages"`
	PerRecord  PerRecord `json:"per_record"`
	Calls      Calls     `json:"system_calls"`

	Values map[string]Number `json:"values,omitempty"` // what else a study's arm reports, medians; units are in the names

	Latency Latency  `json:"latency"`                   // over all trials; in an open loop from when a record was due
	Service *Latency `json:"service_latency,omitempty"` // in an open loop: from the call to its return

	// Clock is the time of a Write that does nothing (see [Harness]). A time of a Write
	// that is not longer than Clock can't be told from it; 0: not known.
	Clock    time.Duration `json:"clock_ns,omitempty"`
	Unserved int64         `json:"unserved_records"` // in all trials together

	// Quantiles are quantiles of Latency; in an open loop, as seen from a timer that is never late. A
	// quantile with too few samples is missing.
	Quantiles []Quantile `json:"quantiles,omitempty"`
	Replayed  bool       `json:"replayed,omitempty"`      // an open loop whose service times were replayed
	Behind    int        `json:"rounds_behind,omitempty"` // rounds in which a writer never caught up with its schedule

	SyncsWriting Number        `json:"syncs_while_writing"`             // of a trial, without the final sync; absent if not known
	Syncs        int64         `json:"syncs,omitempty"`                 // of all trials
	Oldest       time.Duration `json:"oldest_not_durable_ns,omitempty"` // of all trials, in an open loop: the greatest age of a byte that was not durable
	LongestSync  time.Duration `json:"longest_sync_ns,omitempty"`       // of all trials; 0 is none, or not known
	LongestFlush time.Duration `json:"longest_flush_ns,omitempty"`      // likewise, of the flushes at the end

	Memory     holdfast.Size      `json:"buffers"`                // the most that a Writer holds in its own memory: 128KiB
	Before     []result.Residency `json:"cache_before,omitempty"` // before each trial, where it is known
	Steadiness *Steadiness        `json:"steadiness,omitempty"`
}

// AtMost returns the most that a policy may cost a writer, against the same buffer without a sync. That is known, and no more, where
// trials at a pace show no cost, or where a policy with a shorter period was measured for it. It is 1 at the least: the policy
// does all that its control does, and more. A most that says nothing is none.
func (r Row) AtMost() (most float64, ok bool) {
	if !r.besideControl() || r.shownDearer() && r.BoundBy == 0 {
		return 0, false
	}
	if most = r.Cost.Most; r.Cost.HasInterval() {
		most = r.Cost.High
	}
	return max(1, most), most > 0 && most <= mostInforms
}

// mostInforms is the largest cost that is worth to be bounded by.
const mostInforms = 10

// Unknown reports whether paced trials were too few, or differ too much, to show the policy's cost.
func (r Row) Unknown() bool {
	_, bounded := r.AtMost()
	return r.besideControl() && !bounded && !r.shownDearer()
}

// shownDearer reports whether it is shown that the policy costs more.
func (r Row) shownDearer() bool { return r.Cost.Low > 1 || r.Cost.Bound > 1 }

// Times returns the cost as a multiple of the fastest cell's, or of the control's: at least 1, whatever the noise. It is NaN if there is
// none.
func (r Row) Times() float64 { return max(1, r.Cost.Ratio) }

// besideControl reports whether the cost comes from paced trials, relative to a control.
func (r Row) besideControl() bool { return r.Cell.Every > 0 && !r.Control }

// Stages are the parts of a trial's elapsed time. Each is a median of its own, so they need not add up.
type Stages struct {
	Open  Number `json:"open_ns"`
	Write Number `json:"write_ns"`
	Flush Number `json:"flush_ns"`
	Sync  Number `json:"sync_ns"`
	Close Number `json:"close_ns"`
	Read  Number `json:"read_ns"`
	Work  Number `json:"work_ns"`
}

// PerRecord is the resource use of the whole process for one record.
type PerRecord struct {
	// User and System are absent if a trial is too short for the kernel's ticks to tell them apart: see
	// leastTicks. Their sum is exact.
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

// Calls are system calls for each record, counted by the kernel in a separate trial, and by the Writer
// itself.
type Calls struct {
	Observed  Number `json:"observed_per_record"` // absent where they can't be seen
	Writes    Number `json:"observed_writes_per_record"`
	Syncs     Number `json:"observed_syncs_per_record"`
	Source    string `json:"source,omitempty"`
	Predicted Number `json:"predicted_per_record"`
}

// A Latency is the distribution of the times of single Writes. A percentile is
// zero, and missing in JSON, if too few Writes were timed for it.
type Latency struct {
	Count int64         `json:"count"`
	P50   time.Duration `json:"p50_ns,omitempty"`
	P90   time.Duration `json:"p90_ns,omitempty"`
	P99   time.Duration `json:"p99_ns,omitempty"`
	P999  time.Duration `json:"p999_ns,omitempty"`
	Max   time.Duration `json:"max_ns"` // of those that were timed

	// Rounds are the percentiles of single rounds, for the rounds that have enough samples, by p50,
	// p90, p99 and p999. The percentiles above are of all rounds together.
	Rounds map[string]Summary `json:"of_rounds,omitempty"`
}

// newRow computes all figures but the latencies.
func newRow(run indexed, c result.Cell, trials []*result.Trial) (r Row) {
	served := func(t *result.Trial) float64 {
		if t.Write <= 0 { // the trial does not report the time of its Writes
			return math.NaN()
		}
		return float64(t.Records) / t.Write.Seconds()
	}
	r = Row{
		Cell:       c,
		Costs:      costsOf(run, c.Name),
		Rate:       summarize(each(trials, func(t *result.Trial) float64 { return float64(t.Records) / t.Elapsed.Seconds() })),
		Time:       summarize(result.Costs(trials)),
		CPU:        summarize(each(trials, perRecord(cpu))),
		Served:     summarize(each(trials, served)),
		Throughput: median(trials, func(t *result.Trial) float64 { return float64(t.Size) / t.Elapsed.Seconds() }),
		Elapsed:    median(trials, func(t *result.Trial) float64 { return float64(t.Elapsed) }),
		Stages:     newStages(trials),
		PerRecord:  newPerRecord(trials),
		Calls:      newCalls(run, c, trials),
		Memory:     2 * c.Policy.Buffer,
		Values:     medianValues(trials),
		Period:     newPeriod(run, c, trials),

		SyncsWriting: absent,
	}
	r.Net = newNet(run, c, trials)
	if c.Group == "" && c.Rate == 0 {
		r.Rate = summarize(perSecond(r.Costs))
		r.Throughput = Number(r.Rate.Median * float64(c.RecordBytes))
	}
	if run.Header.SchemaVersion >= 3 && c.Group == "" {
		r.SyncsWriting = median(trials, func(t *result.Trial) float64 { return float64(t.SyncsWriting) })
	}
	for _, t := range trials {
		r.Unserved += t.Unserved
		r.Syncs += t.Writer.Syncs
		r.Oldest = max(r.Oldest, t.Oldest)
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
	return r
}

// addLatencies adds the latencies of the trials.
func (r *Row) addLatencies(trials []*result.Trial) (err error) {
	r.Latency, r.Quantiles, err = merge(trials, func(t *result.Trial) *result.Latency { return &t.Latency })
	if err != nil || !LoadOf(r.Cell).Open() {
		return err
	}
	if r.Replayed = trials[0].Replayed != nil; r.Replayed {
		if _, r.Quantiles, err = merge(trials, func(t *result.Trial) *result.Latency { return t.Replayed }); err != nil {
			return err
		}
	}
	service, _, err := merge(trials, func(t *result.Trial) *result.Latency { return t.Service })
	r.Service = &service
	return err
}

// medianValues returns the median of each value that the trials report.
func medianValues(trials []*result.Trial) map[string]Number {
	samples := map[string][]float64{}
	for _, t := range trials {
		for name, v := range t.Values {
			samples[name] = append(samples[name], v)
		}
	}
	values := map[string]Number{}
	for name, list := range samples {
		values[name] = Number(stat.Median(list))
	}
	return values
}

func newStages(trials []*result.Trial) Stages {
	stage := func(of func(*result.Trial) time.Duration) Number {
		return median(trials, func(t *result.Trial) float64 { return float64(of(t)) })
	}
	return Stages{
		Open:  stage(func(t *result.Trial) time.Duration { return t.Open }),
		Write: stage(func(t *result.Trial) time.Duration { return t.Write }),
		Flush: stage(func(t *result.Trial) time.Duration { return t.Flush }),
		Sync:  stage(func(t *result.Trial) time.Duration { return t.Sync }),
		Close: stage(func(t *result.Trial) time.Duration { return t.Close }),
		Read:  stage(func(t *result.Trial) time.Duration { return t.Read }),
		Work:  stage(func(t *result.Trial) time.Duration { return t.Work }),
	}
}

// The kernel samples at every tick whether a process is in user or system mode. If the rate of ticks is
// not known (sysconf(_SC_CLK_TCK) is 100 on Linux whatever the rate), the slowest usual rate is
// assumed. A trial of fewer ticks does not tell the two apart.
const (
	tick       = time.Second / 100
	leastTicks = 50
)

func newPerRecord(trials []*result.Trial) PerRecord {
	of := func(count func(*result.Trial) int64) Number {
		return median(trials, perRecord(func(t *result.Trial) float64 { return float64(count(t)) }))
	}
	user, system := absent, absent
	if median(trials, func(t *result.Trial) float64 { return float64(t.Elapsed) }) >= Number(leastTicks*tick) {
		user, system = of(func(t *result.Trial) int64 { return int64(t.User) }), of(func(t *result.Trial) int64 { return int64(t.System) })
	}
	return PerRecord{
		User:              user,
		System:            system,
		CPU:               median(trials, perRecord(cpu)),
		VoluntarySwitches: of(func(t *result.Trial) int64 { return t.VoluntarySwitches }),
		ForcedSwitches:    of(func(t *result.Trial) int64 { return t.ForcedSwitches }),
		MinorFaults:       of(func(t *result.Trial) int64 { return t.MinorFaults }),
		MajorFaults:       of(func(t *result.Trial) int64 { return t.MajorFaults }),
		BlocksIn:          of(func(t *result.Trial) int64 { return t.BlocksIn }),
		BlocksOut:         of(func(t *result.Trial) int64 { return t.BlocksOut }),
		Allocations:       of(func(t *result.Trial) int64 { return t.Allocations }),
		Allocated:         of(func(t *result.Trial) int64 { return t.Allocated }),
	}
}

func newCalls(run indexed, c result.Cell, trials []*result.Trial) Calls {
	predicted := median(trials, perRecord(func(t *result.Trial) float64 { return float64(t.Writer.SystemCalls) }))
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

// each returns a figure of every trial.
func each(trials []*result.Trial, of func(*result.Trial) float64) []float64 {
	values := make([]float64, len(trials))
	for i, t := range trials {
		values[i] = of(t)
	}
	return values
}

func median(trials []*result.Trial, of func(*result.Trial) float64) Number {
	return Number(stat.Median(each(trials, of)))
}

func cpu(t *result.Trial) float64 { return float64(t.CPU()) }

// perRecord divides a figure of a trial by its records.
func perRecord(of func(*result.Trial) float64) func(*result.Trial) float64 {
	return func(t *result.Trial) float64 { return of(t) / float64(t.Records) }
}

// perSecond converts costs in nanoseconds a record into records a second. A cost of 0 has no rate.
func perSecond(costs []float64) []float64 {
	rates := make([]float64, len(costs))
	for i, ns := range costs {
		rates[i] = math.NaN()
		if ns > 0 {
			rates[i] = 1e9 / ns
		}
	}
	return rates
}

func newSteadiness(trials []*result.Trial) *Steadiness {
	s := &Steadiness{Trials: len(trials)}
	var firsts, rates, afters []float64
	for _, t := range trials {
		var all []float64 // bytes a second of each sample
		begun := time.Duration(0)
		for _, sample := range t.Samples {
			all = append(all, float64(sample.Size)/(sample.At-begun).Seconds())
			begun = sample.At
			s.Samples++
			unwritten := sample.Dirty + sample.Writeback
			s.Unwritten = max(s.Unwritten, unwritten)
			if sample.Throttle > 0 && unwritten > sample.Throttle {
				s.Throttled++
			}
		}
		if len(all) > 0 {
			firsts = append(firsts, all[0])
		}
		if t.Steady {
			s.Steady++
		}
		if t.Steady && len(all) > 0 {
			w, _ := stat.Steady(all)
			rates = append(rates, w.Mean)
			afters = append(afters, float64(begun))
		}
	}
	s.First, s.Throughput, s.After = Number(stat.Quantile(firsts, 0.5)), Number(stat.Quantile(rates, 0.5)), Number(stat.Quantile(afters, 0.5))
	return s
}
