package report_test

import (
	"html"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// TestReportSaysWhatTheTrialsDo plants each kind of load: the method, the notes
// and the titles must describe that load.
func TestReportSaysWhatTheTrialsDo(t *testing.T) {
	check := func(change func(*result.Cell), want ...string) {
		t.Helper()
		run := planted(t, 10)
		for i := range run.Header.Cells {
			change(&run.Header.Cells[i])
		}
		for i := range run.Trials {
			run.Trials[i].Before = &result.Residency{Pages: 257, Resident: int64(i % 3), Source: "cachestat"}
		}
		for _, words := range want {
			if got := strings.Join(strings.Fields(text(t, run)+html.UnescapeString(page(t, run))), " "); !strings.Contains(got, words) {
				t.Errorf("%q is not in\n%s", words, got)
			}
		}
	}
	check(func(c *result.Cell) { c.Rate = 50000 },
		"128B records, 1 writer, 50.0k records/s due", "so cost compares the mean time of a Write", "(an open loop), the time of a Write counts from when its record was due")
	check(func(c *result.Cell) { c.Cache = result.TryCold },
		"1 writer, page cache try-cold", "0 to 2 of the file's 257 pages were in the page cache before each of 40 trials (cachestat)", "a trial appends to an existing file")
	check(func(c *result.Cell) { c.Steady = true }, "1 writer, until steady", "A steady trial ends when the throughput of the last five seconds")
	check(func(*result.Cell) {}, "service times of writers that go on at once (a closed loop)")
}

// TestHarnessIsShown turns a cell into an empty one. Without an empty cell the notes say so.
func TestHarnessIsShown(t *testing.T) {
	run := planted(t, 10)
	run.Header.Cells[7].Empty = true
	if got, want := page(t, run), "subtracted: the cost of measuring, 2.50µs a record with 64 writers, CPU time 1.88µs"; !strings.Contains(got, want) {
		t.Errorf("%q is not in\n%s", want, got)
	}
	if got, want := page(t, planted(t, 10)), "the cost of measuring is in the figures"; !strings.Contains(got, want) {
		t.Errorf("%q is not in\n%s", want, got)
	}
}

// TestManyRoundsShareMarks: the page of a long run stays small.
func TestManyRoundsShareMarks(t *testing.T) {
	isolate.Once(t)
	site := page(t, planted(t, 2100))
	for _, want := range []string{"rounds 1 to 2: ", "rounds 3 to 5: ", "rounds 2100 to 2100: "} {
		if !strings.Contains(site, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if n := strings.Count(site, " times the median"); n > 3*701 {
		t.Errorf("%d marks of rounds", n)
	}
}
