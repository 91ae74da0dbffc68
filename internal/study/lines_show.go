package study

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/chart"
	"github.com/holdfast-go/holdfast/internal/result"
	"github.com/holdfast-go/holdfast/internal/stat"
)

func showLines(e Evidence) Shown {
	s := Shown{
		Tables:  []Table{lineRounds(e), lineBenchmarks(e)},
		Picture: linePicture(e),
		Learnt:  lineLearnt(e),
	}
	for _, group := range lineGroups(e) {
		switch group {
		case groupForgotten, groupCrash:
		default:
			s.Tables = append(s.Tables, lineTimes(e, group), lineWork(e, group))
		}
	}
	s.Tables = append(s.Tables, lineForgotten(e), lineLosses(e))
	return s
}

// lineGroups are the groups of the run, in the order of its arms; those of which
// nothing can be run here are the last.
func lineGroups(e Evidence) []string {
	var groups []string
	add := func(arm string) {
		group, _, _ := strings.Cut(arm, "/")
		if !slices.Contains(groups, group) {
			groups = append(groups, group)
		}
	}
	for _, c := range e.Arms() {
		add(c.Name)
	}
	for _, m := range e.run.Header.Missing {
		add(m.Cell)
	}
	return groups
}

// armsOf are the names of a group's arms that were run, and those that were not.
func armsOf(e Evidence, group string) (run, missing []string) {
	for _, c := range e.Arms() {
		if strings.HasPrefix(c.Name, group+"/") {
			run = append(run, c.Name)
		}
	}
	for _, m := range e.run.Header.Missing {
		if strings.HasPrefix(m.Cell, group+"/") {
			missing = append(missing, m.Cell)
		}
	}
	return run, missing
}

// short is the arm's name without its group.
func short(arm string) string {
	_, name, _ := strings.Cut(arm, "/")
	return name
}

// lineRounds is the first published table, a row for each round.
func lineRounds(e Evidence) Table {
	t := Table{Title: lineTitle(e), Head: linesPublished()[0].Head}
	slow, fast := e.Trials(publishedUnbuffered), e.Trials(publishedBuffered)
	rounds := min(len(slow), len(fast))
	if rounds == 0 {
		t.Notes = []string{"nothing was measured of it"}
		return t
	}
	sumSlow, sumFast := 0.0, 0.0
	for i := range rounds {
		a, b := Elapsed(slow[i]), Elapsed(fast[i])
		sumSlow, sumFast = sumSlow+a, sumFast+b
		t.Rows = append(t.Rows, lineRow(fmt.Sprint(i+1), a, b))
	}
	t.Rows = append(t.Rows, lineRow(fmt.Sprintf("Average of %d", rounds), sumSlow/float64(rounds), sumFast/float64(rounds)))
	t.Notes = []string{
		fmt.Sprintf("as published, the two do not write the same: %s and %s bytes; the arms of %s do", whole(float64(slow[0].Size)), whole(float64(fast[0].Size)), groupEqual),
		fmt.Sprintf("write calls: %s and %s; the document says 100,000 and 25–50", whole(e.Median(publishedUnbuffered, writeCalls)), whole(e.Median(publishedBuffered, writeCalls))),
		"the rounds' ratios: " + ratio(e.Ratio(publishedUnbuffered, publishedBuffered, Elapsed)).String(),
	}
	return t
}

func lineTitle(e Evidence) string {
	c, ok := e.Cell(publishedUnbuffered)
	if !ok {
		return "lines"
	}
	return whole(float64(c.Records)) + " lines, measured here"
}

func lineRow(run string, slow, fast float64) []string {
	return []string{run, milliseconds(slow), milliseconds(fast), fmt.Sprintf("%.2fx", slow/fast)}
}

