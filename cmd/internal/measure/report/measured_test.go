package report_test

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const measured = "../../../../docs/measured"

// TestMeasuredPageShowsItsData renders the second half of docs/measured/README.md from the CSV files beside
// it. A comment in these files is the study and its conditions, its result, or the title of the table
// below; "# shown 1,3: title" puts these columns of the table on the page.
func TestMeasuredPageShowsItsData(t *testing.T) {
	const begin, end = "<!-- measured:begin -->\n", "<!-- measured:end -->"
	names, err := filepath.Glob(measured + "/*.csv")
	if err != nil || len(names) == 0 {
		t.Fatalf("%v, %v", names, err)
	}
	var want strings.Builder
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i, part := range strings.Split(strings.ReplaceAll(string(data), "\r\n", "\n"), "\n\n") {
			if i == 0 {
				study, rest, _ := strings.Cut(strings.TrimPrefix(part, "# "), ": ")
				want.WriteString("## " + study + "\n\n" + strings.ReplaceAll(strings.TrimSpace(rest), "\n# learnt: ", "\n\n**Learnt:** ") + "\n\n")
				continue
			}
			title, rows, _ := strings.Cut(part, "\n")
			columns, title, ok := strings.Cut(strings.TrimPrefix(title, "# "), ": ")
			cells, err := csv.NewReader(strings.NewReader(rows)).ReadAll()
			if err != nil || !ok || len(cells) < 2 {
				t.Fatalf("%s: %s: %d rows, %v", name, title, len(cells), err)
			}
			if columns, shown := strings.CutPrefix(columns, "shown"); shown {
				want.WriteString("**" + title + "**\n\n" + shownTable(t, cells, strings.TrimSpace(columns)) + "\n")
			}
		}
	}
	page, err := os.ReadFile(measured + "/README.md")
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(strings.ReplaceAll(string(page), "\r\n", "\n"), begin)
	got, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("README.md lacks %q or %q", begin, end)
	}
	if got == want.String() {
		return
	}
	if !*update {
		t.Fatal("docs/measured/README.md does not show what its CSV files hold; -update writes it anew")
	}
	if err := os.WriteFile(measured+"/README.md", []byte(before+begin+want.String()+end+after), 0o666); err != nil {
		t.Fatal(err)
	}
}

// shownTable returns rows as Markdown. columns are numbers from 1, separated by commas; an empty text
// means all columns.
func shownTable(t *testing.T, rows [][]string, columns string) string {
	t.Helper()
	var out strings.Builder
	for i, row := range rows {
		if columns != "" {
			var chosen []string
			for number := range strings.SplitSeq(columns, ",") {
				n, err := strconv.Atoi(number)
				if err != nil || n < 1 || n > len(row) {
					t.Fatalf("there is no column %q", number)
				}
				chosen = append(chosen, row[n-1])
			}
			row = chosen
		}
		cell := strings.NewReplacer("|", `\|`, "<", `\<`)
		row = slices.Clone(row)
		for j := range row {
			row[j] = cell.Replace(row[j])
		}
		out.WriteString("| " + strings.Join(row, " | ") + " |\n")
		if i == 0 {
			out.WriteString("|" + strings.Repeat("---|", len(row)) + "\n")
		}
	}
	return out.String()
}
