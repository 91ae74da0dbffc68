package study

import (
	"runtime"
	"time"

	"github.com/holdfast-go/holdfast/internal/machine"
	"github.com/holdfast-go/holdfast/internal/result"
	"github.com/holdfast-go/holdfast/internal/trial"
)

// Costs is the study of the ladder of costs, from a load that hits the cache to the
// disk.
//
// In the clock is one kind of operation, many times. What is fast is a [difference]:
// the loop with the operation less the loop without, turn by turn in the same trial.
// What waits for the disk is timed one by one, and its distribution kept. Files are
// made before and read back after.
func Costs() Study {
	return Study{
		Name:      "costs",
		Question:  "what do a load, a call, a system call, a write and the disk cost here",
		Source:    fileIOExperiment,
		Takes:     []string{TakesCount},
		Published: []Table{publishedHierarchy(), publishedSwitch()},
		Arms:      costsArms,
		Twin:      writeRung,
		Show:      showCosts,
		Claims:    costsClaims(),
	}
}

func publishedHierarchy() Table {
	t := Table{Title: "System Call Cost Hierarchy", Source: fileIOExperiment, Head: []string{"operation", "cost"}}
	for _, l := range []level{memoryLevel, callLevel, emptyLevel, ioLevel, seekLevel} {
		t.Rows = append(t.Rows, []string{l.name, l.printed})
	}
	return t
}

func publishedSwitch() Table {
	return Table{
		Title: "System Call Overhead", Source: fileIOExperiment, Head: []string{"operation", "cost"},
		Rows: [][]string{{switchLevel.name, switchLevel.printed}},
	}
}

// A level is a line of the published hierarchy: its range in nanoseconds.
type level struct {
	name, printed string
	span
}

// The lines as they were printed. The last is from the section before, which calls
// the way into the kernel and back a context switch.
var (
	memoryLevel = level{"Memory operations", "~1-10 nanoseconds", span{1, 10}}
	callLevel   = level{"User-space function call", "~1-5 nanoseconds", span{1, 5}}
	emptyLevel  = level{"System call (empty)", "~50-100 nanoseconds", span{50, 100}}
	ioLevel     = level{"System call (I/O)", "~1-5 microseconds (1000-5000 ns)", span{1e3, 5e3}}
	seekLevel   = level{"Disk seek", "~5-10 milliseconds (5,000,000-10,000,000 ns)", span{5e6, 10e6}}
	switchLevel = level{"Context Switching (User → Kernel → User)", "~1-3 microseconds per switch", span{1e3, 3e3}}
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
	return append(append(processorRungs(), kernelRungs()...), fileRungs()...)
}

const bareLoop = "less the bare loop"

func processorRungs() []rung {
	const loads = "each needs the last; 16 loads less 8"
	return []rung{
		{name: callRung, level: &callLevel, method: "not inlined, less the same inlined", does: "calls a function that adds one", count: 10_000_000, each: 2, task: callTask},
		{name: loadRung, level: &memoryLevel, method: loads, does: "follows a chain of loads through 16 KiB", count: 5_000_000, each: 4, task: chase(smallRing)},
		{name: mutexRung, method: bareLoop, does: "locks and unlocks a sync.Mutex that nobody else has", count: 1_000_000, each: 12, task: mutexTask},
		{name: allocRung, method: bareLoop, does: "makes a value of 64 bytes on the heap, and has the collector take it away", count: 250_000, each: 40, task: allocTask},
		{name: clockRung, method: bareLoop, does: "reads the clock: time.Now", count: 300_000, each: 60, task: clockTask},
		{name: copyRung, method: bareLoop, does: "copies 4096 bytes within the first cache", count: 500_000, each: 50, task: copyPageTask},
		{name: memoryRung, level: &memoryLevel, method: loads, does: "follows a chain of loads through 256 MiB, in no order that can be foreseen", count: 100_000, each: 3000, missing: noMemory(machine.MemoryLimit()), task: chase(largeRing)},
		{name: bufferedRung, method: "os.File under bufio, 4 KiB", does: "writes 40 bytes through a bufio.Writer of 4 KiB, flushed at the end of each turn", count: 100_000, each: 60, bytes: 4_000_000, task: recordsTask(true)},
	}
}

