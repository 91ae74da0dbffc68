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

// A Claim is one thing that a published document says, and that can be put to the
// test. Most say that a figure lies in a span; the others decide by a function.
type Claim struct {
	Name      string // short, and no other claim's: lines-20x
	Source    string // the document
	Says      string // what it says, in a few words
	Published string // its figure; empty: none
	Of        string // the only file system it is said of, such as btrfs; empty: any

	// The figure is what Over takes of a metric: as a multiple of what Under takes, round
	// by round; or by itself, printed by Text, where there is no Under.
	Over, Under string
	By          Metric // nil: PerRecord
	Text        func(float64) string
	Counted     bool // the figure does not vary by chance: its interval holds all trials
	// Figure is another one, and nil where there is none.
	Figure func(Evidence) Measured

	Allows     Span
	Otherwise  Verdict // if the figure is beyond it; empty: NotHere
	Holds, Not string  // why

	// Add says more of what was found; nil: there is no more.
	Add func(Evidence, *Finding)

	// Decide stands in place of the figure. It is a function of the evidence and of
	// nothing else.
	Decide func(Evidence) Finding

	Arms []string // that it takes, and the audit runs no others; nil: Over and Under
}

// ClaimsOf returns the claims of one document, with its name in them.
func ClaimsOf(document string, claims []Claim) []Claim {
	claims = slices.Clone(claims)
	for i := range claims {
		claims[i].Source = document
	}
	return claims
}

// Takes returns the arms whose figures the claim takes.
func (c Claim) Takes() []string {
	switch {
	case c.Arms != nil || c.Over == "":
		return c.Arms
	case c.Under == "":
		return []string{c.Over}
	}
	return []string{c.Over, c.Under}
}

// Judge says what the evidence says of the claim.
func (c Claim) Judge(e Evidence) Finding {
	if here := e.Fact("file system"); c.Of != "" && c.Of != here {
		return Finding{
			Verdict: NotChecked, Why: fmt.Sprintf("it is said of %s, and this directory is on %s", c.Of, here),
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

// Ending is an Add that ends what was measured with a text.
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

// A Finding is what was measured of a claim, and what follows.
type Finding struct {
	Measured string  `json:"measured,omitempty"` // with its interval; empty: nothing
	Verdict  Verdict `json:"verdict"`
	Why      string  `json:"why"` // one sentence

	// Settle are the flags of holdfast audit --claim NAME that would settle what
	// can't be checked here; empty: nothing would, or nothing is open.
	Settle string `json:"-"`
}

// Find judges the claim by the evidence. Where an arm that it takes was not run it
// can't be checked.
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

// A Verdict is one of five.
type Verdict string

const (
	Holds      Verdict = "holds"
	NotHere    Verdict = "does not hold here"
	NeverSo    Verdict = "was never so" // not on any machine: by arithmetic, by what a system call means, by the document itself
	AtEdge     Verdict = "at the edge"  // the interval contains a bound of what the claim allows: runs may fall on either side
	NotChecked Verdict = "can't be checked here"
)

// Verdicts are all of them.
var Verdicts = []Verdict{Holds, NotHere, NeverSo, AtEdge, NotChecked}

// A Span is what a claim allows: from Least to Most, both included.
type Span struct{ Least, Most float64 }

// About is within a factor of a published figure, both ways: "about 20 times" with
// a factor of 1.5 is 13.3 to 30.
func About(value, factor float64) Span { return Span{value / factor, value * factor} }

// AtLeast and AtMost have one bound.
func AtLeast(value float64) Span { return Span{value, math.Inf(1)} }
func AtMost(value float64) Span  { return Span{math.Inf(-1), value} }

// A Place says where an interval lies: in the span, beyond it, or neither.
type Place int

const (
	Inside Place = iota
	Outside
	astride // a part of the interval is in the span, and a part is not
)

// Place says where the interval lies; one that is not known lies astride.
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

// Ratio is a comparison as a figure.
func Ratio(c stat.Comparison) Measured { return Measured{c.Ratio, c.Low, c.High, Times} }

// Figure is a summary as a figure, printed by text.
func Figure(s stat.Summary, text func(float64) string) Measured {
	return Measured{s.Median, s.Low, s.High, text}
}

// AllTrials is the median of an arm's trials with the least and the most of them.
// It is for counts, which do not vary by chance as times do.
func (e Evidence) AllTrials(arm string, of Metric, text func(float64) string) Measured {
	samples := e.Samples(arm, of)
	if len(samples) == 0 {
		return Measured{math.NaN(), math.NaN(), math.NaN(), text}
	}
	return Measured{e.Median(arm, of), slices.Min(samples), slices.Max(samples), text}
}

// String is empty where nothing was measured.
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

// Judge compares what was measured with what the claim allows. The claim holds if
// the whole interval is within. It does not (otherwise, which is NotHere or
// NeverSo) if all of it is beyond. Of an interval that contains a bound neither is
// said: the next run may lie on the other side.
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

// Open is the finding of a figure that lies astride what is allowed.
func (m Measured) Open(allowed Span) Finding {
	f := Finding{Measured: m.String(), Verdict: NotChecked, Why: m.Unsettled(), Settle: "--full"}
	if !math.IsNaN(m.Low) && !math.IsNaN(m.High) {
		bound := allowed.Least
		if bound < m.Low {
			bound = allowed.Most
		}
		f.Verdict, f.Why = AtEdge, "the interval contains "+m.Text(bound)+", a bound of what the claim allows: the next run may lie on either side"
	}
	return f
}

// Unsettled says why there is no interval.
func (m Measured) Unsettled() string {
	if math.IsNaN(m.Value) {
		return "nothing was measured of it"
	}
	return "too few rounds for an interval"
}

// More is any ratio that is more than 1: "faster", and no figure.
var More = AtLeast(1)

// A Judged is a claim with what was found of it.
type Judged struct {
	Study     string `json:"study"`
	Name      string `json:"claim"`
	Source    string `json:"source"`
	Says      string `json:"says"`
	Published string `json:"published,omitempty"`
	Finding

	// FileSystem is the one that it was judged on, of an audit on several.
	FileSystem string `json:"file_system,omitempty"`

	// Command would settle what can't be checked here; empty: none would, or
	// nothing is open.
	Command string `json:"command,omitempty"`
}

// Claiming returns the study with no more claims than those named; nil names all.
// It has none if none of them is its own.
func (s Study) Claiming(names []string) Study {
	if names != nil {
		s.Claims = slices.DeleteFunc(slices.Clone(s.Claims), func(c Claim) bool { return !slices.Contains(names, c.Name) })
	}
	return s
}

// ClaimedArms returns the arms that the study's claims take: what an audit runs. It
// is never nil.
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

// Judge puts the study's claims to the test of a run. One that needed no run has
// nothing but a header.
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

// JudgeOn puts the study's claims to the test of a run on several file systems, on each
// of them. A claim of one file system is judged there alone, or where it is not among
// them, once. Of another run it is Judge.
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
