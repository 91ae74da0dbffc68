package copying

import (
	"fmt"
	"math"
	"strings"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/lab/timing"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

// standsOutTable has what does not follow from the size of the buffer alone, found by
// a rule each.
func standsOutTable(e study.Evidence) study.Table {
	t := study.Table{Title: "What stands out, on " + placeOf(e), Head: []string{"Asked", "Found"}}
	for _, ask := range []func(study.Evidence) (string, string){straddles, bestIsNotLargest, kernelsShare, costOfGo} {
		if asked, found := ask(e); found != "" {
			t.Rows = append(t.Rows, []string{asked, found})
		}
	}
	return t
}

// straddles compares 16284 with 16384: only the first begins its writes within a page.
// The time is of a byte, as the two may have copied another part of the whole.
func straddles(e study.Evidence) (asked, found string) {
	odd, even := copyArm(oddBuffer), copyArm(16384)
	asked = "does a buffer that straddles pages cost (16284 against 16384)"
	if !e.Have(odd, even) {
		return asked, ""
	}
	c := e.Ratio(odd, even, written)
	word := "not proven"
	switch c.Verdict {
	case stat.Slower:
		word = "it does"
	case stat.Faster:
		word = "no, it is faster"
	case stat.Same:
		word = "no"
	}
	return asked, fmt.Sprintf("%s: %s, system CPU %s", word, study.Ratio(c), study.Ratio(e.Ratio(odd, even, study.SystemTime)))
}

// bestIsNotLargest looks for a buffer that beats the largest.
func bestIsNotLargest(e study.Evidence) (asked, found string) {
	asked = "is the best buffer the largest"
	rows := ofWhole(timingsOf(e), timing.Copy, wholeSize)
	if len(rows) < 2 {
		return asked, ""
	}
	best, _ := extremes(rows)
	largest := rows[len(rows)-1]
	if best.Buffer == largest.Buffer {
		return asked, "yes, " + holdfast.Size(best.Buffer).String()
	}
	c := e.Ratio(copyArm(int64(largest.Buffer)), copyArm(int64(best.Buffer)), wholeElapsed)
	return asked, fmt.Sprintf("%v is, and %v takes %s", holdfast.Size(best.Buffer), holdfast.Size(largest.Buffer), study.Compared(c))
}

// kernelsShare is how much of the CPU time is the kernel's, by buffer, as far as that is
// known.
func kernelsShare(e study.Evidence) (asked, found string) {
	asked = "how much of the CPU time is the kernel's"
	for _, b := range []int64{1, 512, 4096, 65536} {
		share := math.NaN()
		if e.Have(copyArm(b)) {
			share = kernelPart(e, copyArm(b))
		}
		if math.IsNaN(share) {
			continue
		}
		if found != "" {
			found += ", "
		}
		found += fmt.Sprintf("%v %s", holdfast.Size(b), study.Percent(share))
	}
	return asked, found
}

// costOfGo compares the CPU time of the loop in Go with the CPU time of the loop in C, by buffer.
func costOfGo(e study.Evidence) (asked, found string) {
	for _, b := range []int64{1, 4096, 65536} {
		if inC := (copyCell{timing.InC, wholeSize, b}).name(); e.Have(copyArm(b), inC) {
			found += fmt.Sprintf(", %v %s", holdfast.Size(b), study.Ratio(e.Ratio(copyArm(b), inC, study.CPUTime)))
		}
	}
	return "how much CPU time does the loop in Go take, against C", strings.TrimPrefix(found, ", ")
}

// Iterations returns a line for each run of each cell, as the published script prints
// them, under a line that names what was measured. Predicted times are marked. The
// rounds that are not whole are left out.
func Iterations(run result.Run) (lines []string) {
	all := study.EvidenceOn(run)
	if len(all) == 0 {
		all = []study.Evidence{study.EvidenceOf(run)}
	}
	for _, e := range all {
		for _, c := range copyCells(e) {
			lines = append(lines, fmt.Sprintf("Measuring %s of %v for BUF_SIZE=%d on %s...", c.form, holdfast.Size(c.size), c.buffer, placeOf(e)))
			mark := ""
			if isPredicted(e, c) {
				mark = " (predicted)"
			}
			parted := !study.IsUserMode(placeOf(e))
			for i, s := range stretches(e, c) {
				t := e.Trials(c.name())[i]
				text := func(ns float64) string { return secondsText(math.Round(ns*s/1e3) / 1e6) }
				line := fmt.Sprintf("    Iteration %d results: Elapsed=%ss, Total CPU=%ss", i+1, text(float64(t.Elapsed)), text(float64(t.CPU())))
				if parted {
					line += fmt.Sprintf(", User CPU=%ss, System CPU=%ss", text(float64(t.User)), text(float64(t.System)))
				}
				lines = append(lines, fmt.Sprintf("  Running iteration %d/%d for BUF_SIZE=%d...", i+1, len(e.Trials(c.name())), c.buffer))
				if cell, _ := e.Cell(c.name()); cell.Cache == result.Remount {
					lines = append(lines, fmt.Sprintf("    Unmounting %s...", placeOf(e)), fmt.Sprintf("    Remounting %s...", placeOf(e)))
				}
				lines = append(lines, line+mark)
			}
		}
	}
	return lines
}