// lineBenchmarks is the second published table.
func lineBenchmarks(e Evidence) Table {
	t := Table{Title: "10,000 records into a temporary file, measured here", Head: linesPublished()[1].Head}
	arms, _ := armsOf(e, groupValues)
	for _, arm := range arms {
		name := short(arm)
		switch arm {
		case valuesWrite:
			name = "BenchmarkWriteNotBuffered"
		case valuesBufio:
			name = "BenchmarkWriteBuffered"
		}
		t.Rows = append(t.Rows, []string{
			name, whole(iterations(e.Trials(arm))), whole(e.Median(arm, perOp)),
			whole(e.Median(arm, Value(bytesPerOp))), whole(e.Median(arm, Value(allocsPerOp))),
		})
	}
	if _, ok := e.Cell(valuesWrite); ok {
		t.Notes = append(t.Notes, fmt.Sprintf("the buffer makes an operation %s as fast (published: 62.3x); write calls of one: %s and %s",
			ratio(e.Ratio(valuesWrite, valuesBufio, perOp)).orDash(),
			whole(e.Median(valuesWrite, callsPerOp)), whole(e.Median(valuesBufio, callsPerOp))))
		t.Notes = append(t.Notes, `"no slice" keeps the constant in one slice: made anew for each record it escapes, and those are the 10,000 allocations`)
	}
	return t
}

// perOp is the time of one operation of the published benchmark.
func perOp(t result.Trial) float64 { return PerRecord(t) * valueRecords }

func callsPerOp(t result.Trial) float64 { return writeCalls(t) * valueRecords / float64(t.Records) }

func iterations(trials []result.Trial) float64 {
	n := int64(0)
	for _, t := range trials {
		n += t.Records / valueRecords
	}
	return float64(n)
}

// writeCalls are those that the kernel counted, and where it does not, those that
// follow from the bytes and the buffer.
func writeCalls(t result.Trial) float64 {
	if t.IO == nil {
		return Value(predictedCalls)(t)
	}
	return Writes(t)
}

// lineDoes says of each group what its arms do.
var lineDoes = map[string]string{
	groupPublished: "as published: the clock ends before the close",
	groupEqual:     "the same lines in all arms, from open to close",
	groupMillion:   "more lines",
	groupValues:    "the published benchmark, two writes a record",
	groupConstant:  `"line\n", the published loop`,
	groupPipe:      "into a pipe, until the other end has read all",
	groupSocket:    "into a TCP connection on the loopback, until the other end has read all",
}

// lineTimes shows how long a group's arms took, and how each stands to the first.
func lineTimes(e Evidence, group string) Table {
	name, _, _ := strings.Cut(group, " ")
	t := Table{
		Title: group + ": " + lineDoes[name],
		Head:  []string{"Arm", "Records", "Wall", "A record", "Without formatting", "MiB/s", "Times as fast", "Verdict"},
		Apart: 6,
		Notes: lineCostNotes(e, group),
	}
	arms, missing := armsOf(e, group)
	for i, arm := range arms {
		row := lineTime(e, arm)
		if i == 0 {
			row = append(row, "1x", "")
		} else {
			row = append(row, ratio(e.Ratio(arms[0], arm, PerRecord)).String(), string(e.Ratio(arm, arms[0], PerRecord).Verdict))
		}
		t.Rows = append(t.Rows, row)
	}
	for _, arm := range missing {
		t.Rows = append(t.Rows, []string{short(arm), notRun(e, arm)})
	}
	return t
}

func lineTime(e Evidence, arm string) []string {
	c, _ := e.Cell(arm)
	return []string{
		short(arm), whole(float64(c.Records)), duration(e.Median(arm, Elapsed)),
		median(e.Summary(arm, PerRecord), duration), netText(lineNet(e, arm).Median), digits(e.Median(arm, mebibytes)),
	}
}

// netText prints what is left of a time without the formatting.
func netText(ns float64) string {
	if ns < 0 {
		return "noise" // the formatting alone took longer
	}
	return duration(ns)
}

