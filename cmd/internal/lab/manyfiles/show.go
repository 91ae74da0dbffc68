package manyfiles

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/chart"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

func showFiles(e study.Evidence) study.Shown {
	return study.Shown{
		Tables: []study.Table{
			filesBySize(e), filesTotals(e), filesRetriesTable(e), filesBatchesTable(e),
			filesWorkers(e), filesCPUs(e), filesSplit(e), filesDurable(e), filesHandles(e),
		},
		Picture: filesPicture(e),
		Learnt:  filesLearnt(e),
	}
}

// sizeWays are the ways that are shown at each size, the one that the others are
// held against first.
func sizeWays() []string {
	return []string{byPool(perCPU), byFiles}
}

// sizesMade are the numbers of files of the run's groups, in order.
func sizesMade(e study.Evidence) []int {
	var sizes []int
	for _, c := range e.Arms() {
		number, isSize := strings.CutSuffix(c.Group, " files")
		if n, err := strconv.Atoi(number); isSize && err == nil && !slices.Contains(sizes, n) {
			sizes = append(sizes, n)
		}
	}
	slices.Sort(sizes)
	return sizes
}

// filesBySize has the published columns, and further ones of a file.
func filesBySize(e study.Evidence) study.Table {
	t := study.Table{
		Title: "Files of 12 bytes, published and measured here",
		Head:  []string{"Files", "By", "Runs", "Time per op (ns)", "Time per file (µs)", "B/op", "Allocs/op", "Writes a second", "KB a file", "Time against package os"},
		Notes: []string{
			"from 100 files on, the published times are of the writing alone: the files are opened before the clock starts and closed after it has stopped, as in the ways \"open before\"; all others make, write and close them in the clock",
			"the paths are made before; starting and ending the pool or the set is in the time and the memory",
			"published memory is mostly a bufio.Writer of 4 KiB for each 12 bytes; the way with a bufio.Writer for each shows it",
		},
	}
	// These rows are of the operation that removes its files.
	var rows [][]string
	for _, arm := range []string{twoByFile, twoByBufio, twoByFiles} {
		if _, ok := e.Cell(arm); !ok {
			continue
		}
		if rows == nil {
			rows = append(rows, publishedRow(publishedRuns[0]))
		}
		against := study.Dash
		if arm != twoByFile {
			against = study.Compared(e.Ratio(arm, twoByFile, study.PerRecord))
		}
		_, by, _ := strings.Cut(arm, " files ")
		rows = append(rows, append(filesFigures(e, arm, by, 2), against))
	}
	t.Rows = append(t.Rows, rows...)
	for _, n := range sizesMade(e) {
		at := slices.IndexFunc(publishedRuns, func(p publishedRun) bool { return p.files == n })
		if at > 0 {
			t.Rows = append(t.Rows, publishedRow(publishedRuns[at]))
		}
		for _, way := range slices.Concat([]string{openByFile, openByBufio, openByFiles}, sizeWays()) {
			if row := filesRow(e, n, way); row != nil {
				t.Rows = append(t.Rows, row)
			}
		}
	}
	return t
}

// heldAgainst is the way of the same work that another is held against, or empty.
func heldAgainst(way string) string {
	switch way {
	case openByFiles, openByBufio:
		return openByFile
	case openByFile, sizeWays()[0]:
		return ""
	}
	return sizeWays()[0]
}

func publishedRow(p publishedRun) []string {
	n := float64(p.files)
	row := append([]string{study.Whole(n), "published"}, p.row()[1:]...)
	return append(row, study.Whole(n/p.ns*1e9), study.Digits(p.bytes/n/1024), study.Dash)
}

func filesRow(e study.Evidence, n int, way string) []string {
	arm := filesArm(n, way)
	if _, ok := e.Cell(arm); !ok {
		return nil
	}
	against := study.Dash
	if base := heldAgainst(way); base != "" {
		against = study.Compared(e.Ratio(arm, filesArm(n, base), study.PerRecord))
	}
	return append(filesFigures(e, arm, way, n), against)
}

