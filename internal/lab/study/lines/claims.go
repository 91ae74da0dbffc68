package lines

import (
	"fmt"
	"math"
	"slices"

	"github.com/holdfast-go/holdfast/internal/lab/stat"
	"github.com/holdfast-go/holdfast/internal/lab/study"
)

// lineClaims are what the two documents say of writing lines.
var lineClaims = slices.Concat(lineSpeedClaims, lineCallClaims, lineLossClaims, valueClaims(), touchedClaims)

var lineSpeedClaims = []study.Claim{{
	Name: "lines-20x", Source: study.FileIOExperiment,
	Says:      "buffering makes 100,000 lines about 20 times as fast",
	Published: "18.98–21.06x (276–289 ms to 13.6–14.6 ms)",
	Arms:      []string{publishedUnbuffered, publishedBuffered},
	Judge: func(e study.Evidence) study.Finding {
		return study.Ratio(e.Ratio(publishedUnbuffered, publishedBuffered, study.Elapsed)).Judge(study.About(20, 1.5), study.NotHere,
			"within a factor of 1.5 of the published ratio",
			"the ratio is that of a write call to formatting a line, and both are this machine's own")
	},
}, {
	Name: "lines-call-cost", Source: study.FileIOExperiment,
	Says: "a write call takes 2.8 µs", Published: "2.8 µs",
	Arms:  []string{publishedUnbuffered, publishedFormat},
	Judge: judgeCallCost,
}, {
	Name: "lines-copy-cost", Source: study.FileIOExperiment,
	Says: "copying a line into the buffer takes 0.14 µs", Published: "0.14 µs",
	Arms:  []string{publishedBuffered, publishedFormat},
	Judge: judgeCopyCost,
}, {
	Name: "lines-bottleneck", Source: study.FileIOExperiment,
	Says: "the bottleneck is not the disk but the system calls",
	Arms: []string{equalWrite, equalSynced},

	// Calls without a sync stand against a sync with few calls.
	Judge: func(e study.Evidence) study.Finding {
		return study.Ratio(e.Ratio(equalWrite, equalSynced, study.PerRecord)).Judge(study.AtLeast(1), study.NotHere,
			"one write a line and no sync takes longer than a buffer and the sync that the document's runs never made",
			"once the bytes have to reach the disk, which the document's runs never waited for, the disk takes longer than the calls")
	},
}, {
	Name: "lines-16k", Source: study.EfficientBuffering,
	Says: "a buffer of 16 KiB is better than one of 4 KiB for high throughput",
	Arms: []string{equalBufio4, equalBufio16},
	Judge: func(e study.Evidence) study.Finding {
		return judgeFaster(e, equalBufio16, equalBufio4, "a quarter of the write calls saves more than the noise", "a quarter of the write calls saves nothing that shows")
	},
}, {
	Name: "lines-million", Source: study.EfficientBuffering,
	Says: "a million lines are up to an order of magnitude faster through a buffer", Published: "~10x",
	Arms: []string{millionWrite, millionBufio},
	Judge: func(e study.Evidence) study.Finding {
		return study.Ratio(e.Ratio(millionWrite, millionBufio, study.PerRecord)).Judge(study.About(10, 2), study.NotHere,
			"it is an order of magnitude, within a factor of 2", "it is no order of magnitude, not even within a factor of 2")
	},
}, {
	Name: "lines-cpu", Source: study.EfficientBuffering,
	Says: "buffering reduces CPU usage",
	Arms: []string{equalWrite, equalBufio4},
	Judge: func(e study.Evidence) study.Finding {
		return study.Ratio(e.Ratio(equalWrite, equalBufio4, study.CPUTime)).Judge(study.AtLeast(1), study.NotHere,
			"so many times as much CPU time goes into one write a line", "the calls that it saves do not show in the CPU time")
	},
}}

func judgeCallCost(e study.Evidence) study.Finding {
	return study.Figure(lineNet(e, publishedUnbuffered), study.Duration).Judge(study.About(2800, 1.5), study.NotHere,
		"without its formatting a line's call is within a factor of 1.5 of that",
		"a call's cost is the kernel's and the processor's; the document divided all of the time by the lines, formatting included")
}

func judgeCopyCost(e study.Evidence) study.Finding {
	why := "formatting a line is counted as copying in the document"
	if share := formatPart(e, publishedFormat, publishedBuffered); !math.IsNaN(share) {
		why = fmt.Sprintf("%s of a buffered line's time is formatting it, which the document counts as copying", study.Percent(share))
	}
	return study.Figure(lineNet(e, publishedBuffered), study.Duration).Judge(study.About(140, 1.5), study.NotHere,
		"without its formatting a buffered line is within a factor of 1.5 of that",
		why)
}

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

