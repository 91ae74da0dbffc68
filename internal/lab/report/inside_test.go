package report

import (
	"slices"
	"testing"

	"github.com/holdfast-go/holdfast/internal/lab/figure"
)

// AddColumn adds a column to the table of a group while the test runs.
func AddColumn(t *testing.T, head, cell string) {
	before := groupColumns
	t.Cleanup(func() { groupColumns = before })
	groupColumns = slices.Insert(slices.Clone(before), 3, column{head: head, cell: func(figure.Row) string { return cell }})
}

// RawColumns are those of the CSV export that the columns are made of.
func RawColumns() (names []string) {
	for _, c := range groupColumns {
		if c.raw != "" {
			names = append(names, c.raw)
		}
	}
	return names
}

// TestColumnsAreInTheFormsThatTheyName has one of the page alone.
func TestColumnsAreInTheFormsThatTheyName(t *testing.T) {
	columns := []column{{head: "a", long: "the long a"}, {head: "b", in: inPage}, {head: "c", in: inText | inMarkdown, isWord: true}}
	check := func(f form, want ...string) {
		t.Helper()
		of := f.of(columns, figure.Load{})
		if got := heads(of, f); !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		if got := alignment(of); len(got) != len(want) {
			t.Errorf("%d columns are aligned, want %d", len(got), len(want))
		}
	}
	check(inText, "a", "c")
	check(inPage, "the long a", "b")
	check(inMarkdown, "a", "c")
}
