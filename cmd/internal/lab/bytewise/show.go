package bytewise

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/cmd/internal/lab/cstdio"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

// planned reports whether an arm is of the run, be it that it can't be had here.
func planned(e study.Evidence, arm string) bool {
	_, ok := e.Cell(arm)
	return ok || e.Missing(arm) != ""
}

// programs are the document's, its order.
var programs = []string{noBuffering, libcBuffering, diyBuffering}

// programsOf are they, and a student's where it was timed.
func programsOf(e study.Evidence, cache result.Cache) []string {
	if _, ok := e.Cell(byteArm(toRead, yours, cache)); ok {
		return append(slices.Clip(programs), yours)
	}
	return programs
}

// showBytes shows the lines of the document with our figures, then the rest.
func showBytes(e study.Evidence) study.Shown {
	caches := cachesShown(e)
	first := caches[0]
	var tables []study.Table
	for _, c := range caches {
		tables = append(tables, linesOfBytes(e, c), savings(e, c))
	}
	tables = append(tables, byteCallsTable(e, first))
	for _, c := range caches {
		tables = append(tables, byteWaysTable(e, toRead, c), byteWaysTable(e, toWrite, c))
	}
	tables = append(tables, setvbufTable(e), readAheadTable(e))
	if len(caches) == 2 {
		tables = append(tables, dropTable(e, first))
	}
	return study.Shown{Tables: tables, Learnt: bytesLearnt(e, first, caches[len(caches)-1])}
}

// cachesShown are the states from which files were read, in their order: at least
// one.
func cachesShown(e study.Evidence) (caches []result.Cache) {
	for _, a := range e.Arms() {
		c, ok := strings.CutPrefix(a.Group, string(toRead)+" ")
		if ok && !slices.Contains(caches, result.Cache(c)) {
			caches = append(caches, result.Cache(c))
		}
	}
	if caches == nil {
		return []result.Cache{result.Warm}
	}
	return caches
}

// notCold says why no arm began with a file that is not cached, or is empty.
func notCold(e study.Evidence) string {
	for _, c := range []result.Cache{result.Cold, result.Dropped, result.Remount, result.TryCold, result.NewFile} {
		if why := e.Missing(byteArm(toRead, goFile, c)); why != "" {
			return fmt.Sprintf("No figures from a cache that is %q: %s.", c, why)
		}
	}
	return ""
}

// linesOfBytes are the published lines with our figures.
func linesOfBytes(e study.Evidence, cache result.Cache) study.Table {
	t := study.Table{
		Title: fmt.Sprintf("One byte a call, %s", cacheWords(cache)),
		Head:  []string{"Program", "Read", "Write"},
		Notes: []string{
			"test-file.txt is each trial's own file; times are medians, from open to close, with the final flush.",
			"The loops are C, called once; diy_buffering is dfread and dfwrite of drill/df.",
		},
	}
	if cell, ok := e.Cell(byteArm(toRead, yours, cache)); ok {
		t.Notes = append(t.Notes, "yours is "+cell.Does+", in a process of its own; its flush and close are one stage.")
	}
	if why := notCold(e); why != "" {
		t.Notes = append(t.Notes, why)
	}
	for _, p := range programsOf(e, cache) {
		t.Rows = append(t.Rows, []string{p, byteLine(e, toRead, p, cache), byteLine(e, toWrite, p, cache)})
	}
	return t
}

// byteLine is a line as the document has it, or why there is none.
func byteLine(e study.Evidence, d direction, way string, cache result.Cache) string {
	name := byteArm(d, way, cache)
	cell, ok := e.Cell(name)
	if !ok {
		return study.NotRun(e, name)
	}
	form := map[direction]string{toRead: "Read %d bytes from test-file.txt in %s ms", toWrite: "Wrote %d bytes to test-file.txt in %s ms"}
	return fmt.Sprintf(form[d], cell.Records, plainMilliseconds(e.Median(name, study.Elapsed)))
}

// plainMilliseconds prints nanoseconds as the documents do where the unit stands
// behind: 717, and 4.41 for less than 100.
func plainMilliseconds(ns float64) string {
	if ns >= 100e6 {
		return strconv.FormatFloat(ns/1e6, 'f', 0, 64)
	}
	return study.Digits(ns / 1e6)
}

// saved is the part of the time of one arm that another saves.
func saved(e study.Evidence, arm, base string) study.Measured {
	c := e.Ratio(arm, base, study.PerRecord)
	return study.Measured{Value: 1 - c.Ratio, Low: 1 - c.High, High: 1 - c.Low, Text: study.Percent}
}

