package lines

import (
	"fmt"
	"math"
	"slices"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

// lineClaims are the two documents' claims about writing lines.
func lineClaims() []study.Claim {
	return slices.Concat(plainClaims, valueClaims())
}

// plainClaims are the claims about times, calls, losses and the side effects of a write.
var plainClaims = []study.Claim{{
	Name: "lines-20x", Source: study.FileIOExperiment,
	Says:      "buffering makes 100,000 lines about 20 times as fast",
	Published: "18.98–21.06x (276–289 ms to 13.6–14.6 ms)",
	Over:      publishedUnbuffered, Under: publishedBuffered, By: study.Elapsed, Allows: study.About(20, 1.5),
	Holds: "within a factor of 1.5 of the published ratio",
	Not:   "the ratio compares a write call with formatting a line, and both depend on the machine",
}, {
	Name: "lines-call-cost", Source: study.FileIOExperiment,
	Says: "a write call takes 2.8 µs", Published: "2.8 µs",
	Arms: []string{publishedUnbuffered, publishedFormat},
	Figure: func(e study.Evidence) study.Measured {
		return study.Figure(lineNet(e, publishedUnbuffered), study.Duration)
	},
	Allows: study.About(2800, 1.5),
	Holds:  "without its formatting a line's call is within a factor of 1.5 of that",
	Not:    "a call's cost depends on kernel and processor; the document divided the whole time by the lines, formatting included",
}, {
	Name: "lines-copy-cost", Source: study.FileIOExperiment,
	Says: "copying a line into the buffer takes 0.14 µs", Published: "0.14 µs",
	Arms: []string{publishedBuffered, publishedFormat},
	Figure: func(e study.Evidence) study.Measured {
		return study.Figure(lineNet(e, publishedBuffered), study.Duration)
	},
	Allows: study.About(140, 1.5),
	Holds:  "without its formatting a buffered line is within a factor of 1.5 of that",
	Not:    "formatting a line is counted as copying in the document",
	Add: func(e study.Evidence, f *study.Finding) {
		if share := formatPart(e, publishedFormat, publishedBuffered); f.Verdict == study.NotHere && !math.IsNaN(share) {
			f.Why = fmt.Sprintf("%s of a buffered line's time is formatting it, which the document counts as copying", study.Percent(share))
		}
	},
}, {
	Name: "lines-bottleneck", Source: study.FileIOExperiment,
	Says: "the bottleneck is not the disk but the system calls",

	// Calls without a sync stand against a sync with few calls.
	Over: equalWrite, Under: equalSynced, Allows: study.AtLeast(1),
	Holds: "one write a line and no sync takes longer than a buffer and the sync that the document's runs never made",
	Not:   "once the bytes have to reach the disk, which the document's runs never waited for, the disk takes longer than the calls",
}, {
	Name: "lines-16k", Source: study.EfficientBuffering,
	Says: "a buffer of 16 KiB is better than one of 4 KiB for high throughput",
	Arms: []string{equalBufio4, equalBufio16},
	Decide: func(e study.Evidence) study.Finding {
		return judgeFaster(e, equalBufio16, equalBufio4, "a quarter of the write calls saves more than the noise", "a quarter of the write calls saves nothing that shows")
	},
}, {
	Name: "lines-million", Source: study.EfficientBuffering,
	Says: "a million lines are up to an order of magnitude faster through a buffer", Published: "~10x",
	Over: millionWrite, Under: millionBufio, Allows: study.About(10, 2),
	Holds: "it is an order of magnitude, within a factor of 2",
	Not:   "it is no order of magnitude, not even within a factor of 2",
}, {
	Name: "lines-cpu", Source: study.EfficientBuffering,
	Says: "buffering reduces CPU usage",
	Over: equalWrite, Under: equalBufio4, By: study.CPUTime, Allows: study.AtLeast(1),
	Holds: "one write a line takes this many times the CPU time",
	Not:   "the calls that it saves do not show in the CPU time",
}, {
	Name: "lines-25-50-calls", Source: study.FileIOExperiment,
	Says: "through a buffer of 4 KiB 100,000 lines take 25–50 system calls", Published: "25–50",
	Over: publishedBuffered, By: writeCalls, Text: study.Whole, Counted: true, Allows: study.Span{Least: 25, Most: 50}, Otherwise: study.NeverSo,
	Holds: "the kernel counted as few",
	Not:   "3,988,890 bytes by 4096 at a time are 974 writes",
}, {
	Name: "lines-flush-cost", Source: study.FileIOExperiment,
	Says: "about 30 flushes of 2.8 µs are 0.084 ms of the buffered run", Published: "0.084 ms",
	Over: publishedBuffered, By: writeCalls, Counted: true, Allows: study.About(30, 1.5), Otherwise: study.NeverSo,
	Text:  func(calls float64) string { return fmt.Sprintf("%.3g ms", calls*2.8e-3) },
	Holds: "as few flushes were counted",
	Not:   "by the document's own 2.8 µs a flush: there are 974 of them, and each copies 4 KiB",
}, {
	Name: "lines-10000-calls", Source: study.EfficientBuffering,
	Says: "10,000 writes without a buffer are 10,000 system calls", Published: "10,000",
	Over: constantWrite, By: writeCalls, Text: study.Whole, Counted: true, Allows: study.About(10_000, 1.01),
	Holds: "a write is a call",
	Not:   "the kernel counted as many",
}, {
	Name: "lines-crash", Source: study.FileIOExperiment,
	Says: "a crash before the flush loses what is in the buffer",
	Arms: []string{crashBufio},

	// All kills count: one may come when the buffer is just empty.
	Decide: func(e study.Evidence) study.Finding {
		m := e.AllTrials(crashBufio, study.Value(lostLines), linesText)
		f := study.Finding{Measured: m.String(), Verdict: study.Holds, Why: "lines that were accepted are not in the file of the killed process"}
		switch {
		case math.IsNaN(m.High):
			f.Verdict, f.Why, f.Settle = study.NotChecked, m.Unsettled(), "--full"
		case m.High < 1:
			f.Verdict, f.Why = study.NotHere, "every line that was accepted is in the file of the killed process"
		}
		return f
	},
}, {
	Name: "lines-crash-unbuffered", Source: study.FileIOExperiment,
	Says: "without a buffer a crash loses less: what was written persists at once",
	Over: crashWrite, By: study.Value(lostLines), Text: linesText, Counted: true, Allows: study.AtMost(0),
	Holds: "a killed process loses none; a power cut would still take what the kernel has not written, for no sync was made",
	Not:   "accepted lines are not in the file",
}, {
	Name: "lines-forgotten-flush", Source: study.EfficientBuffering,
	Says: "a file that is closed without a Flush lacks what the bufio.Writer still held",
	Over: forgottenBufio, By: study.Value(lostBytes), Counted: true, Allows: study.AtLeast(1),
	Text:  func(x float64) string { return study.Whole(x) + " bytes" },
	Holds: "the file ends where the last full buffer did",
	Not:   "the file has all",
}, {
	Name: "lines-metadata", Source: study.FileIOExperiment,
	Says: "each write updates the file's size, its modification time and its access time",
	Over: touchedWrite, By: study.Value(accessedChanged), Text: study.Whole, Counted: true, Allows: study.AtLeast(1), Otherwise: study.NeverSo,
	Holds: "all three were updated",
	Not:   "a write marks the modification and the change time; the access time changes at a read (POSIX, write)",
	Add: func(e study.Evidence, f *study.Finding) {
		size, modified := e.AllTrials(touchedWrite, study.Value(sizeChanged), study.Whole), e.AllTrials(touchedWrite, study.Value(modifiedChanged), study.Whole)
		if f.Measured != "" {
			f.Measured = fmt.Sprintf("of 1 write: size %v, modification time %v, access time %s", size, modified, f.Measured)
		}
	},
}, {
	Name: "lines-page-4096", Source: study.EfficientBuffering,
	Says: "4096 bytes is the block size of file systems and the page size of most systems", Published: "Linux, BSD, macOS", Arms: []string{touchedWrite},
	Decide: func(e study.Evidence) study.Finding {
		page, block := e.AllTrials(touchedWrite, study.Value(pageBytes), study.Whole), e.AllTrials(touchedWrite, study.Value(blockBytes), study.Whole)
		const elsewhere = "; macOS has pages of 16,384 bytes on Apple's processors, and so may Linux on ARM have 16,384 or 65,536"
		f := page.Judge(study.About(4096, 1), study.NotHere, "so it is here"+elsewhere, "a page has another size here")
		if f.Verdict == study.Holds {
			if g := block.Judge(study.About(4096, 1), study.NotHere, f.Why, "the file system asks for blocks of another size"); g.Verdict == study.NotHere {
				f = g
			}
		}
		f.Measured = fmt.Sprintf("page %s, block %s", page.OrDash(), block.OrDash())
		return f
	},
}, {
	Name: "lines-fragments", Source: study.EfficientBuffering,
	Says: "repeated small writes fragment disk operations", Arms: []string{extentsSmall, extentsLarge},
	Decide: func(e study.Evidence) study.Finding {
		small, large := e.AllTrials(extentsSmall, study.Value(extentsTold), study.Whole), e.AllTrials(extentsLarge, study.Value(extentsTold), study.Whole)
		f := small.Judge(study.AtLeast(large.High+1), study.NotHere, "the same bytes lie in more pieces after small writes",
			"the file system places bytes when it writes them back, not at each call: they lie in no more pieces")
		if f.Measured != "" {
			f.Measured = fmt.Sprintf("%v extents of 4 MB in writes of 40 bytes, %v in writes of 1 MiB", small, large)
		}
		return f
	},
}, {
	Name: "lines-bursty", Source: study.EfficientBuffering,
	Says: "the more bursty the I/O, the larger the benefit of a buffer",
	Arms: []string{groupBursty + "/write", groupBursty + "/" + burstName(1), groupBursty + "/" + burstName(100)},
	Decide: func(e study.Evidence) study.Finding {
		even, burst := groupBursty+"/"+burstName(1), groupBursty+"/"+burstName(100)
		gain := func(arm string) string {
			return study.Ratio(e.Ratio(groupBursty+"/write", arm, study.PerRecord)).OrDash()
		}
		f := judgeFaster(e, burst, even, "a buffer that is flushed after each burst has gathered all of it; with single lines it gathers nothing", "the burst gains no more than single lines")
		f.Measured = fmt.Sprintf("gains %s in bursts of 100 lines, %s line by line", gain(burst), gain(even))
		return f
	},
}, {
	Name: "lines-load", Source: study.EfficientBuffering,
	Says: "system load is a factor in what a buffer is worth",
	Arms: []string{equalWrite, equalBufio4, groupLoaded + "/write", groupLoaded + "/bufio 4KiB"},
	Decide: func(e study.Evidence) study.Finding {
		write, buffered := e.Samples(equalWrite, study.PerRecord), e.Samples(equalBufio4, study.PerRecord)
		loaded, both := e.Samples(groupLoaded+"/write", study.PerRecord), e.Samples(groupLoaded+"/bufio 4KiB", study.PerRecord)
		var more []float64
		for i := range min(len(write), len(buffered), len(loaded), len(both)) {
			more = append(more, loaded[i]/both[i]/(write[i]/buffered[i]))
		}
		gain, alike := study.Figure(stat.Summarize(more), study.Times), study.About(1, 1.1)
		f := gain.Judge(alike, study.Holds, "", "beside two busy processes for each processor a buffer gains another factor")
		if alike.Place(gain.Low, gain.High) == study.Inside {
			f.Verdict, f.Why = study.NotHere, "beside two busy processes for each processor a buffer gains as much"
		}
		if f.Measured != "" {
			f.Measured += " of the gain on a quiet system"
		}
		return f
	},
}, {
	Name: "lines-http", Source: study.FileIOExperiment,
	Says: "web servers buffer response bodies: a complete response takes fewer system calls, which reduces the overhead of small ones",
	Arms: []string{groupHTTP + "/write", groupHTTP + "/bufio 4KiB"},
	Decide: func(e study.Evidence) study.Finding {
		calls := func(arm string) string { return study.Digits(e.Median(arm, study.Each(writeCalls))) }
		f := judgeFaster(e, groupHTTP+"/bufio 4KiB", groupHTTP+"/write", "a response is one call and one segment", "the calls that it saves do not show")
		f.Measured = fmt.Sprintf("%s as fast, %s calls a response instead of %s", f.Measured, calls(groupHTTP+"/bufio 4KiB"), calls(groupHTTP+"/write"))
		return f
	},
}, {
	Name: "lines-memory", Source: study.EfficientBuffering,
	Says: "benchmarks show buffered writes to be more efficient in memory allocations", Published: "53,773 → 70,127 bytes, 10,007 → 10,008 allocations",
	Arms: []string{valuesWrite, valuesBufio},
	Decide: func(e study.Evidence) study.Finding {
		without, with := e.AllTrials(valuesWrite, study.Value(study.BytesPerOp), study.Whole), e.AllTrials(valuesBufio, study.Value(study.BytesPerOp), study.Whole)
		f := with.Judge(study.AtMost(without.Low), study.NeverSo, "an operation allocates less through the buffer",
			"the buffer itself is allocated and nothing else is saved; its own table says the same")
		if f.Measured != "" {
			f.Measured = fmt.Sprintf("%v → %v bytes an operation", without, with)
		}
		return f
	},
}}

// judgeFaster holds if one arm is faster than the other by more than the noise.
func judgeFaster(e study.Evidence, fast, slow, holds, not string) study.Finding {
	f := study.Finding{Measured: study.Ratio(e.Ratio(slow, fast, study.PerRecord)).String()}
	switch e.Ratio(fast, slow, study.PerRecord).Verdict {
	case stat.Faster:
		f.Verdict, f.Why = study.Holds, holds
	case stat.Same, stat.Slower:
		f.Verdict, f.Why = study.NotHere, not
	default:
		f.Verdict, f.Why, f.Settle = study.NotChecked, "the rounds and the noise do not tell them apart", "--full"
	}
	return f
}

func linesText(x float64) string { return study.Whole(x) + " lines" }

func valueClaims() []study.Claim {
	arms := []string{valuesWrite, valuesBufio}
	return []study.Claim{{
		Name: "lines-62x", Source: study.EfficientBuffering,
		Says: "10,000 records in two writes each are 62.3 times as fast through 16 KiB", Published: "62.3x (23.7 ms to 0.38 ms)",
		Arms: arms,
		Over: valuesWrite, Under: valuesBufio, By: perOp, Allows: study.About(62.3, 1.5),
		Holds: "within a factor of 1.5 of the published ratio",
		Not:   "the cost of a write call depends on the machine, and so does the ratio",
	}, {
		Name: "lines-bytes-op", Source: study.EfficientBuffering,
		Says: "an operation allocates 53,773 bytes, and with a buffer 70,127", Published: "53,773 → 70,127",
		Arms:   arms,
		Decide: bothAllocate(study.BytesPerOp, study.About(53_773, 1.02), study.About(70_127, 1.02)),
	}, {
		Name: "lines-allocs-op", Source: study.EfficientBuffering,
		Says: "an operation has 10,007 allocations, and with a buffer 10,008", Published: "10,007 → 10,008",
		Arms:   arms,
		Decide: bothAllocate(study.AllocsPerOp, study.About(10_007, 1.002), study.About(10_008, 1.002)),
	}}
}

// bothAllocate holds if what both arms report is in its span, in every round.
func bothAllocate(name string, without, with study.Span) func(study.Evidence) study.Finding {
	return func(e study.Evidence) study.Finding {
		plain, buffered := e.AllTrials(valuesWrite, study.Value(name), study.Whole), e.AllTrials(valuesBufio, study.Value(name), study.Whole)
		f := study.Finding{Measured: plain.String() + " → " + buffered.String()}
		a, b := without.Place(plain.Low, plain.High), with.Place(buffered.Low, buffered.High)
		switch {
		case a == study.Inside && b == study.Inside:
			f.Verdict, f.Why = study.Holds, "counted as Go benchmarks count: the compiler decides the number, not the machine"
		case a == study.Outside || b == study.Outside:
			f.Verdict, f.Why = study.NotHere, "this version of Go allocates differently"
		default:
			f.Verdict, f.Why, f.Settle = study.NotChecked, "the rounds differ", "--full"
		}
		return f
	}
}
