package study

import (
	"fmt"
	"math"
	"slices"

	"github.com/holdfast-go/holdfast/internal/stat"
)

// lineClaims are what the two documents say of writing lines.
func lineClaims() []Claim {
	return slices.Concat(lineSpeedClaims(), lineCallClaims(), lineLossClaims(), valueClaims())
}

func lineSpeedClaims() []Claim {
	return []Claim{{
		Name: "lines-20x", Source: fileIOExperiment,
		Says:      "buffering makes 100,000 lines about 20 times as fast",
		Published: "18.98–21.06x (276–289 ms to 13.6–14.6 ms)",
		Arms:      []string{publishedUnbuffered, publishedBuffered},
		Judge: func(e Evidence) Finding {
			return ratio(e.Ratio(publishedUnbuffered, publishedBuffered, Elapsed)).judge(about(20, 1.5), NotHere,
				"within a factor of 1.5 of the published ratio",
				"the ratio is that of a write call to formatting a line, and both are this machine's own")
		},
	}, {
		Name: "lines-call-cost", Source: fileIOExperiment,
		Says: "a write call takes 2.8 µs", Published: "2.8 µs",
		Arms:  []string{publishedUnbuffered, publishedFormat},
		Judge: judgeCallCost,
	}, {
		Name: "lines-copy-cost", Source: fileIOExperiment,
		Says: "copying a line into the buffer takes 0.14 µs", Published: "0.14 µs",
		Arms:  []string{publishedBuffered, publishedFormat},
		Judge: judgeCopyCost,
	}, {
		Name: "lines-bottleneck", Source: fileIOExperiment,
		Says:  "the bottleneck is not the disk but the system calls",
		Arms:  []string{equalWrite, equalSynced},
		Judge: judgeBottleneck,
	}, {
		Name: "lines-16k", Source: efficientBuffering,
		Says: "a buffer of 16 KiB is better than one of 4 KiB for high throughput",
		Arms: []string{equalBufio4, equalBufio16},
		Judge: func(e Evidence) Finding {
			return judgeFaster(e, equalBufio16, equalBufio4, "a quarter of the write calls saves more than the noise", "a quarter of the write calls saves nothing that shows")
		},
	}, {
		Name: "lines-million", Source: efficientBuffering,
		Says: "a million lines are up to an order of magnitude faster through a buffer", Published: "~10x",
		Arms: []string{millionWrite, millionBufio},
		Judge: func(e Evidence) Finding {
			return ratio(e.Ratio(millionWrite, millionBufio, PerRecord)).judge(about(10, 2), NotHere,
				"it is an order of magnitude, within a factor of 2", "it is no order of magnitude, not even within a factor of 2")
		},
	}, {
		Name: "lines-cpu", Source: efficientBuffering,
		Says: "buffering reduces CPU usage",
		Arms: []string{equalWrite, equalBufio4},
		Judge: func(e Evidence) Finding {
			return ratio(e.Ratio(equalWrite, equalBufio4, cpuTime)).judge(atLeast(1), NotHere,
				"so many times as much CPU time goes into one write a line", "the calls that it saves do not show in the CPU time")
		},
	}}
}

func judgeCallCost(e Evidence) Finding {
	return figure(lineNet(e, publishedUnbuffered), duration).judge(about(2800, 1.5), NotHere,
		"without its formatting a line's call is within a factor of 1.5 of that",
		"a call's cost is the kernel's and the processor's; the document divided all of the time by the lines, formatting included")
}

func judgeCopyCost(e Evidence) Finding {
	why := "formatting a line is counted as copying in the document"
	if share := formatPart(e, publishedFormat, publishedBuffered); !math.IsNaN(share) {
		why = fmt.Sprintf("%s of a buffered line's time is formatting it, which the document counts as copying", percent(share))
	}
	return figure(lineNet(e, publishedBuffered), duration).judge(about(140, 1.5), NotHere,
		"without its formatting a buffered line is within a factor of 1.5 of that",
		why)
}

// judgeBottleneck holds calls without a sync against a sync with few calls.
func judgeBottleneck(e Evidence) Finding {
	return ratio(e.Ratio(equalWrite, equalSynced, PerRecord)).judge(atLeast(1), NotHere,
		"one write a line and no sync takes longer than a buffer and the sync that the document's runs never made",
		"once the bytes have to reach the disk, which the document's runs never waited for, the disk takes longer than the calls")
}

// judgeFaster holds if one arm is faster than the other by more than the noise.
func judgeFaster(e Evidence, fast, slow, holds, not string) Finding {
	f := Finding{Measured: ratio(e.Ratio(slow, fast, PerRecord)).String()}
	switch e.Ratio(fast, slow, PerRecord).Verdict {
	case stat.Faster:
		f.Verdict, f.Why = Holds, holds
	case stat.Same, stat.Slower:
		f.Verdict, f.Why = NotHere, not
	default:
		f.Verdict, f.Why, f.Settle = NotChecked, "the rounds and the noise do not tell them apart", "--full"
	}
	return f
}

