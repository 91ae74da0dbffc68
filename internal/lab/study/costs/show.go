package costs

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/internal/lab/chart"
	"github.com/holdfast-go/holdfast/internal/lab/result"
	"github.com/holdfast-go/holdfast/internal/lab/stat"
	"github.com/holdfast-go/holdfast/internal/lab/study"
)

func showCosts(e study.Evidence) study.Shown {
	rungs := climbed(e)
	return study.Shown{
		Tables:  []study.Table{hierarchyTable(e, rungs), stepsTable(e, rungs), waitsTable(e), countsTable(e)},
		Picture: ladderPicture(e, rungs),
		Learnt:  costsLearnt(e, rungs),
	}
}

// climbed returns the rungs in order of their cost here; those that were not run are
// at the end.
func climbed(e study.Evidence) []rung {
	rungs := ladder()
	slices.SortStableFunc(rungs, func(a, b rung) int { return cmp.Compare(rungCost(e, a), rungCost(e, b)) })
	return rungs
}

// rungCost is infinite for a rung that was not run.
func rungCost(e study.Evidence, r rung) float64 {
	if cost := e.Median(r.name, study.PerRecord); !math.IsNaN(cost) {
		return cost
	}
	return math.Inf(1)
}

func wasRun(e study.Evidence, r rung) bool { return !math.IsInf(rungCost(e, r), 1) }

// hierarchyTable has the published columns first.
func hierarchyTable(e study.Evidence, rungs []rung) study.Table {
	t := study.Table{
		Title: "The same here, in order of cost",
		Head:  []string{"operation", "published", "measured here (95 %)", "method", "within the range?"},
		Notes: []string{
			fmt.Sprintf("the cost of one operation; what is fast is the median of %d turns in each trial, in which the loop with the operation is timed beside the loop without it, and the one is taken off the other", turns),
			"the range beside the thread switch was published for the way into the kernel and back, which the empty system call is",
		},
	}
	for _, r := range rungs {
		t.Rows = append(t.Rows, hierarchyRow(e, r))
	}
	return t
}

func hierarchyRow(e study.Evidence, r rung) []string {
	published := study.Dash
	if r.level != nil {
		published = study.Duration(r.level.Least) + "–" + study.Duration(r.level.Most)
	}
	if !wasRun(e, r) {
		return []string{r.name, published, study.Dash, strings.TrimSuffix("not run: "+e.Missing(r.name), ": "), study.Dash}
	}
	return []string{r.name, published, costText(e, r.name), r.method, stepCost(e, r)}
}

// stepCost says whether the whole interval is in the published range; without an
// interval, whether the median is.
func stepCost(e study.Evidence, r rung) string {
	if r.level == nil {
		return study.Dash
	}
	s := e.Summary(r.name, study.PerRecord)
	low, high := s.Low, s.High
	if !s.HasInterval() {
		low, high = s.Median, s.Median
	}
	if isBelow(e, r.name) {
		low = 0
	}
	switch {
	case r.level.Place(low, high) == study.Inside:
		return "yes"
	case high < r.level.Least:
		return "no: less"
	case low > r.level.Most:
		return "no: more"
	}
	return "in part"
}

// stepsTable is how much each rung is above the one below it.
func stepsTable(e study.Evidence, rungs []rung) study.Table {
	t := study.Table{
		Title: "From rung to rung",
		Head:  []string{"operation", "cost", "times the one below", "verdict", "times a function call"},
	}
	for i, r := range rungs {
		if !wasRun(e, r) {
			continue
		}
		step, word := study.Dash, study.Dash
		if i > 0 {
			c := e.Ratio(r.name, rungs[i-1].name, study.PerRecord)
			step, word = study.Ratio(c).OrDash(), string(c.Verdict)
		}
		all := e.Ratio(r.name, callRung, study.PerRecord)
		t.Rows = append(t.Rows, []string{r.name, study.Duration(rungCost(e, r)), step, word, study.Times(all.Ratio)})
	}
	return t
}

// waitsTable is the distribution of what was timed one by one.
func waitsTable(e study.Evidence) study.Table {
	t := study.Table{Title: "What waits for the disk, one by one over all rounds", Head: []string{"operation", "timed", "p50", "p99", "longest"}}
	for _, name := range []string{coldRung, syncRung, growRung} {
		l, err := result.MergeLatency(e.Trials(name), func(t result.Trial) *result.Latency { return &t.Latency }, stat.Supports)
		if err != nil || l.Count == 0 {
			continue
		}
		p99 := study.Dash
		if l.P99 > 0 {
			p99 = study.Duration(float64(l.P99))
		}
		t.Rows = append(t.Rows, []string{name, study.Whole(float64(l.Count)), study.Duration(float64(l.P50)), p99, study.Duration(float64(l.Max))})
	}
	if note := coldNote(e); note != "" {
		t.Notes = append(t.Notes, note)
	}
	return t
}

