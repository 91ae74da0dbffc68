package figure

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/machine"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
)

const (
	// othersDoubtful is the part of one CPU above which other programs make a run doubtful.
	othersDoubtful = 0.10

	// The kernel samples the running task once a tick. So a count of n ticks has a standard deviation of √n,
	// and a trial of some milliseconds may have a tick too many. A warning needs tickDeviations standard
	// deviations.
	tickDeviations = 4

	// memoryDoubtful is the part of the time above which tasks that wait for memory make a run
	// doubtful.
	memoryDoubtful = 0.10
)

// A cause is something that disturbs trials, with the counts of the machine that show it.
type cause struct {
	code, what, cure string // the text contains one %.2f: the number of CPUs, or the part of the time

	spent  func(*result.Trial) (time.Duration, bool) // false: not known
	of     func(result.Cell) bool                    // the cells that show it; nil is all
	least  func(share) time.Duration                 // the CPU time below which a count of ticks is no evidence; nil: none
	enough float64                                   // a larger part of the elapsed time gets a warning
}

// leastTicked is the least time that a count of ticks proves to be more than zero.
func leastTicked(counted time.Duration) time.Duration {
	return tickDeviations * time.Duration(math.Sqrt(float64(max(0, counted))*float64(tick)))
}

func causes() []cause {
	return []cause{
		{
			code: "busy", what: "other programs took %.2f CPUs while nothing was synced", cure: "stop other programs, then run it again",
			spent: others, least: func(s share) time.Duration { return leastTicked(s.spent + s.own) }, enough: othersDoubtful,
			of: showsOthers,
		},
		{
			code: "stolen", what: "the host took %.2f CPUs away", cure: "measure on a host that is less busy, or with CPUs of your own",
			spent: known(func(a machine.Activity) *time.Duration { return a.CPUSteal }), least: func(s share) time.Duration { return leastTicked(s.spent) }, enough: othersDoubtful,
		},
		{
			code: "throttled", what: "the control group's quota made CPUs stand still (%.2f of the time)", cure: "raise the CPU limit (cpu.max), or write with fewer goroutines",
			spent: known(func(a machine.Activity) *time.Duration { return a.Throttled }),
		},
		{
			code: "memory-short", what: "tasks waited for memory (%.2f of the time)", cure: "free memory, or raise the memory limit",
			spent: known(func(a machine.Activity) *time.Duration { return a.MemoryPressure }), enough: memoryDoubtful,
		},
	}
}

// showsOthers reports whether CPU time that this process did not use was used by other programs: the kernel does little in
// the background for a cell that never syncs.
func showsOthers(c result.Cell) bool { return c.Empty || c.Policy.Sync.Mode == holdfast.SyncNever }

// othersOf returns the number of CPUs that other programs used during a run, or absent. It is 0 if the
// ticks do not prove that they used any.
func othersOf(run result.Run) Number {
	f := Figures{Run: run}
	var c cause
	for _, c = range causes() {
		if c.code == "busy" {
			break
		}
	}
	all, _ := c.shares(f.cellsOf(c), cpusOf(run))
	switch {
	case all.elapsed == 0:
		return absent
	case all.spent <= c.least(all):
		return 0
	}
	return Number(all.part())
}

// cpusOf returns the number of CPUs of the machine, or 0 if it is not known.
func cpusOf(run result.Run) int {
	n, _ := strconv.Atoi(machine.Get(run.Header.Machine, "CPUs online").Value)
	return max(0, n)
}

// others returns the CPU time that this process did not use during a trial. Counted in ticks, it may be
// below 0.
func others(t *result.Trial) (time.Duration, bool) {
	if t.Activity == nil || t.Activity.CPUBusy == nil {
		return 0, false
	}
	return *t.Activity.CPUBusy - t.CPU(), true
}

// known returns a function that reads a time of a trial's activity.
func known(of func(machine.Activity) *time.Duration) func(*result.Trial) (time.Duration, bool) {
	return func(t *result.Trial) (time.Duration, bool) {
		if t.Activity == nil {
			return 0, false
		}
		d := of(*t.Activity)
		if d == nil {
			return 0, false
		}
		return *d, true
	}
}

