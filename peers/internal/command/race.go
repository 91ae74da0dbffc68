package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"
)

// Twin is the note of an arm that runs the same code as the one before it.
const Twin = "the same once more: what the two differ by is the noise"

// Runs are what came of an arm's trials. An arm embeds them.
type Runs[S any] struct {
	Samples []S
	Err     error // of a trial; then the arm is run no more
}

// Keep drops the samples of the rounds after the first ones.
func (r *Runs[S]) Keep(rounds int) { r.Samples = r.Samples[:min(len(r.Samples), max(0, rounds))] }

// Failure returns Err.
func (r *Runs[S]) Failure() error { return r.Err }

// Each returns one value of every sample.
func (r *Runs[S]) Each(of func(S) float64) []float64 {
	values := make([]float64, len(r.Samples))
	for i, s := range r.Samples {
		values[i] = of(s)
	}
	return values
}

// An Arm does a race's work. Its type embeds [Runs].
type Arm interface {
	Keep(rounds int)
	Failure() error
}

// A Race is arms that do the same work: the first is ours, which the others are compared
// with, and the second its twin.
type Race[A any] interface{ Entrants() []A }

// Arms counts those of all races.
func Arms[R Race[A], A any](races []R) (n int) {
	for _, r := range races {
		n += len(r.Entrants())
	}
	return n
}

// Picked keeps the arms that match, and with each of them the two that all are compared
// with; any says whether one did.
func Picked[A any](arms []A, matches func(A) bool) (kept []A, any bool) {
	for i, a := range arms {
		match := matches(a)
		any = any || match
		if match || i < 2 {
			kept = append(kept, a)
		}
	}
	return kept, any
}

// Keep drops the samples of the rounds after the first ones, of all arms.
func Keep[R Race[A], A Arm](races []R, rounds int) {
	for _, r := range races {
		for _, a := range r.Entrants() {
			a.Keep(rounds)
		}
	}
}

// Failed returns [ErrFailed] if an arm did not do its work, unless for an error that is
// excused.
func Failed[R Race[A], A Arm](races []R, excused ...error) error {
	for _, r := range races {
		for _, a := range r.Entrants() {
			if err := a.Failure(); err != nil && !isAny(err, excused) {
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

// Rounds are so many rounds in random order.
type Rounds struct {
	Name  string // the command's
	Count int
	Seed  uint64
	Warm  bool      // a round that is in no figure comes first, number 0
	Talk  io.Writer // gets a line for each finished round
}

// Run calls round for each of them, with its number from 1. It ends at the first error, and then
// forgets the round that it was in. It calls keep with the number of complete rounds, and returns
// it.
func (r Rounds) Run(round func(n int, order *rand.Rand) error, keep func(rounds int)) (complete int, err error) {
	order, begun, first := rand.New(rand.NewPCG(r.Seed, 0)), time.Now(), 1
	if r.Warm {
		first = 0
	}
	for n := first; n <= r.Count; n++ {
		if err := round(n, order); err != nil {
			complete = max(0, n-1)
			keep(complete)
			return complete, err
		}
		left := time.Since(begun) / time.Duration(n-first+1) * time.Duration(r.Count-n)
		fmt.Fprintf(r.Talk, "%s: round %d of %d done, %v left\n", r.Name, n, r.Count, left.Round(time.Second))
	}
	return r.Count, nil
}

// EachArm calls trial for every arm, the races and the arms of a race in an order of their
// own. The arms of a race run close together, so that their ratios are of the same moment.
// It ends at the first error, and when ctx ends between two trials.
func EachArm[R Race[A], A any](ctx context.Context, order *rand.Rand, races []R, trial func(R, A) error) error {
	for _, i := range order.Perm(len(races)) {
		arms := races[i].Entrants()
		for _, j := range order.Perm(len(arms)) {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := trial(races[i], arms[j]); err != nil {
				return err
			}
		}
	}
	return nil
}
