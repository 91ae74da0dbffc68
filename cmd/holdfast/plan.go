package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/result"
)

// tellPlan shows what would be measured, as far as that is known without the
// calibration, and writes nothing to the disk.
func (b *benchmark) tellPlan(w io.Writer, cells []result.Cell, plan result.Plan, seed uint64, o orders) error {
	if err := b.isFolder(); err != nil {
		return err
	}
	var text strings.Builder
	t := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	if len(cells) > 0 && cells[0].Group != "" {
		planStudy(t, cells)
	} else {
		planSweep(t, cells)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(text.String()) {
		fmt.Fprintln(w, strings.TrimRight(line, " \n"))
	}
	for _, m := range o.missing {
		fmt.Fprintf(w, "\nnot run: %s: %s\n", m.Cell, m.Why)
	}
	number, where := len(cells), b.dir
	if o.number() > 0 {
		where += o.text()
		if !o.again {
			number, plan = number*o.number(), o.all(plan)
		}
	}
	fmt.Fprintf(w, "\nin %s: %s\n", where, planText(number, plan, seed))
	if text := b.untimedText(); text != "" {
		fmt.Fprintln(w, text)
	}
	_, err := fmt.Fprintln(w, "nothing was written: this is a plan only")
	return err
}

// untimedText says that a run does not end when its time is up, because the rounds were
// given too.
func (b *benchmark) untimedText() string {
	if b.rounds == 0 || b.budget == 0 || b.steady {
		return ""
	}
	return fmt.Sprintf("--rounds %d: all are run, however long it takes; --time %v sizes the trials and does not end the run", b.rounds, b.budget)
}

// isFolder refuses a plan for a folder that is not there.
func (b *benchmark) isFolder() error {
	if info, err := os.Stat(b.dir); err != nil || !info.IsDir() {
		return misuse("give an existing folder on the disk to measure", "--dir %s: there is no such folder", b.dir)
	}
	return nil
}

func planSweep(w io.Writer, cells []result.Cell) {
	fmt.Fprintln(w, "policy\trecord\twriters\trecords a trial\t")
	for _, cell := range cells {
		fmt.Fprintf(w, "%s\t%v\t%d\t%s\t%s\n", policyText(cell), holdfast.Size(cell.RecordBytes), cell.Writers, recordsText(cell), roleText(cell))
	}
}

func planStudy(w io.Writer, cells []result.Cell) {
	fmt.Fprintln(w, "arm\tin a trial\t")
	for _, cell := range cells {
		does := cell.Does
		if role := roleText(cell); role != "" {
			does = role
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", cell.Name, workText(cell), does)
	}
}

func policyText(c result.Cell) string {
	if c.Empty {
		return "(none)"
	}
	return c.Policy.String()
}

// workText is what an arm of a study does in a trial. Some count bytes.
func workText(c result.Cell) string {
	switch {
	case c.Records == 0:
		return recordsText(c)
	case c.RecordBytes == 1:
		return countText(c.Records, "byte")
	}
	return countText(c.Records, "record")
}

func recordsText(c result.Cell) string {
	switch {
	case c.Steady && c.Records == 0:
		return "until it is steady"
	case c.Records == 0:
		return "by calibration"
	}
	return fmt.Sprint(c.Records)
}

// roleText says why a cell is there that nobody asked for.
func roleText(c result.Cell) string {
	switch {
	case c.Twin != "":
		return "the same again, to learn the noise"
	case c.Empty:
		return "nothing is written, to learn what measuring takes"
	}
	return ""
}

// planText says what a run will take. What calibration decides is an upper bound
// before it.
func planText(cells int, plan result.Plan, seed uint64) string {
	rounds := fmt.Sprintf("rounds 1 to %d", plan.Rounds)
	if plan.Rounds == 1 {
		rounds = "one round"
	}
	if plan.Width > 0 {
		rounds = fmt.Sprintf("about %d rounds, until every ratio is known to ±%.3g %% or %v are up", plan.Rounds, plan.Width*100, plan.Limit.Round(time.Second))
	}
	files := ""
	if plan.Files > 0 {
		files = fmt.Sprintf(", in %s files", humanize.Comma(plan.Files))
	}
	return fmt.Sprintf("%d cells, each once in a warm-up and in %s, in an order by seed %d; about %v%s; writes %s, at most %s at once%s",
		cells, rounds, seed, max(time.Second, plan.Estimate.Round(time.Second)), overText(plan), bytesText(plan.Size), bytesText(plan.Room), files)
}

// overText says that a run takes much longer than it was given, because it can't do less.
func overText(plan result.Plan) string {
	if plan.Limit == 0 || plan.Estimate <= 2*plan.Limit {
		return ""
	}
	return fmt.Sprintf(", although %v were given: less can't be measured", plan.Limit.Round(time.Second))
}

// endText says why a run ended where it did.
func endText(e result.End, plan result.Plan) string {
	done := fmt.Sprintf("ended after %d rounds", e.Rounds)
	if e.Rounds == 1 {
		done = "ended after 1 round"
	}
	width := ""
	if e.Width > 0 {
		width = fmt.Sprintf("; the ratio that is known worst is known to ±%.1f %%", e.Width*100)
	}
	switch {
	case e.State == result.OutOfTime:
		return done + ": " + e.Reason + width
	case e.State == result.Complete && plan.Width > 0:
		return done + fmt.Sprintf(": every ratio is known to ±%.3g %% or better", plan.Width*100)
	case e.State == result.Complete:
		return done + ": all that were planned" + width
	}
	return done + ": " + string(e.State)
}
