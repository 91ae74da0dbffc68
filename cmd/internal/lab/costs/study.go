// Package costs is the study of the ladder of costs, from a load that hits the cache to the
// disk.
//
// In the clock is one kind of operation, many times. A fast operation is timed as a [difference]:
// the loop with it less the loop without, turn by turn in the same trial. Operations that wait for
// the disk are timed one by one, and their distribution kept. Files are made before and read back
// after.
//
// Start with [Study].
package costs

import (
	"cmp"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/chart"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

// Study returns the study, with its arms and claims.
func Study() study.Study {
	t := study.Table{Title: "System Call Cost Hierarchy", Source: study.FileIOExperiment, Head: []string{"operation", "cost"}}
	for _, l := range []level{memoryLevel, callLevel, emptyLevel, ioLevel, seekLevel} {
		t.Rows = append(t.Rows, []string{l.name, l.printed})
	}
	return study.Study{
		Name:     "costs",
		Question: "what do a load, a call, a system call, a write and the disk cost here",
		Source:   study.FileIOExperiment,
		Takes:    []string{study.TakesCount},
		Published: []study.Table{t, {
			Title: "System Call Overhead", Source: study.FileIOExperiment, Head: []string{"operation", "cost"},
			Rows: [][]string{{switchLevel.name, switchLevel.printed}},
		}},
		Arms: func(c study.Choice) []study.Arm {
			var arms []study.Arm
			for _, r := range ladder() {
				n := r.count
				if r.disk && c.Preset.Name == study.PresetQuick {
					n /= 4
				}
				if c.Count > 0 {
					n = min(n, c.Count)
				}
				missing, elsewhere := r.missing, ""
				if r.cache != "" && missing == "" {
					missing, elsewhere = study.CacheMissing(c, result.Cold), study.CacheElsewhere(c, result.Cold)
				}
				arms = append(arms, study.Arm{
					Cell:    result.Cell{Name: r.name, Group: r.name, Does: r.does, Writers: 1, Records: n, Cache: r.cache},
					Missing: missing, Elsewhere: elsewhere, Time: aroundTrial + time.Duration(n)*r.each, Bytes: r.bytes,
					Task: func() trial.Task { return r.task(n) },
				})
			}
			return arms
		},
		Twin:   writeRung,
		Show:   showCosts,
		Claims: study.ClaimsOf(study.FileIOExperiment, costsClaims),
	}
}

// A level is a line of the published hierarchy: its range in nanoseconds.
type level struct {
	name, printed string
	study.Span
}

// The lines as they were printed. The last is from the section before, which calls
// the way into the kernel and back a context switch.
var (
	memoryLevel = level{"Memory operations", "~1-10 nanoseconds", study.Span{Least: 1, Most: 10}}
	callLevel   = level{"User-space function call", "~1-5 nanoseconds", study.Span{Least: 1, Most: 5}}
	emptyLevel  = level{"System call (empty)", "~50-100 nanoseconds", study.Span{Least: 50, Most: 100}}
	ioLevel     = level{"System call (I/O)", "~1-5 microseconds (1000-5000 ns)", study.Span{Least: 1e3, Most: 5e3}}
	seekLevel   = level{"Disk seek", "~5-10 milliseconds (5,000,000-10,000,000 ns)", study.Span{Least: 5e6, Most: 10e6}}
	switchLevel = level{"Context Switching (User → Kernel → User)", "~1-3 microseconds per switch", study.Span{Least: 1e3, Most: 3e3}}
)

// A rung is one operation of the ladder.
type rung struct {
	name   string
	level  *level // that speaks of it; nil: none
	method string // how it is measured, in a few words
	does   string

	count   int64         // operations in a trial
	each    time.Duration // that one takes, about, with its setup
	disk    bool          // waits for the disk: fewer of it in a quick run
	bytes   int64         // that a trial writes, about
	cache   result.Cache  // that is asked for
	missing string

	task func(n int64) trial.Task
}

// The names of the rungs.
const (
	loadRung     = "load from the first cache"
	memoryRung   = "load from main memory"
	callRung     = "function call"
	clockRung    = "clock reading"
	mutexRung    = "mutex, lock and unlock"
	allocRung    = "allocation of 64 bytes"
	copyRung     = "copy of 4 KiB"
	bufferedRung = "40 bytes through a buffer"
	emptyRung    = "empty system call"
	goEmptyRung  = "empty system call, Go's way"
	switchRung   = "goroutine switch, one CPU"
	crossRung    = "goroutine switch, two CPUs"
	lockedRung   = "goroutine switch, own threads"
	threadRung   = "thread switch"
	faultRung    = "page fault"
	writeRung    = "write of 40 bytes"
	readByteRung = "read of 1 byte"
	readPageRung = "read of 4 KiB"
	syncRung     = "fsync of a page"
	growRung     = "fsync of a page, growing file"
	coldRung     = "cold read of 4 KiB"
)

// ladder returns the rungs, about from the cheapest to the dearest.
func ladder() []rung {
	return slices.Concat(processorRungs(), kernelRungs, fileRungs)
}

const bareLoop = "less the bare loop"

// onlyLinux is why a rung is missing elsewhere.
func onlyLinux(why string) string {
	if runtime.GOOS == "linux" {
		return ""
	}
	return why + ", and this is " + runtime.GOOS
}

// aroundTrial is about what every trial takes besides.
const aroundTrial = 10 * time.Millisecond

func showCosts(e study.Evidence) study.Shown {
	rungs := climbed(e)
	return study.Shown{
		Tables:  []study.Table{hierarchyTable(e, rungs), stepsTable(e, rungs), waitsTable(e), countsTable(e)},
		Picture: ladderPicture(e, rungs),
		Learnt:  costsLearnt(e, rungs),
	}
}

// climbed returns the rungs in order of their cost here; rungs that did not run come last.
func climbed(e study.Evidence) []rung {
	rungs := ladder()
	slices.SortStableFunc(rungs, func(a, b rung) int { return cmp.Compare(rungCost(e, a), rungCost(e, b)) })
	return rungs
}

// rungCost is infinite for a rung that was not run.
func rungCost(e study.Evidence, r rung) float64 {
	if cost := e.Median(r.name, study.PerRecord); !math.IsNaN(cost) {
		return cost
	}
	return math.Inf(1)
}

func wasRun(e study.Evidence, r rung) bool { return !math.IsInf(rungCost(e, r), 1) }

// hierarchyTable has the published columns first.
func hierarchyTable(e study.Evidence, rungs []rung) study.Table {
	t := study.Table{
		Title: "The same here, in order of cost",
		Head:  []string{"operation", "published", "measured here (95 %)", "method", "within the range?"},
		Notes: []string{
			fmt.Sprintf("the cost of one operation; for a fast operation the median of %d turns in each trial, where a turn is the time of a loop with the operation less the time of the loop without it", turns),
			"the range beside the thread switch was published for the way into the kernel and back, which is the empty system call",
		},
	}
	for _, r := range rungs {
		t.Rows = append(t.Rows, hierarchyRow(e, r))
	}
	return t
}

func hierarchyRow(e study.Evidence, r rung) []string {
	published := study.Dash
	if r.level != nil {
		published = study.Duration(r.level.Least) + "–" + study.Duration(r.level.Most)
	}
	if !wasRun(e, r) {
		return []string{r.name, published, study.Dash, strings.TrimSuffix("not run: "+e.Missing(r.name), ": "), study.Dash}
	}
	return []string{r.name, published, costText(e, r.name), r.method, stepCost(e, r)}
}

// stepCost says whether the whole interval is in the published range; without an
// interval, whether the median is.
func stepCost(e study.Evidence, r rung) string {
	if r.level == nil {
		return study.Dash
	}
	s := e.Summary(r.name, study.PerRecord)
	low, high := s.Low, s.High
	if !s.HasInterval() {
		low, high = s.Median, s.Median
	}
	if isBelow(e, r.name) {
		low = 0
	}
	switch {
	case r.level.Place(low, high) == study.Inside:
		return "yes"
	case high < r.level.Least:
		return "no: less"
	case low > r.level.Most:
		return "no: more"
	}
	return "in part"
}

// stepsTable is how much each rung is above the one below it.
func stepsTable(e study.Evidence, rungs []rung) study.Table {
	t := study.Table{
		Title: "From rung to rung",
		Head:  []string{"operation", "cost", "times the one below", "verdict", "times a function call"},
	}
	for i, r := range rungs {
		if !wasRun(e, r) {
			continue
		}
		step, word := study.Dash, study.Dash
		if i > 0 {
			c := e.Ratio(r.name, rungs[i-1].name, study.PerRecord)
			step, word = study.Ratio(c).OrDash(), string(c.Verdict)
		}
		all := e.Ratio(r.name, callRung, study.PerRecord)
		t.Rows = append(t.Rows, []string{r.name, study.Duration(rungCost(e, r)), step, word, study.Times(all.Ratio)})
	}
	return t
}

// waitsTable is the distribution of the operations timed one by one.
func waitsTable(e study.Evidence) study.Table {
	t := study.Table{Title: "What waits for the disk, one by one over all rounds", Head: []string{"operation", "timed", "p50", "p99", "longest"}}
	for _, name := range []string{coldRung, syncRung, growRung} {
		l, err := result.MergeLatency(e.Trials(name), func(t *result.Trial) *result.Latency { return &t.Latency }, stat.Supports)
		if err != nil || l.Count == 0 {
			continue
		}
		p99 := study.Dash
		if l.P99 > 0 {
			p99 = study.Duration(float64(l.P99))
		}
		t.Rows = append(t.Rows, []string{name, study.Whole(float64(l.Count)), study.Duration(float64(l.P50)), p99, study.Duration(float64(l.Max))})
	}
	if note := coldNote(e); note != "" {
		t.Notes = append(t.Notes, note)
	}
	return t
}

// coldNote says how cold the cold reads were.
func coldNote(e study.Evidence) string {
	trials := e.Trials(coldRung)
	if len(trials) == 0 {
		return ""
	}
	if why := whyNotCold(trials); why != "" {
		return "the cold reads are not proven cold: " + why
	}
	return fmt.Sprintf("before the cold reads none of the file's pages was in memory, after them %s of %s were, as many as were read; what the disk or a host caches can't be seen from here",
		study.Whole(e.Median(coldRung, study.Value(residentPages))), study.Whole(float64(trials[0].Before.Pages)))
}

// whyNotCold says what speaks against it that each of the reads went to the disk, or is
// empty.
func whyNotCold(trials []result.Trial) string {
	for _, t := range trials {
		after, known := t.Values[residentPages]
		switch {
		case t.Before == nil || t.Before.Pages == 0 || !known:
			return "the system does not tell which pages are in memory"
		case t.Before.Resident > 0:
			return fmt.Sprintf("%d of the file's %d pages were in memory before", t.Before.Resident, t.Before.Pages)
		case after > float64(t.Records):
			return fmt.Sprintf("%.0f pages were in memory after %d reads: the kernel read ahead", after, t.Records)
		}
	}
	return ""
}

// countsTable sets what the kernel counted beside what was predicted.
func countsTable(e study.Evidence) study.Table {
	t := study.Table{Title: "Counted by the kernel, for each operation", Head: []string{"operation", "what", "predicted", "counted"}}
	add := func(rung, what string, predicted float64, of study.Metric) {
		if counted := e.Median(rung, study.Each(of)); !math.IsNaN(counted) {
			t.Rows = append(t.Rows, []string{rung, what, study.Digits(predicted), study.Digits(counted)})
		}
	}
	add(writeRung, "write calls", 1, study.Writes)
	add(bufferedRung, "write calls", bufferedCalls, study.Writes)
	add(readByteRung, "read calls", 1, study.Reads)
	add(readPageRung, "read calls", 1, study.Reads)
	add(coldRung, "read calls", 1, study.Reads)
	add(faultRung, "page faults", 1, func(t result.Trial) float64 { return float64(t.MinorFaults) }) // which need no disk
	add(emptyRung, "context switches", 0, study.VoluntarySwitches)
	add(writeRung, "context switches", 0, study.VoluntarySwitches)
	// The thread that wakes the other either goes to sleep at once or is put off the
	// CPU for it.
	add(threadRung, "context switches, forced ones too", 1, study.AllSwitches)
	return t
}

// bufferedCalls is how many write calls a record of 40 bytes needs with a buffer of
// 4 KiB.
const bufferedCalls = float64(len(theRecord)) / (4 << 10)

// ladderPicture has the published range under each dot.
func ladderPicture(e study.Evidence, rungs []rung) *chart.Dots {
	d := &chart.Dots{Title: "the cost of each operation, and the published ranges", Scale: study.Duration, Series: []string{"measured here", "published: " + study.FileIOExperiment}}
	for _, r := range rungs {
		if !wasRun(e, r) {
			continue
		}
		row := chart.Row{Label: r.name}
		if r.level != nil {
			row.Points = append(row.Points, chart.Point{Series: 1, Value: math.NaN(), Low: r.level.Least, High: r.level.Most})
		}
		row.Points = append(row.Points, study.Point(0, e.Summary(r.name, study.PerRecord)))
		d.Rows = append(d.Rows, row)
	}
	return d
}

// costsLearnt names where the great steps are.
func costsLearnt(e study.Evidence, rungs []rung) string {
	parts := e.Learnt(
		study.Said{Format: "a write of 40 bytes costs %s what it costs through a buffer", Over: writeRung, Under: bufferedRung},
		study.Said{Format: "it is %s an empty system call", Over: writeRung, Under: emptyRung},
		study.Said{Format: "to make a page durable is %s such a write", Over: syncRung, Under: writeRung},
		study.Said{Format: "to read one from the disk is %s", Over: coldRung, Under: writeRung},
	)
	if in, of := inRangeOf(e, rungs); of > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d operations are within the published ranges", in, of))
	}
	return strings.Join(parts, "; ")
}

// inRangeOf counts the rungs that were run and have a published range.
func inRangeOf(e study.Evidence, rungs []rung) (in, of int) {
	for _, r := range rungs {
		if r.level != nil && wasRun(e, r) {
			of++
			if stepCost(e, r) == "yes" {
				in++
			}
		}
	}
	return in, of
}
