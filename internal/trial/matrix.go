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
	// Run measures the cell once on files of its own on g and leaves none there.
	// The warm-up is in no figure: it may be shorter, and count system calls.
	Run func(ctx context.Context, g *Ground, warmUp bool) (result.Measurement, error)

	Estimate time.Duration // of one Run, with its check
}

// On returns the cell run on ground, whichever ground the matrix is run on. It may be
// called before the matrix is run; the ground stays the caller's to close.
func (c Cell) On(ground *Ground) Cell {
	run := c.Run
	c.Run = func(ctx context.Context, _ *Ground, warmUp bool) (result.Measurement, error) {
		return run(ctx, ground, warmUp)
	}
	return c
}

// A Matrix says what is run: randomised complete blocks. Every round runs every
// cell once, in a new order that only the seed and the round's number decide.
// Round 0 comes first, warms the machine up and is in no figure.
//
// It ends after Rounds of them, or, with a Settled, by the stop rule: once there
// are enough for what is to be told, however many that takes, or at the Limit.
type Matrix struct {
	Cells  []Cell
	Rounds int
	Seed   uint64

	// Settled is asked after whole rounds, at first after each, of Done's trials,
	// whether these are enough; nil is never, and then there are just Rounds.
	Settled func() bool

	// Limit is how long the run may take before it starts no further round;
	// 0 is no limit. One round is always run.
	Limit time.Duration

	// Before is the number of the last round that was begun in an earlier part of
	// the run, and Whole how many of its rounds are whole: the run goes on after
	// them, with a warm-up of its own.
	Before, Whole int
}

// Order returns the cells of a round, by their index, in the order of their run.
func (m Matrix) Order(round int) []int {
	return rand.New(rand.NewPCG(m.Seed, uint64(round))).Perm(len(m.Cells))
}

// Estimate is how long the whole matrix takes, or what is left of it.
func (m Matrix) Estimate() time.Duration {
	one := time.Duration(0)
	for _, c := range m.Cells {
		one += c.Estimate
	}
	return one * time.Duration(max(1, m.Rounds-m.Whole)+1)
}

// A Step is what a watcher is told before each trial.
type Step struct {
	Round, Rounds int // those that were left unfinished before are not counted
	Trial, Trials int // this one's number, from 1, of all
	Cell          result.Cell
	Left          time.Duration // estimated, this trial included

	// Open says that the run may end before Rounds and go on beyond them; then
	// Trials is how many there are at least so far, and Left the most.
	Open bool
}

// A Watcher follows a run. An error from Done stops it.
type Watcher interface {
	Begin(Step)
	Done(result.Trial) error
}

// A Stop says why a run ended without an error.
type Stop string

const (
	AllRounds Stop = "rounds"  // these were all that were asked for
	IsSettled Stop = "settled" // Settled said so
	AtLimit   Stop = "limit"
)

// Run runs the matrix on g. It returns the number of whole rounds, those of Whole
// included, and why it stopped; or the first error, which is ctx's if it was
// cancelled.
func (m Matrix) Run(ctx context.Context, g *Ground, w Watcher) (rounds int, stop Stop, err error) {
	run := &running{Matrix: m, ground: g, watcher: w, begun: time.Now(), left: m.Estimate(), ask: 1}
	if err := run.round(ctx, 0); err != nil {
		return m.Whole, "", err
	}
	for rounds = m.Whole; ; rounds++ {
		if stop := run.stop(rounds); stop != "" {
			return rounds, stop, nil
		}
		if err := run.round(ctx, m.Before+1+rounds-m.Whole); err != nil {
			return rounds, "", err
		}
	}
}

// stop says why no round shall follow, or is empty.
func (r *running) stop(rounds int) Stop {
	fresh := rounds - r.Whole
	switch {
	case r.Settled == nil && rounds >= r.Rounds, r.Settled != nil && fresh >= mostRounds:
		return AllRounds
	case r.Settled != nil && rounds >= r.ask:
		if r.Settled() {
			return IsSettled
		}
		r.ask = rounds + 1 + rounds/20
	}
	if fresh > 0 && r.Limit > 0 && r.overLimit(fresh) {
		return AtLimit
	}
	return ""
}

// mostRounds ends a run that its rule never ends: by then the rule takes longer
// than a round, and the machine changes more than the intervals narrow.
const mostRounds = 1000

// overLimit reports whether one more round, as long as those so far and the
// warm-up, would end after the limit.
func (r *running) overLimit(rounds int) bool {
	spent := time.Since(r.begun)
	return spent+spent/time.Duration(rounds+1) > r.Limit
}

type running struct {
	Matrix
	ground  *Ground
	watcher Watcher
	begun   time.Time
	trials  int
	ask     int           // Settled, from that many rounds on: it takes the longer the more there are
	left    time.Duration // by the estimates
	timed   time.Time     // when round 1 began; counting made round 0 slower
	planned time.Duration // what the trials that are done since were to take
}

func (r *running) round(ctx context.Context, round int) error {
	if round > 0 && r.timed.IsZero() {
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
		Round: max(0, round-(r.Before-r.Whole)), Rounds: r.Rounds, Open: r.Settled != nil,
		Trial: r.trials, Trials: max(r.trials, (r.Rounds-r.Whole+1)*len(r.Cells)),
		Cell: c.Cell, Left: r.timeLeft(),
	})
	start := time.Since(r.begun)
	m, err := c.Run(ctx, r.ground, round == 0)
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
	if r.Settled != nil && r.Limit > 0 {
		return max(0, r.Limit-time.Since(r.begun))
	}
	if r.timed.IsZero() {
		return r.left
	}
	belief := r.Estimate()/5 + 1
	held := float64(time.Since(r.timed)+belief) / float64(r.planned+belief)
	return time.Duration(float64(r.left) * held)
}