// coldNote says how cold the cold reads were.
func coldNote(e study.Evidence) string {
	trials := e.Trials(coldRung)
	if len(trials) == 0 {
		return ""
	}
	if why := whyNotCold(trials); why != "" {
		return "the cold reads are not proven cold: " + why
	}
	return fmt.Sprintf("before the cold reads none of the file's pages was in memory, after them %s of %s were, as many as were read; what the disk itself or a machine below this one keeps can't be seen from here",
		study.Whole(e.Median(coldRung, study.Value(residentPages))), study.Whole(float64(trials[0].Before.Pages)))
}

// whyNotCold says what speaks against it that each of the reads went to the disk, or is
// empty.
func whyNotCold(trials []result.Trial) string {
	for _, t := range trials {
		after, known := t.Values[residentPages]
		switch {
		case t.Before == nil || t.Before.Pages == 0 || !known:
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
func countsTable(e study.Evidence) study.Table {
	t := study.Table{Title: "Counted by the kernel, for each operation", Head: []string{"operation", "what", "predicted", "counted"}}
	add := func(rung, what string, predicted float64, of study.Metric) {
		if counted := e.Median(rung, study.Each(of)); !math.IsNaN(counted) {
			t.Rows = append(t.Rows, []string{rung, what, study.Digits(predicted), study.Digits(counted)})
		}
	}
	add(writeRung, "write calls", 1, study.Writes)
	add(bufferedRung, "write calls", bufferedCalls, study.Writes)
	add(readByteRung, "read calls", 1, study.Reads)
	add(readPageRung, "read calls", 1, study.Reads)
	add(coldRung, "read calls", 1, study.Reads)
	add(faultRung, "page faults", 1, study.MinorFaults)
	add(emptyRung, "context switches", 0, study.VoluntarySwitches)
	add(writeRung, "context switches", 0, study.VoluntarySwitches)
	// The thread that wakes the other either goes to sleep at once or is put off the
	// CPU for it.
	add(threadRung, "context switches, forced ones too", 1, study.AllSwitches)
	return t
}

// bufferedCalls is how many write calls a record of 40 bytes needs with a buffer of
// 4 KiB.
const bufferedCalls = float64(len(theRecord)) / (4 << 10)

// ladderPicture has the published range under each dot.
func ladderPicture(e study.Evidence, rungs []rung) *chart.Dots {
	d := &chart.Dots{Title: "the cost of each operation, and the published ranges", Scale: study.Duration, Series: []string{"measured here", "published"}}
	for _, r := range rungs {
		if !wasRun(e, r) {
			continue
		}
		row := chart.Row{Label: r.name}
		if r.level != nil {
			row.Points = append(row.Points, chart.Point{Series: 1, Value: math.NaN(), Low: r.level.Least, High: r.level.Most})
		}
		s := e.Summary(r.name, study.PerRecord)
		row.Points = append(row.Points, chart.Point{Series: 0, Value: s.Median, Low: s.Low, High: s.High})
		d.Rows = append(d.Rows, row)
	}
	return d
}

// costsLearnt names where the great steps are.
func costsLearnt(e study.Evidence, rungs []rung) string {
	var parts []string
	say := func(text, over, under string) {
		if c := e.Ratio(over, under, study.PerRecord); !math.IsNaN(c.Ratio) {
			parts = append(parts, fmt.Sprintf(text, study.Ratio(c)))
		}
	}
	say("a write of 40 bytes costs %s what it costs through a buffer", writeRung, bufferedRung)
	say("it is %s an empty system call", writeRung, emptyRung)
	say("to make a page durable is %s such a write", syncRung, writeRung)
	say("to read one from the disk is %s", coldRung, writeRung)
	if in, of := inRangeOf(e, rungs); of > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d operations are within the published ranges", in, of))
	}
	return strings.Join(parts, "; ")
}

// inRangeOf counts the rungs that were run and have a published range.
func inRangeOf(e study.Evidence, rungs []rung) (in, of int) {
	for _, r := range rungs {
		if r.level != nil && wasRun(e, r) {
			of++
			if stepCost(e, r) == "yes" {
				in++
			}
		}
	}
	return in, of
}
