package study

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/chart"
	"github.com/holdfast-go/holdfast/internal/result"
	"github.com/holdfast-go/holdfast/internal/stat"
)

// latencyHead is of the published sentences and of what we measured of them.
var latencyHead = []string{"the documents say", "figure"}

// latencySaid is what was published: of all these only one has a figure.
func latencySaid() Table {
	t := Table{Title: "What the documents say of latency", Source: efficientBuffering + ", " + fileIOExperiment, Head: latencyHead}
	for _, c := range latencyClaims() {
		t.Rows = append(t.Rows, []string{c.Says, cmp.Or(c.Published, dash)})
	}
	return t
}

func showLatency(e Evidence) Shown {
	said := Table{Title: "What was measured of it", Head: append(slices.Clone(latencyHead), "verdict")}
	for _, c := range latencyClaims() {
		f := c.Find(e)
		said.Rows = append(said.Rows, []string{c.Says, cmp.Or(f.Measured, dash), string(f.Verdict)})
	}
	l := latencyEvidence{e}
	return Shown{
		Tables:  []Table{said, l.writes(), l.payments(), l.openLoop(), l.visible(), l.killed(), l.memory()},
		Picture: l.picture(),
		Learnt:  l.learnt(),
	}
}

// latencyEvidence reads the evidence arm by arm.
type latencyEvidence struct{ Evidence }

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
func (l latencyEvidence) all(arm string, of func(result.Trial) *result.Latency) result.Latency {
	all, err := result.MergeLatency(l.Trials(arm), of, stat.Supports)
	if err != nil {
		return result.Latency{}
	}
	return all
}

func response(t result.Trial) *result.Latency { return &t.Latency }
func service(t result.Trial) *result.Latency  { return t.Service }

// quantiles are p50, p99, p99.9 and the longest as texts.
func quantiles(d result.Latency) (texts []string) {
	for _, q := range []time.Duration{d.P50, d.P99, d.P999, d.Max} {
		texts = append(texts, duration(percentile(q)))
	}
	return texts
}

// table adds a row for each arm of the groups; one that could not be run has dashes
// and a note that says why.
func (l latencyEvidence) table(t Table, row func(result.Cell) []string, groups ...string) Table {
	for _, c := range l.Arms() {
		if slices.Contains(groups, c.Group) {
			t.Rows = append(t.Rows, append([]string{short(c.Name)}, row(c)...))
		}
	}
	for _, m := range l.run.Header.Missing {
		if group, _, _ := strings.Cut(m.Cell, "/"); slices.Contains(groups, group) {
			none := slices.Repeat([]string{dash}, len(t.Head)-1)
			t.Rows = append(t.Rows, append([]string{short(m.Cell)}, none...))
			if note := short(m.Cell) + " was not run: " + m.Why; !slices.Contains(t.Notes, note) {
				t.Notes = append(t.Notes, note)
			}
		}
	}
	return t
}

func (l latencyEvidence) writes() Table {
	t := Table{
		Title: "One Write at full speed",
		Head:  []string{"write by", "p50", "p99", "p99.9", "longest", "p99.9 to p50", "p50 to os.File", "p99.9 to os.File"},
		Notes: []string{
			"percentiles are of the Writes of all rounds, ratios of the rounds' own",
			"the clock itself takes " + duration(l.clock()) + " a Write: the arm nothing, which is in all the others",
		},
	}
	return l.table(t, func(c result.Cell) []string {
		all := l.all(c.Name, response)
		uneven := percentile(all.P999) / percentile(all.P50)
		return append(quantiles(all), times(uneven), l.against(c, p50), l.against(c, p999))
	}, inWrites, inDurable)
}

func (l latencyEvidence) payments() Table {
	t := Table{
		Title: "Who pays for the write calls",
		Head:  []string{"write by", "calls predicted", "observed", "pays", "of the time", "CPU a Write"},
		Notes: []string{
			"pays: as many Writes as calls are predicted, if these are the slowest; and their share of the time of all, without the clock's own",
		},
	}
	return l.table(t, func(c result.Cell) []string {
		calls := outletOf(c).calls(c.Records, c.RecordBytes)
		row := []string{whole(float64(calls)), whole(l.Median(c.Name, Writes))}
		row = append(row, l.payers(l.all(c.Name, response), calls, c.Records)...)
		return append(row, duration(l.Median(c.Name, cpuTime)))
	}, inWrites, inDurable)
}

