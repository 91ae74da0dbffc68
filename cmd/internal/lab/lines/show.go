package lines

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/chart"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

func showLines(e study.Evidence) study.Shown {
	s := study.Shown{
		Tables:  []study.Table{lineRounds(e), linePaths(e), lineBenchmarks(e), lineModel(e), lineTouched(e), lineExtents(e)},
		Picture: linePicture(e),
		Learnt:  lineLearnt(e),
	}
	for _, group := range lineGroups(e) {
		switch group {
		case groupForgotten, groupCrash, groupTouched:
		default:
			s.Tables = append(s.Tables, lineTimes(e, group), lineWork(e, group))
		}
	}
	forgotten := study.Tabulate(study.Table{Title: "closed without a flush"}, cellsOf(e, groupForgotten), []study.ArmColumn{
		writerColumn, e.MedianOf("Bytes written", func(t result.Trial) float64 { return float64(t.Size) }, study.Whole),
		e.MedianOf("Bytes lost", study.Value(lostBytes), study.Whole),
	})
	// The published program prints three lines a run.
	own := study.Table{Title: "as the published program prints it", Head: []string{"Run", "", "", ""}}
	slow, fast := e.Trials(publishedUnbuffered), e.Trials(publishedBuffered)
	for i := range min(len(slow), len(fast)) {
		a, b := study.Elapsed(slow[i]), study.Elapsed(fast[i])
		own.Rows = append(own.Rows, []string{fmt.Sprint(i + 1), "Unbuffered write time: " + study.Milliseconds(a), "Buffered write time: " + study.Milliseconds(b), fmt.Sprintf("Speedup: %.2fx faster", a/b)})
	}
	s.Tables = append(s.Tables, forgotten, lineLosses(e), own)
	return s
}

// lineGroups are the groups of the run, in the order of its arms; groups that can't be
// run here come last.
func lineGroups(e study.Evidence) []string {
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
	for _, m := range e.Run.Header.Missing {
		add(m.Cell)
	}
	return groups
}

// cellsOf are a group's arms that were run.
func cellsOf(e study.Evidence, group string) []result.Cell {
	return slices.DeleteFunc(e.Arms(), func(c result.Cell) bool { return !strings.HasPrefix(c.Name, group+"/") })
}

// writerColumn and armColumn name an arm without its group.
var (
	writerColumn = study.ArmColumn{Head: "Writer", Cell: shortName}
	armColumn    = study.ArmColumn{Head: "Arm", Cell: shortName}
)

func shortName(c result.Cell) string { return study.Short(c.Name) }

// lineRounds is the first published table, a row for each round.
func lineRounds(e study.Evidence) study.Table {
	t := study.Table{Title: "lines", Head: linesPublished()[0].Head}
	if c, ok := e.Cell(publishedUnbuffered); ok {
		t.Title = study.Whole(float64(c.Records)) + " lines, measured here"
	}
	slow, fast := e.Trials(publishedUnbuffered), e.Trials(publishedBuffered)
	rounds := min(len(slow), len(fast))
	if rounds == 0 {
		t.Notes = []string{"not measured"}
		return t
	}
	sumSlow, sumFast := 0.0, 0.0
	for i := range rounds {
		a, b := study.Elapsed(slow[i]), study.Elapsed(fast[i])
		sumSlow, sumFast = sumSlow+a, sumFast+b
		t.Rows = append(t.Rows, lineRow(fmt.Sprint(i+1), a, b))
	}
	t.Rows = append(t.Rows, lineRow(fmt.Sprintf("Average of %d", rounds), sumSlow/float64(rounds), sumFast/float64(rounds)))
	t.Notes = []string{
		fmt.Sprintf("as published, the two write %s and %s bytes; the arms of %s write the same", study.Whole(float64(slow[0].Size)), study.Whole(float64(fast[0].Size)), groupEqual),
		fmt.Sprintf("write calls: %s and %s; the document says 100,000 and 25–50", study.Whole(e.Median(publishedUnbuffered, writeCalls)), study.Whole(e.Median(publishedBuffered, writeCalls))),
		"the rounds' ratios: " + study.Ratio(e.Ratio(publishedUnbuffered, publishedBuffered, study.Elapsed)).String(),
	}
	return t
}

