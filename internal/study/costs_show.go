package study

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/internal/chart"
	"github.com/holdfast-go/holdfast/internal/result"
	"github.com/holdfast-go/holdfast/internal/stat"
)

func showCosts(e Evidence) Shown {
	rungs := climbed(e)
	return Shown{
		Tables:  []Table{hierarchyTable(e, rungs), stepsTable(e, rungs), waitsTable(e), countsTable(e)},
		Picture: ladderPicture(e, rungs),
		Learnt:  costsLearnt(e, rungs),
	}
}

// climbed returns the rungs in order of their cost here; those that were not run are
// at the end.
func climbed(e Evidence) []rung {
	rungs := ladder()
	slices.SortStableFunc(rungs, func(a, b rung) int { return cmp.Compare(e.height(a), e.height(b)) })
	return rungs
}

// height is infinite for a rung that was not run.
func (e Evidence) height(r rung) float64 {
	if cost := e.Median(r.name, PerRecord); !math.IsNaN(cost) {
		return cost
	}
	return math.Inf(1)
}

func (e Evidence) ran(r rung) bool { return !math.IsInf(e.height(r), 1) }

// hierarchyTable has the published columns first.
func hierarchyTable(e Evidence, rungs []rung) Table {
	t := Table{
		Title: "The same here, in order of cost",
		Head:  []string{"operation", "published", "measured here (95 %)", "method", "within the range?"},
		Notes: []string{
			fmt.Sprintf("the cost of one operation; what is fast is the median of %d turns in each trial, in which the loop with the operation is timed beside the loop without it, and the one is taken off the other", turns),
			"the range beside the thread switch was published for the way into the kernel and back, which the empty system call is",
		},
	}
	for _, r := range rungs {
		t.Rows = append(t.Rows, e.hierarchyRow(r))
	}
	return t
}

func (e Evidence) hierarchyRow(r rung) []string {
	published := dash
	if r.level != nil {
		published = duration(r.level.least) + "–" + duration(r.level.most)
	}
	if !e.ran(r) {
		return []string{r.name, published, dash, strings.TrimSuffix("not run: "+e.Missing(r.name), ": "), dash}
	}
	return []string{r.name, published, e.costText(r.name), r.method, e.within(r)}
}

// within says whether the whole interval is in the published range; without an
// interval, whether the median is.
func (e Evidence) within(r rung) string {
	if r.level == nil {
		return dash
	}
	s := e.Summary(r.name, PerRecord)
	low, high := s.Low, s.High
	if !s.HasInterval() {
		low, high = s.Median, s.Median
	}
	if e.below(r.name) {
		low = 0
	}
	switch {
	case r.level.place(low, high) == inside:
		return "yes"
	case high < r.level.least:
		return "no: less"
	case low > r.level.most:
		return "no: more"
	}
	return "in part"
}

// stepsTable is how much each rung is above the one below it.
func stepsTable(e Evidence, rungs []rung) Table {
	t := Table{
		Title: "From rung to rung",
		Head:  []string{"operation", "cost", "times the one below", "verdict", "times a function call"},
	}
	for i, r := range rungs {
		if !e.ran(r) {
			continue
		}
		step, word := dash, dash
		if i > 0 {
			c := e.Ratio(r.name, rungs[i-1].name, PerRecord)
			step, word = ratio(c).orDash(), string(c.Verdict)
		}
		all := e.Ratio(r.name, callRung, PerRecord)
		t.Rows = append(t.Rows, []string{r.name, duration(e.height(r)), step, word, times(all.Ratio)})
	}
	return t
}

// waitsTable is the distribution of what was timed one by one.
func waitsTable(e Evidence) Table {
	t := Table{Title: "What waits for the disk, one by one over all rounds", Head: []string{"operation", "timed", "p50", "p99", "longest"}}
	for _, name := range []string{coldRung, syncRung, growRung} {
		l, err := result.MergeLatency(e.Trials(name), func(t result.Trial) *result.Latency { return &t.Latency }, stat.Supports)
		if err != nil || l.Count == 0 {
			continue
		}
		p99 := dash
		if l.P99 > 0 {
			p99 = duration(float64(l.P99))
		}
		t.Rows = append(t.Rows, []string{name, whole(float64(l.Count)), duration(float64(l.P50)), p99, duration(float64(l.Max))})
	}
	if note := coldNote(e); note != "" {
		t.Notes = append(t.Notes, note)
	}
	return t
}

