package study

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/internal/result"
)

// filesClaims are those of the document. What it says of its own package's inside
// can't be measured without that package; what it says of files, writes a second and
// the figures themselves can.
func filesClaims() []Claim {
	return []Claim{
		filesCores(), filesRetries(), filesRate(), filesRateWith(), filesBatching(),
		filesContention(), filesCreate(), filesLinear(), filesBackoff(), filesOldMachine(),
	}
}

// The arms of 300 and 3000 files, by os.WriteFile and by a Files.
var (
	fewByPool, manyByPool   = filesArm(300, byPool(perCPU)), filesArm(3000, byPool(perCPU))
	fewByFiles, manyByFiles = filesArm(300, byFiles), filesArm(3000, byFiles)
)

// cpusOf reads the number of CPUs that Go puts behind a benchmark's name.
func cpusOf(benchmark string) int {
	_, suffix, _ := strings.Cut(benchmark, "-")
	n, err := strconv.Atoi(suffix)
	if err != nil {
		return 1
	}
	return n
}

func filesCores() Claim {
	return Claim{
		Name: "files-64-cores", Source: writerBenchmarks, Says: "64 cores fully utilize the worker pool", Published: "BenchmarkWriter-2",
		Judge: func(Evidence) Finding { return judgeCores("BenchmarkWriter-2", 64) },
	}
}

func judgeCores(benchmark string, cores int) Finding {
	f := Finding{Measured: fmt.Sprintf("GOMAXPROCS=%d", cpusOf(benchmark)), Verdict: Holds, Why: "the benchmark ran on all of them"}
	if cpusOf(benchmark) != cores {
		f.Verdict, f.Why = NeverSo, "the number behind a Go benchmark's name is GOMAXPROCS: it ran on that many CPUs"
	}
	return f
}

func perSecond(x float64) string { return digits(x) + "/s" }

func writesPerSecond(t result.Trial) float64 { return float64(t.Records) / t.Elapsed.Seconds() }

func filesRetries() Claim {
	return Claim{
		Name: "files-8x-retries", Source: writerBenchmarks, Says: "disabling retries is 8 times as fast", Published: "114 ms, 14 ms for 1000 files",
		Arms: []string{retriesOn, retriesOff},
		Judge: func(e Evidence) Finding {
			return ratio(e.Ratio(retriesOn, retriesOff, Elapsed)).judge(about(8, 1.5), NeverSo, "so it is",
				"a retry that is not needed costs nothing; the 100 ms between the two are just one pause of its backoff")
		},
	}
}

func filesRate() Claim {
	return Claim{
		Name: "files-500k", Source: writerBenchmarks, Says: "500,000 writes a second without retries", Published: "0.065 s for 5500 writes",
		Arms: []string{retriesOff},
		Judge: func(e Evidence) Finding {
			return judgeRate(figure(e.Summary(retriesOff, writesPerSecond), perSecond), publishedFiles/publishedSeconds)
		},
	}
}

// judgeRate: what its own total denies was never so, unless it is seen here.
func judgeRate(m measured, bySource float64) Finding {
	f := m.judge(atLeast(500_000), NotHere, "so many files are written here", "fewer are written here")
	if bySource < 500_000 && f.Verdict != Holds {
		f.Verdict, f.Settle = NeverSo, ""
		f.Why = fmt.Sprintf("its own table is %s writes a second", whole(math.Round(bySource/100)*100))
	}
	return f
}

func filesRateWith() Claim {
	return Claim{
		Name: "files-80k", Source: writerBenchmarks, Says: "80,000 to 100,000 writes a second with retries", Published: "96 rounds of 12.46 ms for 1000 files",
		Arms: []string{retriesOn},
		Judge: func(e Evidence) Finding {
			return figure(e.Summary(retriesOn, writesPerSecond), perSecond).judge(about(90_000, 2), NotHere, "within a factor of two", "not within a factor of two")
		},
	}
}

func filesBatching() Claim {
	return Claim{
		Name: "files-batching", Source: writerBenchmarks, Says: "batching scales well", Published: "17, 37, 67 µs a file in batches of 1500, 3000, 5000",
		Arms: []string{manyByFiles, fewByFiles},
		Judge: func(e Evidence) Finding {
			growth := batches[len(batches)-1].perFile() / batches[0].perFile()
			return judgeScaling(ratio(e.Ratio(manyByFiles, fewByFiles, PerRecord)), growth)
		},
	}
}

// judgeScaling: what scales costs the same for each file. The published figures
// are the claim's own.
func judgeScaling(here measured, published float64) Finding {
	f := Finding{Measured: here.String() + " a file of a WriteAll of 3000 against 300", Verdict: Holds, Why: "a file costs no more among many"}
	if published > 1.5 {
		f.Verdict, f.Why = NeverSo, fmt.Sprintf("by its own table a file costs %s as much in the largest batch as in the smallest", times(published))
	}
	return f
}

func filesContention() Claim {
	return Claim{
		Name: "files-contention", Source: writerBenchmarks, Says: "I/O contention makes files dearer the more there are", Published: "10 µs a file, then 12.5, 37, 67",
		Arms: []string{manyByPool, fewByPool},
		Judge: func(e Evidence) Finding {
			return ratio(e.Ratio(manyByPool, fewByPool, PerRecord)).judge(atLeast(1.5), NotHere, "a file among 3000 costs that many times one among 300",
				"a file among 3000 costs about what one among 300 does, so it was not the files: 65 % of that program's CPU time was a linear search of its own pool")
		},
	}
}

func filesCreate() Claim {
	return Claim{
		Name: "files-create", Source: writerBenchmarks, Says: "creating the files (os.CreateTemp) dominates small runs", Published: "about 10 µs a file",
		Arms: []string{createTemp},
		Judge: func(e Evidence) Finding {
			share := func(t result.Trial) float64 { return float64(t.Open) / float64(t.Elapsed) }
			return figure(e.Summary(createTemp, share), percent).judge(atLeast(0.5), NotHere, "more than half of the time of open, write and close", "less than half of the time of open, write and close")
		},
	}
}

func filesLinear() Claim {
	return Claim{
		Name: "files-memory", Source: writerBenchmarks, Says: "memory grows linearly with the files", Published: "4.6 KiB and 9 allocations a file",
		Arms: []string{manyByPool, fewByPool},
		Judge: func(e Evidence) Finding {
			return ratio(e.Ratio(manyByPool, fewByPool, each(allocated))).judge(about(1, 1.5), NotHere, "as much for each file of 3000 as of 300 here too (os.WriteFile)", "not as much for each file")
		},
	}
}

func filesBackoff() Claim {
	return Claim{
		Name: "files-backoff", Source: writerBenchmarks, Says: "the backoff is capped at 1000 ms", Published: "base 100 ms, cap 1000 ms",
		Judge: func(Evidence) Finding {
			return Finding{Verdict: NotChecked, Why: "it is said of that package's code, which is not run here; its pauses were seen to reach 1600 ms"}
		},
	}
}

func filesOldMachine() Claim {
	return Claim{
		Name: "files-40x", Source: writerBenchmarks, Says: "an EPYC of 64 cores is 40 times as fast as an i7-4510U", Published: "1.2 ms, 47 ms for 100 files",
		Judge: func(Evidence) Finding {
			return Finding{Verdict: NotChecked, Why: "it takes both machines"}
		},
	}
}