// lineWork shows what a record of a group's arms took of the machine.
func lineWork(e Evidence, group string) Table {
	t := Table{
		Title: group + ": what a record takes of the processor and the memory, and write calls in all",
		Head:  []string{"Arm", "User", "System", "Calls predicted", "Calls observed", "Allocations"},
	}
	arms, _ := armsOf(e, group)
	for _, arm := range arms {
		median := func(of Metric) float64 { return e.Median(arm, of) }
		t.Rows = append(t.Rows, []string{
			short(arm), duration(median(userTime)), duration(median(systemTime)),
			whole(median(Value(predictedCalls))), whole(median(Writes)),
			digits(math.Round(median(each(allocations))*100) / 100),
		})
	}
	return t
}

func lineCostNotes(e Evidence, group string) []string {
	switch {
	case group == groupEqual && e.have(equalWrite, equalFormat, equalBufio4):
		gross, net := e.Ratio(equalWrite, equalBufio4, PerRecord), netRatio(e, equalWrite, equalBufio4)
		return []string{
			fmt.Sprintf("one write a line against bufio 4KiB: %v with the formatting that both do; without it %v", ratio(gross), orNoise(figure(net, times))),
			"a flush by time every second has nothing to do in a run that is shorter: what it costs is its lock",
		}
	case group == groupMillion && e.have(millionWrite):
		if c, _ := e.Cell(millionWrite); c.Records < 1_000_000 {
			return []string{fmt.Sprintf("%s lines in this preset; --full writes 1,000,000, and a line takes the same time", whole(float64(c.Records)))}
		}
	}
	return nil
}

// orNoise is the figure, or why there is none.
func orNoise(m measured) string {
	if math.IsNaN(m.value) {
		return "the noise is larger than the rest"
	}
	return m.String()
}

// formatOf is the arm that shows what the formatting of another takes, or empty.
func formatOf(e Evidence, arm string) string {
	group, _, _ := strings.Cut(arm, "/")
	switch group {
	case groupMillion, groupPipe, groupSocket:
		group = groupEqual
	}
	if format := group + "/format"; format != arm && e.have(format) {
		return format
	}
	return ""
}

// netSamples are the times of a record of the arm without the formatting, round by
// round; NaN where that was not measured.
func netSamples(e Evidence, arm string) []float64 {
	net := e.samples(arm, PerRecord)
	format := e.samples(formatOf(e, arm), PerRecord)
	for i := range net {
		if i < len(format) {
			net[i] -= format[i]
		} else {
			net[i] = math.NaN()
		}
	}
	return net
}

func lineNet(e Evidence, arm string) stat.Summary { return stat.Summarize(netSamples(e, arm)) }

// netRatio is how many times as long one arm takes as another, without the
// formatting of both; NaN where in a round nothing is left of one of them: then the
// noise is larger than what is asked for.
func netRatio(e Evidence, over, under string) stat.Summary {
	net, by := netSamples(e, over), netSamples(e, under)
	for i := range net {
		if net[i] <= 0 || by[i] <= 0 {
			net[i] = math.NaN()
		}
		net[i] /= by[i]
	}
	return stat.Summarize(net)
}

// lineForgotten shows what a close without a flush loses.
func lineForgotten(e Evidence) Table {
	t := Table{Title: "closed without a flush", Head: []string{"Writer", "Bytes written", "Bytes lost"}}
	arms, _ := armsOf(e, groupForgotten)
	for _, arm := range arms {
		size := e.Median(arm, func(t result.Trial) float64 { return float64(t.Size) })
		t.Rows = append(t.Rows, []string{short(arm), whole(size), whole(e.Median(arm, Value(lostBytes)))})
	}
	return t
}

