package sweep

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

const (
	// enough is the time from which on a probe is believed.
	enough = 30 * time.Millisecond

	// A probe of a policy that does not wait for the disk writes probeLeast. If that took less than
	// enough, it writes up to probeMost.
	probeLeast = 2 << 20
	probeMost  = 16 << 20

	// A trial writes at most trialMost, so that the kernel has no reason to
	// start writing back in the middle of it. If Writes do not wait for the disk, it writes at least
	// trialLeast, or in turns, many times the usual buffers.
	trialLeast = 2 << 20
	trialMost  = int64(study.MaxRecord)

	// A run of the default time writes at most runMost, the memory that is prepared for
	// its trials included; a longer one may write more.
	runMost = 12 << 30

	// The bytes of a run are enough for this percentage of the rounds that are planned for
	// the default time, because it goes on until it is settled.
	spareRounds = 150

	// longest and shortest bound the time that the slowest trial of a group aims at. Short trials leave
	// time for more rounds, and more rounds show more of a machine whose speed changes. But a trial
	// shorter than decent is mostly overhead, and then fewer rounds are better.
	longest  = 500 * time.Millisecond
	decent   = 200 * time.Millisecond
	shortest = 5 * time.Millisecond

	// A trial whose Writes wait for the disk takes no longer: its cost is a thousand times the others', and known well enough. The time
	// is better spent on rounds.
	durableLongest = 150 * time.Millisecond
)

// A rate is the time that a probe measured: a fixed part and a part for each record.
type rate struct {
	fixed     time.Duration // open, garbage collection, settling
	perRecord float64       // nanoseconds, with the check
}

func (r rate) estimate(records int64) time.Duration {
	return r.fixed + time.Duration(r.perRecord*float64(records))
}

// calibrate finds the rate of every workload by short runs in a closed loop; equal loads are probed
// once.
func calibrate(ctx context.Context, g *trial.WorkDir, loads []Workload, probed func(done, all int)) ([]rate, error) {
	rates, fixed := make([]rate, len(loads)), make([]float64, len(loads))
	known := map[Workload]rate{}
	for i, w := range loads {
		probed(i, len(loads))
		closed := w
		closed.Rate, closed.Twin, closed.Turns, closed.Controlled = 0, false, 0, false
		r, ok := known[closed]
		if !ok {
			var err error
			if r, err = closed.probe(ctx, g); err != nil {
				return nil, err
			}
			known[closed] = r
		}
		rates[i], fixed[i] = r, float64(r.fixed)
	}
	// The fixed part is much the same for all cells, and a few milliseconds are easily disturbed.
	middle := time.Duration(stat.Quantile(fixed, 0.5))
	for i, w := range loads {
		rates[i].fixed = middle
		rates[i] = rates[i].due(w.Rate)
	}
	return rates, nil
}

// due returns the rate of the same workload at perSecond records a second. A policy that can't keep up
// takes as long as it needs, until it is given up.
func (r rate) due(perSecond float64) rate {
	if perSecond > 0 {
		step := float64(time.Second) / perSecond
		r.perRecord = min(max(step, r.perRecord), trial.Patience*step)
	}
	return r
}

// inTurns returns the rate of a trial in the workload's turns, with their controls. About half of the fixed part
// occurs once: the preparation of the memory, and the settling of the file system.
func (r rate) inTurns(w Workload) rate {
	n := max(1, w.Turns)
	records := float64(n)
	switch {
	case w.Controlled && w.Policy.Sync.Mode == holdfast.SyncNever:
		records *= 2
	case w.Controlled: // the syncs take most of the time, and the control has none or a fourth
		records *= 1.25
	}
	return rate{r.fixed * time.Duration(n+1) / 2, r.perRecord * records}
}

func (w Workload) probe(ctx context.Context, g *trial.WorkDir) (rate, error) {
	largest := int64(math.MaxInt64)
	if free, ok := g.Free(); ok {
		largest = free / 4
	}
	for records := w.least(probeLeast); ; records *= 8 {
		if err := g.Need(room(records * w.RecordBytes)); err != nil {
			return rate{}, err
		}
		begun := time.Now()
		m, err := Cell(w.cell(records), 0, trial.NotCounting).Run(ctx, g, false)
		if ctx.Err() != nil {
			return rate{}, ctx.Err()
		}
		if err != nil {
			return rate{}, err
		}
		if m.Elapsed >= enough || 8*m.Size > min(probeMost, largest) {
			each := m.Elapsed - m.Open + time.Duration(m.Size)*checkTime
			return rate{
				fixed:     max(0, time.Since(begun)-each),
				perRecord: float64(each) / float64(m.Records),
			}, nil
		}
	}
}

