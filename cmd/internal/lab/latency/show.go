package latency

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/chart"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

// latencyHead heads the table of the published sentences and our figures.
var latencyHead = []string{"the documents say", "figure"}

func showLatency(e study.Evidence) study.Shown {
	said := study.Table{Title: "What was measured of it", Head: append(slices.Clone(latencyHead), "verdict")}
	for _, c := range latencyClaims() {
		f := c.Find(e)
		said.Rows = append(said.Rows, []string{c.Says, cmp.Or(f.Measured, study.Dash), string(f.Verdict)})
	}
	l := latencyEvidence{e}
	return study.Shown{
		Tables:  []study.Table{said, l.writes(), l.payments(), l.openLoop(), l.visible(), l.killed(), l.memory()},
		Picture: l.picture(),
		Learnt:  l.learnt(),
	}
}

// latencyEvidence reads the evidence arm by arm.
type latencyEvidence struct{ study.Evidence }

// The percentiles of a trial's Writes.
func p50(t result.Trial) float64  { return percentile(t.Latency.P50) }
func p99(t result.Trial) float64  { return percentile(t.Latency.P99) }
func p999(t result.Trial) float64 { return percentile(t.Latency.P999) }
func longestOf(t result.Trial) float64 {
	return percentile(t.Latency.Max)
}

// percentile is NaN where there were too few Writes for it.
func percentile(d time.Duration) float64 {
	if d == 0 {
		return math.NaN()
	}
	return float64(d)
}

// all is the distribution of all Writes of an arm, over all rounds.
func (l latencyEvidence) all(arm string, of func(*result.Trial) *result.Latency) result.Latency {
	all, err := result.MergeLatency(l.Trials(arm), of, stat.Supports)
	if err != nil {
		return result.Latency{}
	}
	return all
}

func response(t *result.Trial) *result.Latency { return &t.Latency }

// quantiles are the columns of p50, p99, p99.9 and the longest over all rounds.
func (l latencyEvidence) quantiles(of func(*result.Trial) *result.Latency, p50, p99, p999, longest string) []study.ArmColumn {
	column := func(head string, quantile func(result.Latency) time.Duration) study.ArmColumn {
		return study.ArmColumn{Head: head, Cell: func(c result.Cell) string { return study.Duration(percentile(quantile(l.all(c.Name, of)))) }}
	}
	return []study.ArmColumn{
		column(p50, func(d result.Latency) time.Duration { return d.P50 }), column(p99, func(d result.Latency) time.Duration { return d.P99 }),
		column(p999, func(d result.Latency) time.Duration { return d.P999 }), column(longest, func(d result.Latency) time.Duration { return d.Max }),
	}
}

// table has a row for each arm of the groups, which its first column names; one that could
// not be run has dashes and a note that says why.
func (l latencyEvidence) table(t study.Table, groups []string, first string, columns ...study.ArmColumn) study.Table {
	arms := slices.DeleteFunc(l.Arms(), func(c result.Cell) bool { return !slices.Contains(groups, c.Group) })
	name := study.ArmColumn{Head: first, Cell: func(c result.Cell) string { return study.Short(c.Name) }}
	t = study.Tabulate(t, arms, append([]study.ArmColumn{name}, columns...))
	for _, m := range l.Run.Header.Missing {
		if group, _, _ := strings.Cut(m.Cell, "/"); slices.Contains(groups, group) {
			none := slices.Repeat([]string{study.Dash}, len(t.Head)-1)
			t.Rows = append(t.Rows, append([]string{study.Short(m.Cell)}, none...))
			if note := study.Short(m.Cell) + " was not run: " + m.Why; !slices.Contains(t.Notes, note) {
				t.Notes = append(t.Notes, note)
			}
		}
	}
	return t
}

