package advise

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
)

// A Judgement says whether one policy meets a need, term by term.
type Judgement struct {
	Policy   holdfast.Policy `json:"policy"`
	Findings []Finding       `json:"findings"` // in the order of the need's terms
	Cost     figure.Number   `json:"cost_ns_per_record"`
	Memory   int64           `json:"buffers_bytes"`
}

// A Finding is the result for one term. Value is shown and judged: the worse end of the interval,
// rounded to three digits toward the worse side.
type Finding struct {
	Term    Term
	Verdict Verdict
	Value   int64 // in Unit; -1 where there is none
	Best    int64 // the better end of the interval, rounded to the better side
	Unit    Unit
	How     string // the meaning of Value, or why there is no value
}

// A Verdict is one of three words.
type Verdict string

// The verdicts.
const (
	Met      Verdict = "met"       // the whole interval keeps the term
	NotMet   Verdict = "not met"   // the whole interval is outside the term
	NotKnown Verdict = "not known" // part of the interval keeps the term, or nothing was measured
)

// Verdict returns the verdict for all terms together: met if every term is met, not met if one is not.
func (j Judgement) Verdict() Verdict {
	all := Met
	for _, f := range j.Findings {
		switch {
		case f.Verdict == NotMet:
			return NotMet
		case f.Verdict == NotKnown:
			all = NotKnown
		}
	}
	return all
}

