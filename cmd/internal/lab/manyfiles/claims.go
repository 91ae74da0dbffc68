package manyfiles

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

// filesClaims are those of the document. Where its clock covers writes to open files, so
// do the arms that decide; the finding shows beside what making the files costs.
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
		Arms: []string{openPlain, retriesOff},
		Judge: func(e study.Evidence) study.Finding {
			return judgeRate(rate(e, openPlain), 500_000, publishedFiles/publishedSeconds, rate(e, retriesOff))
		},
	}, {
		Name: "files-80k", Source: study.WriterBenchmarks, Says: "80,000 to 100,000 writes a second with retries", Published: "96 rounds of 12.46 ms for 1000 files",
		Arms: []string{openRetried, retriesOn},
		Judge: func(e study.Evidence) study.Finding {
			return judgeRate(rate(e, openRetried), 80_000, 80_000, rate(e, retriesOn))
		},
	}, {
		Name: "files-batching", Source: study.WriterBenchmarks, Says: "batching scales well", Published: "17, 37, 67 µs a file in batches of 1500, 3000, 5000",
		Arms: []string{filesArm(many, byFiles), filesArm(few, byFiles)},
		Judge: func(e study.Evidence) study.Finding {
			growth := batches[len(batches)-1].perFile() / batches[0].perFile()
			return judgeScaling(study.Ratio(e.Ratio(filesArm(many, byFiles), filesArm(few, byFiles), study.PerRecord)), growth)
		},
	},
	{
		Name: "files-contention", Source: study.WriterBenchmarks, Says: "I/O contention makes files dearer the more there are", Published: "10 µs a file, then 12.5, 37, 67",
		Arms: []string{filesArm(many, openByFile), filesArm(few, openByFile), filesArm(many, byPool(perCPU)), filesArm(few, byPool(perCPU))},
		Judge: func(e study.Evidence) study.Finding {
			f := study.Ratio(e.Ratio(filesArm(many, openByFile), filesArm(few, openByFile), study.PerRecord)).Judge(study.AtLeast(1.5), study.NotHere, "a write to one of 3000 open files costs that many times one of 300",
				"a write to one of 3000 open files costs about what one of 300 does, so it was not the files: 65 % of that program's CPU time was a linear search of its own pool")
			f.Measured += fmt.Sprintf(" to files that are open, as in its clock; %v made, written and closed", study.Ratio(e.Ratio(filesArm(many, byPool(perCPU)), filesArm(few, byPool(perCPU)), study.PerRecord)))
			return f
		},
	}, {
		Name: "files-create", Source: study.WriterBenchmarks, Says: "creating the files (os.CreateTemp) dominates small runs", Published: "about 10 µs a file",
		Arms: []string{createTemp},
		Judge: func(e study.Evidence) study.Finding {
			share := func(t result.Trial) float64 { return float64(t.Open) / float64(t.Elapsed) }
			return study.Figure(e.Summary(createTemp, share), study.Percent).Judge(study.AtLeast(0.5), study.NotHere, "more than half of the time of open, write and close", "less than half of the time of open, write and close")
		},
	}, {
		Name: "files-memory", Source: study.WriterBenchmarks, Says: "memory grows linearly with the files, by 4.6 KiB for each", Published: "4.6 KiB and 9 allocations a file",
		Arms: []string{filesArm(many, openByBufio), filesArm(few, openByBufio)},
		Judge: func(e study.Evidence) study.Finding {
			// These arms write each file once, as an operation does.
			each := func(t result.Trial) float64 { return study.Value(study.BytesPerOp)(t) / float64(t.Records) }
			f := study.Ratio(e.Ratio(filesArm(many, openByBufio), filesArm(few, openByBufio), each)).Judge(study.About(1, 1.1), study.NotHere, "", "not as much for each file")
			here := study.Figure(e.Summary(filesArm(many, openByBufio), each), bytesText)
			if f.Verdict == study.Holds {
				f = here.Judge(study.About(publishedRuns[len(publishedRuns)-1].bytes/1000, 1.25), study.NotHere,
					"as much for each file of 3000 as of 300: it is a bufio.Writer of 4 KiB for 12 bytes", "a bufio.Writer for each file takes something else")
			}
			allocations := func(t result.Trial) float64 { return study.Value(study.AllocsPerOp)(t) / float64(t.Records) }
			f.Measured = fmt.Sprintf("%v a file of 3000, %v of 300; %s allocations", here, study.Figure(e.Summary(filesArm(few, openByBufio), each), bytesText), study.Digits(e.Median(filesArm(many, openByBufio), allocations)))
			return f
		},
	}, {
		Name: "files-2-memory", Source: study.WriterBenchmarks, Says: "an operation on 2 files takes 12,192 B in 60 allocations", Published: "12,192 B, 60 allocations, 82 µs",
		Arms: []string{twoByBufio},
		Judge: func(e study.Evidence) study.Finding {
			each := func(of study.Metric) study.Metric {
				return func(t result.Trial) float64 { return 2 * study.Each(of)(t) }
			}
			f := study.Figure(e.Summary(twoByBufio, each(study.Allocated)), bytesText).Judge(study.About(publishedRuns[0].bytes, 1.1), study.NotHere,
				"two temporary files, and for each a worker and a bufio.Writer of 4 KiB", "two temporary files, and for each a worker and a bufio.Writer of 4 KiB, take less: the rest is that package's own")
			f.Measured += fmt.Sprintf(", %s allocations, %s an operation", study.Digits(e.Median(twoByBufio, each(study.Allocations))), study.Duration(e.Median(twoByBufio, each(study.Elapsed))))
			return f
		},
	}, {
		Name: "files-coordination", Source: study.WriterBenchmarks, Says: "the coordination of the worker pool grows with the files",
		Arms: []string{filesArm(many, poolApart), filesArm(few, poolApart)},
		Judge: func(e study.Evidence) study.Finding {
			own := study.Each(func(t result.Trial) float64 { return float64(t.Work) })
			f := study.Ratio(e.Ratio(filesArm(many, poolApart), filesArm(few, poolApart), own)).Judge(study.AtLeast(1.5), study.NotHere, "a file among 3000 takes the pool that many times as long as one among 300",
				"what the pool itself takes for a file does not grow: it is the same hand-over for each")
			f.Measured += fmt.Sprintf(" a file of 3000 against 300: %s of %s", study.Duration(e.Median(filesArm(many, poolApart), own)), study.Duration(e.Median(filesArm(many, poolApart), study.PerRecord)))
			return f
		},
	}, {
		Name: "files-backoff", Source: study.WriterBenchmarks, Says: "the backoff is capped at 1000 ms", Published: "base 100 ms, cap 1000 ms",
		Judge: func(study.Evidence) study.Finding {
			return judgeCap(100*time.Millisecond, time.Second)
		},
	}, {
		Name: "files-64-workers", Source: study.WriterBenchmarks, Says: "the benchmark ran with maxWorkers = 64, and maxWorkers defaults to the CPU count", Published: "maxWorkers = 64",
		Judge: func(study.Evidence) study.Finding { return judgeWorkers("BenchmarkWriter-2", 64) },
	}, {
		Name: "files-40x", Source: study.WriterBenchmarks, Says: "64 cores are the reason why an EPYC is 40 times as fast as an i7-4510U", Published: "1.2 ms, 47 ms for 100 files",
		Arms: []string{openPlain, filesArm(1000, openOn(1))},
		Judge: func(e study.Evidence) study.Finding {
			// Of 2 cores with 4 threads 64 are 32 times as many: even without a loss they are not 40 times as fast.
			f := study.Finding{Verdict: study.NeverSo, Why: "64 cores are 32 times the 2 of an i7-4510U, and its benchmark's name says that it ran on 2 CPUs"}
			f.Measured = fmt.Sprintf("%s CPUs do %v the writes of one", e.Fact("GOMAXPROCS"), study.Ratio(e.Ratio(filesArm(1000, openOn(1)), openPlain, study.PerRecord)))
			return f
		},
	},
}

