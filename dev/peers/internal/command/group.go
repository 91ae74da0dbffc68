package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"time"
)

// Twin is the note of an arm that runs the same code as the one before it.
const Twin = "the same once more: what the two differ by is the noise"

// A Group is arms that do the same work. The first is ours, which the others are compared
// with, and the second its twin. Job is the work, Do is how an arm does it.
type Group[Job, Do any] struct {
	Name, Title string
	Unit        string // the unit that the time is of: a record, a file
	Job         Job
	Arms        []*Arm[Do]
	Notes       []string
	Best        string // the table compares ours with the fastest of the arms whose names begin so; or nothing
}

// An Arm is a program or library that does a group's work.
type Arm[Do any] struct {
	Name, Note string
	Do         Do
	Samples    []Sample
	Err        error // of a trial; then the arm is run no more
}

// Each returns one value of every sample.
func (a *Arm[Do]) Each(of func(Sample) float64) []float64 {
	values := make([]float64, len(a.Samples))
	for i, s := range a.Samples {
		values[i] = of(s)
	}
	return values
}

// Find returns an arm by its name and its group's, or nil.
func Find[Job, Do any](all []*Group[Job, Do], group, arm string) (*Group[Job, Do], *Arm[Do]) {
	for _, g := range all {
		for _, a := range g.Arms {
			if g.Name == group && a.Name == arm {
				return g, a
			}
		}
	}
	return nil, nil
}

// Count counts the arms of all groups.
func Count[Job, Do any](all []*Group[Job, Do]) (n int) {
	for _, g := range all {
		n += len(g.Arms)
	}
	return n
}

// Picked keeps the arms with matching names, and of each group that has one the two that all
// are compared with.
func Picked[Job, Do any](all []*Group[Job, Do], pick *regexp.Regexp) (kept []*Group[Job, Do]) {
	for _, g := range all {
		var arms []*Arm[Do]
		any := false
		for i, a := range g.Arms {
			match := pick.MatchString(g.Name + "/" + a.Name)
			any = any || match
			if match || i < 2 {
				arms = append(arms, a)
			}
		}
		if g.Arms = arms; any {
			kept = append(kept, g)
		}
	}
	return kept
}

// Failed returns [ErrFailed] if an arm did not do its work, unless for an error that is
// excused.
func Failed[Job, Do any](all []*Group[Job, Do], excused ...error) error {
	for _, g := range all {
		for _, a := range g.Arms {
			if a.Err != nil && !isAny(a.Err, excused) {
				return ErrFailed
			}
		}
	}
	return nil
}

func isAny(err error, of []error) bool {
	for _, one := range of {
		if errors.Is(err, one) {
			return true
		}
	}
	return false
}

// Rounds runs n rounds in random order.
type Rounds struct {
	Kind  string // its name
	Count int
	Seed  uint64
	Warm  bool      // a round that is in no figure comes first, number 0
	Talk  io.Writer // gets a line for each finished round
}

// Trials are a round's trials of the groups.
type Trials[Job, Do any] struct {
	Groups []*Group[Job, Do]
	// Open begins a round, and Close ends it; both may be nil.
	Open  func(ctx context.Context) error
	Close func() error
	// Ready brings the machine into the same state before every trial, or is nil. Its error
	// ends the run.
	Ready func(ctx context.Context, g *Group[Job, Do], a *Arm[Do]) error
	// Try runs an arm once. Its error is the arm's.
	Try     func(ctx context.Context, g *Group[Job, Do], a *Arm[Do], round int) (Sample, error)
	Did     func(g *Group[Job, Do], a *Arm[Do], s Sample) // gets each sample, or is nil
	Excused []error                                       // that are no failure of the run
}

// Run runs every arm once in each round. The groups, and the arms of a group, are in an order
// of their own. The arms of a group run close together, so that their ratios are of the same
// moment. It ends at the first error that is no arm's, and when ctx ends between two trials.
// Then it forgets the round that it was in. It returns the number of complete rounds.
func (t Trials[Job, Do]) Run(ctx context.Context, r Rounds) (complete int, err error) {
	order, begun, first := rand.New(rand.NewPCG(r.Seed, 0)), time.Now(), 1
	if r.Warm {
		first = 0
	}
	for n := first; n <= r.Count; n++ {
		if err := t.round(ctx, r, n, order); err != nil {
			complete = max(0, n-1)
			for _, g := range t.Groups {
				for _, a := range g.Arms {
					a.Samples = a.Samples[:min(len(a.Samples), complete)]
				}
			}
			return complete, err
		}
		left := time.Since(begun) / time.Duration(n-first+1) * time.Duration(r.Count-n)
		fmt.Fprintf(r.Talk, "%s: round %d of %d done, %v left\n", r.Kind, n, r.Count, left.Round(time.Second))
	}
	return r.Count, nil
}

func (t Trials[Job, Do]) round(ctx context.Context, r Rounds, n int, order *rand.Rand) (err error) {
	if t.Open != nil {
		if err := t.Open(ctx); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, t.Close()) }()
	}
	for _, i := range order.Perm(len(t.Groups)) {
		g := t.Groups[i]
		for _, j := range order.Perm(len(g.Arms)) {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := t.trial(ctx, r, n, g, g.Arms[j]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t Trials[Job, Do]) trial(ctx context.Context, r Rounds, n int, g *Group[Job, Do], a *Arm[Do]) error {
	if a.Err != nil {
		return nil
	}
	if t.Ready != nil {
		if err := t.Ready(ctx, g, a); err != nil {
			return err
		}
	}
	s, err := t.Try(ctx, g, a, n)
	switch {
	case ctx.Err() != nil: // that is no failure of the arm
		return ctx.Err()
	case err != nil:
		a.Err = err
		fmt.Fprintf(r.Talk, "%s: %s/%s: %v\n", r.Kind, g.Name, a.Name, err)
	case n > 0:
		a.Samples = append(a.Samples, s)
		if t.Did != nil {
			t.Did(g, a, s)
		}
	}
	return nil
}

// Measure runs the trials under the flags, and prints what came of them in tables with more
// columns. Place and versions say what was measured. Errors that are excused stand in the
// tables only, as [errors.ErrUnsupported] does.
func Measure[Job, Do any](ctx context.Context, f *Flags, t Trials[Job, Do], stdout io.Writer, place string, versions []string, more ...Column) error {
	if f.Bench {
		t.Did = func(g *Group[Job, Do], a *Arm[Do], s Sample) { benchmark(stdout, f.Kind, g.Name, a.Name, s) }
	}
	rounds, err := t.Run(ctx, f.Rounds)
	if rounds > 0 && !f.Bench {
		fmt.Fprintf(stdout, "%s\n", f.conditions(rounds, place, versions))
		Tables(stdout, t.Groups, more...)
	}
	if err != nil {
		return err
	}
	return Failed(t.Groups, append(t.Excused, errors.ErrUnsupported)...)
}
