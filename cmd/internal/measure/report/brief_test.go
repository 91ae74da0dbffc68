package report_test

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/lab"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/machine"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/report"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
)

func brief(t *testing.T, run result.Run, width int) string {
	t.Helper()
	var b bytes.Buffer
	if err := report.Text(&b, lab.Studies(), run, width, false); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestTheAnswerIsShort: it has at most 30 lines, the table in the order of the loss, the advised policy marked
// in it and named again behind use, and the certainty.
func TestTheAnswerIsShort(t *testing.T) {
	for name, run := range map[string]result.Run{"ten_rounds_brief.txt": planted(t, 10), "paced_brief.txt": paced(t, 10), "interrupted_brief.txt": planted(t, 3)} {
		shown := brief(t, run, 80)
		golden(t, name, shown)
		if n := strings.Count(shown, "\n"); n > 30 {
			t.Errorf("%s has %d lines", name, n)
		}
		use := regexp.MustCompile(`(?m)^use  (?:\(.*\) )?(\S+)`).FindStringSubmatch(shown)
		marked := regexp.MustCompile(`(?m)^> (\S+)`).FindAllStringSubmatch(shown, -1)
		if name != "paced_brief.txt" { // its results don't show the cost of the period
			if use != nil || marked != nil || !strings.Contains(shown, "\nno policy is advised: ") {
				t.Errorf("%s: advised %v, marked %v:\n%s", name, use, marked, shown)
			}
			use, marked = []string{"", "none"}, [][]string{{"", "none"}}
		}
		if len(use) != 2 || len(marked) != 1 || marked[0][1] != use[1] {
			t.Errorf("%s: advised %v, marked %v", name, use, marked)
		}
		nothing, all := strings.Index(shown, "\n  durable "), strings.Index(shown, "\n  unbuffered ")
		if nothing < 0 || nothing > all {
			t.Errorf("%s: what loses nothing is not above what loses all:\n%s", name, shown)
		}
		if name == "paced_brief.txt" && !strings.Contains(shown, "\n     holdfast.Create(path, ") || !strings.Contains(shown, "\nhow sure: ") {
			t.Errorf("%s lacks the line of Go, or how sure it is:\n%s", name, shown)
		}
	}
}

// TestNoPeriodCostsLessThanNone: if paced trials seem faster with syncs than without, the upper bound of their cost is shown.
func TestNoPeriodCostsLessThanNone(t *testing.T) {
	run := paced(t, 10)
	var never []*result.Trial
	for _, trial := range run.Trials {
		if trial.Cell == "paced0" {
			never = append(never, trial)
		}
	}
	for _, trial := range run.Trials {
		if trial.Cell == "paced1" {
			control := never[trial.Round]
			trial.Service, control.Service = control.Service, trial.Service
		}
	}
	for form, want := range map[string]string{"text": `≤1\.00x`, "markdown": `≤1\.00x`, "page": `at most 1x`} {
		var b bytes.Buffer
		var err error
		switch form {
		case "text":
			err = report.Text(&b, lab.Studies(), run, 160, true)
		case "markdown":
			err = report.Export(&b, lab.Studies(), run, report.Markdown)
		case "page":
			err = report.HTML(&b, lab.Studies(), run, report.More{})
		}
		if err != nil {
			t.Fatal(err)
		}
		if !regexp.MustCompile(want).MatchString(b.String()) || regexp.MustCompile(`sync=1s[^\n]{0,60}\b0\.\d+x`).MatchString(b.String()) {
			t.Errorf("as %s:\n%s", form, b.String())
		}
	}
	shown := brief(t, run, 80)
	if !strings.Contains(shown, " ≤1.00x*") || !strings.Contains(shown, "\n     no cost shown beside buffered=64KiB, at 50k/s (at most 1.00x)") || regexp.MustCompile(`\b0\.\d+x\*`).MatchString(shown) {
		t.Errorf("a control that is slower:\n%s", shown)
	}
}

// TestFewTrialsAtAPaceHaveABoundOrNone: in no form is there a bare ratio. Fewer than six have no interval, and fewer than three no bound.
func TestFewTrialsAtAPaceHaveABoundOrNone(t *testing.T) {
	for every, want := range map[int]*regexp.Regexp{2: regexp.MustCompile(`≤1\.\d\dx`), 5: regexp.MustCompile(`\bnot known`)} {
		run := paced(t, 10)
		run.Trials = slices.DeleteFunc(run.Trials, func(t *result.Trial) bool { return strings.HasPrefix(t.Cell, "paced") && t.Round%every != 1 })
		for i := range run.Header.Cells {
			if c := &run.Header.Cells[i]; strings.HasPrefix(c.Name, "paced") {
				c.Every = every
			}
		}
		for _, whole := range []bool{false, true} {
			var b bytes.Buffer
			if err := report.Text(&b, lab.Studies(), run, 120, whole); err != nil {
				t.Fatal(err)
			}
			row := regexp.MustCompile(`(?m)^.*sync=1s .*$`).FindAllString(b.String(), -1)
			if !slices.ContainsFunc(row, want.MatchString) || regexp.MustCompile(`[^≤.\d][\d.]+x\*`).MatchString(b.String()) {
				t.Errorf("every %d, whole %v:\n%s", every, whole, b.String())
			}
		}
	}
}

// TestTheAnswerIsTheSameInEachWidth: except for line breaks. A narrow terminal lacks the times.
func TestTheAnswerIsTheSameInEachWidth(t *testing.T) {
	run := paced(t, 10)
	story := func(width int) string {
		shown := brief(t, run, width)
		for line := range strings.Lines(shown) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > width {
				t.Errorf("%d columns, wanted %d: %s", n, width, line)
			}
		}
		words := strings.Fields(shown)
		slices.Sort(words) // a head on two lines has its words in another order
		return strings.Join(words, " ")
	}
	wide := story(160)
	for _, width := range []int{80, 100, 120} {
		if got := story(width); got != wide {
			t.Errorf("on %d columns:\n%s\nand on 160:\n%s", width, got, wide)
		}
	}
	if narrow := brief(t, run, 60); story(60) == wide || !strings.Contains(narrow, "buffer=64KiB,flush=100ms,") || strings.Contains(narrow, "record ") {
		t.Errorf("on 60 columns:\n%s", narrow)
	}
}

