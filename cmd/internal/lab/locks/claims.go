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
		Name: "locks-batched", Says: "to batch updates per goroutine is faster than a lock for each",
		Published: "faster",
		Over:      mutexCounter, Under: counterName("batched"), Allows: study.More,
		Holds: "a goroutine that counts alone takes the lock once, and not a thousand times",
		Not:   "two goroutines so seldom want the lock at once that a batch saves nothing",
	},
	{
		Name: "locks-acquisition", Says: "lock acquisition is the expensive operation of a counter",
		Over: mutexCounter, Under: counterName("atomic"), Allows: study.More,
		Holds: "the same increment without a lock, as one atomic addition, takes less time",
		Not:   "one atomic addition takes as long as a lock, an increment and an unlock",
	},
	readersClaim(90), readersClaim(95), readersClaim(99),
	{
		Name: "locks-write-only", Says: "with writes only a RWMutex is a little slower than a Mutex",
		Published: "6.8 % slower, by the program's own run", Arms: []string{mapName(withMutex, 0), mapName(withRWMutex, 0)},
		Over: mapName(withRWMutex, 0), Under: mapName(withMutex, 0), Allows: study.About(1.068, 1.05),
		Holds: "its write lock takes a mutex first, and then turns the readers away",
		Not:   "its write lock costs another multiple of a Mutex's here",
	},
	// It asks whether a reader gets in, not how long it waits: the
	// answer is the same on any machine.
	{
		Name: "locks-write-blocks", Says: "write locks block everything",
		Over: heldLock, By: study.Value(admittedWhileHeld), Allows: study.AtMost(0), Otherwise: study.NeverSo,
		Text:  func(n float64) string { return fmt.Sprintf("%s of %d readers got in", study.Whole(n), mapGoroutines) },
		Holds: "no reader gets a RWMutex that is held for writing, and all do once it is free",
		Not:   "readers got the lock while it was held for writing",
	},
}

func readersClaim(reads int64) study.Claim {
	mutex, rwMutex := mapName(withMutex, reads), mapName(withRWMutex, reads)
	return study.Claim{
		Name:      fmt.Sprintf("locks-rwmutex-%d", reads),
		Says:      fmt.Sprintf("a RWMutex is 2–3x as fast as a Mutex for a read-heavy map (%d %% reads)", reads),
		Published: "2-3x, never measured", Over: mutex, Under: rwMutex, Allows: study.AtLeast(2),
		Holds: "no reader waits for another, not even for one that has lost its CPU",
		Not:   "a read lock is two atomic additions to one word that all CPUs share, and a look-up takes no longer",
		Add: func(e study.Evidence, f *study.Finding) {
			cpus, had := e.Fact("GOMAXPROCS"), e.Median(rwMutex, study.CPUsUsed)
			switch {
			case f.Verdict == study.NotHere && had < sideBySide:
				f.Verdict, f.Why = study.NotChecked, fmt.Sprintf("of %s CPUs the goroutines had %s at once, so that hardly two could read side by side: stop other programs", cpus, study.Digits(had))
			case f.Verdict == study.NotHere:
				f.Why += fmt.Sprintf(": on %s CPUs that is no 2x", cpus)
			}
		},
	}
}