// judge judges a policy by its own row and by the other rows of its load: a disk stall that another
// policy met may meet this one too.
func judge(n Need, r figure.Row, all figure.Figures, load []figure.Row) (Judgement, error) {
	j := Judgement{Policy: r.Cell.Policy, Cost: figure.Number(r.Net.CPU.Median), Memory: int64(r.Memory)}
	for _, t := range n {
		f := find(t, n, r, load)
		if timesWrites := t.Of >= P50 && t.Of <= Max; timesWrites && f.Verdict == "" && t.allows(f.Value) {
			if err := f.doubt(t, r, all, load); err != nil {
				return j, err
			}
		}
		f.Term, f.Unit = t, t.Unit
		switch {
		case f.Verdict != "": // it is no matter of a value
		case t.allows(f.Value):
			f.Verdict = Met
		case t.allows(f.Best):
			f.Verdict = NotKnown
		default:
			f.Verdict = NotMet
		}
		j.Findings = append(j.Findings, f)
	}
	return j, nil
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

func find(t Term, n Need, r figure.Row, load []figure.Row) Finding {
	switch t.Of {
	case Loss:
		return inFlight(t, r, r.Cell.Policy.Loss().Power, r.LongestSync, longestSync(r, load), "sync")
	case Crash:
		return inFlight(t, r, r.Cell.Policy.Loss().Process, r.LongestFlush, r.LongestFlush, "flush")
	case Rate:
		return findRate(t, r)
	case CPU:
		return findShare(n, r)
	case Memory:
		return known(int64(r.Memory), "two buffers")
	}
	return findTime(t, r)
}

func known(value int64, how string) Finding { return between(value, value, how) }

func between(worse, better int64, how string) Finding {
	return Finding{Value: worse, Best: better, How: how}
}

func without(v Verdict, how string) Finding {
	return Finding{Verdict: v, Value: -1, Best: -1, How: how}
}

// enoughSyncs: with 95 % confidence the longest of 20 syncs is longer than 86 % of all syncs (see
// coverage).
const enoughSyncs = 20

// coverage returns the part of all times that is no longer than the longest of n, with 95 % confidence.
// The chance that all n are among the shortest p is pⁿ.
func coverage(n int64) float64 { return math.Pow(0.05, 1/float64(n)) }

// longestSync returns the longest sync of the rows of r's load whose policies promise to lose no more
// than r's does. Their syncs write no more than r's, so r's syncs may take as long on this disk.
func longestSync(r figure.Row, load []figure.Row) time.Duration {
	longest := r.LongestSync
	within := func(a, b int64) bool { return uint64(a) <= uint64(b) } // Unlimited is -1, so it is the most
	own := r.Cell.Policy.Loss().Power
	for _, like := range load {
		b := like.Cell.Policy.Loss().Power
		noMore := b.None() || within(int64(b.Time), int64(own.Time)) && within(int64(b.Bytes), int64(own.Bytes))
		if noMore && figure.LoadOf(like.Cell) == figure.LoadOf(r.Cell) {
			longest = max(longest, like.LongestSync)
		}
	}
	return longest
}

// inFlight returns the bound of a loss with the sync or flush that is in flight at the crash. By time,
// the bound is the policy's own period plus one sync or flush. The better end uses the longest sync of
// the policy's own row, the worse end the longest of the run. If that sync takes longer than the period,
// the next one is due before it ends, and the bound is two syncs. In bytes, a sync in flight adds the
// bytes that are written during it.
//
// The longest sync seen is no upper bound: in as much time again a longer one is as likely as not. So the limit counts
// as kept only if a sync of twice that length keeps it. If the period is at most half of the limit, a sync may take as
// long as the period: the limit is kept unless a longer sync was seen.
func inFlight(t Term, r figure.Row, b holdfast.Bound, own, longest time.Duration, noun string) Finding {
	switch {
	case b.None():
		return known(0, "nothing is lost")
	case t.Unit == Bytes && b.Bytes == holdfast.Unlimited, t.Unit == Time && b.Time == holdfast.Unlimited:
		return without(NotMet, "loses "+b.String())
	case t.Unit == Bytes && !b.InFlight:
		return known(int64(b.Bytes), b.String())
	case t.Unit == Time && longest > 0 && b.Time <= time.Duration(t.Limit)/2 && longest <= min(b.Time, time.Duration(t.Limit)-b.Time):
		return known(roundUp(int64(b.Time+longest)), fmt.Sprintf("the last %v + the longest %s, %v; a sync may take as long as the period", b.Time, noun, shown(longest)))
	case t.Unit == Time && int64(b.Time) > t.Limit && (own <= 0 || !r.Period.Judged()): // whatever a sync takes
		return without(NotMet, "loses "+b.String())
	case !r.Period.Judged():
		return without(NotKnown, fmt.Sprintf("its period fell due %s in a trial, and %d are needed", count(int64(r.Period.FellDue), "time"), figure.LeastDue))
	case own <= 0:
		return without(NotKnown, fmt.Sprintf("%v, and no %s was timed", b, noun))
	}
	bound := func(longest time.Duration) Finding {
		switch {
		case t.Unit == Bytes:
			return bytesInFlight(r, b, longest)
		case longest > b.Time:
			return known(roundUp(int64(2*longest)), fmt.Sprintf("it takes longer than %v, so two of the longest %s, %v", b.Time, noun, shown(longest)))
		}
		return known(roundUp(int64(b.Time+longest)), fmt.Sprintf("the last %v + the longest %s, %v", b.Time, noun, shown(longest)))
	}
	f := bound(longest)
	f.Best = bound(own).Value
	if noun == "flush" {
		return f
	}
	if longest > own {
		f.How += fmt.Sprintf(" under a like policy; its own, %v", shown(own))
	}
	f.How += fmt.Sprintf(" of %d (%s take no longer)", r.Syncs, percent(min(coverage(r.Syncs), 0.99)))
	switch {
	case !t.allows(f.Value):
	case r.Syncs < enoughSyncs:
		f.Verdict = NotKnown
		f.How += fmt.Sprintf("; %d are needed", enoughSyncs)
	case !t.allows(bound(2 * longest).Value):
		f.Verdict = NotKnown
		f.How += "; a sync twice as long would break the limit"
	}
	return f
}

func count(n int64, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// bytesInFlight returns the bound in bytes of a policy that syncs by bytes. If more bytes are written
// during a sync than start one, the next sync starts later by the difference.
func bytesInFlight(r figure.Row, b holdfast.Bound, longest time.Duration) Finding {
	meanwhile := int64(math.Ceil(r.Served.Upper() * float64(r.Cell.RecordBytes) * longest.Seconds()))
	syncs, noun := int64(1), "the longest sync"
	if meanwhile > int64(b.Bytes) {
		syncs, noun = 2, "two of the longest sync"
	}
	return known(roundUp(int64(b.Bytes)+syncs*meanwhile), fmt.Sprintf("%v + what is written in %s, %v", b.Bytes, noun, shown(longest)))
}

// findRate judges a closed loop by its throughput. An open loop keeps its rate if each round wrote all
// records, and each writer caught up with its schedule in the last quarter: with a growing queue it
// never does.
func findRate(t Term, r figure.Row) Finding {
	each := 1.0
	if t.Unit == Stream {
		each = float64(r.Cell.RecordBytes)
	}
	round := func(perSecond float64) int64 { return t.Unit.roundDown(perSecond * each) }
	due := Records.text(int64(r.Cell.Rate))
	switch {
	case r.Cell.Rate == 0:
		return between(round(r.Rate.Lower()), int64(math.Ceil(r.Rate.Upper()*each)), "95 % interval")
	case !r.Replayed:
		return without(NotKnown, "measured by an older holdfast, which did not notice whether the writers caught up")
	case 2*r.Behind > r.Served.N:
		return known(round(r.Served.Lower()), fmt.Sprintf("of %s that were due; the writers fell behind in %d of %d rounds", due, r.Behind, r.Served.N))
	case r.Behind > 0:
		return without(NotKnown, fmt.Sprintf("of %s that were due; the writers fell behind in %d of %d rounds", due, r.Behind, r.Served.N))
	}
	// The need's rate is a whole number of its unit. The number of records is rounded to a whole one,
	// so bytes a second may exceed the need by a part of a record.
	return known(int64(math.Round(r.Cell.Rate*each)), "written as they were due")
}

// findTime takes a percentile only if there are enough samples for it.
func findTime(t Term, r figure.Row) Finding {
	q, ok := r.Quantile(cmp.Or(percentiles()[t.Of], 1))
	switch {
	case t.Of == Max && r.Cell.Rate == 0 && r.Cell.LatencyStride > 1:
		return without(NotKnown, fmt.Sprintf("only one in %d Writes was timed", r.Cell.LatencyStride))
	case !r.Period.Judged():
		return without(NotKnown, fmt.Sprintf("its period fell due %s in a trial, and %d are needed", count(int64(r.Period.FellDue), "time"), figure.LeastDue))
	case !ok:
		return without(NotKnown, fmt.Sprintf("%s timed, which are too few", count(r.Latency.Count, "Write")))
	case r.Cell.Rate > 0 && 2*r.Behind > r.Served.N:
		return without(NotMet, fmt.Sprintf("the writers fall behind at %s, and the wait grows", Records.text(int64(r.Cell.Rate))))
	}
	how := "time of a Write at full speed"
	if r.Cell.Rate > 0 {
		how = fmt.Sprintf("from when a record was due, at %s", Records.text(int64(r.Cell.Rate)))
	}
	if q.Low < q.High {
		how += fmt.Sprintf("; %v (%v–%v)", shown(q.Value), shown(q.Low), shown(q.High))
	}
	return between(roundUp(int64(q.High)), int64(q.Low)/step(int64(q.Low))*step(int64(q.Low)), how)
}

// doubt marks a time that keeps its term as not known if luck may explain it. A policy whose Writes wait for
// a sync meets the disk's stalls, which are rare and come in clusters. So it is judged together with all
// policies of its load that wait in the same way, except rows that did not keep up: a growing queue is no
// stall. With one writer, every waiting policy makes one sync a Write.
func (f *Finding) doubt(t Term, r figure.Row, all figure.Figures, load []figure.Row) error {
	if !r.Cell.Policy.Sync.Waits() {
		return nil
	}
	var like []figure.Row
	for _, row := range load {
		mode := row.Cell.Policy.Sync.Mode
		alike := mode == r.Cell.Policy.Sync.Mode || row.Cell.Policy.Sync.Waits() && r.Cell.Writers == 1
		if alike && figure.LoadOf(row.Cell) == figure.LoadOf(r.Cell) && 2*row.Behind <= row.Served.N {
			like = append(like, row)
		}
	}
	part, most, err := all.Longer(like, time.Duration(t.Limit))
	if allowed := 1 - cmp.Or(percentiles()[t.Of], 1); err == nil && most > allowed {
		f.Verdict = NotKnown
		f.How += fmt.Sprintf("; with like policies %.2g %% of the Writes took longer than %s, and up to %.2g %% may", part*100, t.Unit.text(t.Limit), most*100)
	}
	return err
}

// findShare judges the share of a CPU at the needed rate, without the harness's own CPU time.
func findShare(n Need, r figure.Row) Finding {
	if !(r.CPU.Upper() > 0) {
		return without(NotKnown, "CPU time is not counted here")
	}
	share := func(nanoseconds float64) float64 {
		return max(0, nanoseconds) * n.Records(r.Cell.RecordBytes) / float64(time.Second) * 100 * 100
	}
	how := "95 % interval"
	if !r.Net.CPU.HasInterval() {
		how = "the dearest round"
	}
	return between(roundUp(int64(math.Ceil(share(r.Net.CPU.Upper())*(1-floatSlack)))), int64(share(r.Net.CPU.Lower())*(1+floatSlack)), how+", without what measuring takes")
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

// roundDown leaves at least three digits, in the largest unit that allows that.
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
	case f.Value < 0, limit == 0 && value > 0:
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
// least 1. A term without a ratio counts as infinite.
func (j Judgement) shortfall() (worst float64, n unmet) {
	worst = 1
	for _, f := range j.Findings {
		if f.Verdict == Met {
			continue
		}
		n.unmet++
		value, limit := float64(f.Value), float64(f.Term.Limit)
		switch {
		case f.Value < 0, limit == 0, value == 0:
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
