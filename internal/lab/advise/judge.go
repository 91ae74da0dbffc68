package advise

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/lab/figure"
)

// A Judgement says whether one policy meets a need, term by term.
type Judgement struct {
	Policy   holdfast.Policy `json:"policy"`
	Findings []Finding       `json:"findings"` // in the order of the need's terms
	Cost     figure.Number   `json:"cost_ns_per_record"`
	Memory   int64           `json:"buffers_bytes"`
}

// A Finding is the result for one term. Its Value is both shown and judged. It is rounded
// to three digits, to the worse side.
type Finding struct {
	Term  Term   `json:"term"`
	State State  `json:"state"`
	Value int64  `json:"value"` // in Unit, where it is Known
	Unit  Unit   `json:"unit"`
	Met   bool   `json:"met"`
	How   string `json:"how"` // what the value is, or why there is none
}

// A State says whether a Finding has a Value.
type State string

// The states.
const (
	Known     State = "known"
	Unbounded State = "unbounded"    // the policy limits nothing
	Unknown   State = "not measured" // and so the term is not met
)

// Met reports whether every term is met.
func (j Judgement) Met() bool {
	for _, f := range j.Findings {
		if !f.Met {
			return false
		}
	}
	return true
}

// judge judges a policy by its row.
func judge(n Need, r figure.Row) Judgement {
	j := Judgement{Policy: r.Cell.Policy, Cost: r.PerRecord.CPU, Memory: int64(r.Memory)}
	for _, t := range n {
		f := find(t, n, r)
		f.Term, f.Unit = t, t.Unit
		f.Met = f.State == Known && t.allows(f.Value)
		j.Findings = append(j.Findings, f)
	}
	return j
}

// allows reports whether a value is inside the term.
func (t Term) allows(value int64) bool {
	switch {
	case t.Of == Rate:
		return value >= t.Limit
	case t.Strict:
		return value < t.Limit
	}
	return value <= t.Limit
}

func find(t Term, n Need, r figure.Row) Finding {
	switch t.Of {
	case Loss:
		return inFlight(t, r, r.Cell.Policy.Loss().Power, r.LongestSync, "sync")
	case Crash:
		return inFlight(t, r, r.Cell.Policy.Loss().Process, r.LongestFlush, "flush")
	case Rate:
		return findRate(t, r)
	case CPU:
		return findShare(n, r)
	case Memory:
		return known(int64(r.Memory), "two buffers")
	}
	return findTime(t, r)
}

func known(value int64, how string) Finding { return Finding{State: Known, Value: value, How: how} }

func unknown(how string) Finding { return Finding{State: Unknown, How: how} }

// inFlight returns the honest bound of a loss. By time, it is the policy's own and one sync
// or flush in flight, for which it takes the longest that was measured. If that takes longer
// than the period, the next is due before it ends, and then there are two. In bytes, a sync
// in flight counts as what was written meanwhile.
func inFlight(t Term, r figure.Row, b holdfast.Bound, longest time.Duration, noun string) Finding {
	switch {
	case b.None():
		return known(0, "nothing is lost")
	case t.Unit == Bytes && b.Bytes == holdfast.Unlimited, t.Unit == Time && b.Time == holdfast.Unlimited:
		return Finding{State: Unbounded, How: "loses " + b.String()}
	case t.Unit == Bytes && b.InFlight:
		return bytesInFlight(r, b, longest)
	case t.Unit == Bytes:
		return known(int64(b.Bytes), b.String())
	case longest <= 0:
		return unknown(fmt.Sprintf("the last %v + one %s, and no %s was timed", b.Time, noun, noun))
	case longest > b.Time:
		return known(roundUp(int64(2*longest)), fmt.Sprintf("two of the longest %s, %v, which is longer than %v", noun, shown(longest), b.Time))
	}
	return known(roundUp(int64(b.Time+longest)), fmt.Sprintf("the last %v + the longest %s, %v", b.Time, noun, shown(longest)))
}

// bytesInFlight returns the bound in bytes of a policy that syncs by bytes. If more is
// written during a sync than starts one, the next sync starts that much later.
func bytesInFlight(r figure.Row, b holdfast.Bound, longest time.Duration) Finding {
	if longest <= 0 {
		return unknown(b.String() + ", and no sync was timed")
	}
	meanwhile := int64(math.Ceil(r.Served.Upper() * float64(r.Cell.RecordBytes) * longest.Seconds()))
	syncs, noun := int64(1), "the longest sync"
	if meanwhile > int64(b.Bytes) {
		syncs, noun = 2, "two of the longest syncs"
	}
	return known(roundUp(int64(b.Bytes)+syncs*meanwhile), fmt.Sprintf("%v + what is written in %s, %v", b.Bytes, noun, shown(longest)))
}

// served is the part of the due records that must be written to meet a rate.
const served = 0.99

