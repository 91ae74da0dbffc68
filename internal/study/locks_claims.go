package study

import "fmt"

// more is any ratio that is more than 1: "faster", and no figure.
var more = atLeast(1)

// sideBySide is how many CPUs the goroutines must have had at work on average for
// a lock that readers share to be found no better.
const sideBySide = 1.3

func locksClaims() []Claim {
	claims := []Claim{batchedClaim(), acquisitionClaim()}
	for _, reads := range []int64{90, 95, 99} {
		claims = append(claims, readersClaim(reads))
	}
	return append(claims, writeOnlyClaim(), writersBlockClaim())
}

func batchedClaim() Claim {
	mutex, batched := counterName("mutex"), counterName("batched")
	return Claim{
		Name: "locks-batched", Source: fileIOExperiment, Says: "to batch updates per goroutine is faster than a lock for each",
		Published: "faster", Arms: []string{mutex, batched},
		Judge: func(e Evidence) Finding {
			return ratio(e.Ratio(mutex, batched, PerRecord)).judge(more, NotHere,
				"a goroutine that counts alone takes the lock once, and not a thousand times",
				"the lock is taken so seldom by two at once that a batch saves nothing")
		},
	}
}

func acquisitionClaim() Claim {
	mutex, atomic := counterName("mutex"), counterName("atomic")
	return Claim{
		Name: "locks-acquisition", Source: fileIOExperiment, Says: "lock acquisition is the expensive operation of a counter",
		Arms: []string{mutex, atomic},
		Judge: func(e Evidence) Finding {
			return ratio(e.Ratio(mutex, atomic, PerRecord)).judge(more, NotHere,
				"the same increment without a lock, as one atomic addition, takes less time",
				"one atomic addition takes as long as a lock, an increment and an unlock")
		},
	}
}

func readersClaim(reads int64) Claim {
	mutex, rwMutex := mapName(withMutex, reads), mapName(withRWMutex, reads)
	return Claim{
		Name: fmt.Sprintf("locks-rwmutex-%d", reads), Source: fileIOExperiment,
		Says:      fmt.Sprintf("a RWMutex is 2–3x as fast as a Mutex for a read-heavy map (%d %% reads)", reads),
		Published: "2-3x, never measured", Arms: []string{mutex, rwMutex},
		Judge: func(e Evidence) Finding {
			cpus := e.Fact("GOMAXPROCS")
			f := ratio(e.Ratio(mutex, rwMutex, PerRecord)).judge(atLeast(2), NotHere,
				"a reader waits for no other, not even for one that has lost its CPU",
				fmt.Sprintf("a read lock is two atomic additions to one word that all CPUs share, and a look-up takes no longer: on %s CPUs that is no 2x", cpus))
			if had := e.Median(rwMutex, cpusUsed); f.Verdict == NotHere && had < sideBySide {
				f.Verdict, f.Why = NotChecked, fmt.Sprintf("of %s CPUs the goroutines had %s at once, so that hardly two could read side by side: stop other programs", cpus, digits(had))
			}
			return f
		},
	}
}

func writeOnlyClaim() Claim {
	mutex, rwMutex := mapName(withMutex, 0), mapName(withRWMutex, 0)
	return Claim{
		Name: "locks-write-only", Source: fileIOExperiment, Says: "with writes only a RWMutex is a little slower than a Mutex",
		Published: "6.8 % slower, by the program's own run", Arms: []string{mutex, rwMutex},
		Judge: func(e Evidence) Finding {
			return ratio(e.Ratio(rwMutex, mutex, PerRecord)).judge(about(1.068, 1.05), NotHere,
				"its write lock takes a mutex first, and then turns the readers away",
				"what its write lock takes beside a Mutex's is another part of the time here")
		},
	}
}

// writersBlockClaim asks whether a reader gets in, not how long it waits: the
// answer is the same on any machine.
func writersBlockClaim() Claim {
	return Claim{
		Name: "locks-write-blocks", Source: fileIOExperiment, Says: "write locks block everything",
		Arms: []string{heldLock},
		Judge: func(e Evidence) Finding {
			text := func(n float64) string { return fmt.Sprintf("%s of %d readers got in", whole(n), mapGoroutines) }
			return figure(e.Summary(heldLock, Value(admittedWhileHeld)), text).judge(atMost(0), NeverSo,
				"no reader gets a RWMutex that is held for writing, and all do once it is free",
				"readers got the lock while it was held for writing")
		},
	}
}