var lineCallClaims = []study.Claim{{
	Name: "lines-25-50-calls", Source: study.FileIOExperiment,
	Says: "through a buffer of 4 KiB 100,000 lines take 25–50 system calls", Published: "25–50",
	Arms: []string{publishedBuffered},
	Judge: func(e study.Evidence) study.Finding {
		return e.AllTrials(publishedBuffered, writeCalls, study.Whole).Judge(study.Span{Least: 25, Most: 50}, study.NeverSo,
			"so few were counted", "3,988,890 bytes by 4096 at a time are 974 writes")
	},
}, {
	Name: "lines-flush-cost", Source: study.FileIOExperiment,
	Says: "about 30 flushes of 2.8 µs are 0.084 ms of the buffered run", Published: "0.084 ms",
	Arms: []string{publishedBuffered},
	Judge: func(e study.Evidence) study.Finding {
		at28 := func(calls float64) string { return fmt.Sprintf("%.3g ms", calls*2.8e-3) }
		return e.AllTrials(publishedBuffered, writeCalls, at28).Judge(study.About(30, 1.5), study.NeverSo,
			"so few flushes were counted", "by the document's own 2.8 µs a flush: there are 974 of them, and each copies 4 KiB")
	},
}, {
	Name: "lines-10000-calls", Source: study.EfficientBuffering,
	Says: "10,000 writes without a buffer are 10,000 system calls", Published: "10,000",
	Arms: []string{constantWrite},
	Judge: func(e study.Evidence) study.Finding {
		return e.AllTrials(constantWrite, writeCalls, study.Whole).Judge(study.About(10_000, 1.01), study.NotHere,
			"a write is a call", "so many were counted")
	},
}}

var lineLossClaims = []study.Claim{{
	Name: "lines-crash", Source: study.FileIOExperiment,
	Says: "a crash before the flush loses what is in the buffer",
	Arms: []string{crashBufio},

	// All kills count: one may come when the buffer is just empty.
	Judge: func(e study.Evidence) study.Finding {
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
	Arms: []string{crashWrite},
	Judge: func(e study.Evidence) study.Finding {
		return e.AllTrials(crashWrite, study.Value(lostLines), linesText).Judge(study.AtMost(0), study.NotHere,
			"a killed process loses none; a power cut would still take what the kernel has not written, for no sync was made",
			"accepted lines are not in the file")
	},
}, {
	Name: "lines-forgotten-flush", Source: study.EfficientBuffering,
	Says: "a file that is closed without a Flush lacks what the bufio.Writer still held",
	Arms: []string{forgottenBufio},
	Judge: func(e study.Evidence) study.Finding {
		bytes := func(x float64) string { return study.Whole(x) + " bytes" }
		return e.AllTrials(forgottenBufio, study.Value(lostBytes), bytes).Judge(study.AtLeast(1), study.NotHere,
			"the file ends where the last full buffer did", "the file has all")
	},
}}

func linesText(x float64) string { return study.Whole(x) + " lines" }

func valueClaims() []study.Claim {
	arms := []string{valuesWrite, valuesBufio}
	return []study.Claim{{
		Name: "lines-62x", Source: study.EfficientBuffering,
		Says: "10,000 records in two writes each are 62.3 times as fast through 16 KiB", Published: "62.3x (23.7 ms to 0.38 ms)",
		Arms: arms,
		Judge: func(e study.Evidence) study.Finding {
			return study.Ratio(e.Ratio(valuesWrite, valuesBufio, perOp)).Judge(study.About(62.3, 1.5), study.NotHere,
				"within a factor of 1.5 of the published ratio", "what a write call takes is this machine's own, and so is the ratio")
		},
	}, {
		Name: "lines-bytes-op", Source: study.EfficientBuffering,
		Says: "an operation allocates 53,773 bytes, and with a buffer 70,127", Published: "53,773 → 70,127",
		Arms: arms,
		Judge: func(e study.Evidence) study.Finding {
			return judgeBoth(e, study.BytesPerOp, study.About(53_773, 1.02), study.About(70_127, 1.02))
		},
	}, {
		Name: "lines-allocs-op", Source: study.EfficientBuffering,
		Says: "an operation has 10,007 allocations, and with a buffer 10,008", Published: "10,007 → 10,008",
		Arms: arms,
		Judge: func(e study.Evidence) study.Finding {
			return judgeBoth(e, study.AllocsPerOp, study.About(10_007, 1.002), study.About(10_008, 1.002))
		},
	}}
}

// judgeBoth holds if what both arms report is in its span, in every round.
func judgeBoth(e study.Evidence, name string, without, with study.Span) study.Finding {
	plain, buffered := e.AllTrials(valuesWrite, study.Value(name), study.Whole), e.AllTrials(valuesBufio, study.Value(name), study.Whole)
	f := study.Finding{Measured: plain.String() + " → " + buffered.String()}
	a, b := without.Place(plain.Low, plain.High), with.Place(buffered.Low, buffered.High)
	switch {
	case a == study.Inside && b == study.Inside:
		f.Verdict, f.Why = study.Holds, "counted as a Go benchmark counts: the compiler decides it, not the machine"
	case a == study.Outside || b == study.Outside:
		f.Verdict, f.Why = study.NotHere, "this version of Go allocates otherwise"
	default:
		f.Verdict, f.Why, f.Settle = study.NotChecked, "the rounds differ", "--full"
	}
	return f
}