// findRate judges a closed loop by how much it could write, and an open one by
// whether it wrote what was due; where it did not, by what it wrote.
func findRate(t Term, r figure.Row) Finding {
	each := 1.0
	if t.Unit == Stream {
		each = float64(r.Cell.RecordBytes)
	}
	round := func(perSecond float64) int64 { return t.Unit.roundDown(perSecond * each) }
	if r.Cell.Rate == 0 {
		return known(round(r.Rate.Lower()), lowerEnd(r.Rate)+", at full speed")
	}
	low := r.Served.Lower()
	switch {
	case r.Unserved > 0:
		return known(round(low), fmt.Sprintf("%d records were due and not written", r.Unserved))
	case low < served*r.Cell.Rate:
		return known(round(low), lowerEnd(r.Served)+fmt.Sprintf(", of %s that were due", Records.text(int64(r.Cell.Rate))))
	}
	// The need's rate is a whole number of the unit. Records are whole too, so that bytes a
	// second may be a fraction of a record more.
	return known(int64(math.Round(r.Cell.Rate*each)), "written as they were due")
}

func lowerEnd(s figure.Summary) string {
	if s.HasInterval() {
		return "the lower end of the interval"
	}
	return "the slowest round"
}

// findTime takes a percentile only where there are samples for it.
func findTime(t Term, r figure.Row) Finding {
	d := map[Quantity]time.Duration{P50: r.Latency.P50, P90: r.Latency.P90, P99: r.Latency.P99, P999: r.Latency.P999, Max: r.Latency.Max}[t.Of]
	how := "time of a Write at full speed"
	if r.Cell.Rate > 0 {
		how = fmt.Sprintf("from when a record was due, at %s", Records.text(int64(r.Cell.Rate)))
	}
	switch {
	case t.Of == Max && r.Cell.Rate == 0 && r.Cell.LatencyStride > 1:
		return unknown(fmt.Sprintf("only one in %d Writes was timed", r.Cell.LatencyStride))
	case d <= 0:
		return unknown(fmt.Sprintf("%d Writes were timed, and that is too few", r.Latency.Count))
	}
	return known(roundUp(int64(d)), how)
}

// findShare judges the share of a CPU at the rate that is needed.
func findShare(n Need, r figure.Row) Finding {
	high, how := r.CPU.Upper(), "the upper end of the interval"
	if !r.CPU.HasInterval() {
		how = "the dearest round"
	}
	if !(high > 0) {
		return unknown("CPU time is not counted here")
	}
	share := high * n.Records(r.Cell.RecordBytes) / float64(time.Second) * 100 * 100
	return known(roundUp(int64(math.Ceil(share*(1-floatSlack)))), how)
}

// floatSlack: a whole number with an error in the last bits of a float64 is not rounded
// up to the next one.
const floatSlack = 1e-12

// roundUp and roundDown leave three digits.
func roundUp(n int64) int64 {
	step := step(n)
	return (n + step - 1) / step * step
}

func step(n int64) int64 {
	step := int64(1)
	for n/step >= 1000 {
		step *= 10
	}
	return step
}

// roundDown leaves at least three digits of the largest unit that they fit into.
func (u Unit) roundDown(x float64) int64 {
	n := int64(max(0, min(x, math.MaxInt64/2)))
	if u != Stream {
		return n / step(n) * step(n)
	}
	for _, unit := range []holdfast.Size{holdfast.GiB, holdfast.MiB, holdfast.KiB} {
		if n >= 100*int64(unit) {
			return n / int64(unit) * int64(unit)
		}
	}
	return n
}

// shown rounds a duration up to three digits.
func shown(d time.Duration) time.Duration { return time.Duration(roundUp(int64(d))) }

// Margin returns how far a Finding is inside its term, as a part of the limit. It is
// negative outside, and NaN without a number.
func (f Finding) Margin() float64 {
	value, limit := float64(f.Value), float64(f.Term.Limit)
	switch {
	case f.State != Known, limit == 0 && value > 0:
		return math.NaN()
	case limit == 0:
		return 0
	case f.Term.Of == Rate:
		return value/limit - 1
	}
	return 1 - value/limit
}

type unmet struct{ infinite, unmet int }

// shortfall returns the largest ratio of a value to its limit, or of a limit to its rate; at
// least 1. Where there is no ratio, the term counts as infinite.
func (j Judgement) shortfall() (worst float64, n unmet) {
	worst = 1
	for _, f := range j.Findings {
		if f.Met {
			continue
		}
		n.unmet++
		value, limit := float64(f.Value), float64(f.Term.Limit)
		switch {
		case f.State != Known, limit == 0, value == 0:
			n.infinite++
		case f.Term.Of == Rate:
			worst = max(worst, limit/value)
		default:
			worst = max(worst, value/limit)
		}
	}
	return worst, n
}

func byCost(a, b Judgement) int { return cmp.Compare(a.Cost, b.Cost) }
