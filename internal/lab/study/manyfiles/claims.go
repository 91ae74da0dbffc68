package manyfiles

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/internal/lab/result"
	"github.com/holdfast-go/holdfast/internal/lab/study"
)

// filesClaims are those of the document. What it says of its own package's inside
// can't be measured without that package; what it says of files, writes a second and
// the figures themselves can.
var filesClaims = []study.Claim{
	{
		Name: "files-64-cores", Source: study.WriterBenchmarks, Says: "64 cores fully utilize the worker pool", Published: "BenchmarkWriter-2",
		Judge: func(study.Evidence) study.Finding { return judgeCores("BenchmarkWriter-2", 64) },
	}, {
		Name: "files-8x-retries", Source: study.WriterBenchmarks, Says: "disabling retries is 8 times as fast", Published: "114 ms, 14 ms for 1000 files",
		Arms: []string{retriesOn, retriesOff},
		Judge: func(e study.Evidence) study.Finding {
			return study.Ratio(e.Ratio(retriesOn, retriesOff, study.Elapsed)).Judge(study.About(8, 1.5), study.NeverSo, "so it is",
				"a retry that is not needed costs nothing; the 100 ms between the two are just one pause of its backoff")
		},
	}, {
		Name: "files-500k", Source: study.WriterBenchmarks, Says: "500,000 writes a second without retries", Published: "0.065 s for 5500 writes",
		Arms: []string{retriesOff},
		Judge: func(e study.Evidence) study.Finding {
			return judgeRate(study.Figure(e.Summary(retriesOff, writesPerSecond), perSecond), publishedFiles/publishedSeconds)
		},
	}, filesRateWith(), {
		Name: "files-batching", Source: study.WriterBenchmarks, Says: "batching scales well", Published: "17, 37, 67 µs a file in batches of 1500, 3000, 5000",
		Arms: []string{manyByFiles, fewByFiles},
		Judge: func(e study.Evidence) study.Finding {
			growth := batches[len(batches)-1].perFile() / batches[0].perFile()
			return judgeScaling(study.Ratio(e.Ratio(manyByFiles, fewByFiles, study.PerRecord)), growth)
		},
	},
	{
		Name: "files-contention", Source: study.WriterBenchmarks, Says: "I/O contention makes files dearer the more there are", Published: "10 µs a file, then 12.5, 37, 67",
		Arms: []string{manyByPool, fewByPool},
		Judge: func(e study.Evidence) study.Finding {
			return study.Ratio(e.Ratio(manyByPool, fewByPool, study.PerRecord)).Judge(study.AtLeast(1.5), study.NotHere, "a file among 3000 costs that many times one among 300",
				"a file among 3000 costs about what one among 300 does, so it was not the files: 65 % of that program's CPU time was a linear search of its own pool")
		},
	}, {
		Name: "files-create", Source: study.WriterBenchmarks, Says: "creating the files (os.CreateTemp) dominates small runs", Published: "about 10 µs a file",
		Arms: []string{createTemp},
		Judge: func(e study.Evidence) study.Finding {
			share := func(t result.Trial) float64 { return float64(t.Open) / float64(t.Elapsed) }
			return study.Figure(e.Summary(createTemp, share), study.Percent).Judge(study.AtLeast(0.5), study.NotHere, "more than half of the time of open, write and close", "less than half of the time of open, write and close")
		},
	}, {
		Name: "files-memory", Source: study.WriterBenchmarks, Says: "memory grows linearly with the files", Published: "4.6 KiB and 9 allocations a file",
		Arms: []string{manyByPool, fewByPool},
		Judge: func(e study.Evidence) study.Finding {
			return study.Ratio(e.Ratio(manyByPool, fewByPool, study.Each(study.Allocated))).Judge(study.About(1, 1.5), study.NotHere, "as much for each file of 3000 as of 300 here too (os.WriteFile)", "not as much for each file")
		},
	}, {
		Name: "files-backoff", Source: study.WriterBenchmarks, Says: "the backoff is capped at 1000 ms", Published: "base 100 ms, cap 1000 ms",
		Judge: func(study.Evidence) study.Finding {
			return study.Finding{Verdict: study.NotChecked, Why: "it is said of that package's code, which is not run here; its pauses were seen to reach 1600 ms"}
		},
	}, {
		Name: "files-40x", Source: study.WriterBenchmarks, Says: "an EPYC of 64 cores is 40 times as fast as an i7-4510U", Published: "1.2 ms, 47 ms for 100 files",
		Judge: func(study.Evidence) study.Finding {
			return study.Finding{Verdict: study.NotChecked, Why: "it takes both machines"}
		},
	},
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

func judgeCores(benchmark string, cores int) study.Finding {
	f := study.Finding{Measured: fmt.Sprintf("GOMAXPROCS=%d", cpusOf(benchmark)), Verdict: study.Holds, Why: "the benchmark ran on all of them"}
	if cpusOf(benchmark) != cores {
		f.Verdict, f.Why = study.NeverSo, "the number behind a Go benchmark's name is GOMAXPROCS: it ran on that many CPUs"
	}
	return f
}

func perSecond(x float64) string { return study.Digits(x) + "/s" }

func writesPerSecond(t result.Trial) float64 { return float64(t.Records) / t.Elapsed.Seconds() }

// judgeRate: what its own total denies was never so, unless it is seen here.
func judgeRate(m study.Measured, bySource float64) study.Finding {
	f := m.Judge(study.AtLeast(500_000), study.NotHere, "so many files are written here", "fewer are written here")
	if bySource < 500_000 && f.Verdict != study.Holds {
		f.Verdict, f.Settle = study.NeverSo, ""
		f.Why = fmt.Sprintf("its own table is %s writes a second", study.Whole(math.Round(bySource/100)*100))
	}
	return f
}

func filesRateWith() study.Claim {
	return study.Claim{
		Name: "files-80k", Source: study.WriterBenchmarks, Says: "80,000 to 100,000 writes a second with retries", Published: "96 rounds of 12.46 ms for 1000 files",
		Arms: []string{retriesOn},
		Judge: func(e study.Evidence) study.Finding {
			return study.Figure(e.Summary(retriesOn, writesPerSecond), perSecond).Judge(study.About(90_000, 2), study.NotHere, "within a factor of two", "not within a factor of two")
		},
	}
}

// judgeScaling: what scales costs the same for each file. The published figures
// are the claim's own.
func judgeScaling(here study.Measured, published float64) study.Finding {
	f := study.Finding{Measured: here.String() + " a file of a WriteAll of 3000 against 300", Verdict: study.Holds, Why: "a file costs no more among many"}
	if published > 1.5 {
		f.Verdict, f.Why = study.NeverSo, fmt.Sprintf("by its own table a file costs %s as much in the largest batch as in the smallest", study.Times(published))
	}
	return f
}
