package trial

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
)

// A Cell is one combination to measure: its name and labels, and the function that runs it.
type Cell struct {
	result.Cell
	// Run measures the cell once on files of its own on g and leaves none there.
	// The warm-up is in no figure: it may be shorter, and count system calls.
	Run func(ctx context.Context, g *WorkDir, warmUp bool) (result.Measurement, error)

	Estimate time.Duration // duration of one Run, with its check
}

// On returns a cell that always runs on workDir, not on the matrix's directory. It may be
// called before the matrix runs. The caller closes workDir.
func (c Cell) On(workDir *WorkDir) Cell {
	run := c.Run
	c.Run = func(ctx context.Context, _ *WorkDir, warmUp bool) (result.Measurement, error) {
		return run(ctx, workDir, warmUp)
	}
	return c
}

// A Matrix is a plan in randomised complete blocks. Every round runs every cell once, in a new order
// that depends only on the seed and the round's number. Round 0 comes first, warms the machine up and
// is in no figure.
//
// A cell with an Every runs in round 1, in round 1+Every, and so on.
//
// It ends after Rounds rounds. If Settled is set, the stop rule ends it: once Settled returns true,
// after any number of rounds, after MostRounds, or at the Limit.
type Matrix struct {
	Cells  []Cell
	Rounds int
	Seed   uint64

	// Settled returns whether the trials passed to Done are enough. Run calls it after complete rounds,
	// at first after each. Nil: there are exactly Rounds rounds.
	Settled func() bool

	// Resting reports whether a cell rests in a round, because what was asked of it is known. Run asks before each
	// round. Nil: no cell rests.
	Resting func(cell string, round int) bool

	// Limit is the time after which the run starts no further round; 0 is no limit. One round always
	// runs.
	Limit time.Duration

	// MostRounds bounds a run with a Settled, because of the bytes that it may write. A round in which cells rest
	// counts as the part of a round that it writes. 0 is no bound.
	MostRounds int

	// Fresh is called before each round except the warm-up. Nil: no call.
	Fresh func(ctx context.Context, g *WorkDir, round int) error

	// Before is the number of the last round that an earlier part of the run started. Whole is the
	// number of its complete rounds: the run continues after them, with a warm-up of its own.
	Before, Whole int
}

// Order returns the indices of a round's cells, in the order in which they run.
func (m Matrix) Order(round int) []int {
	order := rand.New(rand.NewPCG(m.Seed, uint64(round))).Perm(len(m.Cells))
	return slices.DeleteFunc(order, func(i int) bool { return !m.Cells[i].RunsIn(round) || m.rests(i, round) })
}

func (m Matrix) rests(cell, round int) bool {
	return m.Resting != nil && round > 0 && m.Resting(m.Cells[cell].Name, round)
}

// part is the part of a round's bytes that its cells write, 1 if none of them rests.
func (m Matrix) part(round int) float64 {
	all, awake := int64(0), int64(0)
	for i, c := range m.Cells {
		if !c.RunsIn(round) {
			continue
		}
		size := c.bytes()
		if all += size; !m.rests(i, round) {
			awake += size
		}
	}
	if all == 0 {
		return 1
	}
	return float64(awake) / float64(all)
}

// bytes is what a trial writes, with its preparation and its controls.
func (c Cell) bytes() int64 {
	if c.Empty {
		return 0
	}
	size := c.Records * c.RecordBytes
	return (size+c.Control*c.RecordBytes)*int64(max(1, c.Turns)) + PreparedBytes(size)
}

// Estimate returns the duration of the matrix, or of its rest after Whole rounds.
func (m Matrix) Estimate() time.Duration {
	all := time.Duration(0)
	for round := 0; round <= max(1, m.Rounds-m.Whole); round++ {
		for _, c := range m.Cells {
			if c.RunsIn(round) && (round > 0 || c.Every == 0) { // the warm-up of a paced cell is short
				all += c.Estimate
			}
		}
	}
	return all
}

// trials returns the number of trials in the first rounds, with the warm-up.
func (m Matrix) trials(rounds int) int {
	n := 0
	for round := range rounds + 1 {
		n += len(m.Order(round))
	}
	return n
}

// A Step describes the next trial to a watcher.
type Step struct {
	Round, Rounds int // without rounds that an earlier part of the run left unfinished
	Trial, Trials int // the number of this trial, from 1, and of all
	Cell          result.Cell
	Left          time.Duration // estimated, this trial included

	// Open means that the run may end before Rounds or go on beyond them. Then Trials is a lower bound,
	// and Left an upper bound.
	Open bool
}

// A Watcher follows a run. An error from Done stops it.
type Watcher interface {
	Begin(Step)
	Done(result.Trial) error
}

// A Stop is the reason why a run ended without an error.
type Stop string