// filesFigures are the published columns of an arm, and two more.
func filesFigures(e study.Evidence, arm, by string, n int) []string {
	op := func(of study.Metric) float64 { return e.Median(arm, study.Each(of)) * float64(n) }
	memory, count := op(study.Allocated), op(study.Allocations)
	if known := e.Median(arm, study.Value(study.BytesPerOp)); !math.IsNaN(known) {
		memory, count = known, e.Median(arm, study.Value(study.AllocsPerOp))
	}
	// All rounds count.
	made := int64(0)
	for _, t := range e.Trials(arm) {
		made += t.Records
	}
	return []string{
		study.Whole(float64(n)), by, study.Whole(float64(made) / float64(n)), study.Whole(op(study.Elapsed)), study.Median(e.Summary(arm, study.PerRecord), microseconds),
		study.Whole(memory), study.Whole(count), study.Whole(e.Median(arm, writesPerSecond)), study.Digits(memory / float64(n) / 1024),
	}
}

// microseconds prints nanoseconds without a unit.
func microseconds(ns float64) string { return study.Digits(ns / 1e3) }

// filesTotals sums up the published sizes that were run here.
func filesTotals(e study.Evidence) study.Table {
	t := study.Table{
		Title: "All of these together, 100 to 1000 files",
		Head:  []string{"By", "Sizes", "Files", "Time (ms)", "Writes a second", "KB a file"},
		Notes: []string{"both sides are sums over the published sizes that were run here"},
	}
	var sizes []publishedRun
	for _, p := range publishedRuns[1:] {
		if slices.Contains(sizesMade(e), p.files) {
			sizes = append(sizes, p)
		}
	}
	if len(sizes) == 0 {
		t.Notes = []string{"none of the published sizes was run"}
		return t
	}
	t.Rows = append(t.Rows, totalRow("published", sizes, func(p publishedRun) (float64, float64) { return p.ns, p.bytes }))
	for _, way := range sizeWays() {
		t.Rows = append(t.Rows, totalRow(way, sizes, func(p publishedRun) (float64, float64) {
			arm := filesArm(p.files, way)
			return e.Median(arm, study.PerRecord) * float64(p.files), e.Median(arm, study.Each(study.Allocated)) * float64(p.files)
		}))
	}
	return t
}

func totalRow(by string, sizes []publishedRun, of func(publishedRun) (ns, bytes float64)) []string {
	files, ns, bytes := 0.0, 0.0, 0.0
	for _, p := range sizes {
		n, b := of(p)
		files, ns, bytes = files+float64(p.files), ns+n, bytes+b
	}
	return []string{by, study.Whole(float64(len(sizes))), study.Whole(files), study.Digits(ns / 1e6), study.Whole(files / ns * 1e9), study.Digits(bytes / files / 1024)}
}

// filesRetriesTable has what was published without retries, and the same files here
// with and without.
func filesRetriesTable(e study.Evidence) study.Table {
	t := study.Table{
		Title: "Without retries",
		Head:  []string{"Files", "Published (s)", "Published per file (µs)", "Here (s)", "Here per file (µs)", "With retries (µs)", "Without against with"},
		Notes: []string{
			"only Attempts differs here, 1 or the usual 4; no call fails, so none is repeated",
			"the published run without retries changed two things more: its pool had room for all files, and it had a worker for each",
			fmt.Sprintf("published: %s files in %v s are %s writes a second, not 500,000", study.Whole(publishedFiles), publishedSeconds, study.Whole(publishedFiles/publishedSeconds)),
		},
	}
	total := make([]float64, 3) // published, without, with
	files := 0
	for _, p := range withoutRetriesTimes {
		off, on := filesArm(p.files, withoutRetries), filesArm(p.files, byFiles)
		if !e.Have(off, on) {
			continue
		}
		n := float64(p.files)
		files += p.files
		for i, ns := range []float64{p.seconds * 1e9, e.Median(off, study.PerRecord) * n, e.Median(on, study.PerRecord) * n} {
			total[i] += ns
		}
		t.Rows = append(t.Rows, []string{
			study.Whole(n), seconds(p.seconds), microseconds(p.perFile()), seconds(e.Median(off, study.PerRecord) * n / 1e9),
			study.Median(e.Summary(off, study.PerRecord), microseconds), study.Median(e.Summary(on, study.PerRecord), microseconds), study.Compared(e.Ratio(off, on, study.PerRecord)),
		})
	}
	if n := float64(files); files > 0 {
		t.Rows = append(t.Rows, []string{
			study.Whole(n) + " in all", seconds(total[0] / 1e9), microseconds(total[0] / n), seconds(total[1] / 1e9),
			microseconds(total[1] / n), microseconds(total[2] / n), study.Times(total[1] / total[2]),
		})
	}
	return t
}

