package advise

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/figure"
	"github.com/holdfast-go/holdfast/internal/stat"
)

// Text writes the recommendation for a terminal.
func (r Recommendation) Text(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "need: %v\n", r.Need)
	fmt.Fprintf(&b, "judged with %s\n", r.conditions())
	r.verdict(&b)
	findings(&b, r.Shown(), r.Capacity)
	if r.Advised != nil {
		fmt.Fprintf(&b, "\n  w, err := %s\n\n", GoLine(r.Advised.Policy))
		r.grounds(&b)
	}
	r.table(&b)
	for _, c := range r.cautions() {
		fmt.Fprintf(&b, "caution: %s\n", c)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// conditions says what the judgement holds for.
func (r Recommendation) conditions() string {
	h := r.figures.Run.Header
	parts := []string{Load{r.Load.RecordBytes, r.Load.Writers}.String(), r.loop(), rounds(r.Rounds)}
	if h.Dir != "" {
		parts = append(parts, "in "+h.Dir)
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

func (r Recommendation) loop() string {
	if r.Load.Rate > 0 {
		return "due at " + Records.text(int64(r.Load.Rate))
	}
	return "at full speed"
}

func (r Recommendation) verdict(b *strings.Builder) {
	if r.Advised == nil {
		fmt.Fprintf(b, "advice: no policy meets it; the nearest is %s, which falls short in %s\n\n", quote(r.Nearest.Policy), r.Nearest.lacks())
		return
	}
	fmt.Fprintf(b, "advice: %s meets it, with %s a record\n\n", quote(r.Advised.Policy), r.price(*r.Advised))
}

// price is a policy's cost in words.
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

// lacks lists the terms that are not met, and by how much.
func (j Judgement) lacks() string {
	var all []string
	for _, f := range j.Findings {
		if !f.Met {
			all = append(all, f.Term.String()+" ("+f.lack()+")")
		}
	}
	return strings.Join(all, ", ")
}

func (f Finding) lack() string {
	if f.State != Known {
		return string(f.State) + ": " + f.How
	}
	if m := f.Margin(); m < 0 {
		return fmt.Sprintf("%s, %s", f.Text(), outside(f.Term, m))
	}
	return f.Text()
}

// outside says how far a margin below 0 is off.
func outside(t Term, margin float64) string {
	if t.Of == Rate {
		return fmt.Sprintf("%s too little", percent(-margin))
	}
	return fmt.Sprintf("%s too much", percent(-margin))
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

// Text is the value as it is shown, or why there is none.
func (f Finding) Text() string {
	switch {
	case f.State != Known:
		return string(f.State)
	case f.Value == 0 && (f.Term.Of == Loss || f.Term.Of == Crash):
		return "nothing"
	}
	return f.Unit.text(f.Value)
}

// findings writes the table of one policy's terms.
func findings(b *strings.Builder, j Judgement, capacity figure.Number) {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "  term\tfound\tmargin\twhat it is\n")
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
	case math.IsNaN(m) || !f.Met && m >= 0:
		return "not met"
	case m < 0:
		return "not met: " + outside(f.Term, m)
	case f.Term.Limit == 0:
		return "exact"
	}
	return percent(m)
}

// grounds say why it is this policy and no other.
func (r Recommendation) grounds(b *strings.Builder) {
	if c := r.cheapest; c.Policy != r.Advised.Policy {
		fmt.Fprintf(b, "buffer: %v is the smallest within %s of the cheapest, %s, with %s\n",
			r.Advised.Policy.Buffer, percent(r.Tolerance), quote(c.Policy), r.price(c))
	}
	for _, s := range r.Safer {
		fmt.Fprintf(b, "safer: to lose %s costs %s: %s%s\n", most(s.Policy), times(s.Price), quote(s.Policy), s.but())
	}
	for _, f := range r.Falsified {
		fmt.Fprintf(b, "falsified by: %s\n", f)
	}
}

func most(p holdfast.Policy) string {
	if b := p.Loss().Power; !b.None() {
		return "at most " + b.String()
	}
	return "nothing"
}

// but says what a safer policy no longer meets.
func (s Step) but() string {
	if s.Met() {
		return ""
	}
	return ", which falls short in " + s.lacks()
}

func times(ratio float64) string { return Times(stat.Comparison{Ratio: ratio}) }

// table writes one line for each policy that was judged.
func (r Recommendation) table(b *strings.Builder) {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\n  policy\t%s\tbuffers\tverdict\n", map[bool]string{false: "CPU time a record", true: "time a record"}[r.ByClock])
	for _, j := range r.Judged {
		verdict := "meets it"
		switch {
		case r.Advised != nil && j.Policy == r.Advised.Policy:
			verdict = "advised"
		case !j.Met():
			verdict = "falls short in " + j.lacks()
		}
		fmt.Fprintf(w, "  %v\t%s\t%v\t%s\n", j.Policy, nanoseconds(j.Cost), holdfast.Size(j.Memory), verdict)
	}
	w.Flush()
}

// cautions say what the judgement leans on besides its figures.
func (r Recommendation) cautions() []string {
	var list []string
	if r.Rounds < stat.VerdictRounds {
		list = append(list, fmt.Sprintf("a guess from %s; %d can tell more", rounds(r.Rounds), stat.VerdictRounds))
	}
	if _, rate := r.Need.Term(Rate); rate && r.Load.Rate == 0 {
		list = append(list, "these results hold no open loop at the rate: times are those of a Write at full speed; without results, advise measures at the rate")
	}
	if r.Load.Rate > 0 && r.Need.Records(r.Load.RecordBytes) < r.Load.Rate {
		list = append(list, "measured at more than the rate that is needed")
	}
	if mark := r.figures.Run.Mark(); mark != "" {
		list = append(list, "not complete: "+mark)
	}
	return append(list, r.doubts()...)
}

// doubts are the warnings about the shown policy's samples, and about the run.
func (r Recommendation) doubts() []string {
	var list []string
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

// falsifiers are what a rerun would have to show for the advice to be wrong.
func (r *Recommendation) falsifiers(j Judgement) []string {
	var list []string
	for _, f := range j.Findings {
		if text := f.falsifier(j.Policy); text != "" {
			list = append(list, text)
		}
	}
	if rival, ok := r.rival(j); ok {
		list = append(list, fmt.Sprintf("%s at less than %s of its cost (now %s)", quote(rival.Policy), percent(1/(1+r.Tolerance)), times(float64(rival.Cost)/float64(j.Cost))))
	}
	return append(list, "another disk, file system, kernel or machine; other records or writers: measure again there")
}

// rival is the cheapest policy that meets the need, but for the advised one and
// those that cost the same.
func (r *Recommendation) rival(advised Judgement) (rival Judgement, ok bool) {
	for _, j := range r.Judged {
		if j.Policy != advised.Policy && j.Met() && !r.same(advised, j) && (!ok || byCost(j, rival) < 0) {
			rival, ok = j, true
		}
	}
	return rival, ok
}

// falsifier names the figure that would break the term.
func (f Finding) falsifier(p holdfast.Policy) string {
	switch f.Term.Of {
	case Loss:
		return f.tooLong(p.Loss().Power, "sync")
	case Crash:
		return f.tooLong(p.Loss().Process, "flush")
	case Rate:
		return fmt.Sprintf("less than %s written (here %s)", f.Unit.text(f.Term.Limit), f.Text())
	case Memory:
		return ""
	case CPU:
		return fmt.Sprintf("more than %s of a CPU (here %s)", f.Unit.text(f.Term.Limit), f.Text())
	}
	than := "above"
	if f.Term.Strict {
		than = "not below"
	}
	return fmt.Sprintf("%v of a Write %s %s (here %s)", f.Term.Of, than, f.Unit.text(f.Term.Limit), f.Text())
}

// tooLong says which sync or flush would break a bound by time: one that takes
// longer than what the period leaves, or, where that is more than the period,
// than half of the whole; see inFlight.
func (f Finding) tooLong(b holdfast.Bound, noun string) string {
	if b.None() || f.Unit != Time {
		return ""
	}
	limit := time.Duration(f.Term.Limit)
	room := limit - b.Time
	if room > b.Time {
		room = limit / 2
	}
	return fmt.Sprintf("a %s that takes longer than %v (%s)", noun, room, f.How)
}