func (l latencyEvidence) writes() study.Table {
	t := study.Table{
		Title: "One Write at full speed",
		Notes: []string{
			"percentiles: of the Writes of all rounds; ratios: of single rounds",
			"the clock itself takes " + study.Duration(l.clock()) + " a Write, as the arm nothing shows; the times of all other arms contain it",
		},
	}
	return l.table(t, []string{inWrites, inDurable}, "write by", append(l.quantiles(response, "p50", "p99", "p99.9", "longest"),
		study.ArmColumn{Head: "p99.9 to p50", Cell: func(c result.Cell) string {
			all := l.all(c.Name, response)
			return study.Times(percentile(all.P999) / percentile(all.P50))
		}},
		study.ArmColumn{Head: "p50 to os.File", Cell: func(c result.Cell) string { return l.against(c, p50) }},
		study.ArmColumn{Head: "p99.9 to os.File", Cell: func(c result.Cell) string { return l.against(c, p999) }})...)
}

func (l latencyEvidence) payments() study.Table {
	t := study.Table{
		Title: "Who pays for the write calls",
		Notes: []string{
			"pays: the slowest Writes, as many as calls were predicted, and their share of the whole time; the clock's own time is subtracted",
		},
	}
	calls := func(c result.Cell) int64 { return sinkOf(c).calls(c.Records, c.RecordBytes) }
	payers := func(c result.Cell) []string { return l.payers(l.all(c.Name, response), calls(c), c.Records) }
	return l.table(t, []string{inWrites, inDurable}, "write by",
		study.ArmColumn{Head: "calls predicted", Cell: func(c result.Cell) string { return study.Whole(float64(calls(c))) }},
		l.MedianOf("observed", study.Writes, study.Whole),
		study.ArmColumn{Head: "pays", Cell: func(c result.Cell) string { return payers(c)[0] }},
		study.ArmColumn{Head: "of the time", Cell: func(c result.Cell) string { return payers(c)[1] }},
		l.MedianOf("CPU a Write", study.CPUTime, study.Duration))
}

// against is the ratio of a figure to the plain file's figure, with its word.
func (l latencyEvidence) against(c result.Cell, of study.Metric) string {
	const plain = inWrites + "/" + byFile
	if c.Group != inWrites || c.Name == plain || sinkOf(c).by == byNothing {
		return study.Dash
	}
	return study.Compared(l.Ratio(c.Name, plain, of))
}

// clock is the median cost of timing one Write.
func (l latencyEvidence) clock() float64 { return l.Median(inWrites+"/"+byNothing, p50) }

// payers says how many of the Writes make the calls, and which share of the time of
// all the slowest that many take.
func (l latencyEvidence) payers(all result.Latency, calls, records int64) []string {
	if calls == 0 || all.Count == 0 {
		return []string{study.Dash, study.Dash}
	}
	part := float64(calls) / float64(records)
	clock := l.clock()
	if math.IsNaN(clock) {
		clock = 0
	}
	return []string{fmt.Sprintf("1 in %s", study.Digits(1/part)), study.Percent(slowestShare(all, part, clock))}
}

// slowestShare is the share that the slowest part of the operations has of the time
// of all, after clock nanoseconds are taken off each.
func slowestShare(all result.Latency, part, clock float64) float64 {
	h, err := hdrhistogram.Decode([]byte(all.Histogram))
	if err != nil {
		return math.NaN()
	}
	left, slowest, total := part*float64(h.TotalCount()), 0.0, 0.0
	bars := h.Distribution()
	slices.Reverse(bars)
	for _, b := range bars {
		each := max(0, float64(b.From+b.To)/2-clock)
		take := min(left, float64(b.Count))
		left -= take
		slowest += take * each
		total += float64(b.Count) * each
	}
	return slowest / total
}

func (l latencyEvidence) openLoop() study.Table {
	t := study.Table{
		Title: fmt.Sprintf("One Write when %d a second are due", openRate),
		Notes: []string{
			"p50 to longest: from when the record was due, late wake-ups by the system included (the arm nothing shows them); call: from the call to its return, without the wait behind a stall",
		},
	}
	columns := slices.Concat(l.quantiles(response, "p50", "p99", "p99.9", "longest"),
		l.quantiles(func(t *result.Trial) *result.Latency { return t.Service }, "call p50", "call p99", "call p99.9", "longest call"))
	return l.table(t, []string{inOpenLoop}, "write by", append(columns, l.MedianOf("not served", study.Value("unserved_records"), study.Whole))...)
}

