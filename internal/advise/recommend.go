package advise

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/figure"
	"github.com/holdfast-go/holdfast/internal/result"
	"github.com/holdfast-go/holdfast/internal/stat"
)

// A Recommendation says which of the policies that were measured meets a need and
// costs least, or that none does.
//
// The cost of a policy is the CPU time that a record takes. Costs that are apart
// by no more than the tolerance are the same; of these the policy with the least
// memory is taken, and then the one that loses less.
type Recommendation struct {
	Need    Need        `json:"need"`
	Load    figure.Load `json:"load"` // under which the policies were judged
	Rounds  int         `json:"rounds"`
	Advised *Judgement  `json:"advised"`           // nil if none meets the need
	Nearest *Judgement  `json:"nearest,omitempty"` // if none meets it
	Safer   []Step      `json:"safer,omitempty"`
	Judged  []Judgement `json:"judged"` // all, in the order of the run

	Tolerance float64       `json:"tolerance"`        // 0.05 is 5 %
	ByClock   bool          `json:"by_clock"`         // CPU time is not counted here, and the cost is elapsed time
	Capacity  figure.Number `json:"full_speed_per_s"` // records a second of the advised policy, where that was measured
	Falsified []string      `json:"falsified_by,omitempty"`

	cheapest Judgement // that meets the need
	figures  figure.Figures
}

// A Step is a policy that loses less than the advised one, and its price.
type Step struct {
	Judgement
	Price float64 `json:"price"` // its cost, as a multiple of the advised one's
}

// A Load is what the records are: 0 is whatever the results hold, if they hold
// but one.
type Load struct {
	RecordBytes int64
	Writers     int
}

// ErrLoad says that the results hold no load like the one that was asked for, or
// more than one.
var ErrLoad = errors.New("no such load")

// Recommend judges all policies of the figures that were measured under a load.
//
// Where the need has a rate and the figures hold an open loop at that rate or
// above, it judges that loop; otherwise the closed one, in which the rate is what
// could be written and a time is that of a Write at full speed.
func Recommend(f figure.Figures, n Need, l Load) (Recommendation, error) {
	groups, err := l.pick(f.Groups)
	if err != nil {
		return Recommendation{}, err
	}
	g := n.choose(groups)
	r := Recommendation{Need: n, Load: g.Load, Rounds: f.Rounds, Tolerance: stat.Band, figures: f}
	if floor := float64(f.Noise.Floor); floor > r.Tolerance {
		r.Tolerance = floor
	}
	r.ByClock = slices.ContainsFunc(g.Rows, func(r figure.Row) bool { return !(r.PerRecord.CPU > 0) })
	for _, row := range g.Rows {
		j := judge(n, row)
		if r.ByClock {
			j.Cost = figure.Number(row.Time.Median)
		}
		r.Judged = append(r.Judged, j)
	}
	r.decide()
	r.Capacity = capacity(groups, r.Shown().Policy)
	return r, nil
}

// pick returns the groups of the load.
func (l Load) pick(groups []figure.Group) ([]figure.Group, error) {
	var picked []figure.Group
	loads := map[Load]bool{}
	for _, g := range groups {
		have := Load{g.RecordBytes, g.Writers}
		if l.RecordBytes != 0 && l.RecordBytes != have.RecordBytes || l.Writers != 0 && l.Writers != have.Writers {
			continue
		}
		loads[have] = true
		picked = append(picked, g)
	}
	switch {
	case len(loads) == 0:
		return nil, fmt.Errorf("%w as %v; there is %s", ErrLoad, l, list(groups))
	case len(loads) > 1:
		return nil, fmt.Errorf("%w alone as %v; there is %s", ErrLoad, l, list(picked))
	}
	return picked, nil
}

// String names what is given of the load.
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

func list(groups []figure.Group) string {
	var all []string
	for _, g := range groups {
		if text := (Load{g.RecordBytes, g.Writers}).String(); !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return strings.Join(all, "; ")
}

// choose returns the group that says most about the need: the open loop with the
// least rate that is enough, else the closed loop, else the fastest open one.
// Among equals new files come first.
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

// decide fills in what follows from the judgements.
func (r *Recommendation) decide() {
	var meeting []Judgement
	for _, j := range r.Judged {
		if j.Met() {
			meeting = append(meeting, j)
		}
	}
	if len(meeting) == 0 {
		nearest := slices.MinFunc(r.Judged, byShortfall)
		r.Nearest = &nearest
		return
	}
	r.cheapest = slices.MinFunc(meeting, byCost)
	same := slices.DeleteFunc(meeting, func(j Judgement) bool { return !r.same(r.cheapest, j) })
	advised := slices.MinFunc(same, func(a, b Judgement) int {
		return cmp.Or(cmp.Compare(a.Memory, b.Memory), bySafety(a, b), byCost(a, b))
	})
	r.Advised = &advised
	r.Safer = r.safer(advised)
	r.Falsified = r.falsifiers(advised)
}

// Shown is the judgement of the advised policy, or of the nearest.
func (r Recommendation) Shown() Judgement {
	if r.Advised != nil {
		return *r.Advised
	}
	return *r.Nearest
}

// same reports whether b costs no more than a within the tolerance.
func (r *Recommendation) same(a, b Judgement) bool {
	return float64(b.Cost) <= float64(a.Cost)*(1+r.Tolerance)
}

// bySafety orders by what a power cut takes, and then by what the end of the
// process takes.
func bySafety(a, b Judgement) int {
	la, lb := a.Policy.Loss(), b.Policy.Loss()
	return cmp.Or(cmp.Compare(age(la.Power), age(lb.Power)), cmp.Compare(age(la.Process), age(lb.Process)),
		cmp.Compare(la.Process.Bytes, lb.Process.Bytes))
}

// age is how old what is lost may be: 0 if nothing is.
func age(b holdfast.Bound) float64 {
	switch {
	case b.None():
		return 0
	case b.Time == holdfast.Unlimited:
		return math.Inf(1)
	}
	return float64(b.Time)
}

// safer returns, for each smaller loss at a power cut, the cheapest policy; one
// that meets the need before one that does not. The smallest loss is the last.
func (r *Recommendation) safer(than Judgement) []Step {
	cheapest := map[float64]Judgement{}
	for _, j := range r.Judged {
		loss := age(j.Policy.Loss().Power)
		if loss >= age(than.Policy.Loss().Power) {
			continue
		}
		if have, ok := cheapest[loss]; !ok || byUse(j, have) < 0 {
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

// byUse puts what meets the need first, and then what costs less.
func byUse(a, b Judgement) int {
	met := func(j Judgement) int {
		if j.Met() {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(met(a), met(b)), byCost(a, b))
}

// capacity returns what a policy could write in a closed loop.
func capacity(groups []figure.Group, p holdfast.Policy) figure.Number {
	for _, g := range groups {
		for _, row := range g.Rows {
			if g.Rate == 0 && row.Cell.Policy == p {
				return figure.Number(row.Rate.Lower())
			}
		}
	}
	return figure.Number(math.NaN())
}