func lineRow(run string, slow, fast float64) []string {
	return []string{run, study.Milliseconds(slow), study.Milliseconds(fast), fmt.Sprintf("%.2fx", slow/fast)}
}

// lineBenchmarks is the second published table.
func lineBenchmarks(e study.Evidence) study.Table {
	heads := linesPublished()[1].Head
	t := study.Tabulate(study.Table{Title: "10,000 records into a temporary file, measured here"}, cellsOf(e, groupValues), []study.ArmColumn{
		{Head: heads[0], Cell: func(c result.Cell) string {
			published := map[string]string{valuesWrite: "BenchmarkWriteNotBuffered", valuesBufio: "BenchmarkWriteBuffered"}
			return cmp.Or(published[c.Name], study.Short(c.Name))
		}},
		{Head: heads[1], Cell: func(c result.Cell) string {
			n := int64(0)
			for _, t := range e.Trials(c.Name) {
				n += t.Records / valueRecords
			}
			return study.Whole(float64(n))
		}},
		e.MedianOf(heads[2], perOp, study.Whole),
		e.MedianOf(heads[3], study.Value(study.BytesPerOp), study.Whole), e.MedianOf(heads[4], study.Value(study.AllocsPerOp), study.Whole),
	})
	if _, ok := e.Cell(valuesWrite); ok {
		t.Notes = append(t.Notes, fmt.Sprintf("the buffer makes an operation %s as fast (published: 62.3x); write calls of one: %s and %s",
			study.Ratio(e.Ratio(valuesWrite, valuesBufio, perOp)).OrDash(),
			study.Whole(e.Median(valuesWrite, callsPerOp)), study.Whole(e.Median(valuesBufio, callsPerOp))))
		t.Notes = append(t.Notes, `"no slice" makes the slice of the constant once; a slice made for each record escapes to the heap, which explains the 10,000 allocations`)
	}
	return t
}

// perOp is the time of one operation of the published benchmark.
func perOp(t result.Trial) float64 { return study.PerRecord(t) * valueRecords }

func callsPerOp(t result.Trial) float64 { return writeCalls(t) * valueRecords / float64(t.Records) }

// writeCalls is the kernel's count; where it keeps none, the count that follows from the bytes and
// the buffer.
func writeCalls(t result.Trial) float64 {
	if t.IO == nil {
		return study.Value(predictedCalls)(t)
	}
	return study.Writes(t)
}

// lineDoes says of each group what its arms do.
func lineDoes() map[string]string {
	return map[string]string{
		groupPublished: "as published: the clock ends before the close",
		groupEqual:     "the same lines in all arms, from open to close",
		groupMillion:   "more lines",
		groupValues:    "the published benchmark, two writes a record",
		groupConstant:  `"line\n", the published loop`,
		groupPipe:      "into a pipe, until the other end has read all",
		groupSocket:    "into a TCP connection on the loopback, until the other end has read all",
		groupBursty:    "bufio flushed after each burst of lines, as if a reader waited",
		groupLoaded:    "beside two busy processes for each processor",
		groupHTTP:      "responses of 25 short writes into a TCP connection, each flushed at its end",
		groupExtents:   "4 MB, synced at the end",
	}
}

// lineTimes shows how long a group's arms took, and how each stands to the first.
func lineTimes(e study.Evidence, group string) study.Table {
	name, _, _ := strings.Cut(group, " ")
	arms := cellsOf(e, group)
	t := study.Tabulate(study.Table{Title: group + ": " + lineDoes()[name], Apart: 6, Notes: lineCostNotes(e, group)}, arms, []study.ArmColumn{
		armColumn, study.Records("Records"), e.MedianOf("Wall", study.Elapsed, study.Duration), e.IntervalOf("A record", study.PerRecord, study.Duration),
		{Head: "Without formatting", Cell: func(c result.Cell) string { return netText(lineNet(e, c.Name).Median) }},
		e.MedianOf("MiB/s", study.Mebibytes, study.Digits),
		{Head: "Times as fast", Cell: func(c result.Cell) string {
			if c.Name == arms[0].Name {
				return "1x"
			}
			return study.Ratio(e.Ratio(arms[0].Name, c.Name, study.PerRecord)).String()
		}},
		{Head: "Verdict", Cell: func(c result.Cell) string {
			if c.Name == arms[0].Name {
				return ""
			}
			return string(e.Ratio(c.Name, arms[0].Name, study.PerRecord).Verdict)
		}},
	})
	for _, m := range e.Run.Header.Missing {
		if strings.HasPrefix(m.Cell, group+"/") {
			t.Rows = append(t.Rows, []string{study.Short(m.Cell), study.NotRun(e, m.Cell)})
		}
	}
	return t
}

