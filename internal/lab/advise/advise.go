// Package advise turns figures into a recommendation: which policy, what it costs
// and what it may lose.
//
// It cites only the figures that it gets, and takes what a crash may cost from
// [holdfast.Policy.Loss] alone. It does not measure. For a [Need] it names the policy that
// meets it and costs least. Without one, it names the price of what the policies differ
// in.
//
// Start with [Recommend] for a need, with [Choose] without one.
package advise

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/lab/figure"
	"github.com/holdfast-go/holdfast/internal/lab/stat"
)

// An Advice is a recommendation with its evidence.
type Advice struct {
	Policy   holdfast.Policy
	Sentence string // lower case, without a full stop
}

const (
	// dear is the highest cost at which Choose recommends a policy only because it
	// bounds what a power cut takes. It is generous because the fastest policy leaves the
	// disk's work for later, when no clock runs.
	dear = 10.0

	// cheap is the highest cost at which it recommends a policy because it loses nothing.
	cheap = 1.1
)

// Choose recommends one of the policies that every group holds, and says what the others
// cost. If losing nothing at a power cut costs next to nothing, it takes the policy that
// does; else the cheapest that bounds the loss by time; else the fastest. ok is false
// where there is nothing to choose from.
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
			at := slices.IndexFunc(g.Rows, func(r figure.Row) bool { return r.Cell.Policy == c.policy })
			if at >= 0 && g.Rows[at].Cost.Ratio > 0 {
				c.costs = append(c.costs, g.Rows[at].Cost.Comparison) // against the cheapest there
			}
		}
		if len(c.costs) == len(groups) {
			all = append(all, c)
		}
	}
	return all
}

// cheapest returns the candidate of a kind with the least cost over all groups, or nil.
func (all candidates) cheapest(kind func(holdfast.Policy) bool) *candidate {
	var best *candidate
	for i := range all {
		if kind(all[i].policy) && (best == nil || all[i].overall() < best.overall()) {
			best = &all[i]
		}
	}
	return best
}

// overall returns the geometric mean of the candidate's costs. So a policy that is ten
// times cheaper in one group wins over one that is a little cheaper in another.
func (c *candidate) overall() float64 {
	logs := 0.0
	for _, cost := range c.costs {
		logs += math.Log(cost.Ratio)
	}
	return math.Exp(logs / float64(len(c.costs)))
}

// worst returns the candidate's cost in the group where it costs most.
func (c *candidate) worst() float64 {
	worst := 0.0
	for _, cost := range c.costs {
		worst = max(worst, cost.Ratio)
	}
	return worst
}

// loss says what a power cut may take.
func (c *candidate) loss() string { return bare(c.policy.Loss().Power) }

// most returns loss, with "at most" where there is a bound.
func (c *candidate) most() string {
	if bounds(c.policy) {
		return "at most " + c.loss()
	}
	return c.loss()
}

// advice recommends the candidate: its cost, its loss, and what else there is.
func (c *candidate) advice(rest string) Advice {
	speed, dearest := "the fastest", slices.MaxFunc(c.costs, func(a, b stat.Comparison) int { return cmp.Compare(a.Ratio, b.Ratio) })
	if dearest.Ratio != 1 {
		speed = fmt.Sprintf("%s of the fastest (cost %s, %s)", Percent(dearest), Times(dearest), dearest.Verdict)
		if len(c.costs) > 1 {
			speed = "at least " + speed
		}
	}
	return Advice{c.policy, quote(c.policy) + ": " + speed + ", loses " + c.most() + " at a power cut" + rest}
}

// prices lists the candidate's cost in each group.
func (c *candidate) prices() string {
	var prices []string
	for i, cost := range c.costs {
		price, g := Times(cost), c.groups[i]
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

// dearer says what it costs to lose nothing, unless the policy that is named already
// loses nothing.
func dearer(named, durable *candidate) string {
	if durable == nil || named == durable {
		return ""
	}
	return "; to lose nothing costs " + durable.prices() + ": " + quote(durable.policy)
}

// rest names the fastest policy, unless it is the chosen one.
func rest(fastest, chosen *candidate) string {
	if fastest.policy == chosen.policy {
		return ""
	}
	return "; the fastest, " + quote(fastest.policy) + ", loses " + fastest.loss()
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

// Percent returns the speed at a cost, relative to the fastest's: 97 %, 7.1 %.
func Percent(c stat.Comparison) string {
	p := 100 / c.Ratio
	if p < 9.95 {
		return fmt.Sprintf("%.1f %%", p)
	}
	return fmt.Sprintf("%.0f %%", p)
}
