package recorded

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/cmd/dev/peers/internal/command"
)

// A table of a page stands there between two marks, with its claims below.
type table struct {
	page, name string
	first      string // the head of the rows' names
	rows       []row
	columns    []column
	claims     []claim
}

// A row has its name and the values that its columns put into the names of groups.
type row struct {
	name string
	of   []any
}

// A column takes a cell from the group of each machine.
type column struct {
	head  string
	group string // a format
	cell  func([]group) string
}

// rowsOf makes a row of each value of the first list with each of the second.
func rowsOf[A, B any](first []A, second []B) (rows []row) {
	for _, a := range first {
		for _, b := range second {
			rows = append(rows, row{fmt.Sprintf("%v, %v", a, b), []any{a, b}})
		}
	}
	return rows
}

// a timeOf column has the median of the machines' times, and the longest.
func timeOf(head, of, arm string) column {
	return times(head, of, arm, func(r result) float64 { return r.time })
}

func cpuOf(head, of, arm string) column {
	return times(head, of, arm, func(r result) float64 { return r.cpu })
}

func times(head, of, arm string, value func(result) float64) column {
	return column{head, of, func(all []group) string {
		var values []float64
		longest := 0.0
		for _, g := range all {
			if _, r, ok := g.find(arm); ok && value(r) > 0 {
				values, longest = append(values, value(r)), max(longest, value(r))
			}
		}
		switch len(values) {
		case 0:
			return "–"
		case 1:
			return command.Duration(longest)
		}
		return command.Duration(median(values)) + "; " + command.Duration(longest)
	}}
}

// a ratioOf column has the median of the machines' ratios, and the worst with its interval.
func ratioOf(head, of, arm string) column {
	return ratios(head, of, arm, false, func(a, b ratio) bool { return a.of < b.of })
}

// a costOf column is of ours beside an arm that does less: the worst is the largest.
func costOf(head, of, arm string) column {
	return ratios(head, of, arm, false, func(a, b ratio) bool { return a.of > b.of })
}

func cpuRatioOf(head, of, arm string) column {
	return ratios(head, of, arm, true, func(a, b ratio) bool { return a.of < b.of })
}

// a rateOf column has the median of what the machines' column of that name says, a number of which more is better, and the lowest.
func rateOf(head, of, arm, name string) column {
	return column{head, of, func(all []group) string {
		var values []float64
		for _, g := range all {
			if _, r, ok := g.find(arm); ok {
				if x, err := strconv.ParseFloat(r.more[name], 64); err == nil {
					values = append(values, x)
				}
			}
		}
		switch len(values) {
		case 0:
			return "–"
		case 1:
			return fmt.Sprintf("%.0f", values[0])
		}
		return fmt.Sprintf("%.0f; %.0f", median(values), slices.Min(values))
	}}
}

// a noiseOf column is of the same code twice: the worst is the farthest from 1.
func noiseOf(head, of, arm string) column {
	return ratios(head, of, arm, false, func(a, b ratio) bool { return math.Abs(math.Log(a.of)) > math.Abs(math.Log(b.of)) })
}

func ratios(head, of, arm string, cpu bool, worse func(a, b ratio) bool) column {
	return column{head, of, func(all []group) string {
		var values []float64
		var worst ratio
		for _, g := range all {
			if r, ok := g.ratio(arm, cpu); ok {
				if values = append(values, r.of); len(values) == 1 || worse(r, worst) {
					worst = r
				}
			}
		}
		switch len(values) {
		case 0:
			return "–"
		case 1:
			return worst.String()
		}
		return fmt.Sprintf("%.2f; %v", median(values), worst)
	}}
}

// markdown returns the text between the marks.
func (t table) markdown(all []machine) string {
	var text strings.Builder
	fmt.Fprintf(&text, "| %s |", t.first)
	for _, c := range t.columns {
		fmt.Fprintf(&text, " %s |", c.head)
	}
	fmt.Fprintf(&text, "\n|---|%s\n", strings.Repeat("--:|", len(t.columns)))
	for _, r := range t.rows {
		fmt.Fprintf(&text, "| %s |", r.name)
		for _, c := range t.columns {
			fmt.Fprintf(&text, " %s |", c.cell(groups(all, fmt.Sprintf(c.group, r.of...))))
		}
		text.WriteString("\n")
	}
	for i, c := range t.claims {
		if i == 0 {
			text.WriteString("\nClaimed, of the worst machine (`go run -C dev/peers . check`):\n\n")
		}
		fmt.Fprintf(&text, "- %s. The worst recorded: %s.\n", c.says, c.worst(all))
	}
	return text.String()
}

// groups returns the machines' runs of a group.
func groups(all []machine, name string) (runs []group) {
	for _, m := range all {
		if g := m.groups[name]; g != nil {
			runs = append(runs, g)
		}
	}
	return runs
}

// A claim says that an arm takes at least so many times as long as ours, or so much CPU, in each of the groups.
type claim struct {
	says   string
	kind   string
	groups []string
	arm    string // see group.ratio
	least  float64
	cpu    bool
}

// A finding is a claim's ratio in one group.
type finding struct {
	group string
	ratio ratio
	noise float64 // the factor by which the same code twice differs there
}

// refutes reports whether the whole interval lies below what is claimed, by more than the noise.
func (c claim) refutes(f finding) bool { return f.ratio.low > 0 && f.ratio.high*f.noise < c.least }

// supports reports whether the whole interval lies above it.
func (c claim) supports(f finding) bool { return f.ratio.low >= c.least }

// in returns what a machine has of a claim.
func (c claim) in(m machine) (found []finding) {
	for _, name := range c.groups {
		if r, ok := m.groups[name].ratio(c.arm, c.cpu); ok {
			noise := 1.0
			if twin, ok := m.groups[name].ratio("holdfast (twin)", c.cpu); ok {
				noise = max(twin.of, 1/twin.of)
			}
			found = append(found, finding{name, r, noise})
		}
	}
	return found
}

// lowest returns the lowest ratio of all machines, and its machine.
func (c claim) lowest(all []machine) (least finding, machine string, ok bool) {
	for _, m := range all {
		for _, f := range c.in(m) {
			if !ok || f.ratio.of < least.ratio.of {
				least, machine, ok = f, m.name, true
			}
		}
	}
	return least, machine, ok
}

// worst names it.
func (c claim) worst(all []machine) string {
	least, machine, ok := c.lowest(all)
	if !ok {
		return "none"
	}
	return fmt.Sprintf("%v, `%s`, on %s", least.ratio, least.group, machine)
}