// coldNote says how cold the cold reads were.
func coldNote(e Evidence) string {
	trials := e.Trials(coldRung)
	if len(trials) == 0 {
		return ""
	}
	if why := whyNotCold(trials); why != "" {
		return "the cold reads are not proven cold: " + why
	}
	return fmt.Sprintf("before the cold reads none of the file's pages was in memory, after them %s of %s were, as many as were read; what the disk itself or a machine below this one keeps can't be seen from here",
		whole(e.Median(coldRung, Value(residentPages))), whole(float64(trials[0].Before.Pages)))
}

// whyNotCold says what speaks against it that each of the reads went to the disk, or is
// empty.
func whyNotCold(trials []result.Trial) string {
	for _, t := range trials {
		after, told := t.Values[residentPages]
		switch {
		case t.Before == nil || t.Before.Pages == 0 || !told:
			return "the system does not tell which pages are in memory"
		case t.Before.Resident > 0:
			return fmt.Sprintf("%d of the file's %d pages were in memory before", t.Before.Resident, t.Before.Pages)
		case after > float64(t.Records):
			return fmt.Sprintf("%.0f pages were in memory after %d reads: the kernel read ahead", after, t.Records)
		}
	}
	return ""
}

// countsTable sets what the kernel counted beside what was predicted.
func countsTable(e Evidence) Table {
	t := Table{Title: "Counted by the kernel, for each operation", Head: []string{"operation", "what", "predicted", "counted"}}
	add := func(rung, what string, predicted float64, of Metric) {
		if counted := e.Median(rung, each(of)); !math.IsNaN(counted) {
			t.Rows = append(t.Rows, []string{rung, what, digits(predicted), digits(counted)})
		}
	}
	add(writeRung, "write calls", 1, Writes)
	add(bufferedRung, "write calls", bufferedCalls, Writes)
	add(readByteRung, "read calls", 1, Reads)
	add(readPageRung, "read calls", 1, Reads)
	add(coldRung, "read calls", 1, Reads)
	add(faultRung, "page faults", 1, minorFaults)
	add(emptyRung, "context switches", 0, voluntarySwitches)
	add(writeRung, "context switches", 0, voluntarySwitches)
	// Who wakes the other either goes to sleep at once or is put off the CPU for it.
	add(threadRung, "context switches, forced ones too", 1, allSwitches)
	return t
}

// bufferedCalls is how many write calls a record of 40 bytes needs with a buffer of
// 4 KiB.
const bufferedCalls = float64(len(theRecord)) / (4 << 10)

// ladderPicture has the published range under each dot.
func ladderPicture(e Evidence, rungs []rung) *chart.Dots {
	d := &chart.Dots{Title: "the cost of each operation, and the published ranges", Scale: duration, Series: []string{"measured here", "published"}}
	for _, r := range rungs {
		if !e.ran(r) {
			continue
		}
		row := chart.Row{Label: r.name}
		if r.level != nil {
			row.Points = append(row.Points, chart.Point{Series: 1, Value: math.NaN(), Low: r.level.least, High: r.level.most})
		}
		s := e.Summary(r.name, PerRecord)
		row.Points = append(row.Points, chart.Point{Series: 0, Value: s.Median, Low: s.Low, High: s.High})
		d.Rows = append(d.Rows, row)
	}
	return d
}

// costsLearnt names where the great steps are.
func costsLearnt(e Evidence, rungs []rung) string {
	var parts []string
	say := func(text, over, under string) {
		if c := e.Ratio(over, under, PerRecord); !math.IsNaN(c.Ratio) {
			parts = append(parts, fmt.Sprintf(text, ratio(c)))
		}
	}
	say("a write of 40 bytes costs %s what it costs through a buffer", writeRung, bufferedRung)
	say("it is %s an empty system call", writeRung, emptyRung)
	say("to make a page durable is %s such a write", syncRung, writeRung)
	say("to read one from the disk is %s", coldRung, writeRung)
	if in, of := e.inRange(rungs); of > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d operations are within the published ranges", in, of))
	}
	return strings.Join(parts, "; ")
}

// inRange counts the rungs that were run and have a published range.
func (e Evidence) inRange(rungs []rung) (in, of int) {
	for _, r := range rungs {
		if r.level != nil && e.ran(r) {
			of++
			if e.within(r) == "yes" {
				in++
			}
		}
	}
	return in, of
}
