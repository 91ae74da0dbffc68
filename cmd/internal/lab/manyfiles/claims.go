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

// filesClaims are the document's claims. Where its clock covers writes to open files, so
// do the arms that decide; the finding shows beside what making the files costs.
var filesClaims = []study.Claim{
	{
		Name: "files-64-cores", Says: "64 cores fully utilize the worker pool", Published: "BenchmarkWriter-2",
		Decide: func(study.Evidence) study.Finding { return judgeCores("BenchmarkWriter-2", 64) },
	}, {
		Name: "files-8x-retries", Says: "disabling retries is 8 times as fast", Published: "114 ms, 14 ms for 1000 files",
		Over: retriesOn, Under: retriesOff, By: study.Elapsed, Allows: study.About(8, 1.5), Otherwise: study.NeverSo,
		Holds: "so it is",
		Not:   "a retry that is not needed costs nothing; the 100 ms between the two are just one pause of its backoff",
	}, {
		Name: "files-500k", Says: "500,000 writes a second without retries", Published: "0.065 s for 5500 writes",
		Over: openPlain, By: writesPerSecond, Text: perSecond, Allows: study.AtLeast(500_000), Holds: enoughWritten, Not: fewerWritten,
		Add: alsoMade(500_000, publishedFiles/publishedSeconds, retriesOff), Arms: []string{openPlain, retriesOff},
	}, {
		Name: "files-80k", Says: "80,000 to 100,000 writes a second with retries", Published: "96 rounds of 12.46 ms for 1000 files",
		Over: openRetried, By: writesPerSecond, Text: perSecond, Allows: study.AtLeast(80_000), Holds: enoughWritten, Not: fewerWritten,
		Add: alsoMade(80_000, 80_000, retriesOn), Arms: []string{openRetried, retriesOn},
	}, {
		Name: "files-batching", Says: "batching scales well", Published: "17, 37, 67 µs a file in batches of 1500, 3000, 5000",
		Arms: []string{filesArm(many, byFiles), filesArm(few, byFiles)},
		Decide: func(e study.Evidence) study.Finding {
			growth := batches[len(batches)-1].perFile() / batches[0].perFile()
			return judgeScaling(study.Ratio(e.Ratio(filesArm(many, byFiles), filesArm(few, byFiles), study.PerRecord)), growth)
		},
	},
	{
		Name: "files-contention", Says: "I/O contention makes files dearer the more there are", Published: "10 µs a file, then 12.5, 37, 67",
		Over: filesArm(many, openByFile), Under: filesArm(few, openByFile), Allows: study.AtLeast(1.5),
		Holds: "a write to one of 3000 open files costs this many times a write to one of 300",
		Not:   "a write to one of 3000 open files costs about what one of 300 does, so it was not the files: 65 % of that program's CPU time was a linear search of its own pool",
		Add: func(e study.Evidence, f *study.Finding) {
			f.Measured += fmt.Sprintf(" to files that are open, as in its clock; %v made, written and closed", study.Ratio(e.Ratio(filesArm(many, byPool(perCPU)), filesArm(few, byPool(perCPU)), study.PerRecord)))
		},
		Arms: []string{filesArm(many, openByFile), filesArm(few, openByFile), filesArm(many, byPool(perCPU)), filesArm(few, byPool(perCPU))},
	}, {
		Name: "files-create", Says: "creating the files (os.CreateTemp) dominates small runs", Published: "about 10 µs a file",
		Over: createTemp, By: openShare, Text: study.Percent, Allows: study.AtLeast(0.5),
		Holds: "more than half of the time of open, write and close", Not: "less than half of the time of open, write and close",
	}, {
		Name: "files-memory", Says: "memory grows linearly with the files, by 4.6 KiB for each", Published: "4.6 KiB and 9 allocations a file",
		Arms: []string{filesArm(many, openByBufio), filesArm(few, openByBufio)},
		Decide: func(e study.Evidence) study.Finding {
			each := study.Each(study.Value(study.BytesPerOp)) // these arms write each file once, as an operation does
			f := study.Ratio(e.Ratio(filesArm(many, openByBufio), filesArm(few, openByBufio), each)).Judge(study.About(1, 1.1), study.NotHere, "", "not as much for each file")
			here := study.Figure(e.Summary(filesArm(many, openByBufio), each), bytesText)
			if f.Verdict == study.Holds {
				f = here.Judge(study.About(publishedRuns[len(publishedRuns)-1].bytes/1000, 1.25), study.NotHere,
					"as much for each file of 3000 as of 300: it is a bufio.Writer of 4 KiB for 12 bytes", "a bufio.Writer for each file takes something else")
			}
			f.Measured = fmt.Sprintf("%v a file of 3000, %v of 300; %s allocations", here, study.Figure(e.Summary(filesArm(few, openByBufio), each), bytesText), study.Digits(e.Median(filesArm(many, openByBufio), study.Each(study.Value(study.AllocsPerOp)))))
			return f
		},
	}, {
		Name: "files-2-memory", Says: "an operation on 2 files takes 12,192 B in 60 allocations", Published: "12,192 B, 60 allocations, 82 µs",
		Over: twoByBufio, By: ofTwo(study.Allocated), Text: bytesText, Allows: study.About(publishedRuns[0].bytes, 1.1),
		Holds: "two temporary files, and for each a worker and a bufio.Writer of 4 KiB",
		Not:   "two temporary files, and for each a worker and a bufio.Writer of 4 KiB, take less: the rest is that package's own",
		Add: func(e study.Evidence, f *study.Finding) {
			f.Measured += fmt.Sprintf(", %s allocations, %s an operation", study.Digits(e.Median(twoByBufio, ofTwo(study.Allocations))), study.Duration(e.Median(twoByBufio, ofTwo(study.Elapsed))))
		},
	}, {
		Name: "files-coordination", Says: "the coordination of the worker pool grows with the files",
		Over: filesArm(many, poolApart), Under: filesArm(few, poolApart), By: study.Each(workTime), Allows: study.AtLeast(1.5),
		Holds: "a file among 3000 takes the pool that many times as long as one among 300",
		Not:   "the pool's own time for a file does not grow: each is handed over in the same way",
		Add: func(e study.Evidence, f *study.Finding) {
			f.Measured += fmt.Sprintf(" a file of 3000 against 300: %s of %s", study.Duration(e.Median(filesArm(many, poolApart), study.Each(workTime))), study.Duration(e.Median(filesArm(many, poolApart), study.PerRecord)))
		},
	}, {
		Name: "files-backoff", Says: "the backoff is capped at 1000 ms", Published: "base 100 ms, cap 1000 ms",
		Decide: func(study.Evidence) study.Finding { return judgeCap(100*time.Millisecond, time.Second) },
	}, {
		Name: "files-64-workers", Says: "the benchmark ran with maxWorkers = 64, and maxWorkers defaults to the CPU count", Published: "maxWorkers = 64",
		Decide: func(study.Evidence) study.Finding { return judgeWorkers("BenchmarkWriter-2", 64) },
	}, {
		Name: "files-40x", Says: "64 cores are the reason why an EPYC is 40 times as fast as an i7-4510U", Published: "1.2 ms, 47 ms for 100 files",
		Arms: []string{openPlain, filesArm(1000, openOn(1))},
		Decide: func(e study.Evidence) study.Finding {
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

// Why a rate is reached or not: the published clock covers writes to open files only.
const (
	enoughWritten = "as many are written to files that are open, which is what its clock covers"
	fewerWritten  = "fewer are written to files that are open, which is what its clock covers"
)

// alsoMade adds the rate of files that are made, written and closed. A claim that the document's
// own rate denies may hold on another machine, or on this one when it is quiet.
func alsoMade(claimed, bySource float64, made string) func(study.Evidence, *study.Finding) {
	return func(e study.Evidence, f *study.Finding) {
		if bySource < claimed {
			f.Why += fmt.Sprintf("; its own table is %s writes a second", study.Whole(math.Round(bySource/100)*100))
		}
		f.Measured += fmt.Sprintf(" to open files; %v made, written and closed", study.Figure(e.Summary(made, writesPerSecond), perSecond))
	}
}

// ofTwo is a figure of an operation on two files.
func ofTwo(of study.Metric) study.Metric {
	return func(t result.Trial) float64 { return 2 * study.Each(of)(t) }
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
