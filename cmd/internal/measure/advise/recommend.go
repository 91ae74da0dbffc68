package advise

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
)

// A Recommendation names the cheapest measured policy that meets a need, or says that none does, or
// that it is not known.
//
// The cost of a policy is the CPU time of a record, without the harness's own. Two costs count as the same if the ends of their
// intervals show that they differ by no more than the tolerance, or by no more than one percent of a CPU at the rate. Among
// policies with the same cost the one that loses less is taken, then the one with the simpler text. Costs whose intervals
// overlap are not the same: the policy with the smaller measured cost is taken.
type Recommendation struct {
	Need    Need        `json:"need"`
	Load    figure.Load `json:"load"` // under which the policies were judged
	Rounds  int         `json:"rounds"`
	Advised *Judgement  `json:"advised"`                // nil if no policy meets the need, or if that is not known
	Same    []Judgement `json:"same,omitempty"`         // other policies that meet the need and are shown to cost the same
	Unlike  []Judgement `json:"perhaps_same,omitempty"` // that meet it too, and whose cost can't be told from the advised one's
	Open    *Judgement  `json:"undecided,omitempty"`    // the cheapest that may meet it, if it is cheaper than the advised one
	Nearest *Judgement  `json:"nearest,omitempty"`      // if no policy meets the need
	Safer   []Step      `json:"safer,omitempty"`
	Judged  []Judgement `json:"judged"` // all, in the order of the run

	Tolerance float64       `json:"tolerance"`        // 0.1 is 10 %
	ByClock   bool          `json:"by_clock"`         // CPU time is not counted here, and the cost is elapsed time
	Capacity  figure.Number `json:"full_speed_per_s"` // records a second of the advised policy, where that was measured
	Falsified []string      `json:"falsified_by,omitempty"`

	cheapest Judgement // that meets the need
	group    figure.Group
	figures  figure.Figures
}

// Verdict says whether a policy meets the need. It is not known if none does for certain and one may.
func (r Recommendation) Verdict() Verdict {
	if r.Advised != nil {
		return Met
	}
	return r.Nearest.Verdict()
}

// sameCost is the largest difference between costs that count as the same.
const sameCost = 0.10

// clearMargin is the factor by which a figure must be inside or outside its limit, so that more rounds won't
// change the verdict.
const clearMargin = 3

// Clear reports whether every deciding figure is inside or outside its limit by the factor clearMargin, so that
// more rounds won't change the verdict.
func (r Recommendation) Clear() bool {
	verdict := r.Verdict()
	if verdict == NotKnown {
		return false
	}
	far := func(f Finding) bool {
		value, limit := float64(f.Value), float64(f.Term.Limit)
		if f.Verdict == NotMet {
			value, limit = limit, float64(f.Best)
		} else if period := r.period(f.Term); f.Unit == Time && f.Value > 0 { // it is exact, and what is in flight is not
			value, limit = value-period, limit-period
		}
		switch {
		case f.Value < 0 || value == 0:
			return true // unlimited, or nothing
		case f.Term.Of == Rate && r.Load.Rate > 0 && f.Verdict == Met:
			return true // no more was due
		case f.Term.Of == Rate:
			return value >= clearMargin*limit
		}
		return clearMargin*value <= limit
	}
	findings := slices.DeleteFunc(slices.Clone(r.Shown().Findings), func(f Finding) bool { return f.Verdict != verdict })
	if verdict == NotMet { // one that is missed by far decides
		return slices.ContainsFunc(findings, far)
	}
	return !slices.ContainsFunc(findings, func(f Finding) bool { return !far(f) })
}

// period is how old the bytes are that the shown policy may lose by its promise, under a term of a loss.
func (r Recommendation) period(t Term) float64 {
	loss := r.Shown().Policy.Loss()
	bound := map[Quantity]holdfast.Bound{Loss: loss.Power, Crash: loss.Process}[t.Of]
	return max(0, float64(bound.Time)) // unlimited is negative
}

// A Step is a policy that loses less than the advised one, and its price.
type Step struct {
	Judgement
	Price float64 `json:"price"` // its cost, as a multiple of the advised one's
}

// A Load is the size of the records and the number of writers. A 0 stands for any, if the
// results have only one.
type Load struct {
	RecordBytes int64
	Writers     int
}

