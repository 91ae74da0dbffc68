package copying

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/lab/timing"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/chart"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

func showCopies(e study.Evidence) study.Shown {
	cells := copyCells(e)
	var tables []study.Table
	for _, form := range timing.Forms() {
		tables = append(tables, formTables(e, slices.DeleteFunc(slices.Clone(cells), func(c copyCell) bool { return c.form != form }))...)
	}
	tables = append(tables, copyCallsTable(e, cells), standsOutTable(e), trendTable(e), streamTable(e))
	return study.Shown{Tables: tables, Picture: copyPicture(e, cells), Learnt: copyLearnt(e)}
}

// formTables are the tables of one form. These are the wholes of part C, which are also
// the last of part A, and the files of other sizes.
func formTables(e study.Evidence, cells []copyCell) []study.Table {
	if len(cells) == 0 {
		return nil
	}
	large := slices.DeleteFunc(slices.Clone(cells), func(c copyCell) bool { return c.form == timing.Copy && c.size != wholeSize })
	small := slices.DeleteFunc(slices.Clone(cells), func(c copyCell) bool { return slices.Contains(large, c) })
	elapsed := []copyColumn{
		{Head: "How", Cell: func(c copyCell) string { return howMeasured(e, c) }},
		{Head: "Average, elapsed", Cell: func(c copyCell) string { return averageText(e, c) }},
		publishedColumn(e, 0, "Published, elapsed"),
	}
	bySize := copyColumn{Head: "File Size (MB)", Cell: func(c copyCell) string { return study.Digits(float64(c.size) / mib) }}
	buffer := copyColumn{Head: "Buffer Size", Cell: bufferText}
	var tables []study.Table
	if len(small) > 0 {
		// Part A has files of several sizes.
		t := study.Table{Title: "Copy by the size of the file, on " + placeOf(e), Notes: copyNotes(e, small), Apart: 7}
		tables = append(tables, study.Tabulate(t, small, slices.Concat([]copyColumn{bySize, buffer}, wholeColumns(e), elapsed)))
	}
	if len(large) > 0 {
		// Beside the figures of one size stand the published ones.
		title := upperFirst(fmt.Sprintf("%s of %v, on %s", large[0].form, holdfast.Size(large[0].size), placeOf(e)))
		tables = append(tables, study.Tabulate(study.Table{Title: title, Notes: copyNotes(e, large), Apart: 6}, large, slices.Concat(
			[]copyColumn{buffer}, wholeColumns(e), elapsed, []copyColumn{publishedColumn(e, 1, "Published, CPU"), publishedColumn(e, 2, "Book, elapsed")})))
	}
	return tables
}

// A copyColumn is one of a table with a row for each copy.
type copyColumn = study.Column[copyCell]

// wholeColumns are the published ones of a copy.
func wholeColumns(e study.Evidence) []copyColumn {
	cpu := func(head string, of func(wholeTimes) float64) copyColumn {
		return copyColumn{Head: head, Cell: func(c copyCell) string {
			w := wholeOf(e, c)
			if w.cpu.Median == 0 {
				return study.Dash
			}
			return study.OrDash(of(w), secondsOf(of(w)))
		}}
	}
	return []copyColumn{
		{Head: "Elapsed Time (s)", Cell: func(c copyCell) string { return study.Figure(wholeOf(e, c).elapsed, secondsOf).OrDash() }},
		cpu("Total CPU Time (s)", func(w wholeTimes) float64 { return w.cpu.Median }),
		cpu("User CPU Time (s)", func(w wholeTimes) float64 { return w.user }),
		cpu("System CPU Time (s)", func(w wholeTimes) float64 { return w.system }),
	}
}

func publishedColumn(e study.Evidence, i int, head string) copyColumn {
	return copyColumn{Head: head, Cell: func(c copyCell) string { return publishedTexts(e, c)[i] }}
}

func bufferText(c copyCell) string { return strconv.FormatInt(c.buffer, 10) }

// averageText is the average of the rounds, as published.
func averageText(e study.Evidence, c copyCell) string {
	average := wholeOf(e, c).averageElapsed
	return study.OrDash(average, secondsOf(average))
}