func (l latencyEvidence) visible() study.Table {
	t := study.Table{
		Title: fmt.Sprintf("Until another process can read a record, %d a second", visibleRate),
		Notes: []string{
			"predicted: until the buffer is full, the interval is over or the file is closed, whichever is first",
			fmt.Sprintf("the reader polls: at the end of the file it pauses for %v, and looks again after %s (p99 %s), so a delay may be shown too long by that time", watchPause, study.Duration(l.looks("look_p50_ns")), study.Duration(l.looks("look_p99_ns"))),
			"the bound is by time alone; beyond it lie one flush, the waking of both processes and the reader's pause",
		},
	}
	longest := study.Value("visible_max_ns")
	return l.table(t, []string{inSight}, "write by",
		study.ArmColumn{Head: "predicted longest", Cell: func(c result.Cell) string {
			return study.Duration(float64(sinkOf(c).wait(c.Records, c.RecordBytes)))
		}},
		l.IntervalOf("p50", study.Value("visible_p50_ns"), study.Duration), l.MedianOf("p99", study.Value("visible_p99_ns"), study.Duration),
		l.IntervalOf("longest", longest, study.Duration),
		study.ArmColumn{Head: "the policy's bound", Cell: func(c result.Cell) string { return timeBound(sinkOf(c).promise()) }},
		study.ArmColumn{Head: "beyond it", Cell: func(c result.Cell) string { return beyond(l.Median(c.Name, longest), sinkOf(c).promise()) }},
		l.MedianOf("records seen", study.Value("visible_count"), study.Whole))
}

// looks is the largest of the medians of all watched arms.
func (l latencyEvidence) looks(name string) float64 {
	most := math.NaN()
	for _, c := range l.Arms() {
		if c.Group == inSight {
			most = study.Larger(most, l.Median(c.Name, study.Value(name)))
		}
	}
	return most
}

// wait is the longest that a record is to wait in memory when they come at the
// visible rate.
func (o sink) wait(records, size int64) time.Duration {
	each := time.Second / visibleRate
	if int64(o.policy.Buffer) < size || o.waitsForDisk() {
		return 0
	}
	wait := min(records, int64(o.policy.Buffer)/size) * int64(each)
	if due := o.promise().Time; due > 0 {
		wait = min(wait, int64(due))
	}
	return time.Duration(wait)
}

func timeBound(b holdfast.Bound) string {
	switch {
	case b.None():
		return "at once"
	case b.Time == holdfast.Unlimited:
		return "none"
	}
	return b.Time.String()
}

// beyond is how much longer than the bound the longest was, where there is one.
func beyond(longest float64, b holdfast.Bound) string {
	if b.Time == holdfast.Unlimited || math.IsNaN(longest) {
		return study.Dash
	}
	return study.Duration(max(0, longest-float64(b.Time)))
}

func (l latencyEvidence) killed() study.Table {
	t := study.Table{
		Title: fmt.Sprintf("What a process that is killed has lost, at %d records a second", killedRate),
		Notes: []string{
			"accepted: the Writes that had returned, as the process reported by a pipe; a trial with a torn or misplaced record in the file would have failed",
			"medians of the rounds; most: the largest of them",
		},
	}
	count := func(head string) study.ArmColumn { return l.MedianOf(head, study.Value(head+"_records"), study.Whole) }
	return l.table(t, []string{inKilled}, "write by", count("accepted"), count("readable"), count("lost"),
		l.WorstOf("bytes lost, most", "lost_bytes", study.Whole), l.WorstOf("oldest lost, most", "lost_age_ns", study.Duration),
		study.ArmColumn{Head: "allowed", Cell: func(c result.Cell) string { return sinkOf(c).promise().String() }})
}

