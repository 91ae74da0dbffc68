// Package advise turns figures into a recommendation: which policy, what it costs
// and what it may lose.
//
// It cites only figures that it was given, and takes what a crash may cost from
// [holdfast.Policy.Loss] alone. It does not measure. Where the reader has stated a
// [Need], it says which policy meets it and costs least; where not, it tells the
// price of what the policies differ in.
//
// Start with [Recommend] for a need, with [Choose] without one.
package advise

import (
	"fmt"
	"math"
	"strings"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/figure"
	"github.com/holdfast-go/holdfast/internal/stat"
)

// An Advice is a recommendation with its evidence.
type Advice struct {
	Policy   holdfast.Policy
	Sentence string // lower case, without a full stop
}

const (
	// dear is the cost up to which a policy that bounds what a power cut takes
	// is recommended without a question. It is generous because the fastest
	// leaves the disk's work for later, when nobody measures.
	dear = 10.0

	// cheap is the cost up to which losing nothing is recommended likewise.
	cheap = 1.1
)

// Choose recommends a policy of those that every group holds: one that loses
// nothing at a power cut if it costs next to nothing, else the cheapest that
// bounds the loss by time, else the fastest, and says what the others cost. ok is
// false where there is nothing to choose from.
func Choose(groups []figure.Group) (a Advice, ok bool) {
	all := gather(groups)
	if len(all) < 2 {
		return Advice{}, false
	}
	fastest := all.cheapest(func(holdfast.Policy) bool { return true })
	durable := all.cheapest(losesNothing)
	bounded := all.cheapest(bounds)
	if durable != nil && (bounded == nil || durable.worst() <= bounded.worst()) {
		bounded = durable
	}
	switch {
	case durable != nil && durable.worst() <= max(cheap, fastest.worst()):
		return durable.advice(rest(fastest, durable)), true
	case bounded != nil && bounded.worst() <= max(dear, fastest.worst()):
		return bounded.advice(rest(fastest, bounded) + dearer(bounded, durable)), true
	case bounded != nil:
		return fastest.advice("; to lose " + bounded.most() + " costs " + bounded.prices() + ": " + quote(bounded.policy) + dearer(bounded, durable)), true
	}
	return fastest.advice(""), true
}

func losesNothing(p holdfast.Policy) bool { return p.Loss().Power.None() }

func bounds(p holdfast.Policy) bool { return !losesNothing(p) && p.Loss().Power.Limited() }

// A candidate is a policy with its cost in every group.
type candidate struct {
	policy holdfast.Policy
	costs  []stat.Comparison
	groups []figure.Group
}

type candidates []candidate

// gather returns the policies that every group holds, in the first one's order.
func gather(groups []figure.Group) candidates {
	if len(groups) == 0 {
		return nil
	}
	var all candidates
	for _, row := range groups[0].Rows {
		c := candidate{policy: row.Cell.Policy, groups: groups}
		for _, g := range groups {
			if cost, ok := costIn(g, row.Cell.Policy); ok {
				c.costs = append(c.costs, cost)
			}
		}
		if len(c.costs) == len(groups) {
			all = append(all, c)
		}
	}
	return all
}

// costIn returns what a policy costs in a group, against the cheapest there.
func costIn(g figure.Group, p holdfast.Policy) (stat.Comparison, bool) {
	for _, row := range g.Rows {
		if row.Cell.Policy == p {
			return row.Cost.Comparison, row.Cost.Ratio > 0
		}
	}
	return stat.Comparison{}, false
}

// cheapest returns the candidate of that kind that costs least over all groups,
// or nil.
func (all candidates) cheapest(kind func(holdfast.Policy) bool) *candidate {
	var best *candidate
	for i := range all {
		if kind(all[i].policy) && (best == nil || all[i].overall() < best.overall()) {
			best = &all[i]
		}
	}
	return best
}

// overall is the geometric mean of the candidate's costs: a policy that is ten
// times cheaper in one group is not beaten by a hair's breadth in another.
func (c *candidate) overall() float64 {
	logs := 0.0
	for _, cost := range c.costs {
		logs += math.Log(cost.Ratio)
	}
	return math.Exp(logs / float64(len(c.costs)))
}

// worst is the candidate's cost in the group where it costs most.
func (c *candidate) worst() float64 {
	worst := 0.0
	for _, cost := range c.costs {
		worst = max(worst, cost.Ratio)
	}
	return worst
}

// loss says what a power cut may take.
func (c *candidate) loss() string { return c.policy.Loss().Power.String() }

// most is loss with "at most" where there is a bound.
func (c *candidate) most() string {
	if bounds(c.policy) {
		return "at most " + c.loss()
	}
	return c.loss()
}

// advice recommends the candidate: its cost, its loss, and what else there is.
func (c *candidate) advice(rest string) Advice {
	return Advice{c.policy, quote(c.policy) + ": " + c.share() + ", loses " + c.most() + " at a power cut" + rest}
}

// share says how near the candidate comes to the fastest, where it is farthest.
func (c *candidate) share() string {
	at := 0
	for i, cost := range c.costs {
		if cost.Ratio > c.costs[at].Ratio {
			at = i
		}
	}
	if c.costs[at].Ratio == 1 {
		return "the fastest"
	}
	least := ""
	if len(c.costs) > 1 {
		least = "at least "
	}
	return fmt.Sprintf("%s%s of the fastest (cost %s, %s)", least, Percent(c.costs[at]), Times(c.costs[at]), c.costs[at].Verdict)
}

// prices lists the candidate's cost in each group.
func (c *candidate) prices() string {
	var prices []string
	for i, cost := range c.costs {
		prices = append(prices, Times(cost)+c.where(i))
	}
	return strings.Join(prices, ", ")
}

// where tells the i-th group from the others.
func (c *candidate) where(i int) string {
	if len(c.groups) == 1 {
		return ""
	}
	g := c.groups[i]
	text := " with " + writers(g.Writers)
	for _, other := range c.groups {
		if other.RecordBytes != g.RecordBytes {
			return text + " of " + holdfast.Size(g.RecordBytes).String()
		}
	}
	return text
}

// dearer says what it costs to lose nothing, unless the one that was told of
// before does that.
func dearer(told, durable *candidate) string {
	if durable == nil || told == durable {
		return ""
	}
	return "; to lose nothing costs " + durable.prices() + ": " + quote(durable.policy)
}

// rest names the fastest where it is another than the chosen one.
func rest(fastest, chosen *candidate) string {
	if fastest.policy == chosen.policy {
		return ""
	}
	return "; the fastest, " + quote(fastest.policy) + ", loses " + fastest.loss()
}

func quote(p holdfast.Policy) string { return "`" + p.String() + "`" }

// Times is the text of a cost: 1.03x, 14x.
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

// Percent is the speed that a cost leaves of the fastest's: 97 %, 7.1 %.
func Percent(c stat.Comparison) string {
	p := 100 / c.Ratio
	if p < 9.95 {
		return fmt.Sprintf("%.1f %%", p)
	}
	return fmt.Sprintf("%.0f %%", p)
}
