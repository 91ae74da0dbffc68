package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/machine"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
)

// calls writes a number of system calls a record.
func calls(x figure.Number) string {
	switch {
	case !x.Known():
		return none
	case x < 0.00005:
		return "0"
	case x < 0.01:
		return fmt.Sprintf("%.4f", x)
	default:
		return fmt.Sprintf("%.2f", x)
	}
}

// duration writes a time, or nothing where there is none.
func duration(d time.Duration) string {
	if d == 0 {
		return none
	}
	return nanoseconds(float64(d))
}

// percentile writes a percentile of the time of a Write. If it is no longer than a Write that does
// nothing, it writes < and the time of such a Write.
func percentile(r figure.Row, d time.Duration) string {
	if d > 0 && d <= r.Clock {
		return "<" + duration(r.Clock)
	}
	return duration(d)
}

// notes explain how to read the tables, and list the doubts about them.
func (s sheet) notes() []string {
	notes := []string{
		"to write: the time of a record, from the first Write to the return of the last; cost: its ratio to the fastest, round by round, with a 95 % interval; with 95 % confidence all verdicts of a table are right. " +
			"durable: with the final flush, sync and close. cpu: user and system time of the whole process for a record. p99: of single Writes, over all rounds; < stands before the time that the clock itself takes.",
	}
	if s.anyGroup(func(l figure.Load) bool { return l.Paced }) {
		notes = append(notes, "paced trials: records are due at this rate, and a trial lasts for three periods of its policy. cost: how much longer a Write takes than under the same buffer without a sync, as a multiple of that policy's time above; each interval holds alone. "+
			"oldest: the greatest age of a byte that was not durable, looked up every 5 ms"+s.boundText())
	}
	if slices.ContainsFunc(s.Groups, func(g figure.Group) bool {
		return slices.ContainsFunc(g.Rows, func(r figure.Row) bool { return !r.Period.Judged() })
	}) {
		notes = append(notes, "period not reached: a trial was too short for the policy's period to fall due three times, so it does not show what the period costs"+s.longerText())
	}
	notes = append(notes, "noise: "+s.noise())
	if len(s.Controls) > 0 {
		var moved []string
		for _, c := range s.Controls {
			moved = append(moved, fmt.Sprintf("%s ±%.0f %%", c.Name, math.Ceil(100*float64(c.Spread))))
		}
		notes = append(notes, "the machine: "+strings.Join(moved, ", ")+" in nine rounds of ten: bare system calls, at the beginning of each round's own process")
	}
	for _, h := range s.Harness {
		text := fmt.Sprintf("subtracted: the cost of measuring, %s a record with %s, CPU time %s", nanoseconds(h.Time.Median), plural(h.Cell.Writers, "writer"), nanoseconds(float64(h.CPU)))
		if h.Cell.Rate > 0 {
			text = fmt.Sprintf("subtracted at %s records/s: the cost of measuring, %s a Write, CPU time %s a record", count(h.Cell.Rate), nanoseconds(float64(h.Service)), nanoseconds(float64(h.CPU)))
		}
		notes = append(notes, text)
	}
	if len(s.Harness) == 0 {
		notes = append(notes, "the cost of measuring is in the figures: the run has no cell that writes nothing")
	}
	if s.anyGroup(func(l figure.Load) bool { return l.Open() && !l.Paced }) {
		notes = append(notes, "where records are due at a rate, the rate decides how long a trial takes: so cost compares the mean time of a Write, and due p99 counts from when a record was due")
	}
	notes = append(notes, s.cacheNotes()...)
	if s.anyGroup(func(l figure.Load) bool { return l.Steady }) {
		notes = append(notes, "steady: the last five seconds differ by at most 20 % and rise or fall by at most 10 % (SNIA's rule), and at most 10 % of what was written "+
			"stayed in memory; until then the page cache takes the bytes that the disk can't. The kernel slows writers once too much waits in memory (vm.dirty_ratio).")
	}
	if s.Outliers > 0 {
		notes = append(notes, fmt.Sprintf("outliers: %d of %s, and they count like all others", s.Outliers, plural(s.Trials, "trial")))
	}
	return notes
}

// boundText explains that the cost of a long period was measured with a shorter one.
func (s sheet) boundText() string {
	for _, g := range s.Groups {
		for _, r := range g.Rows {
			if r.BoundBy > 0 {
				return fmt.Sprintf(". A longer period costs at most as much as periods of %v, because more syncs don't cost a writer less", r.BoundBy)
			}
		}
	}
	return ""
}

// longerText names the trials in which a period was reached that these trials did not reach: the long
// ones.
func (s sheet) longerText() string {
	if s.anyGroup(func(l figure.Load) bool { return l.Paced }) {
		return "; the paced trials do"
	}
	return "; a longer --time has paced trials that do"
}

// cacheNotes describe the page cache before the trials of each load that begins with a file.
func (s sheet) cacheNotes() []string {
	var notes []string
	for _, g := range s.Groups {
		var before []result.Residency
		for _, r := range g.Rows {
			before = append(before, r.Before...)
		}
		if len(before) == 0 {
			continue
		}
		resident := func(a, b result.Residency) int { return cmp.Compare(a.Resident, b.Resident) }
		least, most := slices.MinFunc(before, resident), slices.MaxFunc(before, resident)
		text := fmt.Sprint(least.Resident)
		if most.Resident > least.Resident {
			text += fmt.Sprintf(" to %d", most.Resident)
		}
		notes = append(notes, fmt.Sprintf("%s: %s of the file's %d pages were in the page cache before each of %s (%s)",
			title(g.Load), text, most.Pages, plural(len(before), "trial"), most.Source))
	}
	return notes
}

func (s sheet) anyGroup(is func(figure.Load) bool) bool {
	return slices.ContainsFunc(s.Groups, func(g figure.Group) bool { return is(g.Load) })
}

// someDoubts returns one doubt of each kind, for a place without room for all.
func (s sheet) someDoubts() []string {
	const mostDoubts = 5 // on a terminal; the page lists all
	var lines []string
	first, more := map[string]int{}, map[string]int{}
	for _, w := range s.Warnings {
		if _, ok := first[w.Code]; ok {
			more[w.Code]++
			continue
		}
		first[w.Code] = len(lines)
		lines = append(lines, "doubtful: "+doubt(w))
	}
	shown := len(s.Warnings)
	for code, at := range first {
		if n := more[code]; n > 0 {
			lines[at] += fmt.Sprintf(" (and %d more of the kind)", n)
		}
		if at < mostDoubts {
			shown -= 1 + more[code]
		}
	}
	if len(lines) > mostDoubts {
		lines = append(lines[:mostDoubts], fmt.Sprintf("doubtful: and %d more; the HTML report has all", shown))
	}
	return lines
}

// machine describes the machine of the run in one line.
func (s sheet) machine() string { return machineLine(s.Run.Header.Machine) }

func machineLine(facts []machine.Fact) string {
	var parts []string
	for _, name := range []string{"CPU model", "CPUs", "virtualisation", "operating system", "kernel", "file system", "device"} {
		fact := machine.Get(facts, name)
		if fact.Value == machine.Unknown {
			continue
		}
		switch name {
		case "CPUs":
			fact.Value += " CPUs"
		case "device", "kernel":
			fact.Value = name + " " + fact.Value
		}
		parts = append(parts, fact.Value)
	}
	return strings.Join(parts, ", ")
}
