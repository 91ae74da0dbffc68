package study

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/machine"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
)

// Evidence is the results of a study's run, arm by arm, in complete rounds only. A figure that was not
// measured is absent: NaN, or false.
type Evidence struct {
	// FileSystem names the file system that the evidence is from, in a run on several; else it is
	// empty.
	FileSystem string

	// Run is the run, indexed because each table asks for its arms again and again. It may contain
	// trials of incomplete rounds.
	Run result.Indexed

	// Floor is the noise: the gap between an arm and its twin, 0.02 for 2 %.
	Floor float64
}

// EvidenceOn returns the evidence for each file system of a run on several, in the order of its cells.
func EvidenceOn(run result.Run) (all []Evidence) {
	for _, name := range run.FileSystems() {
		e := EvidenceOf(run.On(name))
		e.FileSystem = name
		all = append(all, e)
	}
	return all
}

// EvidenceOf returns the evidence of a run.
func EvidenceOf(run result.Run) Evidence {
	e := Evidence{Run: run.Indexed(), Floor: math.NaN()}
	for _, c := range run.Header.Cells {
		if c.Twin != "" {
			e.Floor = stat.Floor(e.Samples(c.Twin, PerRecord), e.Samples(c.Name, PerRecord))
		}
	}
	return e
}

// Rounds returns the number of complete rounds.
func (e Evidence) Rounds() int { return e.Run.Rounds() }

// Cell returns the arm of that name, if it was run.
func (e Evidence) Cell(arm string) (result.Cell, bool) {
	i := slices.IndexFunc(e.Run.Header.Cells, func(c result.Cell) bool { return c.Name == arm })
	if i < 0 {
		return result.Cell{}, false
	}
	return e.Run.Header.Cells[i], len(e.Run.Rounded(arm)) > 0
}

// Have reports whether all these arms were run.
func (e Evidence) Have(arms ...string) bool {
	return !slices.ContainsFunc(arms, func(arm string) bool {
		_, ok := e.Cell(arm)
		return !ok
	})
}

// Arms returns the arms that were run, without the twin.
func (e Evidence) Arms() (arms []result.Cell) {
	for _, c := range e.Run.Header.Cells {
		if c.Twin == "" {
			arms = append(arms, c)
		}
	}
	return arms
}

// InGroups returns the arms whose group begins with prefix.
func (e Evidence) InGroups(prefix string) []result.Cell {
	return slices.DeleteFunc(e.Arms(), func(c result.Cell) bool { return !strings.HasPrefix(c.Group, prefix) })
}

// Missing is the reason why an arm was not run, or empty.
func (e Evidence) Missing(arm string) string {
	m, _ := e.missing(arm)
	return m.Why
}

// MissingByReason lists the cells that were not run, in a sentence for each reason.
func MissingByReason(all []result.Missing) (sentences []string) {
	for i, m := range all {
		same := func(other result.Missing) bool { return other.Why == m.Why }
		if slices.ContainsFunc(all[:i], same) {
			continue
		}
		arms := m.Cell
		if others := len(all[i+1:]) - len(slices.DeleteFunc(slices.Clone(all[i+1:]), same)); others > 0 {
			arms += fmt.Sprintf(" and %d more", others)
		}
		sentences = append(sentences, arms+": "+m.Why)
	}
	return sentences
}

func (e Evidence) missing(arm string) (result.Missing, bool) {
	for _, m := range e.Run.Header.Missing {
		if m.Cell == arm {
			return m, true
		}
	}
	return result.Missing{}, false
}

// Trials returns the arm's trials, one for each complete round.
func (e Evidence) Trials(arm string) (trials []result.Trial) {
	for _, t := range e.Run.Rounded(arm) {
		trials = append(trials, *t)
	}
	return trials
}

// Samples returns the figure of each of the arm's trials.
func (e Evidence) Samples(arm string, of Metric) []float64 {
	var samples []float64
	for _, t := range e.Run.Rounded(arm) {
		samples = append(samples, of(*t))
	}
	return samples
}

// Summary returns the median of the arm's rounds with its interval.
func (e Evidence) Summary(arm string, of Metric) stat.Summary {
	return stat.Summarize(e.Samples(arm, of))
}

// Median returns the median of Summary: NaN for an arm that was not run, or if a round lacks the
// figure.
func (e Evidence) Median(arm string, of Metric) float64 { return e.Summary(arm, of).Median }

// Ratio returns the ratio of the figures of two arms, over/under, round by round. Its interval holds
// with 95 % for this one ratio.
func (e Evidence) Ratio(over, under string, of Metric) stat.Comparison {
	return stat.Compare(e.Samples(under, of), e.Samples(over, of), e.Floor, stat.Band)
}

// Counted returns the arm's system calls, counted in the warm-up, and the number of records in the
// warm-up.
func (e Evidence) Counted(arm string) (calls result.SystemCalls, records int64, ok bool) {
	t, ok := e.Run.Counted(arm)
	if !ok {
		return calls, 0, false
	}
	return *t.SystemCalls, t.Records, true
}

// Fact returns a fact of the machine, such as "file system", or "unknown".
func (e Evidence) Fact(name string) string {
	if name == "file system" && e.FileSystem != "" {
		kind, _, _ := strings.Cut(strings.TrimPrefix(e.FileSystem, UserModeLinux), "-") // ext4-writeback is an ext4
		return kind
	}
	return machine.Get(e.Run.Header.Machine, name).Value
}

// Worst returns the largest value of that name, or NaN if there is none.
func Worst(trials []result.Trial, name string) float64 {
	most := math.NaN()
	for _, t := range trials {
		most = Larger(most, Value(name)(t))
	}
	return most
}