// ErrLoad means that the results contain no load like the requested one, or more than one.
var ErrLoad = errors.New("the results contain")

// Loads returns each load of the figures that matches l once, in their order.
func Loads(f figure.Figures, l Load) []Load {
	var loads []Load
	for _, g := range f.Groups {
		if have := (Load{g.RecordBytes, g.Writers}); l.takes(have) && !slices.Contains(loads, have) {
			loads = append(loads, have)
		}
	}
	return loads
}

// takes reports whether a load matches l.
func (l Load) takes(have Load) bool {
	return (l.RecordBytes == 0 || l.RecordBytes == have.RecordBytes) && (l.Writers == 0 || l.Writers == have.Writers)
}

// Recommend judges all policies that were measured under a load.
//
// If the need has a rate and the figures have an open loop at that rate or above, Recommend judges that
// loop. Otherwise it judges the closed loop: its rate is the throughput, and its times are times of
// Writes at full speed. A policy whose period did not fall due there is judged by its paced trials, if
// these ran at the need's rate or above.
func Recommend(f figure.Figures, n Need, l Load) (Recommendation, error) {
	groups, err := l.pick(f.Groups)
	if err != nil {
		return Recommendation{}, err
	}
	g := n.choose(groups)
	g.Rows = slices.Clone(g.Rows)
	for _, paced := range f.Groups {
		if !paced.Paced || paced.RecordBytes != g.RecordBytes || paced.Writers != g.Writers || paced.Rate < n.Records(g.RecordBytes) {
			continue
		}
		for i, row := range g.Rows {
			at := slices.IndexFunc(paced.Rows, func(r figure.Row) bool {
				return r.Cell.Policy == row.Cell.Policy && r.Period != nil && r.Period.Judged()
			})
			if at >= 0 && !row.Period.Judged() {
				g.Rows[i] = paced.Rows[at]
			}
		}
	}
	r := Recommendation{Need: n, Load: g.Load, Rounds: f.Rounds, Tolerance: sameCost, group: g, figures: f}
	r.ByClock = slices.ContainsFunc(g.Rows, func(r figure.Row) bool { return !(r.PerRecord.CPU > 0) })
	for _, row := range g.Rows {
		j, err := judge(n, row, f, g.Rows)
		if err != nil {
			return r, err
		}
		if r.ByClock {
			j.Cost = figure.Number(row.Time.Median)
		}
		r.Judged = append(r.Judged, j)
	}
	r.decide()
	r.Capacity = figure.Number(math.NaN())
	for _, g := range groups {
		for _, row := range g.Rows {
			if g.Rate == 0 && row.Cell.Policy == r.Shown().Policy && !r.Capacity.Known() {
				r.Capacity = figure.Number(row.Rate.Lower())
			}
		}
	}
	return r, nil
}

// pick returns the groups with the load.
func (l Load) pick(groups []figure.Group) ([]figure.Group, error) {
	var picked []figure.Group
	kinds := map[Load]bool{}
	for _, g := range groups {
		have := Load{g.RecordBytes, g.Writers}
		if !l.takes(have) || g.Paced { // paced groups hold only some of the policies
			continue
		}
		kinds[have] = true
		picked = append(picked, g)
	}
	switch {
	case len(kinds) == 0:
		return nil, fmt.Errorf("%w no load with %v, but %s", ErrLoad, l, loads(groups))
	case len(kinds) > 1:
		return nil, fmt.Errorf("%w %d loads: %s", ErrLoad, len(kinds), loads(picked))
	}
	return picked, nil
}

// String names the parts of the load that are not 0.
func (l Load) String() string {
	var parts []string
	if l.RecordBytes != 0 {
		parts = append(parts, "records of "+holdfast.Size(l.RecordBytes).String())
	}
	if l.Writers != 0 {
		parts = append(parts, writers(l.Writers))
	}
	if len(parts) == 0 {
		return "any records"
	}
	return strings.Join(parts, ", ")
}

func writers(n int) string {
	if n == 1 {
		return "1 writer"
	}
	return fmt.Sprintf("%d writers", n)
}

