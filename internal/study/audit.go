package study

import (
	"slices"

	"github.com/holdfast-go/holdfast/internal/result"
)

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

// Audited returns the studies whose claims are put to the test, in the order of
// the audit's table.
func Audited() []Study { return Studies() }

// ClaimNames lists the claims of all studies.
func ClaimNames() []string {
	var names []string
	for _, s := range Audited() {
		for _, c := range s.Claims {
			names = append(names, c.Name)
		}
	}
	return names
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
		for _, arm := range c.Arms {
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