// against is the ratio of a figure to that of the plain file, with its word.
func (l latencyEvidence) against(c result.Cell, of Metric) string {
	const plain = inWrites + "/" + byFile
	if c.Group != inWrites || c.Name == plain || outletOf(c).by == byNothing {
		return dash
	}
	return compared(l.Ratio(c.Name, plain, of))
}

// clock is what timing one Write takes.
func (l latencyEvidence) clock() float64 { return l.Median(inWrites+"/"+byNothing, p50) }

// payers says how many of the Writes make the calls, and which share of the time of
// all the slowest that many take.
func (l latencyEvidence) payers(all result.Latency, calls, records int64) []string {
	if calls == 0 || all.Count == 0 {
		return []string{dash, dash}
	}
	part := float64(calls) / float64(records)
	clock := l.clock()
	if math.IsNaN(clock) {
		clock = 0
	}
	return []string{fmt.Sprintf("1 in %s", digits(1/part)), percent(slowestShare(all, part, clock))}
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

func (l latencyEvidence) openLoop() Table {
	t := Table{
		Title: fmt.Sprintf("One Write when %d a second are due", openRate),
		Head:  []string{"write by", "p50", "p99", "p99.9", "longest", "call p50", "call p99", "call p99.9", "longest call", "not served"},
		Notes: []string{
			"counted from when the record was due, and how late the system woke the writer is in it: the arm nothing; call: from the call to its return, which leaves out what a stall did to those that came meanwhile",
		},
	}
	return l.table(t, func(c result.Cell) []string {
		row := append(quantiles(l.all(c.Name, response)), quantiles(l.all(c.Name, service))...)
		return append(row, whole(l.Median(c.Name, Value("unserved_records"))))
	}, inOpenLoop)
}

func (l latencyEvidence) visible() Table {
	t := Table{
		Title: fmt.Sprintf("Until another process can read a record, %d a second", visibleRate),
		Head:  []string{"write by", "predicted longest", "p50", "p99", "longest", "the policy's bound", "beyond it", "records seen"},
		Notes: []string{
			"predicted: until the buffer is full, the interval is over or the file is closed, whichever is first",
			fmt.Sprintf("the reader polls: at the end of the file it pauses for %v, and comes back after %s (p99 %s); a delay holds up to so much", watchPause, duration(l.looks("look_p50_ns")), duration(l.looks("look_p99_ns"))),
			"the bound is by time alone, and is told plus one flush: beyond it is that flush, the waking of both processes and the reader's pause",
		},
	}
	return l.table(t, func(c result.Cell) []string {
		o := outletOf(c)
		longest := l.Summary(c.Name, Value("visible_max_ns"))
		return []string{
			duration(float64(o.wait(c.Records, c.RecordBytes))),
			median(l.Summary(c.Name, Value("visible_p50_ns")), duration),
			duration(l.Median(c.Name, Value("visible_p99_ns"))),
			median(longest, duration),
			timeBound(o.promise()),
			beyond(longest.Median, o.promise()),
			whole(l.Median(c.Name, Value("visible_count"))),
		}
	}, inSight)
}

// looks is the largest of the medians of all watched arms.
func (l latencyEvidence) looks(name string) float64 {
	most := math.NaN()
	for _, c := range l.Arms() {
		if c.Group == inSight {
			most = larger(most, l.Median(c.Name, Value(name)))
		}
	}
	return most
}

// wait is the longest that a record is to wait in memory when they come at the
// visible rate.
func (o outlet) wait(records, size int64) time.Duration {
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
		return dash
	}
	return duration(max(0, longest-float64(b.Time)))
}

