package study

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/internal/chart"
	"github.com/holdfast-go/holdfast/internal/result"
)

func showFiles(e Evidence) Shown {
	return Shown{
		Tables: []Table{
			filesBySize(e), filesTotals(e), filesRetriesTable(e), filesBatchesTable(e),
			filesWorkers(e), filesSplit(e), filesDurable(e), filesHandles(e),
		},
		Picture: filesPicture(e),
		Learnt:  filesLearnt(e),
	}
}

// sizeWays are the ways that are shown at each size, the one that the others are
// held against first.
var sizeWays = []string{byPool(perCPU), byFiles, byNames(perCPU)}

// sizesMade are the numbers of files of the run's groups, in order.
func sizesMade(e Evidence) []int {
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

// runsOf is how many operations on n files the arm made in all rounds.
func runsOf(e Evidence, arm string, n int) float64 {
	made := int64(0)
	for _, t := range e.Trials(arm) {
		made += t.Records
	}
	return float64(made) / float64(n)
}

// filesBySize has the published columns, and what else there is to say of a file.
func filesBySize(e Evidence) Table {
	t := Table{
		Title: "Files of 12 bytes, published and measured here",
		Head:  []string{"Files", "By", "Runs", "Time per op (ns)", "Time per file (µs)", "B/op", "Allocs/op", "Writes a second", "KB a file", "Time against package os"},
		Notes: []string{
			"published from 100 files on is the writing alone: the files are open before its clock starts and are closed after it has stopped, which the ways \"open before\" do too; all others make, write and close them in the clock",
			"the paths and names are made before; the pool's or the Files' own beginning and end are in the time and the memory",
			"published memory is mostly a bufio.Writer of 4 KiB for each 12 bytes",
		},
	}
	t.Rows = append(t.Rows, filesOpRows(e)...)
	for _, n := range sizesMade(e) {
		at := slices.IndexFunc(publishedRuns, func(p publishedRun) bool { return p.files == n })
		if at > 0 {
			t.Rows = append(t.Rows, publishedRow(publishedRuns[at]))
		}
		for _, way := range slices.Concat([]string{openByFile, openByFiles}, sizeWays) {
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
	case openByFiles:
		return openByFile
	case openByFile, sizeWays[0]:
		return ""
	}
	return sizeWays[0]
}

func publishedRow(p publishedRun) []string {
	n := float64(p.files)
	row := append([]string{whole(n), "published"}, p.row()[1:]...)
	return append(row, whole(n/p.ns*1e9), digits(p.bytes/n/1024), dash)
}

func filesRow(e Evidence, n int, way string) []string {
	arm := filesArm(n, way)
	if _, ok := e.Cell(arm); !ok {
		return nil
	}
	against := dash
	if base := heldAgainst(way); base != "" {
		against = compared(e.Ratio(arm, filesArm(n, base), PerRecord))
	}
	return append(filesFigures(e, arm, way, n), against)
}

// filesFigures are the published columns of an arm, and two more.
func filesFigures(e Evidence, arm, by string, n int) []string {
	op := func(of Metric) float64 { return e.Median(arm, each(of)) * float64(n) }
	memory, count := op(allocated), op(allocations)
	if told := e.Median(arm, Value(bytesPerOp)); !math.IsNaN(told) {
		memory, count = told, e.Median(arm, Value(allocsPerOp))
	}
	return []string{
		whole(float64(n)), by, whole(runsOf(e, arm, n)), whole(op(Elapsed)), median(e.Summary(arm, PerRecord), microseconds),
		whole(memory), whole(count), whole(e.Median(arm, writesPerSecond)), digits(memory / float64(n) / 1024),
	}
}

// microseconds prints nanoseconds without a unit.
func microseconds(ns float64) string { return digits(ns / 1e3) }

// filesOpRows are of the operation that removes its files.
func filesOpRows(e Evidence) (rows [][]string) {
	for _, arm := range []string{twoByFile, twoByFiles} {
		if _, ok := e.Cell(arm); !ok {
			continue
		}
		if rows == nil {
			rows = append(rows, publishedRow(publishedRuns[0]))
		}
		against := dash
		if arm == twoByFiles {
			against = compared(e.Ratio(arm, twoByFile, PerRecord))
		}
		_, by, _ := strings.Cut(arm, " files ")
		rows = append(rows, append(filesFigures(e, arm, by, 2), against))
	}
	return rows
}

// filesTotals sums up the published sizes that were run here.
func filesTotals(e Evidence) Table {
	t := Table{
		Title: "All of these together, 100 to 1000 files",
		Head:  []string{"By", "Sizes", "Files", "Time (ms)", "Writes a second", "KB a file"},
		Notes: []string{"both sides are the sums of the same sizes: those of the published table that were run here"},
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
	for _, way := range sizeWays {
		t.Rows = append(t.Rows, totalRow(way, sizes, func(p publishedRun) (float64, float64) {
			arm := filesArm(p.files, way)
			return e.Median(arm, PerRecord) * float64(p.files), e.Median(arm, each(allocated)) * float64(p.files)
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
	return []string{by, whole(float64(len(sizes))), whole(files), digits(ns / 1e6), whole(files / ns * 1e9), digits(bytes / files / 1024)}
}

// filesRetriesTable has what was published without retries, and the same files here
// with and without.
func filesRetriesTable(e Evidence) Table {
	t := Table{
		Title: "Without retries",
		Head:  []string{"Files", "Published (s)", "Published per file (µs)", "Here (s)", "Here per file (µs)", "With retries (µs)", "Without against with"},
		Notes: []string{
			"nothing else is changed here: Attempts is 1, or the usual 4; no call fails, so that none is made again",
			"the published run without retries changed two things more: its pool had room for all files, and it had a worker for each",
			fmt.Sprintf("published: %s files in %v s are %s writes a second, not 500,000", whole(publishedFiles), publishedSeconds, whole(publishedFiles/publishedSeconds)),
		},
	}
	total := make([]float64, 3) // published, without, with
	files := 0
	for _, p := range withoutRetriesTimes {
		off, on := filesArm(p.files, withoutRetries), filesArm(p.files, byFiles)
		if !e.have(off, on) {
			continue
		}
		n := float64(p.files)
		files += p.files
		for i, ns := range []float64{p.seconds * 1e9, e.Median(off, PerRecord) * n, e.Median(on, PerRecord) * n} {
			total[i] += ns
		}
		t.Rows = append(t.Rows, []string{
			whole(n), seconds(p.seconds), microseconds(p.perFile()), seconds(e.Median(off, PerRecord) * n / 1e9),
			median(e.Summary(off, PerRecord), microseconds), median(e.Summary(on, PerRecord), microseconds), compared(e.Ratio(off, on, PerRecord)),
		})
	}
	if n := float64(files); files > 0 {
		t.Rows = append(t.Rows, []string{
			whole(n) + " in all", seconds(total[0] / 1e9), microseconds(total[0] / n), seconds(total[1] / 1e9),
			microseconds(total[1] / n), microseconds(total[2] / n), times(total[1] / total[2]),
		})
	}
	return t
}

// seconds prints some with three digits behind the point at least.
func seconds(s float64) string {
	if s >= 0.0995 || math.IsNaN(s) {
		return orDash(s, strconv.FormatFloat(s, 'f', 3, 64))
	}
	return digits(s)
}

func filesBatchesTable(e Evidence) Table {
	t := Table{
		Title: "Batches",
		Head:  []string{"Files", "Published (s)", "Published per file (µs)", "One WriteAll (µs)", fmt.Sprintf("A WriteAll for each %d (µs)", batchFiles), "Batches against one"},
		Notes: []string{
			"the published batches are given to the workers one file after the other, as without them; nor does it matter for ours, as long as nothing is synced",
			"what a batch is good for is the table of durable files",
		},
	}
	for _, n := range sizesMade(e) {
		all, parts := filesArm(n, byFiles), filesArm(n, inBatches)
		if !e.have(all, parts) {
			continue
		}
		published := []string{dash, dash}
		for _, p := range batches {
			if p.files == n {
				published = []string{seconds(p.seconds), microseconds(p.perFile())}
			}
		}
		t.Rows = append(t.Rows, []string{
			whole(float64(n)), published[0], published[1], median(e.Summary(all, PerRecord), microseconds),
			median(e.Summary(parts, PerRecord), microseconds), compared(e.Ratio(parts, all, PerRecord)),
		})
	}
	return t
}

// filesWorkers has the size at which the number of workers was varied.
func filesWorkers(e Evidence) Table {
	t := Table{
		Head:  []string{"By", "Time per file (µs)", "Writes a second", "CPUs used", "System calls a file", "Allocations a file", "Time against the loop"},
		Notes: []string{onCPUs(e), callsNote},
	}
	for _, n := range sizesMade(e) {
		loop := filesArm(n, oneByOne)
		if !e.have(loop) {
			continue
		}
		t.Title = fmt.Sprintf("Workers, %d files", n)
		for _, c := range e.inGroups(fmt.Sprintf("%d files", n)) {
			against := dash
			if c.Name != loop {
				against = compared(e.Ratio(c.Name, loop, PerRecord))
			}
			_, way, _ := strings.Cut(c.Name, ", ")
			t.Rows = append(t.Rows, []string{
				way, median(e.Summary(c.Name, PerRecord), microseconds), whole(e.Median(c.Name, writesPerSecond)), digits(e.Median(c.Name, cpusUsed)),
				digits(callsEach(e, c.Name).all), digits(e.Median(c.Name, each(allocations))), against,
			})
		}
	}
	if t.Title == "" {
		t.Title = "Workers"
	}
	return t
}

const callsNote = "system calls are those of the whole process in the warm-up, the runtime's own among them; a dash: they could not be counted"

// A callCount is what the kernel counted for one record; NaN where it did not.
type callCount struct{ all, syncs float64 }

func callsEach(e Evidence, arm string) callCount {
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
func filesSplit(e Evidence) Table {
	t := Table{
		Title: "The time of a file, split",
		Head:  []string{"By", "Create and open", "Write", "Close", "These together", "Coordinate", "All", "Create's share"},
		Notes: []string{
			"CreateTemp makes up a name and tries it, with permissions of 0600; OpenFile is told the name",
			"coordinate: of a pool, starting workers and handing files out; of a Files, also its beginning, its results and its end",
		},
	}
	for _, arm := range []string{createTemp, openFile} {
		if !e.have(arm) {
			continue
		}
		all := duration(e.Median(arm, PerRecord))
		share := func(t result.Trial) float64 { return openTime(t) / Elapsed(t) }
		t.Rows = append(t.Rows, []string{
			unsplit(arm), duration(e.Median(arm, each(openTime))), duration(e.Median(arm, each(writeTime))), duration(e.Median(arm, each(closeTime))),
			all, dash, all, median(e.Summary(arm, share), percent),
		})
	}
	for _, arm := range []string{poolApart, filesApart} {
		if !e.have(arm) {
			continue
		}
		t.Rows = append(t.Rows, []string{
			unsplit(arm), dash, dash, dash, duration(e.Median(arm, each(writeTime))), duration(e.Median(arm, each(workTime))),
			duration(e.Median(arm, PerRecord)), dash,
		})
	}
	return t
}

// unsplit is the name of an arm of the split without its last word.
func unsplit(arm string) string { return strings.Replace(arm, " apart", "", 1) }

func openTime(t result.Trial) float64  { return float64(t.Open) }
func writeTime(t result.Trial) float64 { return float64(t.Write) }
func closeTime(t result.Trial) float64 { return float64(t.Close) }
func workTime(t result.Trial) float64  { return float64(t.Work) }

// filesDurable has every durability, each against the first of its group that syncs
// files one by one.
func filesDurable(e Evidence) Table {
	t := Table{
		Title: "Durable files",
		Head:  []string{"By", "Files", "Time per file", "Files a second", "System calls a file", "Syncs a file", "CPU a file", "Times as fast as one by one"},
		Notes: []string{
			"when an arm ends all its files and their names are durable, but for sync=never; every Files says so of each file, or the trial does not count",
			"nothing of earlier arms waits to be written when the clock starts",
			"a file that is replaced keeps a second name, so that none is removed: see what is in the clock in docs/studies.md",
			callsNote,
		},
	}
	for _, group := range []struct{ name, base string }{{groupDurable, syncedEach}, {groupReplace, replacedEach}} {
		for _, c := range e.inGroups(group.name) {
			against := dash
			if c.Name != group.base {
				against = ratio(e.Ratio(group.base, c.Name, PerRecord)).orDash()
			}
			calls := callsEach(e, c.Name)
			t.Rows = append(t.Rows, []string{
				c.Name, whole(float64(c.Records)), median(e.Summary(c.Name, PerRecord), duration), whole(e.Median(c.Name, writesPerSecond)),
				digits(calls.all), digits(calls.syncs), duration(e.Median(c.Name, cpuTime)), against,
			})
		}
	}
	return t
}

// filesHandles has the lines that were appended to many files in turn.
func filesHandles(e Evidence) Table {
	t := Table{
		Title: "Lines of 100 bytes to many files in turn, by the number of handles",
		Head:  []string{"By", "Lines", "Time per line", "Lines a second", "Found open", "Opened", "Closed for another", "System calls a line", "Times as fast as open and close"},
		Notes: []string{
			"lines go to the files in turn: a cache that is smaller than the number of files finds none of them open, whichever it closes",
			"the folder is kept open too: it is found, or opened, once for each file that is opened",
			callsNote,
		},
	}
	for _, c := range e.inGroups("lines") {
		against := dash
		if c.Name != openEach {
			against = ratio(e.Ratio(openEach, c.Name, PerRecord)).orDash()
		}
		t.Rows = append(t.Rows, []string{
			strings.TrimPrefix(c.Name, "lines, "), whole(float64(c.Records)), median(e.Summary(c.Name, PerRecord), duration), whole(e.Median(c.Name, writesPerSecond)),
			whole(e.Median(c.Name, Value(handleHits))), whole(e.Median(c.Name, Value(handleMisses))), whole(e.Median(c.Name, Value(handleClosed))),
			digits(callsEach(e, c.Name).all), against,
		})
	}
	return t
}

// filesPicture has a row for each number of files, and a dot for each way.
func filesPicture(e Evidence) *chart.Dots {
	d := &chart.Dots{Title: "Time of a file, by how many there are", Scale: duration, Series: append([]string{"published"}, sizeWays...)}
	for _, n := range sizesMade(e) {
		row := chart.Row{Label: fmt.Sprintf("%d files", n)}
		if ns := publishedPerFile(n); !math.IsNaN(ns) {
			row.Points = append(row.Points, chart.Point{Value: ns, Low: ns, High: ns})
		}
		for i, way := range sizeWays {
			s := e.Summary(filesArm(n, way), PerRecord)
			row.Points = append(row.Points, chart.Point{Series: i + 1, Value: s.Median, Low: s.Low, High: s.High})
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

func filesLearnt(e Evidence) string {
	var parts []string
	say := func(text, slow, fast string) {
		if by := speedUp(e, slow, fast); by != dash {
			parts = append(parts, fmt.Sprintf(text, by))
		}
	}
	say("os.WriteFile by a pool takes %s as long for 1000 files as a Files with prepared names", filesArm(1000, byPool(perCPU)), filesArm(1000, byNames(perCPU)))
	if growth := e.Ratio(filesArm(3000, byNames(perCPU)), filesArm(100, byNames(perCPU)), PerRecord); !math.IsNaN(growth.Ratio) {
		parts = append(parts, fmt.Sprintf("a file among 3000 takes %s as long as one among 100", ratio(growth)))
	}
	say("retries that are not needed make it %s as long", retriesOn, retriesOff)
	say("one step for all made new files durable %s as fast as a sync of each in turn", syncedEach, filesGroup)
	return strings.Join(parts, "; ")
}