func loads(groups []figure.Group) string {
	var all []string
	for _, g := range groups {
		if text := (Load{g.RecordBytes, g.Writers}).String(); !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return strings.Join(all, "; ")
}

// choose returns the group that says most about the need: the open loop with the lowest rate that is
// high enough, else the closed loop, else the fastest open loop. Among equals, new files come before
// existing ones.
func (n Need) choose(groups []figure.Group) figure.Group {
	rank := func(g figure.Group) (int, float64) {
		needed := n.Records(g.RecordBytes)
		switch {
		case needed > 0 && g.Rate >= needed:
			return 0, g.Rate
		case g.Rate == 0:
			return 1, 0
		}
		return 2, -g.Rate
	}
	return slices.MinFunc(groups, func(a, b figure.Group) int {
		rankA, rateA := rank(a)
		rankB, rateB := rank(b)
		return cmp.Or(cmp.Compare(rankA, rankB), cmp.Compare(rateA, rateB), cmp.Compare(unusual(a), unusual(b)))
	})
}

func unusual(g figure.Group) int {
	n := 0
	if g.Cache != "" && g.Cache != result.NewFile {
		n++
	}
	if g.Steady {
		n++
	}
	return n
}

// decide fills in the advised policy and all fields that follow from the judgements.
func (r *Recommendation) decide() {
	var meeting []Judgement
	for _, j := range r.Judged {
		if j.Verdict() == Met {
			meeting = append(meeting, j)
		}
	}
	if len(meeting) == 0 {
		nearest := slices.MinFunc(r.Judged, byShortfall)
		r.Nearest = &nearest
		return
	}
	r.cheapest = slices.MinFunc(meeting, byCost)
	same := slices.DeleteFunc(slices.Clone(meeting), func(j Judgement) bool { return !r.same(r.cheapest, j) })
	slices.SortStableFunc(same, func(a, b Judgement) int {
		textA, textB := a.Policy.String(), b.Policy.String()
		return cmp.Or(bySafety(a, b), cmp.Compare(len(textA), len(textB)), cmp.Compare(textA, textB))
	})
	advised := same[0]
	r.Advised, r.Same = &advised, same[1:]
	for _, j := range meeting {
		if j.Policy != advised.Policy && !slices.ContainsFunc(r.Same, func(s Judgement) bool { return s.Policy == j.Policy }) && r.overlap(r.cheapest, j) {
			r.Unlike = append(r.Unlike, j)
		}
	}
	for _, j := range r.Judged {
		if j.Verdict() == NotKnown && j.Cost < advised.Cost && !r.same(j, advised) && (r.Open == nil || j.Cost < r.Open.Cost) {
			r.Open = &j
		}
	}
	r.Safer = r.safer(advised)
	r.Falsified = r.falsifiers(advised)
}

// falsifiers lists results of a rerun that would prove the advice wrong.
func (r *Recommendation) falsifiers(j Judgement) []string {
	var list []string
	for _, f := range j.Findings {
		if text := f.falsifier(j.Policy); text != "" {
			list = append(list, text)
		}
	}
	// The rival is the cheapest policy that meets the need and costs more than the advised one.
	var rivals []Judgement
	for _, other := range r.Judged {
		if other.Policy != j.Policy && other.Verdict() == Met && !r.same(j, other) {
			rivals = append(rivals, other)
		}
	}
	if len(rivals) > 0 {
		rival := slices.MinFunc(rivals, byCost)
		list = append(list, fmt.Sprintf("%s at less than %s of its cost (now %s)", quote(rival.Policy), percent(1/(1+r.Tolerance)), times(float64(rival.Cost)/float64(j.Cost))))
	}
	return append(list, "another disk, file system, kernel or machine; other records or writers: measure again there")
}

// falsifier names the figure that would break the term.
func (f Finding) falsifier(p holdfast.Policy) string {
	switch f.Term.Of {
	case Loss:
		return f.tooLong(p.Loss().Power, "sync")
	case Crash:
		return f.tooLong(p.Loss().Process, "flush")
	case Rate:
		return fmt.Sprintf("less than %s written (here %s)", f.Unit.text(f.Term.Limit), f.Text())
	case Memory:
		return ""
	case CPU:
		return fmt.Sprintf("more than %s of a CPU (here %s)", f.Unit.text(f.Term.Limit), f.Text())
	}
	than := "above"
	if f.Term.Strict {
		than = "not below"
	}
	return fmt.Sprintf("%v of a Write %s %s (here %s)", f.Term.Of, than, f.Unit.text(f.Term.Limit), f.Text())
}

// byShortfall orders judgements: first by whether a term is not met, then by the worst term's distance
// from its limit, then by the number of terms that are not met or not known.
func byShortfall(a, b Judgement) int {
	worstA, nA := a.shortfall()
	worstB, nB := b.shortfall()
	refused := func(j Judgement) int { return map[Verdict]int{NotMet: 1}[j.Verdict()] }
	return cmp.Or(cmp.Compare(refused(a), refused(b)), cmp.Compare(nA.infinite, nB.infinite), cmp.Compare(worstA, worstB), cmp.Compare(nA.unmet, nB.unmet), byCost(a, b))
}

// Shown returns the judgement of the advised policy, or of the nearest.
func (r Recommendation) Shown() Judgement {
	if r.Advised != nil {
		return *r.Advised
	}
	return *r.Nearest
}

// same reports whether b is shown to cost the same as a.
func (r *Recommendation) same(a, b Judgement) bool {
	if a.Policy == b.Policy {
		return true
	}
	costA, costB := r.cost(a.Policy), r.cost(b.Policy)
	more := costB.Upper() - costA.Lower()
	return more <= costA.Lower()*r.Tolerance || r.Load.Rate > 0 && more*r.Load.Rate <= float64(time.Second)/100
}

// overlap reports whether the intervals of two policies' costs overlap.
func (r *Recommendation) overlap(a, b Judgement) bool {
	costA, costB := r.cost(a.Policy), r.cost(b.Policy)
	return costB.Lower() <= costA.Upper()
}

// cost returns what a policy costs, with its interval.
func (r *Recommendation) cost(p holdfast.Policy) figure.Summary {
	row := r.group.Rows[slices.IndexFunc(r.group.Rows, func(row figure.Row) bool { return row.Cell.Policy == p })]
	if r.ByClock {
		return row.Time
	}
	return row.Net.CPU
}

// bySafety orders by the loss at a power cut, then by the loss at the end of the process.
func bySafety(a, b Judgement) int {
	la, lb := a.Policy.Loss(), b.Policy.Loss()
	return cmp.Or(cmp.Compare(age(la.Power), age(lb.Power)), cmp.Compare(amount(la.Power), amount(lb.Power)), cmp.Compare(age(la.Process), age(lb.Process)),
		cmp.Compare(la.Process.Bytes, lb.Process.Bytes))
}

// age returns the age that lost bytes may have: 0 if none is lost.
func age(b holdfast.Bound) float64 {
	switch {
	case b.None():
		return 0
	case b.Time == holdfast.Unlimited:
		return math.Inf(1)
	}
	return float64(b.Time)
}

// amount returns the number of bytes that may be lost if no time bounds their age.
func amount(b holdfast.Bound) float64 {
	if b.Time == holdfast.Unlimited && b.Bytes == holdfast.Unlimited {
		return math.Inf(1)
	}
	if b.Time != holdfast.Unlimited {
		return 0
	}
	return float64(b.Bytes)
}

// safer returns the cheapest policy for each smaller loss at a power cut, the smallest loss last. It
// prefers policies that meet the need.
func (r *Recommendation) safer(than Judgement) []Step {
	cheapest := map[float64]Judgement{}
	better := func(j, have Judgement) bool {
		met, had := j.Verdict() == Met, have.Verdict() == Met
		return met && !had || met == had && byCost(j, have) < 0
	}
	for _, j := range r.Judged {
		loss := age(j.Policy.Loss().Power)
		if loss >= age(than.Policy.Loss().Power) {
			continue
		}
		if have, ok := cheapest[loss]; !ok || better(j, have) {
			cheapest[loss] = j
		}
	}
	var steps []Step
	for _, j := range cheapest {
		steps = append(steps, Step{j, float64(j.Cost) / float64(than.Cost)})
	}
	slices.SortFunc(steps, func(a, b Step) int { return bySafety(b.Judgement, a.Judgement) })
	return steps
}