func (l latencyEvidence) killed() Table {
	t := Table{
		Title: fmt.Sprintf("What a process that is killed has lost, at %d records a second", killedRate),
		Head:  []string{"write by", "accepted", "readable", "lost", "bytes lost, most", "oldest lost, most", "allowed"},
		Notes: []string{
			"accepted: the Writes that had returned, as the process told by a pipe; the records in the file were whole and in their order, or the trial would have failed",
			"medians of the rounds; most: the largest of them",
		},
	}
	return l.table(t, func(c result.Cell) []string {
		count := func(name string) string { return whole(l.Median(c.Name, Value(name))) }
		return []string{
			count("accepted_records"), count("readable_records"), count("lost_records"),
			whole(l.most(c.Name, "lost_bytes")), duration(l.most(c.Name, "lost_age_ns")), outletOf(c).promise().String(),
		}
	}, inKilled)
}

// most is the largest value of an arm's rounds.
func (l latencyEvidence) most(arm, name string) float64 { return worst(l.Trials(arm), name) }

func (l latencyEvidence) memory() Table {
	t := Table{
		Title: "Memory: buffers × writers",
		Head:  []string{"buffer", "predicted", "heap", "each", "after writing"},
		Notes: []string{
			fmt.Sprintf("predicted: the buffers alone; a Writer of holdfast has two. Then %d times its size goes through each, %v where it has none", passedOn, holdfast.Size(passedUnlimited)),
		},
	}
	return l.table(t, func(c result.Cell) []string {
		heap, after := l.Median(c.Name, Value("heap_bytes")), l.Median(c.Name, Value("heap_written_bytes"))
		predicted := float64(c.Writers) * l.buffers(c)
		return []string{whole(predicted), whole(heap), whole(heap / float64(c.Writers)), whole(after)}
	}, inMemory)
}

// buffers is how much one is to take; NaN for one without limit.
func (l latencyEvidence) buffers(c result.Cell) float64 {
	switch name := short(c.Name); {
	case strings.HasPrefix(name, bytesBuffer):
		return math.NaN()
	case strings.HasPrefix(name, byHoldfast):
		return 2 * float64(c.Policy.Buffer)
	}
	return float64(c.Policy.Buffer)
}

// outletOf is the outlet of an arm.
func outletOf(c result.Cell) outlet {
	name := short(c.Name)
	for _, by := range []string{byBufio, byHoldfast, byFile} {
		if strings.HasPrefix(name, by) {
			return outlet{by, c.Policy}
		}
	}
	return outlet{by: byNothing}
}

func (l latencyEvidence) picture() *chart.Dots {
	d := &chart.Dots{Title: "One Write at full speed", Scale: duration, Series: []string{"p50", "p99", "p99.9", "longest"}}
	for _, c := range l.Arms() {
		if c.Group != inWrites && c.Group != inDurable {
			continue
		}
		r := chart.Row{Label: short(c.Name)}
		for i, of := range []Metric{p50, p99, p999, longestOf} {
			s := l.Summary(c.Name, of)
			if !math.IsNaN(s.Median) {
				r.Points = append(r.Points, chart.Point{Series: i, Value: s.Median, Low: s.Low, High: s.High})
			}
		}
		d.Rows = append(d.Rows, r)
	}
	return d
}

// learnt tells the medians' story: what most Writes gain, what the slowest do, and
// how long another process waits.
func (l latencyEvidence) learnt() string {
	var parts []string
	if r := l.Ratio(smallWrite, plainWrite, p50); !math.IsNaN(r.Ratio) {
		part := fmt.Sprintf("behind a buffer of 4KiB the usual Write takes %s of an unbuffered one", ratio(r))
		if slow := l.Ratio(smallWrite, plainWrite, p999); !math.IsNaN(slow.Ratio) {
			part += fmt.Sprintf(" and the slowest in a thousand %s", ratio(slow))
		}
		parts = append(parts, part)
	}
	small, plain := l.Median(smallSight, Value("visible_p50_ns")), l.Median(plainSight, Value("visible_p50_ns"))
	if !math.IsNaN(small) && !math.IsNaN(plain) {
		parts = append(parts, fmt.Sprintf("another process sees a record after %s instead of %s", duration(small), duration(plain)))
	}
	if lost := l.most(largeKilled, "lost_records"); !math.IsNaN(lost) {
		parts = append(parts, fmt.Sprintf("a killed process takes up to %s accepted records of a buffer of 64KiB with it", whole(lost)))
	}
	return strings.Join(parts, "; ")
}
