package locks

import (
	"fmt"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

// sideBySide is how many CPUs the goroutines must have had at work on average for
// a lock that readers share to be found no better.
const sideBySide = 1.3

var mutexCounter = counterName("mutex")

var locksClaims = []study.Claim{
	{
		Name: "locks-batched", Source: study.FileIOExperiment, Says: "to batch updates per goroutine is faster than a lock for each",
		Published: "faster", Arms: []string{mutexCounter, counterName("batched")},
		Judge: func(e study.Evidence) study.Finding {
			return study.Ratio(e.Ratio(mutexCounter, counterName("batched"), study.PerRecord)).Judge(study.More, study.NotHere,
				"a goroutine that counts alone takes the lock once, and not a thousand times",
				"the lock is taken so seldom by two at once that a batch saves nothing")
		},
	},
	{
		Name: "locks-acquisition", Source: study.FileIOExperiment, Says: "lock acquisition is the expensive operation of a counter",
		Arms: []string{mutexCounter, counterName("atomic")},
		Judge: func(e study.Evidence) study.Finding {
			return study.Ratio(e.Ratio(mutexCounter, counterName("atomic"), study.PerRecord)).Judge(study.More, study.NotHere,
				"the same increment without a lock, as one atomic addition, takes less time",
				"one atomic addition takes as long as a lock, an increment and an unlock")
		},
	},
	readersClaim(90), readersClaim(95), readersClaim(99),
	{
		Name: "locks-write-only", Source: study.FileIOExperiment, Says: "with writes only a RWMutex is a little slower than a Mutex",
		Published: "6.8 % slower, by the program's own run", Arms: []string{mapName(withMutex, 0), mapName(withRWMutex, 0)},
		Judge: func(e study.Evidence) study.Finding {
			return study.Ratio(e.Ratio(mapName(withRWMutex, 0), mapName(withMutex, 0), study.PerRecord)).Judge(study.About(1.068, 1.05), study.NotHere,
				"its write lock takes a mutex first, and then turns the readers away",
				"what its write lock takes beside a Mutex's is another part of the time here")
		},
	},
	// It asks whether a reader gets in, not how long it waits: the
	// answer is the same on any machine.
	{
		Name: "locks-write-blocks", Source: study.FileIOExperiment, Says: "write locks block everything",
		Arms: []string{heldLock},
		Judge: func(e study.Evidence) study.Finding {
			text := func(n float64) string { return fmt.Sprintf("%s of %d readers got in", study.Whole(n), mapGoroutines) }
			return study.Figure(e.Summary(heldLock, study.Value(admittedWhileHeld)), text).Judge(study.AtMost(0), study.NeverSo,
				"no reader gets a RWMutex that is held for writing, and all do once it is free",
				"readers got the lock while it was held for writing")
		},
	},
}

func readersClaim(reads int64) study.Claim {
	mutex, rwMutex := mapName(withMutex, reads), mapName(withRWMutex, reads)
	return study.Claim{
		Name: fmt.Sprintf("locks-rwmutex-%d", reads), Source: study.FileIOExperiment,
		Says:      fmt.Sprintf("a RWMutex is 2–3x as fast as a Mutex for a read-heavy map (%d %% reads)", reads),
		Published: "2-3x, never measured", Arms: []string{mutex, rwMutex},
		Judge: func(e study.Evidence) study.Finding {
			cpus := e.Fact("GOMAXPROCS")
			f := study.Ratio(e.Ratio(mutex, rwMutex, study.PerRecord)).Judge(study.AtLeast(2), study.NotHere,
				"a reader waits for no other, not even for one that has lost its CPU",
				fmt.Sprintf("a read lock is two atomic additions to one word that all CPUs share, and a look-up takes no longer: on %s CPUs that is no 2x", cpus))
			if had := e.Median(rwMutex, study.CPUsUsed); f.Verdict == study.NotHere && had < sideBySide {
				f.Verdict, f.Why = study.NotChecked, fmt.Sprintf("of %s CPUs the goroutines had %s at once, so that hardly two could read side by side: stop other programs", cpus, study.Digits(had))
			}
			return f
		},
	}
}