// Claims on how a file's cost grows set many against few.
const few, many = 300, 3000

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

// judgeWorkers: a pool of as many workers as there are CPUs had as many as the benchmark's name says.
func judgeWorkers(benchmark string, workers int) study.Finding {
	f := study.Finding{Measured: fmt.Sprintf("GOMAXPROCS=%d", cpusOf(benchmark)), Verdict: study.Holds, Why: "the CPUs are as many"}
	if cpusOf(benchmark) != workers {
		f.Verdict, f.Why = study.NeverSo, fmt.Sprintf("the two contradict each other on %d CPUs, and the program's source passes the CPU count", cpusOf(benchmark))
	}
	return f
}

// judgeCap: a pause that is doubled as long as it is less than the cap ends beyond it.
func judgeCap(base, most time.Duration) study.Finding {
	longest := base
	for longest < most {
		longest *= 2
	}
	f := study.Finding{Measured: longest.String(), Verdict: study.Holds, Why: "the doubled pauses end at the cap"}
	if longest > most {
		f.Verdict, f.Why = study.NeverSo, fmt.Sprintf("the program's source doubles a pause that is less than %v, and %v is", most, longest/2)
	}
	return f
}

func perSecond(x float64) string { return study.Digits(x) + "/s" }

func bytesText(x float64) string { return study.Whole(x) + " B" }

func writesPerSecond(t result.Trial) float64 { return float64(t.Records) / t.Elapsed.Seconds() }

func rate(e study.Evidence, arm string) study.Measured {
	return study.Figure(e.Summary(arm, writesPerSecond), perSecond)
}

// judgeRate judges writes to open files, which are what the published clock covers. Made
// is the rate of files that are made, written and closed. What the document's own rate
// denies may be so on another machine, or on this one when it is quiet.
func judgeRate(m study.Measured, claimed, bySource float64, made study.Measured) study.Finding {
	f := m.Judge(study.AtLeast(claimed), study.NotHere, "so many are written to files that are open, which is what its clock covers", "fewer are written to files that are open, which is what its clock covers")
	if bySource < claimed {
		f.Why += fmt.Sprintf("; its own table is %s writes a second", study.Whole(math.Round(bySource/100)*100))
	}
	f.Measured += fmt.Sprintf(" to open files; %v made, written and closed", made)
	return f
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