const (
	AllRounds Stop = "rounds"  // there are Rounds of them
	IsSettled Stop = "settled" // Settled returned true
	AtLimit   Stop = "limit"
)

// Run runs the matrix on g. It returns the number of complete rounds, Whole included, and the reason
// why it stopped. After an error it returns the first one, or ctx's if ctx was cancelled.
func (m Matrix) Run(ctx context.Context, g *WorkDir, w Watcher) (rounds int, stop Stop, err error) {
	run := &running{Matrix: m, workDir: g, watcher: w, begun: time.Now(), took: map[int]taken{}, left: m.Estimate(), ask: 1}
	for round := 1; round <= m.Whole; round++ { // cells may have rested in them
		run.parts += m.part(round)
	}
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

// stop returns the reason why no further round may run, or nothing if one must.
func (r *running) stop(rounds int) Stop {
	fresh := rounds - r.Whole
	next := r.Before + 1 + fresh
	switch {
	case r.Settled == nil && rounds >= r.Rounds, r.Settled != nil && (fresh >= mostRounds || r.MostRounds > 0 && r.parts+r.part(next) > float64(r.MostRounds)):
		return AllRounds
	case r.Settled != nil && rounds >= r.ask:
		if r.Settled() {
			return IsSettled
		}
		r.ask = rounds + 1 + rounds/20
	}
	if fresh > 0 && r.Limit > 0 && time.Since(r.begun)+r.nextRound(next, fresh) > r.Limit {
		return AtLimit
	}
	return ""
}

// nextRound is the time that the next round takes: as long as those so far and the warm-up, or if cells rest in it, as long as
// its cells took, and as the rounds took beside their cells.
func (r *running) nextRound(round, fresh int) time.Duration {
	mean := time.Since(r.begun) / time.Duration(fresh+1)
	if r.part(round) == 1 {
		return mean
	}
	took := time.Since(r.timed)
	for _, t := range r.took {
		took -= t.all
	}
	took /= time.Duration(fresh)
	for _, i := range r.Order(round) {
		if t := r.took[i]; t.n > 0 {
			took += t.all / time.Duration(t.n)
		} else {
			took += r.Cells[i].Estimate
		}
	}
	return min(mean, took)
}

// mostRounds ends a run that its rule never ends. By then the rule takes longer than a round, and
// the machine changes more than the intervals narrow.
const mostRounds = 1000

type running struct {
	Matrix
	workDir *WorkDir
	watcher Watcher
	begun   time.Time
	trials  int
	ask     int           // call Settled from this number of rounds on: it takes longer with more rounds
	parts   float64       // of rounds, the earlier ones included: see MostRounds
	took    map[int]taken // by the place of the cell, without the warm-up
	left    time.Duration // by the estimates
	timed   time.Time     // when round 1 began; counting made round 0 slower
	planned time.Duration // the estimates of the trials that have run since
}

// taken is the time of a number of trials, with all that belongs to them.
type taken struct {
	all time.Duration
	n   int
}

func (r *running) round(ctx context.Context, round int) error {
	if round > 0 && r.timed.IsZero() {
		r.timed, r.planned = time.Now(), 0
	}
	if round > 0 && r.Fresh != nil {
		if err := r.Fresh(ctx, r.workDir, round); err != nil {
			return errors.Join(ctx.Err(), err)
		}
	}
	for position, i := range r.Order(round) {
		if err := ctx.Err(); err != nil {
			return err
		}
		begun := time.Now()
		if err := r.trial(ctx, r.Cells[i], round, position+1); err != nil {
			return err
		}
		if round > 0 {
			r.took[i] = taken{r.took[i].all + time.Since(begun), r.took[i].n + 1}
		}
	}
	if round > 0 {
		r.parts += r.part(round)
	}
	return nil
}

func (r *running) trial(ctx context.Context, c Cell, round, position int) error {
	r.trials++
	r.watcher.Begin(Step{
		Round: max(0, round-(r.Before-r.Whole)), Rounds: r.Rounds, Open: r.Settled != nil,
		Trial: r.trials, Trials: max(r.trials, r.Matrix.trials(r.Rounds-r.Whole)),
		Cell: c.Cell, Left: r.timeLeft(),
	})
	start := time.Since(r.begun)
	m, err := c.Run(ctx, r.workDir, round == 0)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%s, round %d: %w", c.Name, round, err)
	}
	if round > 0 || c.Every == 0 {
		r.left, r.planned = r.left-c.Estimate, r.planned+c.Estimate
	}
	return r.watcher.Done(result.Trial{Cell: c.Name, Round: round, Position: position, StartNs: start, Measurement: m})
}

// timeLeft corrects the estimates by the times so far. At first the estimates weigh more than a few
// trials.
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