// warnOfActivity warns of other activity of the machine, and names the rounds.
func (f Figures) warnOfActivity() []Warning {
	of := make([][]Warning, len(causes()))
	var all sync.WaitGroup // each cause reads every trial
	for i, c := range causes() {
		all.Go(func() { of[i] = c.warn(f.cellsOf(c), cpusOf(f.Run)) })
	}
	all.Wait()
	found := slices.Concat(of...)
	var hot []int
	for t := range f.cellsOf(cause{}) {
		if t.Activity != nil && t.Activity.ThermalThrottles != nil && *t.Activity.ThermalThrottles > 0 {
			hot = append(hot, t.Round)
		}
	}
	slices.Sort(hot)
	if hot = slices.Compact(hot); len(hot) > 0 {
		found = append(found, newWarning("hot", "CPUs were slowed down because they were too hot"+inRounds(hot), "cool the machine, or pause between runs").in(hot))
	}
	return found
}

// cellsOf yields the trials in whole rounds of the cells that show a cause.
func (f Figures) cellsOf(c cause) iter.Seq[*result.Trial] {
	return f.Run.RoundedOf(func(cell result.Cell) bool { return c.of == nil || c.of(cell) })
}

// A share is the part of the trials' time that a cause took.
type share struct {
	spent, elapsed time.Duration
	own            time.Duration // CPU time of this process
}

// plus returns the sum of two shares.
func (s share) plus(other share) share {
	return share{s.spent + other.spent, s.elapsed + other.elapsed, s.own + other.own}
}

// within limits the time spent to the CPU time that this process left unused. 0 CPUs: the number is not
// known.
func (s share) within(cpus int) share {
	if cpus > 0 {
		s.spent = max(0, min(s.spent, time.Duration(cpus)*s.elapsed-s.own))
	}
	return s
}

func (s share) part() float64 { return float64(s.spent) / float64(s.elapsed) }

// exceeds reports whether the share is large enough for a warning.
func (s share) exceeds(c cause) bool {
	return (c.least == nil || s.spent > c.least(s)) && s.part() > c.enough && s.spent > 0
}

// shares sums the trials: over all rounds, and by round.
func (c cause) shares(trials iter.Seq[*result.Trial], cpus int) (all share, rounds map[int]share) {
	if c.least == nil {
		cpus = 0 // the cause's time is no CPU time
	}
	rounds = map[int]share{}
	at, r := 0, share{} // the current round, because most trials have the same round as the one before
	for t := range trials {
		spent, ok := c.spent(t)
		if !ok {
			continue
		}
		if t.Round != at {
			rounds[at] = r
			at, r = t.Round, rounds[t.Round]
		}
		r = r.plus(share{spent, t.Elapsed, t.CPU()})
	}
	rounds[at] = r
	for round, r := range rounds {
		all = all.plus(r)
		rounds[round] = r.within(cpus)
	}
	return all.within(cpus), rounds
}

// warn returns a warning if the cause took too much of all rounds, or of some rounds.
func (c cause) warn(trials iter.Seq[*result.Trial], cpus int) []Warning {
	all, rounds := c.shares(trials, cpus)
	var in []int
	worst := all
	for round, s := range rounds {
		if s.exceeds(c) {
			in = append(in, round)
		}
		if s.exceeds(c) && (!all.exceeds(c) && s.part() > worst.part()) {
			worst = s
		}
	}
	if !all.exceeds(c) && len(in) == 0 {
		return nil
	}
	slices.Sort(in)
	return []Warning{newWarning(c.code, fmt.Sprintf(c.what, worst.part())+inRounds(in), c.cure).in(in)}
}

// mostStretches is the largest number of stretches of rounds that a text names. Results have all of
// them.
const mostStretches = 5

// inRounds names the rounds as a clause, or returns an empty text.
func inRounds(rounds []int) string {
	if len(rounds) == 0 {
		return ""
	}
	text := ", in rounds "
	if len(rounds) == 1 {
		text = ", in round "
	}
	for i, stretches := 0, 0; i < len(rounds); stretches++ {
		if stretches == mostStretches {
			return text + fmt.Sprintf(" and %d more", len(rounds)-i)
		}
		from := i
		for i++; i < len(rounds) && rounds[i] == rounds[i-1]+1; i++ {
		}
		if from > 0 {
			text += ", "
		}
		text += fmt.Sprint(rounds[from])
		if i-from > 1 {
			text += fmt.Sprintf("–%d", rounds[i-1])
		}
	}
	return text
}