func lineCallClaims() []Claim {
	return []Claim{{
		Name: "lines-25-50-calls", Source: fileIOExperiment,
		Says: "through a buffer of 4 KiB 100,000 lines take 25–50 system calls", Published: "25–50",
		Arms: []string{publishedBuffered},
		Judge: func(e Evidence) Finding {
			return e.allTrials(publishedBuffered, writeCalls, whole).judge(span{25, 50}, NeverSo,
				"so few were counted", "3,988,890 bytes by 4096 at a time are 974 writes")
		},
	}, {
		Name: "lines-flush-cost", Source: fileIOExperiment,
		Says: "about 30 flushes of 2.8 µs are 0.084 ms of the buffered run", Published: "0.084 ms",
		Arms: []string{publishedBuffered},
		Judge: func(e Evidence) Finding {
			at28 := func(calls float64) string { return fmt.Sprintf("%.3g ms", calls*2.8e-3) }
			return e.allTrials(publishedBuffered, writeCalls, at28).judge(about(30, 1.5), NeverSo,
				"so few flushes were counted", "by the document's own 2.8 µs a flush: there are 974 of them, and each copies 4 KiB")
		},
	}, {
		Name: "lines-10000-calls", Source: efficientBuffering,
		Says: "10,000 writes without a buffer are 10,000 system calls", Published: "10,000",
		Arms: []string{constantWrite},
		Judge: func(e Evidence) Finding {
			return e.allTrials(constantWrite, writeCalls, whole).judge(about(10_000, 1.01), NotHere,
				"a write is a call", "so many were counted")
		},
	}}
}

func lineLossClaims() []Claim {
	return []Claim{{
		Name: "lines-crash", Source: fileIOExperiment,
		Says:  "a crash before the flush loses what is in the buffer",
		Arms:  []string{crashBufio},
		Judge: judgeCrash,
	}, {
		Name: "lines-crash-unbuffered", Source: fileIOExperiment,
		Says: "without a buffer a crash loses less: what was written persists at once",
		Arms: []string{crashWrite},
		Judge: func(e Evidence) Finding {
			return e.allTrials(crashWrite, Value(lostLines), linesText).judge(atMost(0), NotHere,
				"a killed process loses none; a power cut would still take what the kernel has not written, for no sync was made",
				"accepted lines are not in the file")
		},
	}, {
		Name: "lines-forgotten-flush", Source: efficientBuffering,
		Says: "a file that is closed without a Flush lacks what the bufio.Writer still held",
		Arms: []string{forgottenBufio},
		Judge: func(e Evidence) Finding {
			bytes := func(x float64) string { return whole(x) + " bytes" }
			return e.allTrials(forgottenBufio, Value(lostBytes), bytes).judge(atLeast(1), NotHere,
				"the file ends where the last full buffer did", "the file has all")
		},
	}}
}

func linesText(x float64) string { return whole(x) + " lines" }

// judgeCrash looks at all kills: one may come when the buffer is just empty.
func judgeCrash(e Evidence) Finding {
	m := e.allTrials(crashBufio, Value(lostLines), linesText)
	f := Finding{Measured: m.String(), Verdict: Holds, Why: "lines that were accepted are not in the file of the killed process"}
	switch {
	case math.IsNaN(m.high):
		f.Verdict, f.Why, f.Settle = NotChecked, m.unsettled(), "--full"
	case m.high < 1:
		f.Verdict, f.Why = NotHere, "every line that was accepted is in the file of the killed process"
	}
	return f
}

func valueClaims() []Claim {
	arms := []string{valuesWrite, valuesBufio}
	return []Claim{{
		Name: "lines-62x", Source: efficientBuffering,
		Says: "10,000 records in two writes each are 62.3 times as fast through 16 KiB", Published: "62.3x (23.7 ms to 0.38 ms)",
		Arms: arms,
		Judge: func(e Evidence) Finding {
			return ratio(e.Ratio(valuesWrite, valuesBufio, perOp)).judge(about(62.3, 1.5), NotHere,
				"within a factor of 1.5 of the published ratio", "what a write call takes is this machine's own, and so is the ratio")
		},
	}, {
		Name: "lines-bytes-op", Source: efficientBuffering,
		Says: "an operation allocates 53,773 bytes, and with a buffer 70,127", Published: "53,773 → 70,127",
		Arms: arms,
		Judge: func(e Evidence) Finding {
			return judgeBoth(e, bytesPerOp, about(53_773, 1.02), about(70_127, 1.02))
		},
	}, {
		Name: "lines-allocs-op", Source: efficientBuffering,
		Says: "an operation has 10,007 allocations, and with a buffer 10,008", Published: "10,007 → 10,008",
		Arms: arms,
		Judge: func(e Evidence) Finding {
			return judgeBoth(e, allocsPerOp, about(10_007, 1.002), about(10_008, 1.002))
		},
	}}
}

// judgeBoth holds if what both arms tell is in its span, in every round.
func judgeBoth(e Evidence, name string, without, with span) Finding {
	plain, buffered := e.allTrials(valuesWrite, Value(name), whole), e.allTrials(valuesBufio, Value(name), whole)
	f := Finding{Measured: plain.String() + " → " + buffered.String()}
	a, b := without.place(plain.low, plain.high), with.place(buffered.low, buffered.high)
	switch {
	case a == inside && b == inside:
		f.Verdict, f.Why = Holds, "counted as a Go benchmark counts: the compiler decides it, not the machine"
	case a == outside || b == outside:
		f.Verdict, f.Why = NotHere, "this version of Go allocates otherwise"
	default:
		f.Verdict, f.Why, f.Settle = NotChecked, "the rounds differ", "--full"
	}
	return f
}
