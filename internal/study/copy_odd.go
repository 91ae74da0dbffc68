package study

import (
	"fmt"
	"math"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/result"
	"github.com/holdfast-go/holdfast/internal/stat"
	"github.com/holdfast-go/holdfast/internal/timing"
)

// standsOutTable has what does not follow from the size of the buffer alone, found by
// a rule each.
func standsOutTable(e Evidence) Table {
	t := Table{Title: "What stands out, on " + e.place(), Head: []string{"Asked", "Found"}}
	for _, ask := range []func(Evidence) (string, string){straddles, bestIsNotLargest, kernelsShare} {
		if asked, found := ask(e); found != "" {
			t.Rows = append(t.Rows, []string{asked, found})
		}
	}
	return t
}

// straddles compares 16284 with 16384, of which only the first begins its writes within
// a page. The time is of a byte, as the two may have copied another part of the whole.
func straddles(e Evidence) (asked, found string) {
	odd, even := copyArm(oddBuffer), copyArm(16384)
	asked = "does a buffer that straddles pages cost (16284 against 16384)"
	if !e.have(odd, even) {
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
	return asked, fmt.Sprintf("%s: %s, system CPU %s", word, ratio(c), ratio(e.Ratio(odd, even, systemTime)))
}

// bestIsNotLargest looks for a buffer that beats the largest.
func bestIsNotLargest(e Evidence) (asked, found string) {
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
	return asked, fmt.Sprintf("%v is, and %v takes %s", holdfast.Size(best.Buffer), holdfast.Size(largest.Buffer), compared(c))
}

// kernelsShare is how much of the CPU time is the kernel's, by buffer, as far as that is
// known.
func kernelsShare(e Evidence) (asked, found string) {
	asked = "how much of the CPU time is the kernel's"
	for _, b := range []int64{1, 512, 4096, 65536} {
		share := math.NaN()
		if e.have(copyArm(b)) {
			share = kernelPart(e, copyArm(b))
		}
		if math.IsNaN(share) {
			continue
		}
		if found != "" {
			found += ", "
		}
		found += fmt.Sprintf("%v %s", holdfast.Size(b), percent(share))
	}
	return asked, found
}

// Iterations returns a line for each run of each cell, as the published script prints
// them, under a line that names what was measured; predicted times are marked. The
// rounds that are not whole are left out.
func Iterations(run result.Run) (lines []string) {
	all := EvidenceOn(run)
	if len(all) == 0 {
		all = []Evidence{EvidenceOf(run)}
	}
	for _, e := range all {
		for _, c := range copyCells(e) {
			lines = append(lines, fmt.Sprintf("Measuring %s of %v for BUF_SIZE=%d on %s...", c.form, holdfast.Size(c.size), c.buffer, e.place()))
			for i, t := range e.Trials(c.name()) {
				lines = append(lines, "    "+iteration(i+1, t)+predictedMark(e.predicted(c)))
			}
		}
	}
	return lines
}

func predictedMark(predicted bool) string {
	if predicted {
		return " (predicted)"
	}
	return ""
}

func iteration(n int, t result.Trial) string {
	s := stretch(t)
	text := func(ns float64) string { return secondsText(math.Round(ns*s/1e3) / 1e6) }
	return fmt.Sprintf("Iteration %d results: Elapsed=%ss, Total CPU=%ss, User CPU=%ss, System CPU=%ss",
		n, text(float64(t.Elapsed)), text(float64(t.CPU())), text(float64(t.User)), text(float64(t.System)))
}
