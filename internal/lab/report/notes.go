package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/lab/figure"
	"github.com/holdfast-go/holdfast/internal/lab/machine"
	"github.com/holdfast-go/holdfast/internal/lab/result"
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

// percentile writes a time, or nothing where too few Writes were timed.
func percentile(d time.Duration) string {
	if d == 0 {
		return none
	}
	return nanoseconds(float64(d))
}

// notes say how to read the tables, and what is doubtful about them.
func (s sheet) notes() []string {
	notes := []string{
		"records/s: median of the rounds and its 95 % interval. cost: time of a record against the fastest, round by round; a group's verdicts hold together with 95 %. " +
			"A trial is timed from open to close. user, system, calls: CPU time and system calls of the whole process, for each record; own: the calls that the Writer says it made. " +
			"p50, p99: time of one Write. A policy that syncs pays in its own time for the disk's work; sync=never leaves that for later.",
		"noise: " + s.noise(),
	}
	for _, h := range s.Harness {
		notes = append(notes, fmt.Sprintf("measuring itself takes %s a record with %s, CPU time %s, and is in all figures",
			nanoseconds(h.Time.Median), plural(h.Cell.Writers, "writer"), nanoseconds(float64(h.CPU))))
	}
	if s.anyGroup(func(l figure.Load) bool { return l.Open() }) {
		notes = append(notes, "where records are due at a rate, that rate decides how long a trial takes: the cost there is CPU time, and p50 and p99 count from when a record was due")
	}
	notes = append(notes, s.cacheNotes()...)
	if s.anyGroup(func(l figure.Load) bool { return l.Steady }) {
		notes = append(notes, steadyNote)
	}
	if s.Outliers > 0 {
		notes = append(notes, fmt.Sprintf("outliers: %d of %s, and they count like all others", s.Outliers, plural(s.Trials, "trial")))
	}
	return notes
}

// cacheNotes say what was in the page cache before the trials of each load that
// begins with a file.
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

// someDoubts returns one doubt of each kind, for a place that has no room for all.
func (s sheet) someDoubts() []string {
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
	for code, n := range more {
		lines[first[code]] += fmt.Sprintf(" (and %d more of the kind; the HTML report has all)", n)
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
