package sweep

import (
	"cmp"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

// A paced trial lasts for three periods of its policy, so that it shows their cost. At full speed it
// would write gigabytes, so its records are due at a moderate rate.
//
// All trials that are compared have one length: the first Writes to a file take longer, and a short trial has more of them.
// A policy with a longer period than longestShort has a stand-in with the same buffer and periods of shortPeriod. More
// syncs don't cost a writer less, so the stand-in's cost bounds its own, and fewLong trials of its own length show that its
// period falls due, how long its syncs take, and that it does not cost more.
const (
	pacedRate  = 50_000  // records a second
	pacedBytes = 8 << 20 // a second, at most

	pacedMargin  = 200 * time.Millisecond // after the third period, for its sync
	shortPeriod  = 100 * time.Millisecond // of a stand-in
	longestShort = 250 * time.Millisecond // the longest period of a policy without a stand-in
	fewLong      = 2
	pacedSettle  = 150 * time.Millisecond // at the beginning of each paced trial: times in it are not compared
	pacedFixed   = 50 * time.Millisecond  // approximate time before and after such a trial

	// Paced trials may take pacedShare percent of the time. A policy without time for leastPaced trials
	// has none.
	pacedShare = 52
	leastPaced = 4
)

// paced returns the workloads in which the periods of the policies fall due, under the load
// with the fewest writers: each policy with a period for which there is time, its stand-in, and its
// control, which never syncs and has the same buffer. One control has a twin, and one workload writes
// nothing; a quick run has neither, and one trial in place of fewLong.
func paced(c study.Choice, loads []Workload) []Workload {
	if len(loads) == 0 {
		return nil
	}
	least := slices.MinFunc(loads, func(a, b Workload) int { return cmp.Compare(a.Writers, b.Writers) })
	base := Workload{RecordBytes: loads[0].RecordBytes, Writers: least.Writers, Setting: c.Setting}
	if base.Rate == 0 {
		base.Rate = max(1, min(pacedRate, pacedBytes/float64(base.RecordBytes)))
	}
	var periodic []Workload
	for _, w := range loads {
		if period := w.period(); period > 0 && w.Writers == base.Writers && w.RecordBytes == base.RecordBytes {
			w.Setting, w.Length = base.Setting, 3*min(period, time.Hour)+pacedMargin
			periodic = append(periodic, w)
		}
	}
	slices.SortStableFunc(periodic, func(a, b Workload) int { return cmp.Compare(a.Length, b.Length) })
	for ; len(periodic) > 0; periodic = periodic[:len(periodic)-1] {
		all := withControls(base, periodic, c.Preset.Name == study.PresetQuick)
		if pacedTrials(c, all) >= leastPaced {
			return all
		}
	}
	return nil
}

func withControls(base Workload, periodic []Workload, quick bool) []Workload {
	var short, long []Workload
	for _, w := range periodic {
		if w.period() <= longestShort {
			short = append(short, w)
		}
	}
	for _, w := range periodic {
		if w.period() > longestShort {
			in := w.standIn()
			if at := slices.IndexFunc(short, func(s Workload) bool { return s.Policy == in.Policy }); at < 0 {
				short = append(short, in)
			}
			if w.Short, w.Few = in.Name(), fewLong; quick {
				w.Few = 1
			}
			long = append(long, w)
		}
	}
	for _, w := range short {
		base.Length = max(base.Length, 3*w.period()+pacedMargin)
	}
	var all []Workload
	seen := map[holdfast.Size]bool{}
	for i, w := range short {
		short[i].Length = base.Length
		control := base
		if control.Policy = holdfast.Buffered(w.Policy.Buffer); !seen[w.Policy.Buffer] {
			seen[w.Policy.Buffer] = true
			all = append(all, control)
		}
	}
	all = slices.Concat(all, short, long)
	if quick {
		return all
	}
	twin, empty := all[0], base
	twin.Twin, empty.Empty, empty.Cache = true, true, ""
	return append(all, twin, empty)
}

// period is the longest period of the workload's policy.
func (w Workload) period() time.Duration { return max(w.Policy.FlushEvery, w.Policy.Sync.Every) }

// standIn is the workload with periods of at most shortPeriod.
func (w Workload) standIn() Workload {
	w.StandIn = true
	w.Policy.FlushEvery, w.Policy.Sync.Every = min(w.Policy.FlushEvery, shortPeriod), min(w.Policy.Sync.Every, shortPeriod)
	return w
}

// pacedTime returns two sums: the time of one trial of each workload with many trials, and the time of all trials of the
// workloads with few.
func pacedTime(all []Workload) (one, once time.Duration) {
	for _, w := range all {
		if w.Few > 0 {
			once += time.Duration(w.Few) * (w.Length + pacedFixed)
			continue
		}
		one += w.Length + pacedFixed
	}
	return one, once
}

// pacedTrials returns the number of trials of each paced workload for which there is time, after the
// workloads with few trials.
func pacedTrials(c study.Choice, all []Workload) int {
	one, once := pacedTime(all)
	return int(max(0, c.TimeToTake()*pacedShare/100-once) / max(1, one))
}

// mostPaced trials are enough for a verdict. More time is better spent on the bursts.
const mostPaced = 2 * stat.VerdictRounds

// spread returns a number of rounds, and every: paced cells run in every n-th round, so that they have
// n trials. It leaves out rounds that would give them one more, but keeps at least least rounds; if
// these are not enough, the cells have fewer trials.
func spread(rounds, least, n int) (fewer, every int) {
	n = max(1, min(n, rounds))
	if n > 1 {
		every = max(1, (rounds-1)/(n-1))
		if fewer = min(rounds, every*n); fewer >= least {
			return fewer, every
		}
	}
	return rounds, (rounds + n - 1) / n
}