// TestHowSure: the heaviest cause decides the word, and at most two causes are named.
func TestHowSure(t *testing.T) {
	line := func(change func(*result.Run)) string {
		run := planted(t, 10)
		change(&run)
		return regexp.MustCompile(`(?m)^how sure: (.*(?:\n  .*)*)`).FindStringSubmatch(brief(t, run, 160))[1]
	}
	check := func(want string, change func(*result.Run)) {
		t.Helper()
		if got := line(change); !strings.HasPrefix(got, want) {
			t.Errorf("%q, wanted %q", got, want)
		}
	}
	check("good", func(*result.Run) {})
	check("good: a virtual machine", func(r *result.Run) { r.Header.Machine[2].Value = "virtual machine (QEMU)" })
	check("poor: the files lie in memory", func(r *result.Run) { r.Header.Machine[3].Value = "tmpfs" })
	check("fair: the run was resumed", func(r *result.Run) { r.Resumed = make([]result.Resumption, 1) })
	check("poor: other programs took", func(r *result.Run) {
		for _, trial := range r.Trials {
			busy := trial.CPU() + 10*trial.Elapsed
			trial.Activity = &machine.Activity{CPUBusy: &busy}
		}
	})
	check("poor: only 3 rounds", func(r *result.Run) { *r = planted(t, 3) })
	check("fair", func(r *result.Run) { r.End.State, r.Header.Plan.Rounds = result.Interrupted, 20 })
	three := line(func(r *result.Run) {
		*r = planted(t, 3)
		r.Resumed = make([]result.Resumption, 1)
		r.Header.Machine[2].Value = "virtual machine (QEMU)"
		r.Header.Machine = append(r.Header.Machine, machine.Fact{Name: "CPU boost", Value: "on"})
	})
	if !strings.HasPrefix(three, "poor: only 3 rounds") || strings.Count(three, "; ") != 2 || !strings.HasSuffix(three, "; and 2 more") {
		t.Error(three)
	}
}

// TestAFileSystemWithoutAJournalIsNamed: if the advised policy syncs.
func TestAFileSystemWithoutAJournalIsNamed(t *testing.T) {
	for _, of := range []struct {
		run  result.Run
		fact string
		want bool
	}{{paced(t, 10), "none", true}, {paced(t, 10), "journal", false}, {planted(t, 10), "none", false}} {
		of.run.Header.Machine = append(of.run.Header.Machine, machine.Fact{Name: "journal", Value: of.fact})
		if shown := brief(t, of.run, 80); strings.Contains(shown, "\ncaution: the file system has no journal") != of.want {
			t.Errorf("journal %s:\n%s", of.fact, shown)
		}
	}
}

// TestABoundedLossStandsBetween: between nothing and anything, ordered by time, then by amount.
func TestABoundedLossStandsBetween(t *testing.T) {
	run := planted(t, 10)
	for i, text := range []string{"buffer=64KiB,sync=4MiB", "periodic=1s", "periodic=100ms", "durable"} {
		p, err := holdfast.ParsePolicy(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, cell := range []int{i, i + 4} {
			run.Header.Cells[cell].Policy = p
		}
	}
	var order []string
	for _, m := range regexp.MustCompile(`(?m)^[> ] (\S+) +(?:nothing|the last|up to)`).FindAllStringSubmatch(brief(t, run, 80), -1) {
		order = append(order, m[1])
	}
	if got := strings.Join(order, " "); got != "durable periodic=100ms periodic=1s buffer=64KiB,sync=4MiB" {
		t.Error(got)
	}
}
