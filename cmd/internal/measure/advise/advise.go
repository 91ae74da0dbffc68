// Package advise turns figures into a recommendation: a policy, its cost, and the most that it may
// lose.
//
// It cites only the figures that it gets, and takes the possible loss at a crash from
// [holdfast.Policy.Loss] alone. It does not measure. For a [Need] it names the cheapest policy that
// meets it. Without a need, it recommends by rule and names the price of losing nothing.
//
// Start with [Recommend] for a need, with [Choose] without one.
package advise

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
)

// An Advice is a recommendation with its evidence.
type Advice struct {
	Policy  holdfast.Policy
	Costs   string // to a writer
	Loses   string // at a power cut
	Nothing string // the policy that loses nothing, and its cost; empty if Policy loses nothing
	Rule    string // by which the policy was chosen; empty if its figures alone chose it

	brief *Advice
}

// Brief returns the same advice without intervals. With several loads it shows the lowest and the
// highest cost.
func (a Advice) Brief() Advice { return *a.brief }

// Sentence returns the advice as one sentence, in lower case and without a full stop.
func (a Advice) Sentence() string {
	_, rest := a.Lines()
	if a.Rule != "" {
		rest += "; " + a.Rule
	}
	return "use " + quote(a.Policy) + "; " + rest
}

// Lines returns the advice in two parts: the policy, and the rest without the rule.
func (a Advice) Lines() (policy, rest string) {
	clauses := slices.DeleteFunc([]string{a.Costs, a.Loses, a.Nothing}, func(text string) bool { return text == "" })
	return a.Policy.String(), strings.Join(clauses, "; ")
}

const (
	// dear is the highest cost at which Choose recommends a policy only because it
	// bounds the loss at a power cut. It is generous: the fastest policy leaves the disk's work for
	// later, when it is no longer timed.
	dear = 10.0

	// cheap is the highest cost at which Choose recommends a policy because it loses nothing.
	cheap = 1.1
)

// Choose recommends one of the policies, and gives the costs of the others. It takes the first of these that
// exists:
//   - the policy that loses nothing at a power cut, if that costs next to nothing
//   - the cheapest that bounds the loss by time, unless it is dear
//   - the fastest
//
// A policy that bounds the loss by bytes alone is not advised: a program that writes little could lose hours
// of work. The result ok is false if there are fewer than two policies, and if policies bound the loss by
// time but none has a known cost, because the trials are too short for their periods.
//
// A policy counts if every burst group contains it, or if its periods fell due in paced trials. A trial
// in which no period fell due is no evidence.
func Choose(groups []figure.Group) (a Advice, ok bool) {
	all := gather(groups)
	if len(all) < 2 {
		return Advice{}, false
	}
	fastest := all.cheapest(func(c candidate) bool { return !c.paced() })
	durable := all.cheapest(func(c candidate) bool { return losesNothing(c.policy) })
	bounded := all.cheapest(func(c candidate) bool { return boundsTime(c.policy) })
	if fastest == nil {
		return Advice{}, false
	}
	chosen, rule := fastest, ""
	switch {
	case durable != nil && durable.worst() <= max(cheap, fastest.worst()):
		chosen = durable
	case bounded != nil && bounded.worst() <= max(dear, fastest.worst()):
		chosen, rule = bounded, "chosen by rule: the cheapest here that bounds the loss in time"
		if all.number(func(c candidate) bool { return boundsTime(c.policy) }) == 1 {
			rule = "chosen by rule, not by figures: it alone bounds the loss in time here"
		}
	case bounded == nil && anyBoundsTime(groups):
		return Advice{}, false
	}
	say := func(prices func(*candidate) string, loss string) (a Advice) {
		a = Advice{Policy: chosen.policy, Costs: "costs " + prices(chosen) + " against " + chosen.base(), Loses: "a power cut loses " + loss, Rule: rule}
		switch {
		case chosen.worst() == 1:
			a.Costs = "is the fastest to write"
		case chosen.paced():
			a.Costs = chosen.atAPace(prices(chosen))
		case chosen.worst() < 1: // by the median of the rounds another one is the fastest
			a.Costs = "is as fast as the fastest, within the noise"
		}
		if durable != nil && chosen != durable {
			a.Nothing = "to lose nothing: " + durable.policy.String() + ", " + prices(durable)
		}
		return a
	}
	a = say((*candidate).prices, chosen.loss())
	brief := say((*candidate).extremes, chosen.loss())
	a.brief = &brief
	return a, true
}

func losesNothing(p holdfast.Policy) bool { return p.Loss().Power.None() }

// Missing explains why no policy is advised although there are several. It is empty if one is advised.
func Missing(groups []figure.Group) string {
	if _, ok := Choose(groups); ok || len(gather(groups)) < 2 || !anyBoundsTime(groups) {
		return ""
	}
	return "no policy is advised: what it costs to limit the loss in time is not known here; measure longer (--time) on a quiet machine"
}