// seconds prints some with three digits behind the point at least.
func seconds(s float64) string {
	if s >= 0.0995 || math.IsNaN(s) {
		return study.OrDash(s, strconv.FormatFloat(s, 'f', 3, 64))
	}
	return study.Digits(s)
}

func filesBatchesTable(e study.Evidence) study.Table {
	t := study.Table{
		Title: "Batches",
		Head:  []string{"Files", "Published (s)", "Published per file (µs)", "One WriteAll (µs)", fmt.Sprintf("A WriteAll for each %d (µs)", batchFiles), "Batches against one"},
		Notes: []string{
			"the published batches reach the workers file by file, as without batches; for ours a batch changes nothing either, as long as nothing is synced",
			"batches gain in the table of durable files",
		},
	}
	for _, n := range sizesMade(e) {
		all, parts := filesArm(n, byFiles), filesArm(n, inBatches)
		if !e.Have(all, parts) {
			continue
		}
		published := []string{study.Dash, study.Dash}
		for _, p := range batches {
			if p.files == n {
				published = []string{seconds(p.seconds), microseconds(p.perFile())}
			}
		}
		t.Rows = append(t.Rows, []string{
			study.Whole(float64(n)), published[0], published[1], study.Median(e.Summary(all, study.PerRecord), microseconds),
			study.Median(e.Summary(parts, study.PerRecord), microseconds), study.Compared(e.Ratio(parts, all, study.PerRecord)),
		})
	}
	return t
}

// filesWorkers has the size at which the number of workers was varied.
func filesWorkers(e study.Evidence) study.Table {
	n, ok := sizeWith(e, func(n int) string { return filesArm(n, oneByOne) })
	t := study.Table{Title: "Workers", Notes: []string{study.OnCPUs(e), callsNote}}
	var arms []result.Cell
	if ok {
		t.Title = fmt.Sprintf("Workers, %d files", n)
		arms = e.InGroups(fmt.Sprintf("%d files", n))
	}
	return study.Tabulate(t, arms, []study.ArmColumn{
		{Head: "By", Cell: func(c result.Cell) string { _, way, _ := strings.Cut(c.Name, ", "); return way }},
		e.IntervalOf("Time per file (µs)", study.PerRecord, microseconds), e.MedianOf("Writes a second", writesPerSecond, study.Whole),
		e.MedianOf("CPUs used", study.CPUsUsed, study.Digits), callsAll(e, "System calls a file"),
		e.MedianOf("Allocations a file", study.Each(study.Allocations), study.Digits), e.Against("Time against the loop", study.ToArm(filesArm(n, oneByOne))),
	})
}

// sizeWith is the largest size at which the arm was run.
func sizeWith(e study.Evidence, arm func(n int) string) (size int, ok bool) {
	for _, n := range sizesMade(e) {
		if e.Have(arm(n)) {
			size, ok = n, true
		}
	}
	return size, ok
}