// netText prints what is left of a time without the formatting.
func netText(ns float64) string {
	if ns < 0 {
		return "noise" // the formatting alone took longer
	}
	return study.Duration(ns)
}

// lineWork shows what a record of a group's arms took of the machine.
func lineWork(e study.Evidence, group string) study.Table {
	t := study.Table{Title: group + ": what a record takes of the processor and the memory, and write calls in all"}
	cents := func(x float64) string { return study.Digits(math.Round(x*100) / 100) }
	return study.Tabulate(t, cellsOf(e, group), []study.ArmColumn{
		armColumn, e.MedianOf("User", study.UserTime, study.Duration), e.MedianOf("System", study.SystemTime, study.Duration),
		e.MedianOf("Calls predicted", study.Value(predictedCalls), study.Whole), e.MedianOf("Calls observed", study.Writes, study.Whole),
		e.MedianOf("Allocations", study.Each(study.Allocations), cents),
	})
}

func lineCostNotes(e study.Evidence, group string) []string {
	switch {
	case group == groupEqual && e.Have(equalWrite, equalFormat, equalBufio4):
		gross, net := e.Ratio(equalWrite, equalBufio4, study.PerRecord), netRatio(e, equalWrite, equalBufio4)
		return []string{
			fmt.Sprintf("one write a line against bufio 4KiB: %v with the formatting that both do; without it %v", study.Ratio(gross), orNoise(study.Figure(net, study.Times))),
			"a run of less than a second never flushes by time: what shows is the cost of its lock",
		}
	case group == groupMillion && e.Have(millionWrite):
		if c, _ := e.Cell(millionWrite); c.Records < 1_000_000 {
			return []string{fmt.Sprintf("%s lines with --quick, else 1,000,000; a line takes the same time", study.Whole(float64(c.Records)))}
		}
	}
	return nil
}

// orNoise is the figure, or why there is none.
func orNoise(m study.Measured) string {
	if math.IsNaN(m.Value) {
		return "the noise is larger than the rest"
	}
	return m.String()
}

// formatOf is the arm that shows what the formatting of another takes, or empty.
func formatOf(e study.Evidence, arm string) string {
	group, _, _ := strings.Cut(arm, "/")
	switch group {
	case groupMillion, groupPipe, groupSocket, groupBursty, groupExtents:
		group = groupEqual
	}
	if format := group + "/format"; format != arm && e.Have(format) {
		return format
	}
	return ""
}

// netSamples are the times of a record of the arm without the formatting, round by
// round; NaN where that was not measured.
func netSamples(e study.Evidence, arm string) []float64 {
	net := e.Samples(arm, study.PerRecord)
	format := e.Samples(formatOf(e, arm), study.PerRecord)
	for i := range net {
		if i < len(format) {
			net[i] -= format[i]
		} else {
			net[i] = math.NaN()
		}
	}
	return net
}

func lineNet(e study.Evidence, arm string) stat.Summary { return stat.Summarize(netSamples(e, arm)) }

// netRatio is how many times as long one arm takes as another, without the
// formatting of both. It is NaN where in a round nothing is left of one of them:
// then the noise is larger than the difference.
func netRatio(e study.Evidence, over, under string) stat.Summary {
	net, by := netSamples(e, over), netSamples(e, under)
	for i := range net {
		if net[i] <= 0 || by[i] <= 0 {
			net[i] = math.NaN()
		}
		net[i] /= by[i]
	}
	return stat.Summarize(net)
}

