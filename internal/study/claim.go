package study

import (
	"fmt"
	"math"
	"slices"

	"github.com/holdfast-go/holdfast/internal/stat"
)

// A Claim is one thing that a published document says, and that can be put to the
// test.
type Claim struct {
	Name      string   // short, and no other claim's: lines-20x
	Source    string   // the document
	Says      string   // what it says, in a few words
	Published string   // its figure; empty: none
	Of        string   // the file system of which alone it is said, such as btrfs; empty: of any
	Arms      []string // the arms whose figures it takes; the audit runs no others

	// Judge says what the evidence says of it. It is a function of the evidence and
	// of nothing else.
	Judge func(Evidence) Finding
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
	for _, arm := range c.Arms {
		if m, ok := e.missing(arm); ok {
			return Finding{Verdict: NotChecked, Why: m.Why, Settle: m.Elsewhere}
		}
		if _, ok := e.Cell(arm); !ok {
			return Finding{Verdict: NotChecked, Why: "no round of " + arm + " is whole", Settle: "--full"}
		}
	}
	return c.Judge(e)
}

// A Verdict is one of four.
type Verdict string

const (
	Holds      Verdict = "holds"
	NotHere    Verdict = "does not hold here"
	NeverSo    Verdict = "was never so" // not on any machine: by arithmetic, by what a system call means, by the document itself
	NotChecked Verdict = "can't be checked here"
)

// Verdicts returns all of them.
func Verdicts() []Verdict { return []Verdict{Holds, NotHere, NeverSo, NotChecked} }

// A span is what a claim allows: from Least to Most, both included.
type span struct{ least, most float64 }

// about is within a factor of a published figure, both ways: "about 20 times" with
// a factor of 1.5 is 13.3 to 30.
func about(value, factor float64) span { return span{value / factor, value * factor} }

func atLeast(value float64) span { return span{value, math.Inf(1)} }
func atMost(value float64) span  { return span{math.Inf(-1), value} }

// place says where an interval lies: in the span, beyond it, or neither.
type place int

const (
	inside place = iota
	outside
	astride // a part of the interval is in the span, and a part is not
)

func (s span) place(low, high float64) place {
	switch {
	case math.IsNaN(low) || math.IsNaN(high):
		return astride
	case s.least <= low && high <= s.most:
		return inside
	case high < s.least || s.most < low:
		return outside
	}
	return astride
}

// A measured figure with its interval, and how to print it.
type measured struct {
	value, low, high float64
	text             func(float64) string
}

func ratio(c stat.Comparison) measured { return measured{c.Ratio, c.Low, c.High, times} }

func figure(s stat.Summary, text func(float64) string) measured {
	return measured{s.Median, s.Low, s.High, text}
}

// allTrials is the median of an arm's trials with the least and the most of them:
// for what is counted, and does not vary by chance as a time does.
func (e Evidence) allTrials(arm string, of Metric, text func(float64) string) measured {
	samples := e.samples(arm, of)
	if len(samples) == 0 {
		return measured{math.NaN(), math.NaN(), math.NaN(), text}
	}
	return measured{e.Median(arm, of), slices.Min(samples), slices.Max(samples), text}
}

// String is empty where nothing was measured.
func (m measured) String() string {
	switch {
	case math.IsNaN(m.value):
		return ""
	case math.IsNaN(m.low):
		return m.text(m.value)
	case m.low == m.high:
		return m.text(m.value)
	}
	return fmt.Sprintf("%s (%s–%s)", m.text(m.value), m.text(m.low), m.text(m.high))
}

// judge holds what was measured against what the claim allows: it holds if the
// whole interval is within, and does not (otherwise, which is NotHere or NeverSo)
// if all of it is beyond. An interval that lies astride says nothing.
func (m measured) judge(allowed span, otherwise Verdict, holds, not string) Finding {
	f := Finding{Measured: m.String()}
	switch allowed.place(m.low, m.high) {
	case inside:
		f.Verdict, f.Why = Holds, holds
	case outside:
		f.Verdict, f.Why = otherwise, not
	default:
		f.Verdict, f.Why, f.Settle = NotChecked, m.unsettled(), "--full"
	}
	return f
}

// unsettled says why the interval decides nothing.
func (m measured) unsettled() string {
	if math.IsNaN(m.value) {
		return "nothing was measured of it"
	}
	if math.IsNaN(m.low) {
		return "too few rounds for an interval"
	}
	return "the interval reaches across what the claim allows"
}
