// Package costs is the study of the ladder of costs, from a load that hits the cache to the
// disk.
//
// In the clock is one kind of operation, many times. What is fast is a [difference]:
// the loop with the operation less the loop without, turn by turn in the same trial.
// What waits for the disk is timed one by one, and its distribution kept. Files are
// made before and read back after.
//
// Start with [Study].
package costs

import (
	"runtime"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/lab/result"
	"github.com/holdfast-go/holdfast/internal/lab/study"
	"github.com/holdfast-go/holdfast/internal/lab/trial"
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
				if r.cache != result.NewFile && missing == "" {
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
		Claims: costsClaims,
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
	each    time.Duration // that one takes, about, with what is around it
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
