package figure

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/machine"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
)

// A Warning names a doubt about a run or one of its cells, and the step that removes it.
type Warning struct {
	stat.Warning
	Cell   *result.Cell `json:"-"`                // nil: the warning is about the whole run
	Name   string       `json:"cell,omitempty"`   // of Cell
	Rounds []int        `json:"rounds,omitempty"` // that it is about; empty: about all
}

// newWarning returns a warning about the whole run.
func newWarning(code, what, cure string) Warning {
	return Warning{Warning: stat.Warning{Code: code, What: what, Cure: cure}}
}

// of returns the warning for one cell.
func (w Warning) of(c result.Cell) Warning {
	w.Cell, w.Name = &c, c.Name
	return w
}

// in returns the warning for some rounds.
func (w Warning) in(rounds []int) Warning {
	w.Rounds = rounds
	return w
}

// warn returns all warnings: about all figures first, about single cells last.
func (f Figures) warn() []Warning {
	found := slices.Concat([]Warning{}, f.warnOfRounds(), f.warnOfNoise(), f.warnOfPlace(), f.warnOfSync(), f.warnOfActivity(), f.warnOfProcess(), f.warnOfCalls())
	for _, g := range f.Groups {
		for _, r := range g.Rows {
			found = append(found, f.warnOfCell(r)...)
		}
	}
	return found
}

// warnOfRounds warns of too few rounds, and of a width that was requested and not reached.
func (f Figures) warnOfRounds() (found []Warning) {
	if w, few := stat.TooFewRounds(f.Rounds, f.largest()); few {
		found = append(found, Warning{Warning: w})
	}
	end, want := f.Run.End, f.Run.Header.Plan.Width
	if end != nil && want > 0 && end.Width > want {
		known := fmt.Sprintf("known to ±%.1f %%", end.Width*100)
		if end.Width > 1 {
			known = "not known to a factor of two"
		}
		what := "the least certain ratio"
		if f.Run.Header.Plan.Words {
			what = "the least certain figure"
		}
		found = append(found, newWarning("not-settled", fmt.Sprintf("%s is %s; ±%.1f %% was wanted", what, known, want*100), "give the run more time, or ask for less"))
	}
	return found
}

func (f Figures) warnOfNoise() []Warning {
	steady := len(f.Groups) > 0 && !slices.ContainsFunc(f.Groups, func(g Group) bool { return !g.Steady })
	switch floor := float64(f.Noise.Floor); {
	case steady:
		return nil // long trials are compared with themselves, so one round is enough
	case !f.Noise.Floor.Known() && len(f.Noises) > 0: // the rounds are too few, which is said
		return nil
	case !f.Noise.Floor.Known():
		return []Warning{newWarning("noise-unknown", "no cell was run twice, so the noise is not known and no difference is proven", "run holdfast bench, which repeats a cell")}
	case floor > stat.Band:
		return []Warning{newWarning("noisy",
			fmt.Sprintf("two identical runs differed by up to %.0f %%, and up to %.0f %% counts as the same", math.Ceil(floor*100), stat.Band*100),
			"quiet the machine, or run more rounds")}
	}
	return nil
}

func (f Figures) warnOfCalls() []Warning {
	if reason := f.Run.Header.SystemCallsUnseen; reason != "" {
		return []Warning{newWarning("calls-unseen", "system calls are not observable here ("+reason+")",
			"run it where the kernel shows them, such as on Linux as root with tracefs mounted")}
	}
	return nil
}

// warnOfCell returns the warnings about one cell.
func (f Figures) warnOfCell(r Row) []Warning {
	var found []Warning
	trials := f.Rounded(r.Cell.Name)
	if r.Unserved > 0 {
		due := int64(0)
		for _, t := range trials {
			due += t.Records + t.Unserved
		}
		found = append(found, newWarning("unserved",
			fmt.Sprintf("%d of %d records that were due were not written in time", r.Unserved, due),
			"ask for a lower rate").in(roundsWith(trials, func(t *result.Trial) bool { return t.Unserved > 0 })))
	}
	if p := r.Period; p != nil && p.Short > 0 {
		found = append(found, newWarning("period-missed", fmt.Sprintf("in %d of %d trials slow syncs left no time for the period to fall due %d times; these trials are left out", p.Short, len(trials), LeastDue),
			"quiet the disk").in(roundsWith(trials, func(t *result.Trial) bool { return fellDue(f.run, r.Cell, t) < LeastDue })))
	}
	warm := roundsWith(trials, func(t *result.Trial) bool { return t.Before == nil || !result.Cold.Holds(*t.Before) })
	if r.Cell.Cache == result.TryCold && len(warm) > 0 {
		found = append(found, newWarning("not-cold", fmt.Sprintf("%d of %d trials began with pages of the file in the page cache, or that is not known", len(warm), len(trials)),
			"measure on a file system on a disk, or as root with --cache drop or remount").in(warm))
	}
	if s := r.Steadiness; s != nil && s.Steady < s.Trials {
		found = append(found, newWarning("not-steady", fmt.Sprintf("%d of %d trials did not become steady", s.Trials-s.Steady, s.Trials),
			"let trials take longer").in(roundsWith(trials, func(t *result.Trial) bool { return !t.Steady })))
	}
	if f.Rounds >= stat.VerdictRounds {
		for _, w := range stat.Warnings(r.Costs) {
			found = append(found, Warning{Warning: w})
		}
	}
	for i := range found {
		found[i] = found[i].of(r.Cell)
	}
	return found
}