// lineLosses shows what the killed writers have lost.
func lineLosses(e study.Evidence) study.Table {
	t := study.Table{
		Title: "killed in the middle (SIGKILL)",
		Notes: []string{
			fmt.Sprintf("a second process writes %d lines a millisecond and reports each accepted line; a reported line that the file does not hold is lost", killedLines),
			"a kill takes only the process's memory; a power cut also takes what the kernel has not written, with one write a line too",
		},
	}
	return study.Tabulate(t, cellsOf(e, groupCrash), []study.ArmColumn{
		writerColumn,
		{Head: "Kills", Cell: func(c result.Cell) string { return study.Whole(float64(len(e.Trials(c.Name)))) }},
		e.MedianOf("Lines accepted", study.Value(acceptedLines), study.Whole), e.MedianOf("Lines lost", study.Value(lostLines), study.Whole),
		e.WorstOf("At most", lostLines, study.Whole), e.WorstOf("Bytes at most", lostBytes, study.Whole), e.WorstOf("Oldest at most", lostAge, study.Duration),
		{Head: "The policy allows", Cell: func(c result.Cell) string {
			if !isOurs(c.Name) {
				return "promises nothing"
			}
			return c.Policy.Loss().Process.String()
		}},
		{Head: "Kept", Cell: func(c result.Cell) string {
			switch {
			case !isOurs(c.Name):
				return ""
			case keeps(e.Trials(c.Name), c.Policy.Loss().Process):
				return "kept"
			}
			return "broken"
		}},
	})
}

// isOurs reports whether a Writer of this module does the arm's work.
func isOurs(arm string) bool { return strings.HasPrefix(study.Short(arm), string(study.Ours)) }

// lineFlight is by how much a bound by time may be exceeded. It covers the
// flush in flight, and how late a timer may be on a busy machine.
const lineFlight = 20 * time.Millisecond

// keeps reports whether no trial lost more than the bound.
func keeps(trials []result.Trial, b holdfast.Bound) bool {
	if b.Bytes != holdfast.Unlimited && study.Worst(trials, lostBytes) > float64(b.Bytes) {
		return false
	}
	return b.None() || b.Time == holdfast.Unlimited || study.Worst(trials, lostAge) <= float64(b.Time+lineFlight)
}

// linePicture has a row for each way to write a line, with its published time under the dot.
func linePicture(e study.Evidence) *chart.Dots {
	d := &chart.Dots{Title: "time of a line, by how it is written", Scale: study.Duration, Series: []string{"measured here", "published"}}
	add := func(band, arm string, published ...chart.Point) {
		if e.Have(arm) {
			d.Rows = append(d.Rows, chart.Row{Label: arm, Band: band, Points: append(published, study.Point(0, e.Summary(arm, study.PerRecord)))})
		}
	}
	for i, arm := range []string{publishedUnbuffered, publishedBuffered} {
		add("published: "+study.FileIOExperiment, arm, publishedRuns(i+1))
	}
	for i, arm := range []string{valuesWrite, valuesBufio} {
		ns, err := strconv.ParseFloat(strings.ReplaceAll(linesPublished()[1].Rows[i][2], ",", ""), 64)
		if err != nil {
			ns = math.NaN()
		}
		add("published: "+study.EfficientBuffering, arm, chart.Point{Series: 1, Value: ns / valueRecords, Low: math.NaN(), High: math.NaN()})
	}
	for _, group := range lineGroups(e) {
		if !strings.HasPrefix(group, groupEqual) {
			continue
		}
		for _, c := range cellsOf(e, group) {
			add("the same lines in all", c.Name)
		}
	}
	for i := len(d.Rows) - 1; i > 0; i-- { // a band begins at its first row
		if d.Rows[i].Band == d.Rows[i-1].Band {
			d.Rows[i].Band = ""
		}
	}
	if len(d.Rows) == 0 {
		return nil
	}
	return d
}

// publishedRuns returns the time of a line in the published runs, of a column: from the shortest to the longest.
func publishedRuns(column int) chart.Point {
	const lines = 100_000
	p := chart.Point{Series: 1, Value: math.NaN(), Low: math.Inf(1), High: math.Inf(-1)}
	for _, row := range linesPublished()[0].Rows {
		if took, err := time.ParseDuration(row[column]); err == nil { // the average is none of them
			ns := float64(took) / lines
			p.Low, p.High = min(p.Low, ns), max(p.High, ns)
		}
	}
	return p
}