// boundsTime reports whether a policy bounds the loss at a power cut by time.
func boundsTime(p holdfast.Policy) bool { return bounds(p) && p.Loss().Power.Time > 0 }

// anyBoundsTime reports whether a policy of the groups bounds the loss at a power cut by time.
func anyBoundsTime(groups []figure.Group) bool {
	return slices.ContainsFunc(groups, func(g figure.Group) bool {
		return slices.ContainsFunc(g.Rows, func(r figure.Row) bool { return boundsTime(r.Cell.Policy) })
	})
}

func bounds(p holdfast.Policy) bool { return !losesNothing(p) && p.Loss().Power.Limited() }

// A candidate is a policy and its rows: one row in every group that is evidence.
type candidate struct {
	policy holdfast.Policy
	rows   []figure.Row
	groups []figure.Group
}

type candidates []candidate

// paced reports whether the evidence comes from paced trials.
func (c *candidate) paced() bool { return c.groups[0].Paced }

// base names the policy that the costs are compared with.
func (c *candidate) base() string {
	if !c.paced() {
		return "the fastest"
	}
	return fmt.Sprintf("%v, at %s", holdfast.Buffered(c.policy.Buffer), Records.text(int64(c.groups[0].Rate)))
}

// atAPace returns the candidate's cost in its paced trials, and the evidence for it. The candidate does strictly more
// work than the policy that it is compared with, so it is never said to cost less.
func (c *candidate) atAPace(price string) string {
	r := c.rows[0]
	most, bounded := AtMost(r)
	var rests []string
	if r.BoundBy > 0 {
		rests = []string{fmt.Sprintf("measured at periods of %v", r.BoundBy)}
	}
	if n := r.Cost.N; n < figure.PacedRounds || r.Unknown() {
		rests = append(rests, "in "+count(int64(n), "trial"))
	}
	if r.Cost.HasInterval() && r.Cost.Low > 1 || r.Cost.Bound > 1 {
		text := price
		if bounded {
			text = "at most " + most
		}
		return "costs " + text + " against " + c.base() + inBrackets(rests)
	}
	if !bounded {
		why := "too far apart to bound it"
		if r.Cost.N < figure.PacedRounds {
			why = "too few to bound it"
		}
		return "what it costs a writer beside " + c.base() + " is not known" + inBrackets(append(rests, why))
	}
	return "no cost shown beside " + c.base() + inBrackets(append([]string{"at most " + most}, rests...))
}

