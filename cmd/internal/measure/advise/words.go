package advise

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
)

// Text writes the recommendation for a terminal: the answer and its evidence, or with all everything
// that is known.
func (r Recommendation) Text(w io.Writer, all bool) error {
	var b strings.Builder
	if all {
		fmt.Fprintf(&b, "need: %v\n", r.Need)
		fmt.Fprintf(&b, "judged with %s\n", r.conditions())
	}
	if r.Open != nil {
		fmt.Fprintf(&b, "not decided: %s may meet it, with %s a record; it is not known for %s\n", quote(r.Open.Policy), r.price(*r.Open), r.Open.lacks())
	}
	switch r.Verdict() {
	case Met:
		more := ""
		if r.Open != nil {
			more = fmt.Sprintf(", %s the cost of the undecided policy", times(float64(r.Advised.Cost)/float64(r.Open.Cost)))
		}
		fmt.Fprintf(&b, "advice: %s meets it, with %s a record%s\n", quote(r.Advised.Policy), r.price(*r.Advised), more)
		if len(r.Same) > 0 {
			fmt.Fprintf(&b, "the same cost, within %s: %s; the safest of these\n", percent(r.Tolerance), list(r.Same))
		}
		if len(r.Unlike) > 0 {
			fmt.Fprintf(&b, "no difference in cost is shown: %s\n", list(r.Unlike))
		}
	case NotMet:
		fmt.Fprintf(&b, "advice: no policy meets it; the nearest is %s, which fails %s\n", quote(r.Nearest.Policy), r.Nearest.lacks())
	default:
		fmt.Fprintf(&b, "advice: not known if a policy meets it; the nearest is %s, where it is not known for %s\n", quote(r.Nearest.Policy), r.Nearest.lacks())
	}
	b.WriteByte('\n')
	findings(&b, r.Shown(), r.Capacity)
	if r.Advised != nil {
		fmt.Fprintf(&b, "\n  w, err := %s\n", GoLine(r.Advised.Policy))
	}
	if !all {
		r.reasons(&b)
		_, err := io.WriteString(w, b.String())
		return err
	}
	b.WriteByte('\n')
	if r.Advised != nil {
		r.grounds(&b)
	}
	r.table(&b)
	for _, c := range r.cautions() {
		fmt.Fprintf(&b, "caution: %s\n", c)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// reasons gives in a few lines why no cheaper policy is advised, the cost of losing nothing, and the limits of the evidence.
func (r Recommendation) reasons(b *strings.Builder) {
	b.WriteByte('\n')
	if r.Advised != nil {
		var cheaper *Judgement // the dearest of the cheaper policies that fail
		for _, j := range r.Judged {
			if j.Verdict() == NotMet && j.Cost < r.Advised.Cost && (cheaper == nil || j.Cost > cheaper.Cost) {
				cheaper = &j
			}
		}
		if cheaper != nil {
			fmt.Fprintf(b, "why not cheaper: %s fails %s\n", quote(cheaper.Policy), cheaper.lacks())
		}
		if n := len(r.Safer); n > 0 && r.Safer[n-1].Policy.Loss().Power.None() {
			fmt.Fprintf(b, "to lose nothing: %s, %s the cost\n", quote(r.Safer[n-1].Policy), times(r.Safer[n-1].Price))
		}
	}
	fmt.Fprintf(b, "measured: %s\n", r.conditions())
	const most = 2
	cautions := r.cautions()
	for _, c := range cautions[:min(most, len(cautions))] {
		fmt.Fprintf(b, "caution: %s\n", c)
	}
	if more := len(cautions) - most; more > 0 {
		fmt.Fprintf(b, "and %s more, and every policy that was judged: --all\n", count(int64(more), "caution"))
	}
}

// conditions names the load, the machine and the rounds for which the judgement holds.
func (r Recommendation) conditions() string {
	h, loop := r.figures.Run.Header, "at full speed"
	if r.Load.Rate > 0 {
		loop = "due at " + Records.text(int64(r.Load.Rate))
	}
	parts := []string{Load{r.Load.RecordBytes, r.Load.Writers}.String(), loop, rounds(r.Rounds)}
	if h.Dir != "" {
		parts = append(parts, "in "+strings.ReplaceAll(h.Dir, "\n", `\n`))
	}
	for _, fact := range h.Machine {
		if fact.Name == "file system" || fact.Name == "device" || fact.Name == "kernel" {
			parts = append(parts, fact.Name+" "+fact.Value)
		}
	}
	return strings.Join(parts, ", ")
}

func rounds(n int) string {
	if n == 1 {
		return "1 round"
	}
	return fmt.Sprintf("%d rounds", n)
}

// price writes a policy's cost in words.
func (r Recommendation) price(j Judgement) string {
	kind := "of CPU time"
	if r.ByClock {
		kind = "of elapsed time"
	}
	return nanoseconds(j.Cost) + " " + kind
}

func nanoseconds(x figure.Number) string {
	if !(x > 0) {
		return "nothing"
	}
	return time.Duration(roundUp(int64(math.Ceil(float64(x))))).String()
}

// lacks lists the terms that decide the verdict: the terms that are not met, with the shortfall; else
// the terms that are not known.
func (j Judgement) lacks() string {
	var all []string
	for _, f := range j.Findings {
		if f.Verdict == Met || f.Verdict != j.Verdict() {
			continue
		}
		text := f.How
		if m := f.Margin(); f.Verdict == NotMet && f.Value >= 0 {
			text = f.Text()
			if m < 0 {
				text += ", " + outside(f.Term, m)
			}
		}
		all = append(all, f.Term.String()+" ("+text+")")
	}
	return strings.Join(all, ", ")
}

// outside writes a margin below 0 in words.
func outside(t Term, margin float64) string {
	if t.Of == Rate {
		return percent(-margin) + " too little"
	}
	return percent(-margin) + " too much"
}

func percent(x float64) string {
	switch {
	case x < 0.095:
		return fmt.Sprintf("%.1f %%", x*100)
	case x < 9.995:
		return fmt.Sprintf("%.0f %%", x*100)
	}
	return fmt.Sprintf("%.0f times", x)
}

// Text returns the value as it is shown, or the reason why there is none.
func (f Finding) Text() string {
	switch {
	case f.Value < 0 && f.Verdict == NotMet:
		return "unlimited"
	case f.Value < 0:
		return "not measured"
	case f.Value == 0 && (f.Term.Of == Loss || f.Term.Of == Crash):
		return "nothing"
	}
	return f.Unit.text(f.Value)
}

// findings writes the table of one policy's terms.
func findings(b *strings.Builder, j Judgement, capacity figure.Number) {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "  term\tfound\tmargin\thow it is known\n")
	for _, f := range j.Findings {
		how := f.How
		if f.Term.Of == Rate && capacity.Known() {
			how += "; at full speed " + Records.text(Records.roundDown(float64(capacity)))
		}
		fmt.Fprintf(w, "  %v\t%s\t%s\t%s\n", f.Term, f.Text(), f.marginText(), how)
	}
	w.Flush()
}

func (f Finding) marginText() string {
	m := f.Margin()
	switch {
	case f.Verdict == NotKnown, math.IsNaN(m), f.Verdict == NotMet && m >= 0:
		return string(f.Verdict)
	case m < 0:
		return "not met: " + outside(f.Term, m)
	case f.Term.Limit == 0:
		return "exact"
	}
	return percent(m)
}

// grounds gives the reasons for this policy and against the others.
func (r Recommendation) grounds(b *strings.Builder) {
	for _, s := range r.Safer {
		loss, but := "nothing", ""
		if power := s.Policy.Loss().Power; !power.None() {
			loss = "at most " + bare(power)
		}
		switch s.Verdict() {
		case NotMet:
			but = ", which fails " + s.lacks()
		case NotKnown:
			but = ", where it is not known for " + s.lacks()
		}
		fmt.Fprintf(b, "safer: to lose %s costs %s: %s%s\n", loss, times(s.Price), quote(s.Policy), but)
	}
	for _, f := range r.Falsified {
		fmt.Fprintf(b, "would change with: %s\n", f)
	}
}

// bare writes a bound without "up to", to follow "at most".
func bare(b holdfast.Bound) string { return strings.TrimPrefix(b.String(), "up to ") }

func list(all []Judgement) string {
	var names []string
	for _, j := range all {
		names = append(names, quote(j.Policy))
	}
	return strings.Join(names, ", ")
}

func times(ratio float64) string { return Times(stat.Comparison{Ratio: ratio}) }

// table writes one line for each policy that was judged.
func (r Recommendation) table(b *strings.Builder) {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\n  policy\t%s\tmemory\tverdict\n", map[bool]string{false: "CPU", true: "time"}[r.ByClock]) // short: 80 columns have room for verdicts
	for _, j := range r.Judged {
		verdict := "meets it"
		switch v := j.Verdict(); {
		case r.Advised != nil && j.Policy == r.Advised.Policy:
			verdict = "advised"
		case v == NotMet:
			verdict = "fails " + j.lacks()
		case v == NotKnown:
			verdict = "not known for " + j.lacks()
		}
		fmt.Fprintf(w, "  %v\t%s\t%v\t%s\n", j.Policy, nanoseconds(j.Cost), holdfast.Size(j.Memory), verdict)
	}
	w.Flush()
}

// cautions list what else the judgement depends on. Warnings about the run and about the shown policy's
// samples come last.
func (r Recommendation) cautions() []string {
	var list []string
	if r.Rounds < stat.VerdictRounds {
		list = append(list, fmt.Sprintf("a guess from %s: a verdict needs %d", rounds(r.Rounds), stat.VerdictRounds))
	}
	isPaced := slices.ContainsFunc(r.group.Rows, func(row figure.Row) bool { return row.Cell.Policy == r.Shown().Policy && row.Cell.Rate > 0 })
	if _, rate := r.Need.Term(Rate); rate && r.Load.Rate == 0 && !isPaced {
		list = append(list, "these results were measured at full speed, not at this rate; without a results file, advise measures at the rate")
	}
	switch needed := r.Need.Records(r.Load.RecordBytes); {
	case r.Load.Rate > 0 && needed == 0:
		list = append(list, fmt.Sprintf("the need has no rate: measured at %s", Records.text(int64(r.Load.Rate))))
	case needed < r.Load.Rate:
		list = append(list, "measured at more than the rate that is needed")
	}
	for _, fact := range r.figures.Run.Header.Machine {
		if fact.Name != "journal" || fact.Value != "none" || r.Shown().Policy.Sync.Mode == holdfast.SyncNever {
			continue
		}
		list = append(list, "the file system has no journal: if a crash interrupts later work in a directory, names in it that were durable may be lost; ext4 with a journal, xfs and btrfs keep them")
	}
	if mark := r.figures.Run.Mark(); mark != "" {
		list = append(list, "not complete: "+mark)
	}
	for _, w := range r.figures.Warnings {
		mine := w.Cell != nil && w.Cell.Policy == r.Shown().Policy && figure.LoadOf(*w.Cell) == r.Load
		switch {
		case r.Rounds < stat.VerdictRounds:
		case w.Cell == nil:
			list = append(list, w.What+"; "+w.Cure)
		case mine:
			list = append(list, quote(w.Cell.Policy)+": "+w.What+"; "+w.Cure)
		}
	}
	return list
}

// tooLong describes the sync or flush that would break a bound by time: one that takes longer than the
// limit less the period. If that is longer than the period, it is half of the limit; see inFlight.
func (f Finding) tooLong(b holdfast.Bound, noun string) string {
	switch {
	case b.InFlight && f.Unit == Bytes:
		return fmt.Sprintf("more than %v written during a %s (%s)", holdfast.Size(f.Term.Limit)-b.Bytes, noun, f.How)
	case b.None() || f.Unit != Time:
		return ""
	}
	limit := time.Duration(f.Term.Limit)
	room := limit - b.Time
	if room > b.Time {
		room = limit / 2
	}
	return fmt.Sprintf("a %s that takes longer than %v (%s)", noun, room, f.How)
}