// formatPart is the part of an arm's time that another takes for the formatting alone. It
// is NaN where one of them was not run, or the noise was larger than the difference.
func formatPart(e study.Evidence, format, arm string) float64 {
	if !e.Have(format, arm) {
		return math.NaN()
	}
	return study.Possible(e.Median(format, study.PerRecord) / e.Median(arm, study.PerRecord))
}

// lineLearnt says what there is to say of the arms that were run.
func lineLearnt(e study.Evidence) string {
	var parts []string
	if e.Have(publishedUnbuffered, publishedBuffered) {
		parts = append(parts, fmt.Sprintf("one write a line takes %v as long as a bufio.Writer (published: %s)",
			study.Ratio(e.Ratio(publishedUnbuffered, publishedBuffered, study.Elapsed)), "~20x"))
	}
	if share := formatPart(e, equalFormat, equalBufio4); !math.IsNaN(share) {
		parts = append(parts, fmt.Sprintf("%s of a buffered line's time is its formatting", study.Percent(share)))
	}
	if e.Have(crashWrite, crashBufio) {
		parts = append(parts, fmt.Sprintf("a kill took up to %s accepted lines of the buffer and %s of the writer without one",
			study.Whole(study.Worst(e.Trials(crashBufio), lostLines)), study.Whole(study.Worst(e.Trials(crashWrite), lostLines))))
	}
	return strings.Join(parts, "; ")
}

// lineTouched shows what a write updates, beside what the document says.
func lineTouched(e study.Evidence) study.Table {
	t := study.Table{Title: "What a write updates", Head: []string{"Of the file", "published", "here"}}
	if _, ok := e.Cell(touchedWrite); !ok {
		return t
	}
	for _, of := range [][2]string{{"size", sizeChanged}, {"modification time", modifiedChanged}, {"access time", accessedChanged}} {
		here := map[float64]string{0: "left as it was", 1: "updated"}[e.Median(touchedWrite, study.Value(of[1]))]
		t.Rows = append(t.Rows, []string{of[0], "updated", here})
	}
	t.Notes = []string{fmt.Sprintf("By fstat(2) before and after one write to a file with times of 2001. A page has %s bytes here, and a block of this file system %s.",
		study.Whole(e.Median(touchedWrite, study.Value(pageBytes))), study.Whole(e.Median(touchedWrite, study.Value(blockBytes))))}
	return t
}

// lineExtents shows in how many pieces the files lie on the disk.
func lineExtents(e study.Evidence) study.Table {
	t := study.Table{Title: "Pieces on the disk, after a sync", Notes: []string{"Extents by FS_IOC_FIEMAP: a dash where the file system does not say."}}
	return study.Tabulate(t, cellsOf(e, groupExtents), []study.ArmColumn{
		{Head: "Way", Cell: shortName}, e.MedianOf("Write calls", writeCalls, study.Whole),
		{Head: "Extents", Cell: func(c result.Cell) string { return e.AllTrials(c.Name, study.Value(extentsTold), study.Whole).OrDash() }},
	})
}

// linePaths draws what a line goes through, with the calls that were counted.
func linePaths(e study.Evidence) study.Table {
	t := study.Table{Title: "The two write paths", Head: []string{"Mode", "What the lines go through"}}
	if !e.Have(publishedUnbuffered, publishedBuffered) {
		return t
	}
	n := study.Whole(e.Median(publishedUnbuffered, func(t result.Trial) float64 { return float64(t.Records) }))
	calls := func(arm string) string { return study.Whole(math.Round(e.Median(arm, writeCalls))) }
	t.Rows = [][]string{
		{"unbuffered", fmt.Sprintf("Sprintf ×%s --> write(2) ×%s --> page cache ..> disk, later", n, calls(publishedUnbuffered))},
		{"buffered", fmt.Sprintf("Sprintf ×%s --> buffer of 4 KiB --> write(2) ×%s --> page cache ..> disk, later", n, calls(publishedBuffered))},
	}
	t.Notes = []string{"A process that dies loses what is in its buffer; a power cut also what is in the page cache alone."}
	return t
}