func (l latencyEvidence) memory() study.Table {
	t := study.Table{
		Title: "Memory: buffers × writers",
		Notes: []string{
			fmt.Sprintf("predicted: the buffers alone (holdfast's Writer has two). Each then writes %d times its size, or %v if it has none", passedOn, holdfast.Size(passedUnlimited)),
		},
	}
	heap := study.Value("heap_bytes")
	return l.table(t, []string{inMemory}, "buffer",
		study.ArmColumn{Head: "predicted", Cell: func(c result.Cell) string { return study.Whole(float64(c.Writers) * l.buffers(c)) }},
		l.MedianOf("heap", heap, study.Whole),
		study.ArmColumn{Head: "each", Cell: func(c result.Cell) string { return study.Whole(l.Median(c.Name, heap) / float64(c.Writers)) }},
		l.MedianOf("after writing", study.Value("heap_written_bytes"), study.Whole))
}

// buffers is how much one is to take; NaN for one without limit.
func (l latencyEvidence) buffers(c result.Cell) float64 {
	switch name := study.Short(c.Name); {
	case strings.HasPrefix(name, bytesBuffer):
		return math.NaN()
	case strings.HasPrefix(name, byHoldfast):
		return 2 * float64(c.Policy.Buffer)
	}
	return float64(c.Policy.Buffer)
}

// sinkOf is the sink of an arm.
func sinkOf(c result.Cell) sink {
	name := study.Short(c.Name)
	for _, by := range []string{byBufio, byHoldfast, byFile} {
		if strings.HasPrefix(name, by) {
			return sink{by, c.Policy}
		}
	}
	return sink{by: byNothing}
}

func (l latencyEvidence) picture() *chart.Dots {
	d := &chart.Dots{Title: "One Write at full speed", Scale: study.Duration, Series: []string{"p50", "p99", "p99.9", "longest"}}
	for _, c := range l.Arms() {
		if c.Group != inWrites && c.Group != inDurable {
			continue
		}
		r := chart.Row{Label: study.Short(c.Name)}
		for i, of := range []study.Metric{p50, p99, p999, longestOf} {
			if s := l.Summary(c.Name, of); !math.IsNaN(s.Median) {
				r.Points = append(r.Points, study.Point(i, s))
			}
		}
		d.Rows = append(d.Rows, r)
	}
	return d
}

// learnt is the medians' story: what most Writes gain, what the slowest do, and
// how long another process waits.
func (l latencyEvidence) learnt() string {
	var parts []string
	if r := l.Ratio(smallWrite, plainWrite, p50); !math.IsNaN(r.Ratio) {
		part := fmt.Sprintf("behind a buffer of 4KiB the usual Write takes %s of an unbuffered one", study.Ratio(r))
		if slow := l.Ratio(smallWrite, plainWrite, p999); !math.IsNaN(slow.Ratio) {
			part += fmt.Sprintf(" and the slowest in a thousand %s", study.Ratio(slow))
		}
		parts = append(parts, part)
	}
	small, plain := l.Median(smallSight, study.Value("visible_p50_ns")), l.Median(plainSight, study.Value("visible_p50_ns"))
	if !math.IsNaN(small) && !math.IsNaN(plain) {
		parts = append(parts, fmt.Sprintf("another process sees a record after %s instead of %s", study.Duration(small), study.Duration(plain)))
	}
	if lost := study.Worst(l.Trials(largeKilled), "lost_records"); !math.IsNaN(lost) {
		parts = append(parts, fmt.Sprintf("a killed process takes up to %s accepted records of a buffer of 64KiB with it", study.Whole(lost)))
	}
	return strings.Join(parts, "; ")
}

// calls returns the number of write calls that the kernel should see for the records.
func (o sink) calls(records, size int64) int64 {
	block := int64(o.policy.Buffer)
	switch {
	case o.by == byNothing:
		return 0
	case block < size || o.waitsForDisk():
		return records
	}
	return study.CallsOf(records*size, block)
}
