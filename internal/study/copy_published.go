package study

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/holdfast-go/holdfast/internal/timing"
)

// tlpi is the book whose exercises the document repeats.
const tlpi = "The Linux Programming Interface, tables 13-1 to 13-3"

// copyPublished are the published tables: the book's, and the elapsed times of all
// file systems of the repetition. The rest of it stands beside what is measured.
func copyPublished() []Table {
	return []Table{
		bookTable(),
		publishedByFileSystem("Copy of 100 MiB, elapsed s, by file system", timing.PublishedCopies()),
		publishedByFileSystem("Write of 32 MiB, elapsed s, by file system", timing.PublishedWrites()),
	}
}

func bookTable() Table {
	t := Table{
		Title: "Elapsed s: ext2, Linux 2.6.30, 100 million bytes; 1 million with O_SYNC", Source: tlpi,
		Head: []string{"Buffer Size", "Copy", "Write", "Write with O_SYNC"},
	}
	rows := timing.Book()
	for _, buffer := range buffersIn(rows) {
		row := []string{strconv.Itoa(buffer)}
		for _, form := range []timing.Form{timing.Copy, timing.Write, timing.Synced} {
			row = append(row, elapsedOf(rows, form, buffer))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func publishedByFileSystem(title string, rows []timing.Row) Table {
	t := Table{Title: title, Source: copyBufferSizes, Head: []string{"Buffer Size"}}
	systems := systemsIn(rows)
	t.Head = append(t.Head, systems...)
	for _, buffer := range buffersIn(rows) {
		line := []string{strconv.Itoa(buffer)}
		for _, name := range systems {
			line = append(line, elapsedOf(rowsOn(rows, name), rows[0].Form, buffer))
		}
		t.Rows = append(t.Rows, line)
	}
	return t
}

// elapsedOf is the elapsed time of a row as it was printed, or a dash.
func elapsedOf(rows []timing.Row, form timing.Form, buffer int) string {
	i := slices.IndexFunc(rows, func(r timing.Row) bool { return r.Form == form && r.Buffer == buffer })
	if i < 0 {
		return dash
	}
	return secondsText(rows[i].Elapsed)
}

func secondsText(s float64) string { return strconv.FormatFloat(s, 'f', -1, 64) }

func rowsOn(rows []timing.Row, fileSystem string) []timing.Row {
	return slices.DeleteFunc(slices.Clone(rows), func(r timing.Row) bool { return r.FileSystem != fileSystem })
}

func buffersIn(rows []timing.Row) (buffers []int) {
	for _, r := range rows {
		buffers = append(buffers, r.Buffer)
	}
	slices.SortFunc(buffers, cmp.Compare)
	return slices.Compact(buffers)
}

func systemsIn(rows []timing.Row) (names []string) {
	for _, r := range rows {
		if !slices.Contains(names, r.FileSystem) {
			names = append(names, r.FileSystem)
		}
	}
	return names
}

// publishedCell finds the published times of a cell; ok is false where there are none.
// A file of a size that was not published has none either.
func publishedCell(fileSystem string, c copyCell) (timing.Row, bool) {
	for _, r := range slices.Concat(timing.PublishedCopies(), timing.PublishedSizes(), timing.PublishedSynced(), timing.PublishedWrites()) {
		if r.FileSystem == fileSystem && r.Form == c.form && r.FileSize == c.size && int64(r.Buffer) == c.buffer {
			return r, true
		}
	}
	return timing.Row{}, false
}
