package report

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/advise"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/chart"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

// AddColumn adds a column to the table of a group while the test runs.
func AddColumn(t *testing.T, head, cell string) {
	before := groupColumns
	t.Cleanup(func() { groupColumns = before })
	groupColumns = slices.Insert(slices.Clone(before), 3, column{head: head, cell: func(figure.Row) string { return cell }})
}

// RawColumns are the columns of the CSV export from which the table's columns are made.
func RawColumns() (names []string) {
	for _, c := range groupColumns {
		if c.raw != "" {
			names = append(names, c.raw)
		}
	}
	return names
}

// TestColumnsAreInTheFormsThatTheyName tests a column that only the page has.
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

// TestAdviceHasFourLines: with the loads of --full and with long names too.
func TestAdviceHasFourLines(t *testing.T) {
	policy := func(text string) holdfast.Policy {
		p, err := holdfast.ParsePolicy(text)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for _, loads := range [][]figure.Load{
		{{RecordBytes: 128, Writers: 1}},
		{{RecordBytes: 128, Writers: 1}, {RecordBytes: 128, Writers: 64}},
		{{RecordBytes: 128, Writers: 1}, {RecordBytes: 128, Writers: 8}, {RecordBytes: 128, Writers: 64}, {RecordBytes: 4096, Writers: 1}, {RecordBytes: 4096, Writers: 8}, {RecordBytes: 4096, Writers: 64}},
	} {
		for _, bounded := range []string{"buffer=64KiB,sync=1s", "buffer=256KiB,flush=100ms/128KiB,sync=1500ms/16MiB"} {
			var groups []figure.Group
			for i, load := range loads {
				g := figure.Group{Load: load}
				for n, text := range []string{"buffer=256KiB,sync=never", bounded, "buffer=256KiB,flush=1500ms/128KiB,sync=group"} {
					ratio := []float64{1, 1.23, 51_234}[n] * float64(10+i*n) / 10
					c := stat.Comparison{N: 20, Ratio: ratio, Low: ratio * 0.81, High: ratio * 1.31, Confidence: 0.95}
					g.Rows = append(g.Rows, figure.Row{Cell: result.Cell{Policy: policy(text), RecordBytes: load.RecordBytes, Writers: load.Writers}, Cost: figure.Comparison{Comparison: c}, LongestSync: 123 * time.Millisecond, Syncs: 1234})
				}
				groups = append(groups, g)
			}
			advice, ok := advise.Choose(groups)
			if !ok || advice.Nothing == "" {
				t.Fatalf("%+v", advice)
			}
			for _, columns := range []int{80, 100} {
				s := sheet{Figures: figure.Figures{Rounds: 20, Groups: groups}, advice: advice, columns: columns}
				lines := s.adviceText()
				if n := strings.Count(lines, "\n"); n > 5 || widest(lines) > columns { // the last is the rule
					t.Errorf("%d loads, %s, %d columns: %d lines\n%s", len(loads), bounded, columns, n, lines)
				}
				if len(loads) == 1 && columns == 100 && bounded == "buffer=64KiB,sync=1s" && !strings.Contains(lines, "(") {
					t.Errorf("there is room for the intervals:\n%s", lines)
				}
			}
		}
	}
}

// TestIntervalsAreCutAtThePicture: an interval that reaches beyond it is cut, and no other.
func TestIntervalsAreCutAtThePicture(t *testing.T) {
	axis := chart.Axis{Low: 0.5, High: 2}
	for _, c := range []struct {
		low, high, from, to float64
		cut                 string
	}{
		{0.9, 1.1, 0.9, 1.1, ""}, {0.00, 234, 0.5, 2, "cut"}, {0.4, 1, 0.5, 1, "cut"}, {1, 2.1, 1, 2, "cut"}, {0.5, 2, 0.5, 2, ""},
	} {
		if from, to, cut := within(c.low, c.high, axis); from != c.from || to != c.to || cut != c.cut {
			t.Errorf("%v to %v: %v to %v, %q", c.low, c.high, from, to, cut)
		}
	}
}

// TestTheBriefTableIsLowOnANarrowTerminal: with two loads, 80 columns hold the usual policies unbroken; only long losses take a
// second line.
func TestTheBriefTableIsLowOnANarrowTerminal(t *testing.T) {
	table := study.Table{Head: []string{"  policy", "lost at a power cut", "a record", "1 writer", "64 writers"}}
	for _, row := range [][2]string{
		{"  durable", "nothing"}, {"> buffer=64KiB,flush=100ms,sync=1s", "the last 1s + one sync"}, {"  buffer=64KiB,sync=4MiB", "up to 4224KiB + in flight"},
		{"  buffer=64KiB,sync=close", "anything not synced"}, {"  buffered=256KiB", "anything not synced"}, {"  unbuffered", "anything not synced"},
	} {
		table.Rows = append(table.Rows, []string{row[0], row[1], "1.23µs", "≤1.45x* ", "3,000x? "})
	}
	shown := briefText(table, 80)
	if lines := strings.Split(strings.TrimSuffix(shown, "\n"), "\n"); len(lines) != 1+6+2 || slices.ContainsFunc(lines, func(l string) bool { return utf8.RuneCountInString(l) > 80 }) {
		t.Errorf("%d lines:\n%s", len(lines), shown)
	}
}