func kernelRungs() []rung {
	rungs := []rung{
		{name: emptyRung, level: &emptyLevel, method: "getppid, " + bareLoop, does: "calls getppid(2) by RawSyscall", count: 200_000, each: 100, task: emptyTask},
		{name: goEmptyRung, level: &emptyLevel, method: "by Syscall, " + bareLoop, does: "calls getppid(2) by Syscall, which tells the scheduler", count: 200_000, each: 130, task: goEmptyTask},
		{name: faultRung, method: "first touch, less the second", does: "touches fresh memory, a page at a time", count: 8_000, each: 1500, task: faultTask},
		{name: threadRung, level: &switchLevel, method: "pipes on one CPU, less the calls alone", does: "two threads on one CPU wake each other", count: 10_000, each: 8000, task: threadTask},
	}
	for i := range rungs {
		rungs[i].missing = onlyLinux("measured by Linux's own calls")
	}
	return append(rungs, goroutineRungs()...)
}

// goroutineRungs are Go's own switches. Where there are more CPUs, its scheduler may
// leave two goroutines that wait for each other on one of them, and mostly does:
// only those that keep to threads of their own must wake a thread each time.
func goroutineRungs() []rung {
	const half = "half a way to and fro"
	rungs := []rung{
		{name: switchRung, method: half, does: "hands a token to another goroutine, over unbuffered channels and with GOMAXPROCS 1", count: 50_000, each: 250, task: switchTask(1, false)},
		{name: crossRung, method: half, does: "the same with GOMAXPROCS 2: the other goroutine may run on the other CPU", count: 50_000, each: 400, task: switchTask(2, false)},
		{name: lockedRung, method: half, does: "the same with each goroutine locked to a thread of its own", count: 5_000, each: 10_000, task: switchTask(2, true)},
	}
	if runtime.NumCPU() < 2 {
		rungs[1].missing = "there is one CPU only"
		rungs[2].missing = rungs[1].missing
	}
	return rungs
}

// onlyLinux is why a rung is missing elsewhere.
func onlyLinux(why string) string {
	if runtime.GOOS == "linux" {
		return ""
	}
	return why + ", and this is " + runtime.GOOS
}

func fileRungs() []rung {
	const oneByOne = "each timed alone"
	return []rung{
		{name: readByteRung, level: &ioLevel, method: "os.File, warm, " + bareLoop, does: "reads 1 byte after the other of a warm file", count: 25_000, each: 300, bytes: warmBytes, task: readsTask(1)},
		{name: readPageRung, level: &ioLevel, method: "os.File, warm, " + bareLoop, does: "reads 4096 bytes after the others of a warm file", count: 25_000, each: 900, bytes: warmBytes, task: readsTask(pageBytes)},
		{name: writeRung, level: &ioLevel, method: "os.File, " + bareLoop, does: "appends 40 bytes to a new file", count: 25_000, each: 900, bytes: 1_000_000, task: recordsTask(false)},
		{name: coldRung, level: &seekLevel, method: oneByOne + ", proven cold", does: "reads 4096 bytes at a random place of a file of 64 MiB that is not in the page cache", count: 200, each: 2 * time.Millisecond, disk: true, bytes: coldBytes, cache: result.TryCold, missing: onlyLinux("the page cache can be emptied and asked on Linux"), task: coldTask},
		{name: syncRung, method: oneByOne, does: "writes a page of a file that is there, and syncs; the sync alone is timed", count: 100, each: 500 * time.Microsecond, disk: true, bytes: 800_000, task: syncTask(false)},
		{name: growRung, method: oneByOne, does: "appends a page to a file, and syncs; the sync alone is timed", count: 100, each: 500 * time.Microsecond, disk: true, bytes: 400_000, task: syncTask(true)},
	}
}

func costsArms(c Choice) []Arm {
	var arms []Arm
	for _, r := range ladder() {
		arms = append(arms, r.arm(c))
	}
	return arms
}

// aroundTrial is about what every trial takes besides.
const aroundTrial = 10 * time.Millisecond

func (r rung) arm(c Choice) Arm {
	n := r.count
	if r.disk && c.Preset.Name == quick {
		n /= 4
	}
	if c.Count > 0 {
		n = min(n, c.Count)
	}
	missing, elsewhere := r.missing, ""
	if r.cache != result.NewFile && missing == "" {
		missing, elsewhere = cacheMissing(c, result.Cold), cacheElsewhere(c, result.Cold)
	}
	return Arm{
		Cell:    result.Cell{Name: r.name, Group: r.name, Does: r.does, Writers: 1, Records: n, Cache: r.cache},
		Missing: missing, Elsewhere: elsewhere, Time: aroundTrial + time.Duration(n)*r.each, Bytes: r.bytes,
		Task: func() trial.Task { return r.task(n) },
	}
}