// least returns the number of records that make up size. If each Write waits for the disk or for its
// time, it is one record for each writer.
func (w Workload) least(size int64) int64 {
	one := int64(w.Writers)
	if w.durable() || w.Rate > 0 {
		return one
	}
	return max(one, size/w.RecordBytes)
}

// checkTime is the approximate time to check a byte, and to prepare its memory. Both are outside the
// measured time.
const checkTime = 2 * time.Nanosecond

// plan fits the workloads into the time, with the bursts at the given rates. The bursts are in turns, or in fewer
// turns or none if the rounds for a verdict would not fit otherwise. Paced workloads run in every n-th round; it
// returns n as every.
func plan(g *trial.WorkDir, c study.Choice, loads []Workload, rates []rate, left time.Duration) (f fitting, every int) {
	for _, turns := range []int{burstTurns, fewTurns, 0} {
		loads = slices.Clone(loads)
		for i := range loads {
			loads[i].Turns = min(loads[i].Turns, turns)
		}
		bursts, long := apart(loads)
		f = fitting{loads: bursts, rounds: c.RoundsToRun(), fixed: c.Rounds > 0, most: most(g, c, loads)}
		f.block, _ = blockCost(c, bursts, rates)
		for i, w := range bursts {
			f.rates = append(f.rates, rates[i].inTurns(w))
		}
		if f, every = f.beside(long, pacedTrials(c, long), left); f.fixed || f.rounds >= f.verdictRounds() {
			break
		}
	}
	return f, every
}

// A fitting is a matrix that must fit into a time.
type fitting struct {
	loads  []Workload
	rates  []rate
	rounds int
	fixed  bool          // the number of rounds was chosen
	most   int64         // bytes of a trial
	block  time.Duration // time of each round beside its trials

	records []int64
}

// into sets the records of each cell and the number of rounds, so that these and the round that counts
// system calls take the given time. It first shortens the trials, then removes rounds that no verdict
// needs. Then it shortens the trials again, and at last removes all rounds but one.
func (f fitting) into(budget time.Duration) fitting {
	enough := f.rounds
	if !f.fixed {
		enough = min(f.rounds, f.verdictRounds())
	}
	for rounds := f.rounds; rounds >= enough; rounds-- {
		if fit, ok := f.try(rounds, decent, budget); ok {
			return fit
		}
	}
	fit, ok := f.try(enough, shortest, budget)
	for !ok && !f.fixed && fit.rounds > 1 {
		fit, ok = f.try(fit.rounds-1, shortest, budget)
	}
	return fit
}

// slackRounds are planned beyond the rounds for a verdict, for a run that is slower than its calibration.
const slackRounds = 1

// verdictRounds is the least number of rounds in which a difference can be proven in every group of
// cells that are compared, plus slackRounds.
func (f fitting) verdictRounds() int {
	groups := map[Workload]int{} // keyed by the loads without the fields in which the cells of a group differ
	rounds := stat.VerdictRounds
	for _, w := range f.loads {
		if w.Twin || w.Empty {
			continue
		}
		w.Policy, w.Turns, w.Controlled = holdfast.Policy{}, 0, false
		groups[w]++
		rounds = max(rounds, stat.GroupRounds(groups[w]))
	}
	return rounds + slackRounds
}

// try finds the longest trials, but not shorter than least, with which the rounds fit into the budget.
// ok is false if not even the shortest fit.
func (f fitting) try(rounds int, least, budget time.Duration) (fit fitting, ok bool) {
	f.rounds = rounds
	for aim := longest; ; aim = max(least, aim*9/10) {
		// Cells with one record size and number of writers that do not wait for the disk write the same
		// number of records, the number of the slowest: they are compared with each other, and some of
		// their costs occur once a file. A durable cell and its twin have a number of their own.
		records := make([]int64, len(f.loads))
		for i, w := range f.loads {
			records[i] = f.alone(i, aim)
			if w.durable() && w.Rate == 0 {
				records[i] = min(records[i], f.alone(i, durableLongest))
			}
			for j, other := range f.loads {
				if w.shares(other) {
					records[i] = min(records[i], f.alone(j, aim))
				}
			}
		}
		f.records = records
		if f.total(rounds) <= budget {
			return f, true
		}
		if aim == least {
			return f, false
		}
	}
}

