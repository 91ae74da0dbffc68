package study

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
)

// ShowAcross returns the comparison of the file systems of a run on several: the study's own if it has
// one, else the time of a record of every cell on each. For a sweep, call it on the zero Study.
func (s Study) ShowAcross(run result.Run) Shown {
	shown := across
	if s.Across != nil {
		shown = s.Across
	}
	all := EvidenceOn(run)
	// Times inside a kernel that runs as a process do not compare with this kernel's times.
	var here, inProcess []Evidence
	for _, e := range all {
		if IsUserMode(e.FileSystem) {
			inProcess = append(inProcess, e)
		} else {
			here = append(here, e)
		}
	}
	if len(inProcess) == 0 {
		return shown(here)
	}
	one := shown(inProcess)
	for i, t := range one.Tables {
		one.Tables[i].Title = "in User-Mode Linux: " + t.Title
	}
	if len(here) > 0 {
		outside := shown(here)
		one.Tables = append(outside.Tables, one.Tables...)
	}
	if t, ok := insideAndOut(all); ok {
		one.Tables = append(one.Tables, t)
	}
	if one.Learnt != "" {
		one.Learnt = "in User-Mode Linux " + one.Learnt
	}
	return one
}

// across shows the time of a record of every cell, side by side. It is empty for a single file system.
func across(all []Evidence) Shown {
	if len(all) < 2 {
		return Shown{}
	}
	first := all[0]
	t := Table{Title: "time of a record", Head: []string{"arm", first.FileSystem}}
	for _, e := range all[1:] {
		t.Head = append(t.Head, e.FileSystem, "against "+first.FileSystem)
	}
	words := Compared
	if len(all) > 2 {
		words = func(c stat.Comparison) string { // there is no room for intervals
			return OrDash(c.Ratio, Times(c.Ratio)+", "+string(c.Verdict))
		}
	}
	for _, arm := range armsAcross(all) {
		row := []string{label(arm), Duration(first.Median(arm.Name, PerRecord))}
		for _, e := range all[1:] {
			row = append(row, Duration(e.Median(arm.Name, PerRecord)), words(e.Beside(first, arm.Name, PerRecord)))
		}
		t.Rows = append(t.Rows, row)
	}
	t.Notes = append(t.Notes, "ratios are taken round by round; the word follows from the ratio's own 95 % interval and the noise of both file systems")
	return Shown{Tables: []Table{t}, Learnt: learntBeside(all)}
}

// armsAcross are the arms that ran on any of the file systems, in their order, without the empty ones.
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

// label distinguishes an arm from the others: a cell of a sweep by its policy and its load.
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

// Beside returns the ratio of an arm's figure on this file system to its figure on another one of the
// same run, round by round. Its interval holds with 95 % for this one ratio.
func (e Evidence) Beside(other Evidence, arm string, of Metric) stat.Comparison {
	return stat.Compare(other.Samples(arm, of), e.Samples(arm, of), math.Max(e.Floor, other.Floor), stat.Band)
}

// learntBeside names the fastest file system, and the number of arms in which it was the fastest.
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
	return fmt.Sprintf("of %d arms, the median time of a record was the shortest on %s", arms, strings.Join(parts, ", on "))
}

// insideAndOut compares the times of the same arms on the same file system inside User-Mode Linux and
// outside, so that a reader sees the cost of being inside. ok is false for a run that has no file
// system on both sides. If only root could have made the file system outside, the directory's own one
// replaces it.
func insideAndOut(all []Evidence) (t Table, ok bool) {
	t = Table{
		Title: "the cost of User-Mode Linux: time of a record",
		Notes: []string{
			"a ratio is inside to outside, round by round",
			"compare times inside only with each other: there, another process intercepts and executes every system call, and the guest's page cache lies in the host's",
		},
	}
	for _, inside := range all {
		name, is := strings.CutPrefix(inside.FileSystem, UserModeLinux)
		for _, outside := range all {
			if !is || outside.FileSystem != name {
				continue
			}
			t.Head = []string{"arm", outside.FileSystem, inside.FileSystem, "inside to outside"}
			for _, arm := range armsAcross([]Evidence{outside}) {
				if inside.Have(arm.Name) {
					t.Rows = append(t.Rows, []string{
						label(arm), Duration(outside.Median(arm.Name, PerRecord)), Duration(inside.Median(arm.Name, PerRecord)),
						Compared(inside.Beside(outside, arm.Name, PerRecord)),
					})
				}
			}
		}
	}
	return t, len(t.Rows) > 0
}