// lineLosses shows what the killed writers have lost.
func lineLosses(e Evidence) Table {
	t := Table{
		Title: "killed in the middle (SIGKILL)",
		Head:  []string{"Writer", "Kills", "Lines accepted", "Lines lost", "At most", "Bytes at most", "Oldest at most", "The policy allows", "Kept"},
		Notes: []string{
			fmt.Sprintf("a second process writes %d lines a millisecond and tells of each that was accepted; what it has told of and the file does not hold is lost", killedLines),
			"a kill takes only the process's memory: what a power cut would take besides is what the kernel has not written, which one write a line does not change",
		},
	}
	arms, _ := armsOf(e, groupCrash)
	for _, arm := range arms {
		c, _ := e.Cell(arm)
		trials := e.Trials(arm)
		allows, kept := "promises nothing", ""
		if isOurs(arm) {
			bound := c.Policy.Loss().Process
			allows, kept = bound.String(), "kept"
			if !keeps(trials, bound) {
				kept = "broken"
			}
		}
		t.Rows = append(t.Rows, []string{
			short(arm), whole(float64(len(trials))), whole(e.Median(arm, Value(acceptedLines))), whole(e.Median(arm, Value(lostLines))),
			whole(worst(trials, lostLines)), whole(worst(trials, lostBytes)), duration(worst(trials, lostAge)), allows, kept,
		})
	}
	return t
}

// isOurs reports whether a Writer of this module does the arm's work.
func isOurs(arm string) bool { return strings.HasPrefix(short(arm), string(ours)) }

// lineFlight is what a bound by time may be exceeded by: the flush that was in
// flight, and how late a timer may be on a busy machine.
const lineFlight = 20 * time.Millisecond

// keeps reports whether no trial lost more than the bound.
func keeps(trials []result.Trial, b holdfast.Bound) bool {
	if b.Bytes != holdfast.Unlimited && worst(trials, lostBytes) > float64(b.Bytes) {
		return false
	}
	return b.None() || b.Time == holdfast.Unlimited || worst(trials, lostAge) <= float64(b.Time+lineFlight)
}

// worst returns the largest value of that name, NaN if there is none.
func worst(trials []result.Trial, name string) float64 {
	most := math.NaN()
	for _, t := range trials {
		most = larger(most, Value(name)(t))
	}
	return most
}

// larger returns the larger of two figures, or the one of them that is known.
func larger(a, b float64) float64 {
	if math.IsNaN(a) || b > a {
		return b
	}
	return a
}

func linePicture(e Evidence) *chart.Dots {
	d := &chart.Dots{Title: "time of a line, by how it is written", Scale: duration, Series: []string{"a line, with its formatting"}}
	for _, group := range lineGroups(e) {
		if !strings.HasPrefix(group, groupEqual) {
			continue
		}
		arms, _ := armsOf(e, group)
		for _, arm := range arms {
			s := e.Summary(arm, PerRecord)
			d.Rows = append(d.Rows, chart.Row{Label: arm, Points: []chart.Point{{Value: s.Median, Low: s.Low, High: s.High}}})
		}
	}
	if len(d.Rows) == 0 {
		return nil
	}
	return d
}

// formatPart is the part of an arm's time that another takes for the formatting alone; NaN
// where one of them was not run, or the noise was larger than the difference.
func formatPart(e Evidence, format, arm string) float64 {
	if !e.have(format, arm) {
		return math.NaN()
	}
	return possible(e.Median(format, PerRecord) / e.Median(arm, PerRecord))
}

// lineLearnt says what there is to say of the arms that were run.
func lineLearnt(e Evidence) string {
	var parts []string
	if e.have(publishedUnbuffered, publishedBuffered) {
		parts = append(parts, fmt.Sprintf("one write a line takes %v as long as a bufio.Writer, where %s was published",
			ratio(e.Ratio(publishedUnbuffered, publishedBuffered, Elapsed)), "~20x"))
	}
	if share := formatPart(e, equalFormat, equalBufio4); !math.IsNaN(share) {
		parts = append(parts, fmt.Sprintf("%s of a buffered line's time is its formatting", percent(share)))
	}
	if e.have(crashWrite, crashBufio) {
		parts = append(parts, fmt.Sprintf("a kill took up to %s accepted lines of the buffer and %s of the writer without one",
			whole(worst(e.Trials(crashBufio), lostLines)), whole(worst(e.Trials(crashWrite), lostLines))))
	}
	return strings.Join(parts, "; ")
}