// savings are the published reductions with our figures.
func savings(e study.Evidence, cache result.Cache) study.Table {
	t := study.Table{
		Title: fmt.Sprintf("What the buffer saves, %s", cacheWords(cache)),
		Head:  []string{"Program", "Read", "Write"},
		Notes: []string{"Parts of no_buffering's time, from ratios within each round, with 95 % intervals; rows with a / are ratios of times."},
	}
	row := func(name string, of func(d direction) study.Measured) {
		t.Rows = append(t.Rows, []string{name, of(toRead).OrDash(), of(toWrite).OrDash()})
	}
	for _, p := range programsOf(e, cache)[1:] {
		row(p, func(d direction) study.Measured {
			return saved(e, byteArm(d, p, cache), byteArm(d, noBuffering, cache))
		})
	}
	for _, p := range programsOf(e, cache)[2:] {
		row(p+" / "+libcBuffering, func(d direction) study.Measured {
			return study.Ratio(e.Ratio(byteArm(d, p, cache), byteArm(d, libcBuffering, cache), study.PerRecord))
		})
	}
	return t
}

// tabulate has a row for each of the arms that are of the run; the row of one that can't be
// had here says why.
func tabulate(e study.Evidence, t study.Table, arms []string, columns []study.ArmColumn) study.Table {
	var cells []result.Cell
	for _, arm := range arms {
		if c, _ := e.Cell(arm); planned(e, arm) {
			c.Name = arm
			cells = append(cells, c)
		}
	}
	t = study.Tabulate(t, cells, columns)
	for i, c := range cells {
		if !e.Have(c.Name) {
			clear(t.Rows[i][1:])
			t.Rows[i][1] = study.NotRun(e, c.Name)
		}
	}
	return t
}

// byteWaysTable shows every way in one direction from one state of the cache.
func byteWaysTable(e study.Evidence, d direction, cache result.Cache) study.Table {
	t := study.Table{Title: fmt.Sprintf("Every way to %s, %s", d, cacheWords(cache))}
	base := byteArm(d, noBuffering, cache)
	if inGo := byteArm(d, goFile, cache); !e.Have(base) && e.Have(inGo) {
		base = inGo
		t.Notes = append(t.Notes, "Without the C side, the ratios are to "+goFile+".")
	}
	var arms []string
	for _, w := range byteWays() {
		if w.can(d) {
			arms = append(arms, byteArm(d, w.name, cache))
		}
	}
	time := func(head string, of study.Metric) study.ArmColumn { return e.MedianOf(head, of, study.Duration) }
	columns := []study.ArmColumn{
		{Head: "Way", Cell: func(c result.Cell) string { return strings.Split(c.Name, "/")[1] }},
		e.IntervalOf("ns/byte", study.PerRecord, study.Digits),
		e.MedianOf("MiB/s", study.PerRecord, func(ns float64) string { return study.Digits(1e9 / ns / (1 << 20)) }),
		time("User", study.UserCPU), time("System", study.SystemCPU),
		time("Loop", func(t result.Trial) float64 { return float64(t.Read + t.Write) }),
	}
	if d == toWrite {
		columns = append(columns, time("Flush", func(t result.Trial) float64 { return float64(t.Flush) }))
	}
	return tabulate(e, t, arms, append(columns,
		time("Close", func(t result.Trial) float64 { return float64(t.Close) }),
		e.MedianOf("Allocations", study.Allocations, study.Whole),
		study.ArmColumn{Head: "To the first", Cell: func(c result.Cell) string { return against(e, c.Name, base) }}))
}

// against is the ratio of two arms' times with one of the four words.
func against(e study.Evidence, arm, base string) string {
	if arm == base {
		return "1x"
	}
	return study.Compared(e.Ratio(arm, base, study.PerRecord))
}

// setvbufTable shows stdio's modes and sizes of buffer.
func setvbufTable(e study.Evidence) study.Table {
	t := study.Table{
		Title: "stdio's modes and sizes by setvbuf, one byte a call",
		Notes: []string{"One byte in 251 is a newline, at which _IOLBF writes its buffer. Calls are for the whole trial."},
	}
	arms := slices.DeleteFunc(e.Arms(), func(a result.Cell) bool { return a.Group != setvbufGroup+" "+string(toRead) })
	write := func(c result.Cell) string { return string(toWrite) + strings.TrimPrefix(c.Name, string(toRead)) }
	t = study.Tabulate(t, arms, []study.ArmColumn{
		{Head: "Mode and size", Cell: func(c result.Cell) string { return strings.Split(c.Name, "/")[1] }},
		{Head: "fread ns/byte", Cell: func(c result.Cell) string { return perByteText(e, c.Name) }},
		{Head: "read calls", Cell: func(c result.Cell) string { return callsText(e, toRead, c.Name) }},
		{Head: "fwrite ns/byte", Cell: func(c result.Cell) string { return perByteText(e, write(c)) }},
		{Head: "write calls", Cell: func(c result.Cell) string { return callsText(e, toWrite, write(c)) }},
		{Head: "fwrite to the first", Cell: func(c result.Cell) string { return against(e, write(c), write(arms[0])) }},
	})
	if none := byteArm(toRead, cstdio.None.String(), result.Warm); len(t.Rows) == 0 && planned(e, none) {
		t.Rows = append(t.Rows, []string{"setvbuf", study.NotRun(e, none), "", "", "", ""})
	}
	return t
}