func (f fitting) total(rounds int) time.Duration {
	sum := time.Duration(0)
	for i, n := range f.records {
		sum += f.rates[i].estimate(n)
	}
	return sum*time.Duration(rounds+1) + f.block*time.Duration(rounds)
}

// shares reports whether two workloads write the same number of records.
func (w Workload) shares(other Workload) bool {
	if w.RecordBytes != other.RecordBytes || w.Writers != other.Writers || w.Rate != other.Rate || w.inSmallTurns() != other.inSmallTurns() {
		return false
	}
	return w.Policy == other.Policy || !w.durable() && !other.durable() && !w.Empty && !other.Empty
}

// most is the largest number of bytes that a trial may write on g. It is trialMost, or less if the
// run's bytes allow less, or if a small disk must leave room for other files. A nil g has room.
func most(g *trial.WorkDir, c study.Choice, loads []Workload) int64 {
	bursts, long := apart(loads)
	each, all := int64(0), runBytes(c, loads) // each: bytes of a round with one of each trial
	for _, w := range long {
		if !w.Empty {
			n := min(pacedTrials(c, long), mostPaced)
			if w.Few > 0 {
				n = w.Few
			}
			size := w.paced(1, 1).Records * w.RecordBytes
			all -= (size + trial.PreparedBytes(size)) * int64(2*n+1)
		}
	}
	for _, w := range bursts {
		if !w.Empty {
			turns := int64(max(1, w.Turns))
			if w.Controlled {
				turns *= 2
			}
			each += turns + trial.PreparedBytes(1)
		}
	}
	rounds := float64(c.RoundsToRun()) * spareRounds / 100 * timesDefault(c)
	if c.Rounds > 0 {
		rounds = float64(c.Rounds)
	}
	each = int64(float64(all) / float64(max(1, each)) / (rounds + 2))
	each = max(trialLeast, min(trialMost, each))
	if g == nil {
		return each
	}
	if free, ok := g.Free(); ok {
		return min(each, free/4)
	}
	return each
}

// timesDefault is the run's time as a multiple of the default time, at least 1.
func timesDefault(c study.Choice) float64 {
	return max(1, float64(c.TimeToTake())/float64(study.Default().Budget))
}

// runBytes is the number of bytes that the trials of a run may write, after calibration.
func runBytes(c study.Choice, loads []Workload) int64 {
	bursts, _ := apart(loads)
	return int64(runMost*timesDefault(c)) - probeBytes(bursts)
}

// probeBytes is the most that calibration writes.
func probeBytes(loads []Workload) (size int64) {
	known := map[Workload]bool{}
	for _, w := range loads {
		w.Rate, w.Twin, w.Turns, w.Controlled = 0, false, 0, false
		if !known[w] && !w.Empty {
			known[w] = true
			for one := w.least(probeLeast) * w.RecordBytes; ; one *= 8 {
				size += one + trial.PreparedBytes(one)
				if 8*one > probeMost {
					break
				}
			}
		}
	}
	return size
}

// alone is the number of records that the cell writes in the time, within the bounds; a whole number
// for each writer.
func (f fitting) alone(i int, t time.Duration) int64 {
	w := f.loads[i]
	n := int64(float64(t) / max(f.rates[i].perRecord, 1))
	least, most := int64(trialLeast), f.most
	if w.inSmallTurns() {
		least, most = min(least, most)/int64(w.Turns), most/int64(w.Turns)
	}
	n = min(n, most/w.RecordBytes)
	n = max(n, w.least(least))
	return max(1, n/int64(w.Writers)) * int64(w.Writers)
}

// beside fits the bursts into the time that n trials of each paced workload leave. It returns with every
// that paced workloads run in every n-th round. The bursts get the rounds for a verdict before the paced
// workloads get more than leastPaced trials, and no time is kept for more trials than there are rounds.
func (f fitting) beside(long []Workload, n int, budget time.Duration) (fit fitting, every int) {
	n = min(n, mostPaced)
	one, once := pacedTime(long)
	for {
		fit = f.into(max(0, budget-once-time.Duration(n)*one))
		if len(long) == 0 || n <= 1 || fit.fixed || fit.rounds >= fit.verdictRounds() || n <= leastPaced && n <= fit.rounds {
			break
		}
		n--
	}
	least := fit.rounds
	if !fit.fixed && len(long) > 0 {
		least = min(least, fit.verdictRounds())
	}
	fit.rounds, every = spread(fit.rounds, least, n)
	return fit, every
}