// roundsWith returns the rounds of the trials for which is returns true, each once, in
// order.
func roundsWith(trials []*result.Trial, is func(*result.Trial) bool) []int {
	var rounds []int
	for _, t := range trials {
		if is(t) {
			rounds = append(rounds, t.Round)
		}
	}
	slices.Sort(rounds)
	return slices.Compact(rounds)
}

// warnOfPlace warns of facts of the machine that make the figures doubtful.
func (f Figures) warnOfPlace() (found []Warning) {
	facts := f.Run.Header.Machine
	if machine.InMemory(facts) {
		found = append(found, newWarning("in-memory",
			fmt.Sprintf("the files lie in memory (%s): no sync reaches a disk, and its cost is not in the figures", machine.Get(facts, "file system").Value),
			"measure in a directory on a disk"))
	}
	if stack, ok := machine.ThinOrStacked(facts); ok {
		found = append(found, newWarning("stacked-device",
			fmt.Sprintf("the device is a stack, not a plain disk (%s): first writes to a block may cost more than later ones, and the figures describe the whole stack", stack),
			"measure on a plain disk or partition to know the disk"))
	}
	if machine.InVirtualMachine(facts) {
		found = append(found, newWarning("virtual-machine",
			"this is a virtual machine: its host shares CPUs and disk with others, and a sync is as durable as the host makes it",
			"measure on the machine and at the hours of the real program"))
	}
	if machine.FrequencyScales(facts) {
		found = append(found, newWarning("frequency-scaling",
			fmt.Sprintf("the CPUs change their frequency (governor %s, boost %s), which CPU times follow",
				machine.Get(facts, "CPU governor").Value, machine.Get(facts, "CPU boost").Value),
			"set the governor to performance and switch boost off while measuring"))
	}
	return found
}

// syncDoubtful is the least plausible time of a sync to stable storage: flash takes some hundred µs to
// program a page. A faster sync ends in a cache, which may be lost with the power if nothing protects
// it.
const syncDoubtful = 50 * time.Microsecond

// warnOfSync warns of a disk that may report "durable" too early, with the cell that shows it most. It
// does not warn of a file system in memory, which loses all anyway.
func (f Figures) warnOfSync() []Warning {
	if machine.InMemory(f.Run.Header.Machine) {
		return nil
	}
	var worst *Row
	shortest := syncDoubtful
	for _, g := range f.Groups {
		for i := range g.Rows {
			if d, ok := g.Rows[i].syncTime(); ok && d < shortest {
				worst, shortest = &g.Rows[i], d
			}
		}
	}
	if worst == nil {
		return nil
	}
	w := newWarning("fast-sync",
		fmt.Sprintf("a sync takes %v (median), less than disks need to store anything: perhaps a volatile cache reports bytes as durable that are not", threeDigits(shortest)),
		"find out whether the disk's cache survives a power cut; if not, switch it off")
	return []Warning{w.of(worst.Cell)}
}

// threeDigits rounds a time to three digits.
func threeDigits(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit)
}

// syncTime returns the time of one sync, if the cell shows it and the clock is fine enough. It is the
// time of a lone writer's Write that waits for the disk, or of the sync at Close.
func (r Row) syncTime() (time.Duration, bool) {
	switch r.Cell.Policy.Sync.Mode {
	case holdfast.SyncGroup, holdfast.SyncEach:
		write := r.Latency
		if r.Service != nil {
			write = *r.Service
		}
		return write.P50, r.Cell.Writers == 1 && write.P50 > noTime
	case holdfast.SyncClose:
		return time.Duration(r.Stages.Sync), r.Stages.Sync > 0
	}
	return 0, false
}

// warnOfProcess warns of events in the measuring process.
func (f Figures) warnOfProcess() (found []Warning) {
	if end := f.Run.End; end != nil && end.ClockJump != 0 {
		found = append(found, newWarning("clock-jump",
			fmt.Sprintf("the time of day went %v off the monotonic clock: somebody set it, or the machine slept", end.ClockJump.Round(time.Millisecond)),
			"keep the machine awake and run it again; if only the clock was set, no figure suffered"))
	}
	h, resumed := f.Run.Header, f.Run.Resumed
	if len(resumed) == 0 {
		return found
	}
	var differences []string
	for _, r := range resumed {
		for _, d := range machine.Differences(h.Machine, r.Machine) {
			differences = append(differences, fmt.Sprintf("%s: %s, then %s", d.Name, d.A, d.B))
		}
		if r.Program != h.Program {
			differences = append(differences, fmt.Sprintf("program: %s, then %s", h.Program, r.Program))
		}
	}
	often := "once"
	if len(resumed) > 1 {
		often = fmt.Sprintf("%d times", len(resumed))
	}
	what := fmt.Sprintf("the run was resumed (%s), so its rounds lie apart in time", often)
	if len(differences) > 0 {
		what = fmt.Sprintf("the run was resumed (%s), and this had changed: %s", often, strings.Join(differences, "; "))
	}
	return append(found, newWarning("resumed", what, "run it in one go"))
}