func inBrackets(parts []string) string {
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// AtMost returns the text of the most that a row's policy may cost a writer, such as 1.04x.
func AtMost(r figure.Row) (text string, ok bool) {
	most, ok := r.AtMost()
	if !ok {
		return "", false
	}
	if most < 2 { // two digits behind the point, never too few
		most = math.Ceil(100*most-1e-9) / 100
	}
	return factor(most, most) + "x", true
}

// CostNotKnown is the text of a cost that too few trials at a pace tell.
const CostNotKnown = "not known"

// Cost returns the text of a row's cost: 14x, or ≤1.04x where only the most that it may be is known.
func Cost(r figure.Row) string {
	if most, ok := AtMost(r); ok {
		return "≤" + most
	}
	if r.Unknown() {
		return CostNotKnown
	}
	if !(r.Cost.Ratio > 0) {
		return Ratio(r.Cost.Comparison)
	}
	times := r.Times()
	return factor(times, times) + "x"
}

// CostInterval returns the text of the interval of a row's cost. A cost of which the most is known has none: that is its end.
func CostInterval(r figure.Row) string {
	if _, ok := r.AtMost(); ok || r.Unknown() {
		return ""
	}
	return Interval(r.Cost.Comparison)
}

// gather returns the policies that every burst group contains, in the first group's order. The policies
// with paced trials of their own follow.
func gather(groups []figure.Group) candidates {
	var bursts, paced []figure.Group
	for _, g := range groups {
		if g.Paced {
			paced = append(paced, g)
			continue
		}
		bursts = append(bursts, g)
	}
	if len(bursts) == 0 {
		return nil
	}
	var all candidates
	take := func(row figure.Row, groups []figure.Group) {
		c := candidate{policy: row.Cell.Policy, groups: groups}
		for _, g := range groups {
			at := slices.IndexFunc(g.Rows, func(r figure.Row) bool { return r.Cell.Policy == c.policy })
			if at >= 0 && g.Rows[at].Cost.Ratio > 0 && g.Rows[at].Period.Judged() {
				c.rows = append(c.rows, g.Rows[at])
			}
		}
		if len(c.rows) == len(groups) {
			all = append(all, c)
		}
	}
	for _, row := range bursts[0].Rows {
		take(row, bursts)
	}
	for _, g := range paced {
		for _, row := range g.Rows {
			if row.Period != nil {
				take(row, []figure.Group{g})
			}
		}
	}
	return all
}

// cheapest returns the candidate for which is returns true and that has the least cost over all groups,
// or nil.
func (all candidates) cheapest(is func(candidate) bool) *candidate {
	var best *candidate
	for i := range all {
		if is(all[i]) && (best == nil || all[i].overall() < best.overall()) {
			best = &all[i]
		}
	}
	return best
}

// number returns how many candidates are of a kind.
func (all candidates) number(is func(candidate) bool) (n int) {
	for _, c := range all {
		if is(c) {
			n++
		}
	}
	return n
}

// overall returns the geometric mean of the candidate's costs. So a policy that is ten
// times cheaper in one group wins over one that is a little cheaper in another.
func (c *candidate) overall() float64 {
	logs := 0.0
	for _, r := range c.rows {
		logs += math.Log(r.Cost.Ratio)
	}
	return math.Exp(logs / float64(len(c.rows)))
}

// worst returns the candidate's cost in the group where it costs most.
func (c *candidate) worst() float64 {
	worst := 0.0
	for _, r := range c.rows {
		worst = max(worst, r.Cost.Ratio)
	}
	return worst
}

// loss returns the loss at a power cut in words. A bound by time is the period plus the longest sync
// that was seen; if that sync takes longer than the period, it is two such syncs.
func (c *candidate) loss() string {
	bound := c.policy.Loss().Power
	longest, syncs := time.Duration(0), int64(0)
	for _, r := range c.rows {
		longest, syncs = max(longest, r.LongestSync), syncs+r.Syncs
	}
	switch {
	case !bounds(c.policy):
		return bound.String()
	case bound.Time <= 0 || bound.Bytes != holdfast.Unlimited || longest == 0:
		return "at most " + bare(bound)
	case longest > bound.Time:
		return fmt.Sprintf("at most the last %v (two of the longest of %d syncs; %s take no longer)", shown(2*longest), syncs, percent(min(coverage(syncs), 0.99)))
	}
	return fmt.Sprintf("at most the last %v (%v + the longest of %d syncs; %s take no longer)", shown(bound.Time+longest), bound.Time, syncs, percent(min(coverage(syncs), 0.99)))
}

// prices lists the candidate's cost in each group, with its interval.
func (c *candidate) prices() string {
	var prices []string
	for i, r := range c.rows {
		price, g := strings.TrimSpace(Ratio(r.Cost.Comparison)+" "+Interval(r.Cost.Comparison)), c.groups[i]
		if len(c.groups) > 1 {
			price += " with " + writers(g.Writers)
		}
		if slices.ContainsFunc(c.groups, func(other figure.Group) bool { return other.RecordBytes != g.RecordBytes }) {
			price += " of " + holdfast.Size(g.RecordBytes).String()
		}
		prices = append(prices, price)
	}
	return strings.Join(prices, ", ")
}

// extremes are the least and the largest cost of all groups.
func (c *candidate) extremes() string {
	byRatio := func(a, b figure.Row) int { return cmp.Compare(a.Cost.Ratio, b.Cost.Ratio) }
	least, most := Ratio(slices.MinFunc(c.rows, byRatio).Cost.Comparison), Ratio(slices.MaxFunc(c.rows, byRatio).Cost.Comparison)
	if least == most {
		return most
	}
	return least + " to " + most
}

// Ratio returns the text of a cost: 1.03x, 2.4x, 92x, 3,700x.
func Ratio(c stat.Comparison) string {
	if !(c.Ratio > 0) {
		return "-"
	}
	return factor(c.Ratio, c.Ratio) + "x"
}

// Interval returns the text of a cost's interval, (2.0-2.9), with as many decimals as
// [Ratio] has. It is empty where there is none.
func Interval(c stat.Comparison) string {
	if !c.HasInterval() || c.Ratio == 1 && c.Low == 1 && c.High == 1 {
		return ""
	}
	return "(" + factor(c.Low, c.Ratio) + "-" + factor(c.High, c.Ratio) + ")"
}

// factor writes x with the decimals of its ratio: two decimals below 2, three digits in all below 1000,
// and two digits above.
func factor(x, ratio float64) string {
	switch {
	case x >= 99_500:
		return fmt.Sprintf("%.0fk", x/1000)
	case x >= 995:
		n := int64(math.Round(x/100) * 100)
		return fmt.Sprintf("%d,%03d", n/1000, n%1000)
	case ratio < 1.995:
		return fmt.Sprintf("%.2f", x)
	case min(x, ratio) < 9.95:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.0f", x)
}

func quote(p holdfast.Policy) string { return "`" + p.String() + "`" }

// Times returns the text of a cost: 1.03x, 14x.
func Times(c stat.Comparison) string {
	switch r := c.Ratio; {
	case !(r > 0):
		return "-"
	case r < 9.995:
		return fmt.Sprintf("%.2fx", r)
	case r < 99.95:
		return fmt.Sprintf("%.1fx", r)
	case r < 9999.5:
		return fmt.Sprintf("%.0fx", r)
	default:
		return fmt.Sprintf("%.0fkx", r/1000)
	}
}
