package trial

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/internal/result"
)

// A Cell is one thing to measure: its name and labels, and what runs it once.
type Cell struct {
	result.Cell
	// Run measures the cell once on new files of g and leaves none there.
	// countCalls asks for the system calls, at the price of slower ones.
	Run func(ctx context.Context, g *Ground, countCalls bool) (result.Measurement, error)

	Estimate time.Duration // of one Run, with its check
}

// A Matrix says what is run: randomised complete blocks. Every round runs every
// cell once, in a new order that only the seed and the round's number decide.
// Round 0 comes first, counts system calls and is in no figure; it is also what
// warms the machine up.
type Matrix struct {
	Cells      []Cell
	Rounds     int
	Seed       uint64
	CountCalls bool // in round 0

	// Limit is how long the run may take before it starts no further round;
	// 0 is no limit. One round is always run.
	Limit time.Duration
}

// Order returns the cells of a round, by their index, in the order of their run.
func (m Matrix) Order(round int) []int {
	return rand.New(rand.NewPCG(m.Seed, uint64(round))).Perm(len(m.Cells))
}

// Estimate is how long the whole matrix takes.
func (m Matrix) Estimate() time.Duration {
	one := time.Duration(0)
	for _, c := range m.Cells {
		one += c.Estimate
	}
	return one * time.Duration(m.Rounds+1)
}

// A Step is what a watcher is told before each trial.
type Step struct {
	Round, Rounds int
	Trial, Trials int // this one's number, from 1, of all
	Cell          result.Cell
	Left          time.Duration // estimated, this trial included
}

// A Watcher follows a run. An error from Done stops it.
type Watcher interface {
	Begin(Step)
	Done(result.Trial) error
}

// Run runs the matrix on g. It returns the number of whole rounds with nil, or
// with the first error; ctx's error if it was cancelled. A run that reached its
// limit has fewer rounds than planned, and no error.
func (m Matrix) Run(ctx context.Context, g *Ground, w Watcher) (rounds int, err error) {
	run := &running{Matrix: m, ground: g, watcher: w, begun: time.Now(), left: m.Estimate()}
	for round := range m.Rounds + 1 {
		if round > 1 && m.Limit > 0 && time.Since(run.begun) > m.Limit {
			return round - 1, nil
		}
		if err := run.round(ctx, round); err != nil {
			return max(0, round-1), err
		}
	}
	return m.Rounds, nil
}

type running struct {
	Matrix
	ground  *Ground
	watcher Watcher
	begun   time.Time
	trials  int
	left    time.Duration // by the estimates
	timed   time.Time     // when round 1 began; counting made round 0 slower
	planned time.Duration // what the trials that are done since were to take
}

func (r *running) round(ctx context.Context, round int) error {
	if round == 1 {
		r.timed, r.planned = time.Now(), 0
	}
	for position, i := range r.Order(round) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := r.trial(ctx, r.Cells[i], round, position+1); err != nil {
			return err
		}
	}
	return nil
}

func (r *running) trial(ctx context.Context, c Cell, round, position int) error {
	r.trials++
	r.watcher.Begin(Step{
		Round: round, Rounds: r.Rounds,
		Trial: r.trials, Trials: (r.Rounds + 1) * len(r.Cells),
		Cell: c.Cell, Left: r.timeLeft(),
	})
	start := time.Since(r.begun)
	m, err := c.Run(ctx, r.ground, r.CountCalls && round == 0)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%s, round %d: %w", c.Name, round, err)
	}
	r.left, r.planned = r.left-c.Estimate, r.planned+c.Estimate
	return r.watcher.Done(result.Trial{Cell: c.Name, Round: round, Position: position, StartNs: start, Measurement: m})
}

// timeLeft corrects the estimates by how well they have held so far; at first
// they are believed more than a few trials.
func (r *running) timeLeft() time.Duration {
	if r.timed.IsZero() {
		return r.left
	}
	belief := r.Estimate()/5 + 1
	held := float64(time.Since(r.timed)+belief) / float64(r.planned+belief)
	return time.Duration(float64(r.left) * held)
}
