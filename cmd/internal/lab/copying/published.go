package copying

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/holdfast-go/holdfast/cmd/internal/lab/timing"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

func publishedByFileSystem(title string, rows []timing.Row) study.Table {
	t := study.Table{Title: title, Source: study.CopyBufferSizes, Head: []string{"Buffer Size"}}
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
		return study.Dash
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
