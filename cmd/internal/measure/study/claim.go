package study

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
)

// A Claim is one testable statement of a published document. Most state that a figure lies in a span;
// the others decide by a function.
type Claim struct {
	Name      string // short and unique: lines-20x
	Source    string // the document
	Says      string // its statement, in a few words
	Published string // its figure; empty: none
	Of        string // the only file system that it is about, such as btrfs; empty: any

	// The figure is a metric of the arm Over: as a multiple of the arm Under, round by round; or by
	// itself, printed by Text, if there is no Under.
	Over, Under string
	By          Metric // nil: PerRecord
	Text        func(float64) string
	Counted     bool // the figure does not vary by chance, so its interval is the range of all trials
	// Figure replaces the figure above, unless it is nil.
	Figure func(Evidence) Measured

	Allows     Span
	Otherwise  Verdict // the verdict if the figure is beyond the span; empty: NotHere
	Holds, Not string  // why

	// Add adds text to the finding; nil: nothing is added.
	Add func(Evidence, *Finding)

	// Decide replaces the figure. It is a function of the evidence alone.
	Decide func(Evidence) Finding

	Arms []string // the arms that the claim needs, and the only ones that an audit runs; nil: Over and Under
}

// ClaimsOf returns the claims of one document, with its name in them.
func ClaimsOf(document string, claims []Claim) []Claim {
	claims = slices.Clone(claims)
	for i := range claims {
		claims[i].Source = document
	}
	return claims
}

// Takes returns the arms whose figures the claim uses.
func (c Claim) Takes() []string {
	switch {
	case c.Arms != nil || c.Over == "":
		return c.Arms
	case c.Under == "":
		return []string{c.Over}
	}
	return []string{c.Over, c.Under}
}

// Judge judges the claim by the evidence.
func (c Claim) Judge(e Evidence) Finding {
	if here := e.Fact("file system"); c.Of != "" && c.Of != here {
		return Finding{
			Verdict: NotChecked, Why: fmt.Sprintf("the claim is about %s, and this directory is on %s", c.Of, here),
			Settle: "--dir A_DIRECTORY_ON_" + strings.ToUpper(c.Of),
		}
	}
	if c.Decide != nil {
		return c.Decide(e)
	}
	f := c.figure(e).Judge(c.Allows, cmp.Or(c.Otherwise, NotHere), c.Holds, c.Not)
	if c.Add != nil {
		c.Add(e, &f)
	}
	return f
}

// Ending is an Add that appends a text to the measured figure.
func Ending(text string) func(Evidence, *Finding) {
	return func(_ Evidence, f *Finding) {
		if f.Measured != "" {
			f.Measured += text
		}
	}
}

func (c Claim) figure(e Evidence) Measured {
	by := c.By
	if by == nil {
		by = PerRecord
	}
	switch {
	case c.Figure != nil:
		return c.Figure(e)
	case c.Under != "":
		return Ratio(e.Ratio(c.Over, c.Under, by))
	case c.Counted:
		return e.AllTrials(c.Over, by, c.Text)
	}
	return Figure(e.Summary(c.Over, by), c.Text)
}

// A Finding is the figure that was measured for a claim, and the verdict.
type Finding struct {
	Measured string  `json:"measured,omitempty"` // with its interval; empty: nothing
	Verdict  Verdict `json:"verdict"`
	Why      string  `json:"why"` // one sentence

	// Settle are the flags of holdfast audit --claim NAME that would settle a claim that can't be
	// checked here; empty: none would, or nothing is open.
	Settle string `json:"-"`
}

// Find judges the claim by the evidence. If an arm that it needs was not run, the claim can't be
// checked.
func (c Claim) Find(e Evidence) Finding {
	for _, arm := range c.Takes() {
		if m, ok := e.missing(arm); ok {
			return Finding{Verdict: NotChecked, Why: m.Why, Settle: m.Elsewhere}
		}
		if _, ok := e.Cell(arm); !ok {
			return Finding{Verdict: NotChecked, Why: "no round of " + arm + " is whole", Settle: "--full"}
		}
	}
	return c.Judge(e)
}

// A Verdict is one of five words.
type Verdict string

const (
	Holds      Verdict = "holds"
	NotHere    Verdict = "does not hold here"
	NeverSo    Verdict = "was never so" // not on any machine: by arithmetic, by what a system call means, by the document itself
	AtEdge     Verdict = "at the edge"  // the interval contains a bound of the span: the next run may lie on either side
	NotChecked Verdict = "can't be checked here"
)

// Verdicts are all of them.
var Verdicts = []Verdict{Holds, NotHere, NeverSo, AtEdge, NotChecked}

// A Span is the range that a claim allows: from Least to Most, both included.
type Span struct{ Least, Most float64 }

// About is the span within a factor of a published figure, in both directions: "about 20 times" with a
// factor of 1.5 is 13.3 to 30.
func About(value, factor float64) Span { return Span{value / factor, value * factor} }

// AtLeast and AtMost are spans with one bound.
func AtLeast(value float64) Span { return Span{value, math.Inf(1)} }
func AtMost(value float64) Span  { return Span{math.Inf(-1), value} }

// A Place is the position of an interval: in the span, beyond it, or neither.
type Place int

const (
	Inside Place = iota
	Outside
	astride // part of the interval is in the span, and part of it is not
)

// Place returns the position of the interval; an unknown interval lies astride.
func (s Span) Place(low, high float64) Place {
	switch {
	case math.IsNaN(low) || math.IsNaN(high):
		return astride
	case s.Least <= low && high <= s.Most:
		return Inside
	case high < s.Least || s.Most < low:
		return Outside
	}
	return astride
}

