package report_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/report"
)

// TestAColumnIsOneEntry adds one column to the list: it then appears in every form for people.
func TestAColumnIsOneEntry(t *testing.T) {
	report.AddColumn(t, "new head", "new cell")
	run := planted(t, 3)
	for form, got := range map[string]string{"table": text(t, run), "page": page(t, run), "Markdown": export(t, run, report.Markdown)} {
		if !strings.Contains(got, "new head") || strings.Count(got, "new cell") < 2 {
			t.Errorf("it is not in the %s:\n%s", form, got)
		}
	}
}

// TestColumnsAreMadeOfWhatIsExported looks for the source of each column in the CSV export, which has
// the raw values of every trial.
func TestColumnsAreMadeOfWhatIsExported(t *testing.T) {
	head, _ := table(t, planted(t, 3))
	names := report.RawColumns()
	if len(names) == 0 {
		t.Error("no column names what it is made of")
	}
	for _, name := range names {
		if !slices.Contains(head, name) {
			t.Errorf("there is no %s in %v", name, head)
		}
	}
}
