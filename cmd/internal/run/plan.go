package run

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/place"
)

// tellPlan shows what would be measured, as far as that is known without the
// calibration, and writes nothing to the disk.
func (r *Flags) tellPlan(w io.Writer, c study.Choice, cells []result.Cell, plan result.Plan, seed uint64, order place.Order) error {
	if err := place.IsDir(r.Dir); err != nil {
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
	o, note := order.Plan()
	for _, m := range o.Missing {
		fmt.Fprintf(w, "\nnot run: %s: %s\n", m.Cell, m.Why)
	}
	number, where := len(cells), cli.OneLine(r.Dir)
	if o.Number() > 0 {
		where += o.Text()
		if !o.Again {
			number, plan = number*o.Number(), o.All(plan)
		}
	}
	fmt.Fprintf(w, "\nin %s: %s\n", where, planText(number, plan, seed))
	if text := untimedText(c); text != "" {
		fmt.Fprintln(w, text)
	}
	_, err := fmt.Fprintln(w, "this is only a plan: nothing was measured or written")
	if note != "" {
		fmt.Fprintln(w, note)
	}
	return err
}

// untimedText says that a run does not end when its time is up, because the rounds were
// given too.
func untimedText(c study.Choice) string {
	if c.Rounds == 0 || c.Budget == 0 || c.Steady {
		return ""
	}
	return fmt.Sprintf("--rounds %d: all rounds run, however long they take; --time %v only sets the size of the trials", c.Rounds, c.Budget)
}

func planSweep(w io.Writer, cells []result.Cell) {
	fmt.Fprintln(w, "policy\trecord\twriters\trecords a trial\t")
	for _, cell := range cells {
		policy := cell.Policy.String()
		if cell.Empty {
			policy = "(none)"
		}
		fmt.Fprintf(w, "%s\t%v\t%d\t%s\t%s\n", policy, holdfast.Size(cell.RecordBytes), cell.Writers, recordsText(cell), roleText(cell))
	}
}

func planStudy(w io.Writer, cells []result.Cell) {
	fmt.Fprintln(w, "arm\tin a trial\t")
	for _, cell := range cells {
		does := cell.Does
		if role := roleText(cell); role != "" {
			does = role
		}
		work := recordsText(cell)
		if cell.Records > 0 {
			unit := "record"
			if cell.RecordBytes == 1 {
				unit = "byte"
			}
			work = cli.CountText(cell.Records, unit)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", cell.Name, work, does)
	}
}

func recordsText(c result.Cell) string {
	switch {
	case c.Steady && c.Records == 0:
		return "until it is steady"
	case c.Records == 0 && c.Turns > 1:
		return fmt.Sprintf("by calibration, in %d turns", c.Turns)
	case c.Records == 0:
		return "by calibration"
	}
	return fmt.Sprint(c.Records)
}

// roleText says why a cell is there that nobody asked for.
func roleText(c result.Cell) string {
	switch {
	case c.Twin != "":
		return "a repetition, to learn the noise"
	case c.StandIn:
		return "shorter periods, to bound the cost of a longer one"
	case c.Empty:
		return "writes nothing, to learn the cost of measuring"
	}
	return ""
}

// planText says what a run will take. Before calibration its results are upper bounds.
func planText(cells int, plan result.Plan, seed uint64) string {
	rounds := fmt.Sprintf("rounds 1 to %d", plan.Rounds)
	if plan.Rounds == 1 {
		rounds = "one round"
	}
	if plan.Words {
		rounds = fmt.Sprintf("about %d rounds, until each time is known to ±%.3g %% and each comparison is decided, or the time is up", plan.Rounds, plan.Width*100)
	} else if plan.Width > 0 {
		rounds = fmt.Sprintf("about %d rounds, until every ratio is known to ±%.3g %% or the time is up", plan.Rounds, plan.Width*100)
	}
	files := ""
	if plan.Files > 0 {
		files = fmt.Sprintf(", in %s files", cli.Grouped(plan.Files))
	}
	most := ""
	if plan.Width > 0 {
		most = "at most "
	}
	over := ""
	if plan.Limit > 0 && plan.Estimate > 2*plan.Limit {
		over = ", more than --time: less is not enough to measure"
	}
	return fmt.Sprintf("%d cells, each once in a warm-up and in %s, in random order (seed %d); about %v%s; writes %s%s, with at most %s on the disk at once%s",
		cells, rounds, seed, max(time.Second, plan.Estimate.Round(time.Second)), over, most, cli.BytesText(plan.Size), cli.BytesText(plan.Room), files)
}