// secondsOf prints nanoseconds as seconds, down to microseconds.
func secondsOf(ns float64) string {
	switch s := ns / 1e9; {
	case s >= 100:
		return strconv.FormatFloat(s, 'f', 1, 64)
	case s >= 1:
		return strconv.FormatFloat(s, 'f', 3, 64)
	default:
		return strconv.FormatFloat(s, 'f', 6, 64)
	}
}

// publishedTexts are elapsed and total CPU time of the same file system, or of ext4
// where it was not published; and the book's elapsed time.
func publishedTexts(e study.Evidence, c copyCell) []string {
	texts := []string{study.Dash, study.Dash, study.Dash}
	if c.form == timing.InC { // the published loops are in C
		c.form = timing.Copy
	}
	if row, ok := publishedCell(publishedFor(e), c); ok {
		texts = []string{secondsText(row.Elapsed), secondsText(row.CPU), study.Dash}
	}
	buffer := int(c.buffer)
	if c.size == wholeSize || c.form.Writes() || c.form == timing.Synced {
		texts[2] = elapsedOf(timing.Book(), c.form, buffer)
	}
	return texts
}

// publishedFor is the file system whose published figures stand beside these.
func publishedFor(e study.Evidence) string {
	if kind := kindOf(placeOf(e)); slices.Contains(systemsIn(timing.PublishedCopies()), kind) {
		return kind
	}
	return "ext4"
}

// howMeasured says whether the row was measured.
func howMeasured(e study.Evidence, c copyCell) string {
	cell, _ := e.Cell(c.name())
	if why := notPredicted(e, c); why != "" {
		return why
	}
	if !isPredicted(e, c) {
		return "measured"
	}
	return fmt.Sprintf("predicted, from %v", holdfast.Size(cell.Records))
}

// UserModeUnparted is why rows of User-Mode Linux have no user and no system time.
const UserModeUnparted = "inside User-Mode Linux user and system time are left out: its kernel counts most of its own work as the program's"

// copyNotes say how to read a table.
func copyNotes(e study.Evidence, cells []copyCell) []string {
	var notes []string
	if c := cells[0]; c.form == timing.Copy && c.size == wholeSize {
		notes = []string{
			"elapsed: the median of the rounds with its interval, and their average; CPU time is split into user and system over all rounds together, because a kernel may count in ticks",
			fmt.Sprintf("published: %s of %s, averages by a clock of 1 ms; the book measured on ext2, with 100 million bytes, and 1 million with O_SYNC", publishedFor(e), study.CopyBufferSizes),
		}
	}
	if cells[0].form == timing.InC {
		notes = append(notes, "the loop is C, like the published one, so the CPU times compare")
	}
	if study.IsUserMode(placeOf(e)) {
		notes = append(notes, UserModeUnparted)
	}
	return append(append(notes, predictedNotes(e, cells)...), coldNotes(e, cells)...)
}

func predictedNotes(e study.Evidence, cells []copyCell) (notes []string) {
	if slices.ContainsFunc(cells, func(c copyCell) bool { return isPredicted(e, c) }) {
		notes = append(notes, "predicted: only a part was copied, as the time allowed; the rest is assumed to go on like the second half of that part, and opening, closing and the first blocks count once")
	}
	if slices.ContainsFunc(cells, func(c copyCell) bool { return isPredicted(e, c) && len(c.pool(e)) > 1 }) {
		notes = append(notes, "a write of at most 4 KiB takes one sync, so its cost is pooled over these buffers, and a predicted row is a multiple of it")
	}
	if slices.ContainsFunc(cells, func(c copyCell) bool { return isPredicted(e, c) && !e.Summary(c.name(), wholeElapsed).HasInterval() }) {
		notes = append(notes, fmt.Sprintf("with too few rounds for a 95 %% interval a predicted row shows the least and the most; with fewer than %d rounds or %d writes nothing is predicted", leastRounds, leastWrites))
	}
	if slices.ContainsFunc(cells, func(c copyCell) bool { return c.form == timing.Synced }) {
		notes = append(notes, "of the published times with O_SYNC only the row of one byte was measured as it stands: each other row is one run divided by 20")
	}
	return notes
}

