package bytewise

import (
	"fmt"
	"math"
	"slices"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

// The arms of the two claims about dropping caches.
const (
	coldRead = string(toRead) + "/" + libcBuffering + "/" + string(result.Cold)
	warmRead = string(toRead) + "/" + libcBuffering + "/" + string(result.Warm)
)

// bytesClaims are the document's claims.
func bytesClaims() []study.Claim {
	return []study.Claim{
		savingClaim("bytes-read-98", toRead, "buffering reduces the time to read by 98 %", "717 ms → 14 ms", 0.975),
		savingClaim("bytes-write-99.8", toWrite, "buffering reduces the time to write by 99.8 %", "19632 ms → 38 ms", 0.9975),
		bothWays("bytes-diy-beats-raw", "DIY buffering is faster than no buffering", noBuffering, study.AtMost(1),
			"its buffer makes one system call of 4,096", "its calls cost more than the system calls that they save"),
		bothWays("bytes-diy-near-libc", "DIY buffering comes close to libc's efficiency", libcBuffering, study.AtMost(1.5),
			"it takes no lock and makes as many system calls", "it takes more than 1.5 times libc's time"),
		callsClaim(),
		// It asks for one byte and counts the bytes that came.
		{
			Name: "bytes-kernel-reads-more", Says: "the kernel reads more than requested and keeps it for later (double buffering)",
			Over: oneByte, By: study.Value(bytesAfter), Counted: true, Allows: study.AtLeast(2),
			Text: func(x float64) string { return study.Whole(x) + " bytes" },
			Not:  "the file system keeps none of the file in the page cache",
			Add: func(e study.Evidence, f *study.Finding) {
				study.Ending(" for 1")(e, f)
				if f.Verdict == study.Holds {
					f.Why = fmt.Sprintf("asked for one byte, it read %s from the disk and kept them in the page cache", study.Whole(e.Median(oneByte, fromDisk)))
				}
			},
		},
		// The advice to drop the caches rests on it.
		{
			Name: "bytes-drop-differs", Says: "what the page cache holds changes the result: drop it before a benchmark",
			Over: coldRead, Under: warmRead, By: study.Elapsed, Allows: study.AtLeast(1 + stat.Band),
			Holds: "a file that is not cached takes longer to read, even by the byte",
			Not:   "reading one byte a call is no faster than the disk: a cached file gains nothing here",
		},
		// It asks how well the runs agree with each other from an empty cache.
		// Where they do not, the machine may be the cause: the runs from a full cache show it.
		{
			Name: "bytes-drop-consistent", Says: "dropping the caches ensures consistent results", Arms: []string{coldRead, warmRead},
			Decide: func(e study.Evidence) study.Finding {
				c, w := e.Summary(coldRead, study.PerRecord).Width(), e.Summary(warmRead, study.PerRecord).Width()
				if math.IsNaN(c) || math.IsNaN(w) {
					return study.Finding{Verdict: study.NotChecked, Why: study.Measured{Low: math.NaN()}.Unsettled(), Settle: "--full"}
				}
				f := study.Finding{Measured: fmt.Sprintf("the median is known to ±%s cold, ±%s warm", study.Percent(c), study.Percent(w))}
				switch {
				case c <= stat.Band:
					f.Verdict, f.Why = study.Holds, fmt.Sprintf("%d runs from an empty cache agree to ±%s", e.Rounds(), study.Percent(stat.Band))
				case w <= stat.Band:
					f.Verdict, f.Why = study.NotHere, "runs from an empty cache wait for the disk, whose speed varies; runs from a full cache agree"
				default:
					f.Verdict, f.Why, f.Settle = study.NotChecked, "the runs from a full cache do not agree either: the machine is not quiet", "--full"
				}
				return f
			},
		},
		// It is about the published code, and no measurement says it.
		{
			Name: "bytes-fread-complete", Says: "the given diy_fread is already complete and a reference for diy_fwrite",
			Decide: func(study.Evidence) study.Finding {
				return study.Finding{
					Verdict: study.NeverSo,
					Why:     "its loop never ends at the end of the file, where read(2) returns 0; it returns nmemb whatever was read; all files share one buffer; and a diy_fwrite of the same form loses what is buffered at the end",
				}
			},
		},
	}
}

// savingClaim is that libc's buffer saves at least a part of the time. The caches
// were dropped for it.
func savingClaim(name string, d direction, says, published string, least float64) study.Claim {
	arm, base := byteArm(d, libcBuffering, result.Cold), byteArm(d, noBuffering, result.Cold)
	return study.Claim{
		Name: name, Says: says, Published: published, Arms: []string{base, arm},
		Decide: func(e study.Evidence) study.Finding {
			costs := fmt.Sprintf("a %s call of one byte takes %s here, and %s of libc %s", d, study.Duration(e.Median(base, study.PerRecord)), byteCalls()[d], study.Duration(e.Median(arm, study.PerRecord)))
			return saved(e, arm, base).Judge(study.AtLeast(least), study.NotHere, costs, costs)
		},
	}
}

// byteCalls are libc's calls for one byte.
func byteCalls() map[direction]string {
	return map[direction]string{toRead: "an fread", toWrite: "an fwrite"}
}

// bothWays is a claim about the time of a pair of one's own against another's, to
// read and to write.
func bothWays(name, says, base string, allowed study.Span, holds, not string) study.Claim {
	var arms []string
	for _, d := range []direction{toRead, toWrite} {
		arms = append(arms, byteArm(d, base, result.Warm), byteArm(d, diyBuffering, result.Warm))
	}
	judge := func(e study.Evidence) study.Finding {
		of := func(d direction) study.Finding {
			f := study.Ratio(e.Ratio(byteArm(d, diyBuffering, result.Warm), byteArm(d, base, result.Warm), study.PerRecord)).Judge(allowed, study.NotHere, holds, not)
			f.Measured = prefixed(string(d)+" ", f.Measured)
			return f
		}
		return both(of(toRead), of(toWrite))
	}
	return study.Claim{Name: name, Says: says, Arms: arms, Decide: judge}
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// both is the finding of a claim of two parts: it holds if both do, and does not
// if one of them does not.
func both(a, b study.Finding) study.Finding {
	worst := a
	rank := []study.Verdict{study.Holds, study.AtEdge, study.NotChecked, study.NotHere, study.NeverSo}
	if slices.Index(rank, b.Verdict) > slices.Index(rank, a.Verdict) {
		worst = b
	}
	worst.Measured = a.Measured
	if b.Measured != "" {
		worst.Measured = prefixed(a.Measured+", ", b.Measured)
	}
	return worst
}

// A callsSlack is how many calls the program makes beside, such as the runtime's.
const callsSlack = 64

// callsClaim is that a buffer of 4 KiB makes 256 calls of 1,048,576.
func callsClaim() study.Claim {
	raw, libc := byteArm(toRead, noBuffering, result.Warm), byteArm(toRead, libcBuffering, result.Warm)
	rawOut, libcOut := byteArm(toWrite, noBuffering, result.Warm), byteArm(toWrite, libcBuffering, result.Warm)
	judge := func(e study.Evidence) study.Finding {
		of := func(d direction, raw, libc string) study.Finding {
			without, with := e.AllTrials(raw, callsIn(d), study.Whole), e.AllTrials(libc, callsIn(d), study.Whole)
			n := e.Median(raw, func(t result.Trial) float64 { return float64(t.Records) })
			blocks := math.Ceil(n / study.StdioBuffer)
			holds := "without a buffer each call is a system call; with one, only a call that fills or empties it is"
			not := fmt.Sprintf("%s and %s were predicted: the C library's buffer is not of %d bytes", study.Whole(n), study.Whole(blocks), study.StdioBuffer)
			f := both(
				without.Judge(study.Span{Least: n, Most: n + callsSlack}, study.NotHere, holds, not),
				with.Judge(study.Span{Least: blocks, Most: blocks + callsSlack}, study.NotHere, holds, not))
			if math.IsNaN(without.Value) || math.IsNaN(with.Value) {
				f.Why, f.Settle = "this system does not count the calls of a process", ""
				return f
			}
			f.Measured = fmt.Sprintf("%s %v against %v", d, without, with)
			return f
		}
		return both(of(toRead, raw, libc), of(toWrite, rawOut, libcOut))
	}
	return study.Claim{
		Name: "bytes-calls", Says: "one system call a byte without a buffer, one a block with it",
		Published: "1,048,576 against 256", Arms: []string{raw, libc, rawOut, libcOut}, Decide: judge,
	}
}