// filesCPUs has the writes to open files on a part of the processors, and on all of them.
func filesCPUs(e study.Evidence) study.Table {
	n, ok := sizeWith(e, func(n int) string { return filesArm(n, openOn(1)) })
	one := filesArm(n, openOn(1))
	t := study.Table{
		Title: "Writes to open files, by processors",
		Notes: []string{"published: 64 cores are the reason for 40 times the speed of an i7-4510U, which has 2"},
	}
	cpus := func(c result.Cell) (text string, on bool) {
		if c.Name == filesArm(n, openByFile) {
			return "all, " + e.Fact("GOMAXPROCS"), true
		}
		return strings.CutPrefix(c.Name, strings.TrimSuffix(one, "1"))
	}
	var arms []result.Cell
	if ok {
		t.Title = fmt.Sprintf("Writes to %d open files, by processors", n)
		arms = slices.DeleteFunc(e.InGroups(fmt.Sprintf("%d open files", n)), func(c result.Cell) bool { _, on := cpus(c); return !on })
	}
	return study.Tabulate(t, arms, []study.ArmColumn{
		{Head: "GOMAXPROCS", Cell: func(c result.Cell) string { text, _ := cpus(c); return text }},
		e.IntervalOf("Time per write (µs)", study.PerRecord, microseconds), e.MedianOf("Writes a second", writesPerSecond, study.Whole),
		e.MedianOf("CPUs used", study.CPUsUsed, study.Digits), e.Gain("Times the writes of one", study.ToArm(one)),
	})
}

// callsAll is the column of all system calls of a record.
func callsAll(e study.Evidence, head string) study.ArmColumn {
	return study.ArmColumn{Head: head, Cell: func(c result.Cell) string { return study.Digits(callsEach(e, c.Name).all) }}
}

const callsNote = "system calls: all of the process in the warm-up, the Go runtime's included; a dash: they could not be counted"

// A callCount has the kernel's number of calls for one record; NaN where it did not count.
type callCount struct{ all, syncs float64 }

func callsEach(e study.Evidence, arm string) callCount {
	calls, records, ok := e.Counted(arm)
	if calls.Records > 0 {
		records = calls.Records
	}
	if !ok || records == 0 {
		return callCount{math.NaN(), math.NaN()}
	}
	return callCount{float64(calls.Total) / float64(records), float64(calls.Syncs) / float64(records)}
}

// filesSplit shows where the time of a file goes.
func filesSplit(e study.Evidence) study.Table {
	t := study.Table{
		Title: "The time of a file, split",
		Head:  []string{"By", "Create and open", "Write", "Close", "These together", "Coordinate", "All", "Create's share"},
		Notes: []string{
			"CreateTemp makes up a name and tries it, with permissions of 0600; OpenFile gets the name",
			"coordinate: of a pool, starting workers and handing files out; of a files.Set, also its beginning, its results and its end",
		},
	}
	for _, arm := range []string{createTemp, openFile} {
		if !e.Have(arm) {
			continue
		}
		all := study.Duration(e.Median(arm, study.PerRecord))
		t.Rows = append(t.Rows, []string{
			unsplit(arm), study.Duration(e.Median(arm, study.Each(openTime))), study.Duration(e.Median(arm, study.Each(writeTime))), study.Duration(e.Median(arm, study.Each(closeTime))),
			all, study.Dash, all, study.Median(e.Summary(arm, openShare), study.Percent),
		})
	}
	for _, arm := range []string{poolApart, filesApart} {
		if !e.Have(arm) {
			continue
		}
		t.Rows = append(t.Rows, []string{
			unsplit(arm), study.Dash, study.Dash, study.Dash, study.Duration(e.Median(arm, study.Each(writeTime))), study.Duration(e.Median(arm, study.Each(workTime))),
			study.Duration(e.Median(arm, study.PerRecord)), study.Dash,
		})
	}
	return t
}

// unsplit is the name of an arm of the split without its last word.
func unsplit(arm string) string { return strings.Replace(arm, " apart", "", 1) }

func openTime(t result.Trial) float64  { return float64(t.Open) }
func writeTime(t result.Trial) float64 { return float64(t.Write) }
func workTime(t result.Trial) float64  { return float64(t.Work) }
func closeTime(t result.Trial) float64 { return float64(t.Close) }
func openShare(t result.Trial) float64 { return openTime(t) / study.Elapsed(t) }