// coldNotes say how many trials began with nothing of their source in the page cache.
func coldNotes(e study.Evidence, cells []copyCell) []string {
	trials, cold, first, why := 0, 0, "", ""
	for _, c := range cells {
		for _, t := range e.Trials(c.name()) {
			if t.Before == nil {
				continue
			}
			if trials++; trials == 1 {
				first = t.Before.Source
			}
			if result.Cold.Holds(*t.Before) {
				cold++
			} else {
				why = t.Before.Source
			}
		}
	}
	switch {
	case trials == 0:
		return nil
	case cold == trials:
		return []string{fmt.Sprintf("cold: none of the source was in the page cache before each of the %d trials (%s)", trials, first)}
	}
	return []string{fmt.Sprintf("none of the source was in the page cache before %d of %d trials; before the others some was, or that is not known (%s)", cold, trials, why)}
}

// copyCallsTable has the calls as they are predicted, and as the kernel counted them.
func copyCallsTable(e study.Evidence, cells []copyCell) study.Table {
	t := study.Table{
		Title: "System calls of the copies",
		Notes: []string{"a copy reads once more, to see the end; the kernel counted all reads and writes of the process in a trial"},
	}
	var arms []result.Cell
	for _, c := range cells {
		if c.form == timing.Copy && c.size == wholeSize {
			arms = append(arms, e.Cells(c.name())...)
		}
	}
	return study.Tabulate(t, arms, []study.ArmColumn{
		{Head: "Way", Cell: func(c result.Cell) string { return c.Name }},
		study.Records("Bytes"),
		{Head: "Buffers", Cell: func(c result.Cell) string {
			copied, _ := copyCellOf(c)
			return study.Whole(float64(study.CallsOf(c.Records, copied.buffer)))
		}},
		e.MedianOf("Reads", study.Reads, study.Whole), e.MedianOf("Writes", study.Writes, study.Whole),
	})
}

// streamTable is exercise 13-3.
func streamTable(e study.Evidence) study.Table {
	t := study.Table{
		Title: fmt.Sprintf("fflush and fsync of a stream, every %s bytes", study.Whole(stdioPoint)),
		Head:  []string{"Stream", "At each point", "Time of a point", "of which fsync", "Bytes still in memory", "Syncs"},
		Notes: []string{
			"bytes still in memory are lost with the process: fsync alone does not see them, and fflush alone leaves the rest to the kernel",
			"the Writer is holdfast's, whose Flush is like fflush; fsync alone syncs the file below it",
		},
	}
	syncPerPoint := study.Each(func(t result.Trial) float64 { return float64(t.Sync) })
	for _, stream := range []string{inStdio, inWriter} {
		for _, w := range pointWays() {
			arm := pointArm(stream, w)
			if e.Have(arm) {
				t.Rows = append(t.Rows, []string{
					stream, w.name, study.Median(e.Summary(arm, study.PerRecord), study.Duration), study.Duration(e.Median(arm, syncPerPoint)),
					study.Whole(e.Median(arm, study.Value(behindBytes))), map[bool]string{true: "each", false: "none"}[w.sync],
				})
			}
		}
	}
	return t
}

// copyPicture has a row for each buffer of the largest copy: here, published and in
// the book.
func copyPicture(e study.Evidence, cells []copyCell) *chart.Dots {
	d := &chart.Dots{
		Title: "Elapsed time by buffer", Scale: study.Duration,
		Series: []string{"here", "published, " + publishedFor(e), "the book"},
	}
	bare := func(series int, s float64) chart.Point { // without an interval, of seconds
		return chart.Point{Series: series, Value: s * 1e9, Low: math.NaN(), High: math.NaN()}
	}
	for _, c := range cells {
		if c.form != timing.Copy || c.size != wholeSize {
			continue
		}
		row := chart.Row{Label: bufferText(c), Points: []chart.Point{study.Point(0, wholeOf(e, c).elapsed)}}
		if isPredicted(e, c) {
			row.Label += ", predicted"
		}
		if p, ok := publishedCell(publishedFor(e), c); ok {
			row.Points = append(row.Points, bare(1, p.Elapsed))
		}
		if p, ok := sameBuffer(bookCopies(), int(c.buffer)); ok {
			row.Points = append(row.Points, bare(2, p.Elapsed))
		}
		d.Rows = append(d.Rows, row)
	}
	if len(d.Rows) == 0 {
		return nil
	}
	return d
}