// A Measured figure with its interval, and how to print it.
type Measured struct {
	Value, Low, High float64
	Text             func(float64) string
}

// Ratio turns a comparison into a figure.
func Ratio(c stat.Comparison) Measured { return Measured{c.Ratio, c.Low, c.High, Times} }

// Figure turns a summary into a figure, printed by text.
func Figure(s stat.Summary, text func(float64) string) Measured {
	return Measured{s.Median, s.Low, s.High, text}
}

// AllTrials is the median of an arm's trials, with the least and the largest trial as its interval. It
// is for counts, which do not vary by chance as times do.
func (e Evidence) AllTrials(arm string, of Metric, text func(float64) string) Measured {
	samples := e.Samples(arm, of)
	if len(samples) == 0 {
		return Measured{math.NaN(), math.NaN(), math.NaN(), text}
	}
	return Measured{e.Median(arm, of), slices.Min(samples), slices.Max(samples), text}
}

// String is empty if nothing was measured.
func (m Measured) String() string {
	switch {
	case math.IsNaN(m.Value):
		return ""
	case math.IsNaN(m.Low):
		return m.Text(m.Value)
	case m.Low == m.High:
		return m.Text(m.Value)
	}
	return fmt.Sprintf("%s (%s–%s)", m.Text(m.Value), m.Text(m.Low), m.Text(m.High))
}

// Judge compares the figure with the span that the claim allows. The claim holds if the whole interval
// is inside. If the whole interval is beyond, the verdict is `otherwise`, which is NotHere or NeverSo.
// If the interval contains a bound, the claim is at the edge: the next run may lie on the other side.
func (m Measured) Judge(allowed Span, otherwise Verdict, holds, not string) Finding {
	f := Finding{Measured: m.String()}
	switch allowed.Place(m.Low, m.High) {
	case Inside:
		f.Verdict, f.Why = Holds, holds
	case Outside:
		f.Verdict, f.Why = otherwise, not
	default:
		open := m.Open(allowed)
		f.Verdict, f.Why, f.Settle = open.Verdict, open.Why, open.Settle
	}
	return f
}

// Open is the finding for a figure whose interval contains a bound of the span.
func (m Measured) Open(allowed Span) Finding {
	f := Finding{Measured: m.String(), Verdict: NotChecked, Why: m.Unsettled(), Settle: "--full"}
	if !math.IsNaN(m.Low) && !math.IsNaN(m.High) {
		bound := allowed.Least
		if bound < m.Low {
			bound = allowed.Most
		}
		f.Verdict, f.Why = AtEdge, "the interval contains "+m.Text(bound)+", a bound of the claim: the next run may lie on either side"
	}
	return f
}

// Unsettled is the reason why there is no interval.
func (m Measured) Unsettled() string {
	if math.IsNaN(m.Value) {
		return "it was not measured"
	}
	return "too few rounds for an interval"
}

// More is any ratio above 1: "faster", without a figure.
var More = AtLeast(1)

// A Judged is a claim with its finding.
type Judged struct {
	Study     string `json:"study"`
	Name      string `json:"claim"`
	Source    string `json:"source"`
	Says      string `json:"says"`
	Published string `json:"published,omitempty"`
	Finding

	// FileSystem is the one that the claim was judged on, if the audit covers several.
	FileSystem string `json:"file_system,omitempty"`

	// Command would settle a claim that can't be checked here; empty: no command would, or nothing is
	// open.
	Command string `json:"command,omitempty"`
}

// Claiming returns the study with only the named claims; nil names all. It has none if none of the
// names is its own.
func (s Study) Claiming(names []string) Study {
	if names != nil {
		s.Claims = slices.DeleteFunc(slices.Clone(s.Claims), func(c Claim) bool { return !slices.Contains(names, c.Name) })
	}
	return s
}

// ClaimedArms returns the arms that the study's claims use: the arms that an audit runs. It is never
// nil.
func (s Study) ClaimedArms() []string {
	arms := []string{}
	for _, c := range s.Claims {
		for _, arm := range c.Takes() {
			if !slices.Contains(arms, arm) {
				arms = append(arms, arm)
			}
		}
	}
	return arms
}

// Judge judges the study's claims by a run. If the claims need no run, the run has only a header.
func (s Study) Judge(run result.Run) []Judged { return s.judge(EvidenceOf(run)) }

func (s Study) judge(e Evidence) []Judged {
	var all []Judged
	for _, c := range s.Claims {
		j := Judged{Study: s.Name, Name: c.Name, Source: c.Source, Says: c.Says, Published: c.Published, Finding: c.Find(e)}
		if j.Settle != "" {
			j.Command = "holdfast audit --claim " + c.Name + " " + j.Settle
		}
		all = append(all, j)
	}
	return all
}

// JudgeOn judges the study's claims by a run on several file systems, on each of them. A claim about
// one file system is judged only on that one, or once if the run does not have it. For another run it
// is Judge.
func (s Study) JudgeOn(run result.Run) []Judged {
	on := EvidenceOn(run)
	if len(on) == 0 {
		return s.Judge(run)
	}
	var all []Judged
	for _, c := range s.Claims {
		only := s
		only.Claims = []Claim{c}
		var some, elsewhere []Judged
		for _, e := range on {
			found := only.judge(e)[0]
			found.FileSystem = e.FileSystem
			if c.Of != "" && c.Of != e.Fact("file system") {
				elsewhere = append(elsewhere, found)
				continue
			}
			some = append(some, found)
		}
		if len(some) == 0 && len(elsewhere) > 0 {
			some = elsewhere[:1]
		}
		all = append(all, some...)
	}
	return all
}
