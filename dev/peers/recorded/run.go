// Package recorded makes the tables of the pages from runs of peers, and holds the pages' claims: against
// these runs, and against a short run on the machine where it is asked.
//
// A run is the printed output of one kind. The runs are in docs/measured/peers: a directory for each machine and load.
// Start with tables for the pages, and with Kind for the short run.
package recorded

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A machine is all runs of one directory.
type machine struct {
	name   string
	groups map[string]group
	grown  []growth
}

// A group has the results of its arms by their names.
type group map[string]result

// A result is an arm's row.
type result struct {
	time, cpu       float64 // ns a unit; cpu is 0 where it is not measured
	ratio, cpuRatio ratio   // to ours
	more            map[string]string
}

// A ratio has a 95 % interval, or 0 as both bounds.
type ratio struct{ of, low, high float64 }

func (r ratio) String() string {
	if r.low == 0 {
		return fmt.Sprintf("%.2f", r.of)
	}
	return fmt.Sprintf("%.2f (%.2f–%.2f)", r.of, r.low, r.high)
}

// ratio returns that of an arm to ours. A name that ends in * is the fastest of the arms that begin so.
func (g group) ratio(arm string, cpu bool) (r ratio, ok bool) {
	_, a, ok := g.find(arm)
	if cpu {
		return a.cpuRatio, ok && a.cpuRatio.of > 0
	}
	return a.ratio, ok && a.ratio.of > 0
}

func (g group) find(arm string) (name string, r result, ok bool) {
	prefix, several := strings.CutSuffix(arm, "*")
	if !several {
		r, ok = g[arm]
		return arm, r, ok
	}
	for n, one := range g {
		if strings.HasPrefix(n, prefix) && (!ok || one.time < r.time) {
			name, r, ok = n, one, true
		}
	}
	return name, r, ok
}

// readAll returns the machines of a directory, in the order of their names.
func readAll(dir string) (all []machine, err error) {
	names, err := filepath.Glob(filepath.Join(dir, "*", "*.md"))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		of := filepath.Base(filepath.Dir(name))
		if n := len(all); n == 0 || all[n-1].name != of {
			all = append(all, machine{name: of, groups: map[string]group{}})
		}
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		err = all[len(all)-1].read(f)
		if f.Close(); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return all, nil
}

// onFileSystem is in the line above a run's groups if it was of a file system made for it, by which these are told apart.
var onFileSystem = regexp.MustCompile(`^\d+ rounds in random order .*, on (\w+) in an image of `)

// read adds a run. A machine has one run of a group.
func (m *machine) read(from io.Reader) error {
	text, err := io.ReadAll(from)
	if err != nil {
		return err
	}
	var heads []string
	var g group
	on := ""
	for i, line := range strings.Split(string(text), "\n") {
		name, _, isGroup := strings.Cut(strings.TrimPrefix(line, "## "), ": ")
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		made, slope := onFileSystem.FindStringSubmatch(line), slopeOf.FindStringSubmatch(line)
		switch {
		case made != nil:
			on = made[1] + "/"
		case slope != nil:
			of, err := strconv.ParseFloat(slope[2], 64)
			if err != nil {
				return fmt.Errorf("line %d: %w", i+1, err)
			}
			g, m.grown = nil, append(m.grown, growth{work: slope[1], slope: of})
		case g == nil && len(m.grown) > 0 && len(cells) > 1 && isAmount(cells[0]):
			last := &m.grown[len(m.grown)-1]
			last.amounts = append(last.amounts, append(cells, "", "")[:4])
		case strings.HasPrefix(line, "## ") && isGroup:
			name = on + name
			if m.groups[name] != nil {
				return fmt.Errorf("line %d: %s is in another run of this machine too", i+1, name)
			}
			g = group{}
			m.groups[name] = g
		case strings.HasPrefix(line, "| arm |"):
			heads = cells
		case strings.HasPrefix(line, "| ") && g != nil:
			for len(cells) < len(heads) { // of ours, the last are empty
				cells = append(cells, "")
			}
			if strings.HasPrefix(cells[1], "does not count") {
				continue
			}
			r, err := newResult(heads, cells)
			if err != nil {
				return fmt.Errorf("line %d: %w", i+1, err)
			}
			g[cells[0]] = r
		}
	}
	return nil
}

// The columns of a table of package command.
const (
	columnTime = 1 + iota
	_
	columnRatio
	columnBounds
	_
	columnCPU
	columnCPURatio
	columnCPUBounds
	columnMore
)

func newResult(heads, cells []string) (r result, err error) {
	if len(heads) < columnMore || len(cells) != len(heads) {
		return r, fmt.Errorf("%d cells under %d heads: %q", len(cells), len(heads), cells)
	}
	number := func(text string) (x float64) {
		if text = strings.TrimSpace(text); text != "" && err == nil {
			x, err = strconv.ParseFloat(text, 64)
		}
		return x
	}
	of := func(text, bounds string) ratio {
		low, high, _ := strings.Cut(bounds, "–")
		return ratio{number(text), number(low), number(high)}
	}
	time := func(text string) float64 {
		text = strings.TrimSpace(text)
		for unit, ns := range map[string]float64{" ns": 1, " µs": 1e3, " ms": 1e6, " s": 1e9} {
			if value, ok := strings.CutSuffix(text, unit); ok {
				return number(value) * ns
			}
		}
		return number(text)
	}
	r = result{time: time(cells[columnTime]), cpu: time(cells[columnCPU]), ratio: of(cells[columnRatio], cells[columnBounds]),
		cpuRatio: of(cells[columnCPURatio], cells[columnCPUBounds]), more: map[string]string{}}
	for i := columnMore; i < len(heads); i++ {
		r.more[heads[i]] = strings.TrimSpace(cells[i])
	}
	return r, err
}

// median returns the median of factors: of an even number the geometric mean of the two in the middle.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return math.Sqrt(sorted[(n-1)/2] * sorted[n/2])
}