func bookCopies() []timing.Row {
	return slices.DeleteFunc(timing.Book(), func(r timing.Row) bool { return r.Form != timing.Copy })
}

// trendTable says whether the buffers are in the order in which they were published.
func trendTable(e study.Evidence) study.Table {
	t := study.Table{
		Title: "Are the trends the same: Spearman's rank correlation of elapsed times over the buffers",
		Head:  []string{"This run against", "rho"},
		Notes: []string{"1 is the same order of the buffers, -1 the reverse"},
	}
	ours := ofWhole(timingsOf(e), timing.Copy, wholeSize)
	for _, name := range systemsIn(timing.PublishedCopies()) {
		t.Rows = trendRow(t.Rows, ours, rowsOn(timing.PublishedCopies(), name), "published, "+name)
	}
	t.Rows = trendRow(t.Rows, ours, bookCopies(), "the book")
	return t
}

// trendRow appends the names with the trend of the two, if there is one.
func trendRow(rows [][]string, ours, theirs []timing.Row, names ...string) [][]string {
	if text := trendText(trend(ours, theirs)); text != study.Dash {
		rows = append(rows, append(names, text))
	}
	return rows
}

func ofWhole(rows []timing.Row, form timing.Form, size int64) []timing.Row {
	return slices.DeleteFunc(slices.Clone(rows), func(r timing.Row) bool { return r.Form != form || r.FileSize != size })
}

// copyLearnt is a sentence on the buffers and one on where the time goes.
func copyLearnt(e study.Evidence) string {
	rows := ofWhole(timingsOf(e), timing.Copy, wholeSize)
	if len(rows) < 2 {
		return ""
	}
	best, worst := extremes(rows)
	text := fmt.Sprintf("on %s a copy of %v takes %s with %v and %s with %v, %s as long",
		placeOf(e), holdfast.Size(wholeSize), sayTime(worst), holdfast.Size(worst.Buffer), sayTime(best), holdfast.Size(best.Buffer), study.Times(worst.Elapsed/best.Elapsed))
	var rest []string
	// From near on all buffers are as good as the best, within nearShare.
	const nearShare = 0.25
	near := rows[len(rows)-1]
	for i := len(rows) - 1; i >= 0 && rows[i].Elapsed <= best.Elapsed*(1+nearShare); i-- {
		near = rows[i]
	}
	if near.Buffer != best.Buffer && near.Buffer != rows[len(rows)-1].Buffer {
		rest = append(rest, fmt.Sprintf("from %v on a larger buffer gains less than %s", holdfast.Size(near.Buffer), study.Percent(nearShare)))
	}
	if share := kernelPart(e, copyArm(int64(worst.Buffer))); !math.IsNaN(share) {
		rest = append(rest, fmt.Sprintf("%s of the CPU time with %v is the kernel's", study.Percent(share), holdfast.Size(worst.Buffer)))
	}
	if len(rest) > 0 {
		text += ". " + upperFirst(strings.Join(rest, ", and "))
	}
	return text
}

func upperFirst(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

func sayTime(r timing.Row) string {
	text := study.Duration(r.Elapsed * 1e9)
	if r.Predicted {
		text += " (predicted)"
	}
	return text
}

// extremes are the fastest and the slowest row.
func extremes(rows []timing.Row) (best, worst timing.Row) {
	best, worst = rows[0], rows[0]
	for _, r := range rows {
		if r.Elapsed < best.Elapsed {
			best = r
		}
		if r.Elapsed > worst.Elapsed {
			worst = r
		}
	}
	return best, worst
}

// trendText is a correlation in words.
func trendText(rho float64, buffers int) string {
	if math.IsNaN(rho) {
		return study.Dash
	}
	return study.Digits(rho) + " over " + study.Whole(float64(buffers)) + " buffers: " + trendWord(rho)
}
