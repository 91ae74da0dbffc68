package study

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/result"
	"github.com/holdfast-go/holdfast/internal/stat"
)

// AcrossOf returns what a run on several file systems shows of them all together: what
// its study makes of it, or else the time of a record of every cell on each.
func AcrossOf(run result.Run) Shown {
	all := EvidenceOn(run)
	if s, ok := Find(run.Header.Study); ok && s.Across != nil {
		return s.Across(all)
	}
	return across(all)
}

// across has a table of the file systems of this kernel and, apart, one of those of
// a kernel in a process, whose times are not to be compared with the others. One alone
// has nothing beside it.
func across(all []Evidence) Shown {
	var here, inProcess []Evidence
	for _, e := range all {
		if isUserMode(e.FileSystem) {
			inProcess = append(inProcess, e)
		} else {
			here = append(here, e)
		}
	}
	var shown Shown
	for _, some := range [][]Evidence{here, inProcess} {
		if len(some) > 1 {
			shown.Tables = append(shown.Tables, tableAcross(some))
		}
	}
	if len(here) > 1 {
		shown.Learnt = learntBeside(here)
	}
	return shown
}

// tableAcross is the time of a record of every arm, on each of the file systems.
func tableAcross(all []Evidence) Table {
	first := all[0]
	t := Table{Title: "time of a record", Head: []string{"arm", first.FileSystem}}
	for _, e := range all[1:] {
		t.Head = append(t.Head, e.FileSystem, "against "+first.FileSystem)
	}
	words := compared
	if len(all) > 2 {
		words = withWord // there is no room for so many intervals
	}
	for _, arm := range armsAcross(all) {
		row := []string{label(arm), duration(first.Median(arm.Name, PerRecord))}
		for _, e := range all[1:] {
			row = append(row, duration(e.Median(arm.Name, PerRecord)), words(e.Beside(first, arm.Name, PerRecord)))
		}
		t.Rows = append(t.Rows, row)
	}
	t.Notes = append(t.Notes, "a ratio is of the same rounds; the word is said of its 95 % interval, which is for this one ratio, and of the noise of both file systems")
	return t
}

// armsAcross are the arms that any of the file systems has run, but for those that write
// nothing, in their order.
func armsAcross(all []Evidence) (arms []result.Cell) {
	for _, e := range all {
		for _, c := range e.Arms() {
			has := slices.ContainsFunc(arms, func(other result.Cell) bool { return other.Name == c.Name })
			if !c.Empty && !has {
				arms = append(arms, c)
			}
		}
	}
	return arms
}

// label tells an arm from the others: a cell of a sweep by its policy and its load.
func label(c result.Cell) string {
	if c.Group != "" {
		return c.Name
	}
	text := fmt.Sprintf("%v, %v", c.Policy, holdfast.Size(c.RecordBytes))
	if c.Writers != 1 {
		text += fmt.Sprintf(", %d writers", c.Writers)
	}
	if c.Rate > 0 {
		text += fmt.Sprintf(", %g/s", c.Rate)
	}
	return text
}

// Beside returns how many times as large the figure of an arm is on this file system as
// on another of the same run, round by round: its interval is at 95 % for this one ratio.
func (e Evidence) Beside(other Evidence, arm string, of Metric) stat.Comparison {
	return stat.Compare(other.samples(arm, of), e.samples(arm, of), math.Max(e.floor, other.floor), stat.Band)
}

// withWord prints a ratio with its word: 1.9x, slower.
func withWord(c stat.Comparison) string {
	return orDash(c.Ratio, times(c.Ratio)+", "+string(c.Verdict))
}

// learntBeside says which file system was the fastest, in how many of the arms.
func learntBeside(all []Evidence) string {
	wins, arms := map[string]int{}, 0
	for _, arm := range armsAcross(all) {
		best, least := "", math.Inf(1)
		for _, e := range all {
			if m := e.Median(arm.Name, PerRecord); m < least {
				best, least = e.FileSystem, m
			}
		}
		if best != "" {
			wins[best]++
			arms++
		}
	}
	if arms == 0 {
		return ""
	}
	var parts []string
	for _, e := range all {
		parts = append(parts, fmt.Sprintf("%s in %d", e.FileSystem, wins[e.FileSystem]))
	}
	return fmt.Sprintf("of %d arms the median of a record was the least on %s", arms, strings.Join(parts, ", on "))
}