func perByteText(e study.Evidence, arm string) string {
	if m := e.Median(arm, study.PerRecord); !math.IsNaN(m) {
		return study.Digits(m)
	}
	return study.NotRun(e, arm)
}

// callsText are the calls that the kernel counted of an arm in its direction.
func callsText(e study.Evidence, d direction, arm string) string {
	return study.Whole(e.Median(arm, callsIn(d)))
}

// callsIn returns the metric that counts the calls of a direction.
func callsIn(d direction) study.Metric {
	if d == toRead {
		return study.Reads
	}
	return study.Writes
}

// readAheadTable shows what the kernel reads beside what it was asked for.
func readAheadTable(e study.Evidence) study.Table {
	t := study.Table{
		Title: "What the kernel reads of a file that is not cached",
		Notes: []string{"Cached after counts whole pages; read from the disk is what the kernel charged the process (ru_inblock)."},
	}
	return tabulate(e, t, []string{oneByte, accessArm("normal"), accessArm("random"), accessArm("sequential")}, []study.ArmColumn{
		{Head: "posix_fadvise", Cell: func(c result.Cell) string { return strings.TrimPrefix(c.Name, readAheadGroup+"/") }},
		{Head: "Asked for", Cell: func(c result.Cell) string { return study.Whole(float64(c.Records * c.RecordBytes)) }},
		e.MedianOf("Cached after", study.Value(bytesAfter), study.Whole), e.MedianOf("Read from the disk", fromDisk, study.Whole),
		e.MedianOf("Time", study.Elapsed, study.Duration),
		{Head: "To normal", Cell: func(c result.Cell) string {
			if c.Name == oneByte {
				return study.Dash
			}
			return against(e, c.Name, accessArm("normal"))
		}},
	})
}

// fromDisk is how many bytes were read from a disk for the trial.
func fromDisk(t result.Trial) float64 { return float64(t.BlocksIn) * 512 }

// dropTable shows the same test, dropped and not, round by round.
func dropTable(e study.Evidence, cache result.Cache) study.Table {
	t := study.Table{
		Title: "To drop or not to drop: reading, round by round", Head: []string{"Run"},
		Notes: []string{"Pages of the file in the page cache before the clock starts and after it stops. Run to run: the median change from one run to the next."},
	}
	for _, p := range programs[:2] {
		t.Head = append(t.Head, p+", "+string(cache), "pages", p+", warm", "pages")
	}
	for round := range e.Rounds() {
		row := []string{fmt.Sprint(round + 1)}
		for _, p := range programs[:2] {
			row = append(row, dropCells(e, byteArm(toRead, p, cache), round)...)
			row = append(row, dropCells(e, byteArm(toRead, p, result.Warm), round)...)
		}
		t.Rows = append(t.Rows, row)
	}
	spread := []string{"run to run"}
	for _, p := range programs[:2] {
		spread = append(spread, study.Percent(stat.Quantile(steps(e, byteArm(toRead, p, cache)), 0.5)), "",
			study.Percent(stat.Quantile(steps(e, byteArm(toRead, p, result.Warm)), 0.5)), "")
	}
	t.Rows = append(t.Rows, spread)
	if cache == result.Cold {
		t.Notes = append(t.Notes, "Only this file is made cold, and that is checked; --cache drop empties the caches of the whole machine, as root, like the document's script.")
	}
	return t
}

// dropCells are an arm's time and cached pages in a round.
func dropCells(e study.Evidence, arm string, round int) []string {
	trials := e.Trials(arm)
	if round >= len(trials) {
		return []string{study.Dash, ""}
	}
	trial := trials[round]
	before, after := study.Dash, study.Dash
	if trial.Before != nil && trial.Before.Pages > 0 {
		before = study.Whole(float64(trial.Before.Resident))
	}
	if pages, ok := trial.Values[pagesAfter]; ok {
		after = study.Whole(pages)
	}
	return []string{study.Milliseconds(float64(trial.Elapsed)), before + " → " + after}
}