// filesDurable has every durability, each against the first of its group that syncs
// files one by one.
func filesDurable(e study.Evidence) study.Table {
	t := study.Table{
		Title: "Durable files",
		Notes: []string{
			"when an arm ends, all its files and their names are durable, except with sync=never; a trial counts only if Files reports so of each file",
			"when the clock starts, no bytes of earlier arms wait to be written",
			"a replaced file keeps a second name, so that no file is removed in the clock (docs/studies.md)",
			callsNote,
		},
	}
	return study.Tabulate(t, append(e.InGroups(groupDurable), e.InGroups(groupReplace)...), []study.ArmColumn{
		{Head: "By", Cell: func(c result.Cell) string { return c.Name }},
		study.Records("Files"), e.IntervalOf("Time per file", study.PerRecord, study.Duration), e.MedianOf("Files a second", writesPerSecond, study.Whole),
		callsAll(e, "System calls a file"),
		{Head: "Syncs a file", Cell: func(c result.Cell) string { return study.Digits(callsEach(e, c.Name).syncs) }},
		e.MedianOf("CPU a file", study.CPUTime, study.Duration),
		e.Gain("Times as fast as one by one", func(c result.Cell) string {
			if strings.HasPrefix(c.Group, groupReplace) {
				return replacedEach
			}
			return syncedEach
		}),
	})
}

// filesHandles has the lines that were appended to many files in turn.
func filesHandles(e study.Evidence) study.Table {
	t := study.Table{
		Title: "Lines of 100 bytes to many files in turn, by the number of handles",
		Notes: []string{
			"lines go to the files in turn: a cache smaller than the number of files never finds one open, whichever it closes",
			"the directory is kept open too: it is found, or opened, once for each file that is opened",
			callsNote,
		},
	}
	return study.Tabulate(t, e.InGroups("lines"), []study.ArmColumn{
		{Head: "By", Cell: func(c result.Cell) string { return strings.TrimPrefix(c.Name, "lines, ") }},
		study.Records("Lines"), e.IntervalOf("Time per line", study.PerRecord, study.Duration), e.MedianOf("Lines a second", writesPerSecond, study.Whole),
		e.MedianOf("Found open", study.Value(handleHits), study.Whole), e.MedianOf("Opened", study.Value(handleMisses), study.Whole),
		e.MedianOf("Closed for another", study.Value(handleClosed), study.Whole), callsAll(e, "System calls a line"),
		e.Gain("Times as fast as open and close", study.ToArm(openEach)),
	})
}

// filesPicture has a row for each number of files, and a dot for each way.
func filesPicture(e study.Evidence) *chart.Dots {
	d := &chart.Dots{Title: "Time of a file, by how many there are", Scale: study.Duration, Series: append([]string{"published: " + study.WriterBenchmarks}, sizeWays()...)}
	for _, n := range sizesMade(e) {
		row := chart.Row{Label: fmt.Sprintf("%d files", n)}
		if ns := publishedPerFile(n); !math.IsNaN(ns) {
			row.Points = append(row.Points, chart.Point{Value: ns, Low: ns, High: ns})
		}
		for i, way := range sizeWays() {
			row.Points = append(row.Points, study.Point(i+1, e.Summary(filesArm(n, way), study.PerRecord)))
		}
		d.Rows = append(d.Rows, row)
	}
	if len(d.Rows) == 0 {
		return nil
	}
	return d
}

// publishedPerFile is the time of one of n files as it was printed, NaN if it was not.
func publishedPerFile(n int) float64 {
	for _, p := range publishedRuns[1:] {
		if p.files == n {
			return p.ns / float64(n)
		}
	}
	for _, p := range batches {
		if p.files == n {
			return p.perFile()
		}
	}
	return math.NaN()
}

func filesLearnt(e study.Evidence) string {
	return strings.Join(e.Learnt(
		study.Said{Format: "os.WriteFile by a pool takes %s as long for 1000 files as a files.Set", Over: filesArm(1000, byPool(perCPU)), Under: filesArm(1000, byFiles)},
		study.Said{Format: "a file among 3000 takes %s as long as one among 100", Over: filesArm(3000, byFiles), Under: filesArm(100, byFiles)},
		study.Said{Format: "retries that are not needed make it %s as long", Over: retriesOn, Under: retriesOff},
		study.Said{Format: "one step for all made new files durable %s as fast as a sync of each in turn", Over: syncedEach, Under: filesGroup},
	), "; ")
}