// steps are by how much each run of an arm differs from the one before it: 0.1 for
// 10 %.
func steps(e study.Evidence, arm string) (steps []float64) {
	samples := e.Samples(arm, study.PerRecord)
	for i := 1; i < len(samples); i++ {
		steps = append(steps, math.Expm1(math.Abs(math.Log(samples[i]/samples[i-1]))))
	}
	return steps
}

// byteCallsTable shows the system calls, predicted and as the kernel counted them.
func byteCallsTable(e study.Evidence, cache result.Cache) study.Table {
	t := study.Table{
		Title: "System calls, " + cacheWords(cache),
		Notes: []string{
			"Predicted: one call for each block of the buffer, and one more for a range, which reads to the end. Read and write calls: by /proc/self/io, medians of the trials.",
			"All calls: by tracepoints, in the warm-up, with open, close and the Go runtime's own.",
		},
	}
	arms := func(w byteWay) []result.Cell {
		return e.Cells(byteArm(toRead, w.name, cache), byteArm(toWrite, w.name, cache))
	}
	calls := func(head string, d direction) study.Column[byteWay] {
		return study.Column[byteWay]{Head: head, Cell: func(w byteWay) string { return callsText(e, d, byteArm(d, w.name, cache)) }}
	}
	all := func(head string, d direction) study.Column[byteWay] {
		return study.Column[byteWay]{Head: head, Cell: func(w byteWay) string {
			calls, _, ok := e.Counted(byteArm(d, w.name, cache))
			if !ok {
				return study.Dash
			}
			return study.Whole(float64(calls.Total))
		}}
	}
	ways := slices.DeleteFunc(byteWays(), func(w byteWay) bool { return len(arms(w)) == 0 })
	return study.Tabulate(t, ways, []study.Column[byteWay]{
		{Head: "Way", Cell: func(w byteWay) string { return w.name }},
		{Head: "Reads by", Cell: func(w byteWay) string { return w.calls[toRead] }}, {Head: "Writes by", Cell: func(w byteWay) string { return w.calls[toWrite] }},
		{Head: "Predicted", Cell: func(w byteWay) string { return study.Whole(float64(w.systemCalls(arms(w)[0].Records))) }},
		calls("read calls", toRead), calls("write calls", toWrite), all("All, reading", toRead), all("All, writing", toWrite),
	})
}

// cacheWords says what the page cache holds of the file.
func cacheWords(c result.Cache) string {
	switch c {
	case result.Warm:
		return "all of the file cached"
	case result.TryCold:
		return "none of the file cached, if possible"
	}
	return "none of the file cached"
}

// bytesLearnt is the sentence that the figures make.
func bytesLearnt(e study.Evidence, cache, last result.Cache) string {
	var parts []string
	add := func(form string, m study.Measured) {
		if text := m.String(); text != "" {
			parts = append(parts, fmt.Sprintf(form, text))
		}
	}
	saves := func(way string, d direction) study.Measured {
		return saved(e, byteArm(d, way, cache), byteArm(d, noBuffering, cache))
	}
	toLibc := func(way string, d direction) study.Measured {
		return study.Ratio(e.Ratio(byteArm(d, way, cache), byteArm(d, libcBuffering, cache), study.PerRecord))
	}
	if planned(e, byteArm(toRead, yours, cache)) {
		add("yours saves %s of the time of a read call a byte", saves(yours, toRead))
		add("and %s of the time of a write call a byte", saves(yours, toWrite))
		add("reading takes %s of libc's time", toLibc(yours, toRead))
		add("and writing %s", toLibc(yours, toWrite))
	}
	add("libc's buffer of 4 KiB saves %s of the time of a read call a byte (published: 98 %%)", saves(libcBuffering, toRead))
	add("and %s of the time of a write call a byte (99.8 %%)", saves(libcBuffering, toWrite))
	add("DIY buffering reads in %s of libc's time", toLibc(diyBuffering, toRead))
	if name, ns := fastestByte(e, toRead, last); name != "" {
		parts = append(parts, fmt.Sprintf("%s reads a byte the fastest, in %s", name, study.Duration(ns)))
	}
	if name, ns := fastestByte(e, toWrite, last); name != "" {
		parts = append(parts, fmt.Sprintf("%s writes one in %s", name, study.Duration(ns)))
	}
	return strings.Join(parts, ", ")
}

// fastestByte is the way that ran with the least median.
func fastestByte(e study.Evidence, d direction, cache result.Cache) (way string, ns float64) {
	ns = math.Inf(1)
	for _, w := range byteWays() {
		if m := e.Median(byteArm(d, w.name, cache), study.PerRecord); m < ns {
			way, ns = w.name, m
		}
	}
	return way, ns
}
