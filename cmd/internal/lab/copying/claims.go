package copying

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/lab/timing"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

func copyClaims() []study.Claim {
	return slices.Concat(copyBufferClaims(), copyTimeClaims(), copySyncClaims(), copyClaimsAcross())
}

// written is the time of the loop alone, for a byte.
func written(t result.Trial) float64 { return float64(t.Write) / float64(t.Records) }

// userShare is the part of the CPU time of all rounds that was spent in user mode. A kernel may
// divide it by the ticks of its clock. Each tick is one or the other, so the interval is a
// proportion's (Wilson's, 95 %). Of fewer than leastTicks there is none.
func userShare(e study.Evidence, arm string) stat.Summary {
	const tick, leastTicks, z = 10 * time.Millisecond, 20, 1.96 // of the slowest clock, of 100 Hz
	s := stat.Summary{N: len(e.Trials(arm)), Median: userPart(e, arm), Low: math.NaN(), High: math.NaN()}
	all := time.Duration(0)
	for _, t := range e.Trials(arm) {
		all += t.CPU()
	}
	if n, p := float64(all)/float64(tick), s.Median; n >= leastTicks && !math.IsNaN(p) {
		middle, half := p+z*z/2/n, z*math.Sqrt(p*(1-p)/n+z*z/4/n/n)
		s.Low, s.High, s.Confidence = (middle-half)/(1+z*z/n), (middle+half)/(1+z*z/n), 0.95
	}
	return s
}

// copyBufferClaims are the document's claims about the buffer's size.
func copyBufferClaims() []study.Claim {
	return []study.Claim{{
		Name: "copy-larger", Says: "a bigger buffer performs better", Published: "512 B before 4096 B before 65536 B",
		Arms: []string{copyArm(512), copyArm(4096), copyArm(65536)},
		Figure: func(e study.Evidence) study.Measured { // of the step that saves less
			first := study.Ratio(e.Ratio(copyArm(512), copyArm(4096), written))
			second := study.Ratio(e.Ratio(copyArm(4096), copyArm(65536), written))
			if second.Low < first.Low {
				return second
			}
			return first
		},
		Allows: study.AtLeast(1), Holds: "each step up to 64 KiB saves time", Not: "a step up costs time here",
	}, {
		Name: "copy-user-16284", Says: "from 8 MB on user time is near zero for a buffer of 16284 bytes, unlike others", Published: "0 s, by a clock of 1 ms",
		Arms: []string{copyArm(oddBuffer), copyArm(16384)},
		Decide: func(e study.Evidence) study.Finding {
			// The user CPU time of a copy of 8 MB, the least size that the claim is about.
			userOf8MB := func(t result.Trial) float64 { return float64(t.User) / float64(t.Size) * 8e6 }
			odd, even := study.Figure(e.Summary(copyArm(oddBuffer), userOf8MB), study.Duration), study.Figure(e.Summary(copyArm(16384), userOf8MB), study.Duration)
			f := study.Finding{Measured: fmt.Sprintf("%v; 16384 bytes: %v", odd, even)}
			const clock = float64(time.Millisecond)
			zero := study.AtMost(clock)
			switch a, b := zero.Place(odd.Low, odd.High), zero.Place(even.Low, even.High); {
			case a == study.Inside && b == study.Inside:
				f.Verdict, f.Why = study.NeverSo, "both take less than its clock's 1 ms, and 16284 is a typo for 16384"
			case a == study.Inside && b == study.Outside:
				f.Verdict, f.Why = study.Holds, "16384 bytes take more than 1 ms"
			case a == study.Outside:
				f.Verdict, f.Why = study.NotHere, "it takes more than 1 ms"
			default:
				open := odd.Open(zero)
				f.Verdict, f.Why, f.Settle = open.Verdict, open.Why, open.Settle
			}
			return f
		},
	}, {
		Name: "copy-btrfs-16284", Says: "btrfs takes longer with 16284 bytes than with 4096", Published: "0.341 s, 0.0786 s", Of: "btrfs",
		Over: copyArm(oddBuffer), Under: copyArm(4096), By: written, Allows: study.AtLeast(1), Holds: "so it does", Not: "it takes less",
	}, {
		Name: "copy-btrfs-16284-cpu", Says: "the time that btrfs takes longer with 16284 bytes is not CPU time", Published: "0.0578 s, 0.068 s at 4096", Of: "btrfs",
		Over: copyArm(oddBuffer), Under: copyArm(4096), By: study.CPUTime, Allows: study.AtMost(1),
		Holds: "a byte takes no more CPU time than with 4096", Not: "a byte takes more CPU time than with 4096",
	}, {
		Name: "copy-btrfs-16284-writes", Says: "perhaps btrfs creates more disk writes with 16284 bytes", Published: "none: a guess", Of: "btrfs",
		Over: copyArm(oddBuffer), Under: copyArm(4096), By: study.Each(func(t result.Trial) float64 { return float64(t.BlocksOut) }), Allows: study.AtLeast(1.05),
		Holds: "more blocks were dirtied for a byte than with 4096",
		Not:   "as many blocks were dirtied for a byte as with 4096: a page that two writes fill is written once",
		Add:   study.Ending(" of the blocks written"),
	}, {
		Name: "copy-ext4-4096", Says: "ext4 peaks at 4096 bytes and gets slower with larger buffers", Published: "0.110 s at 4096, 0.133 s at 65536", Of: "ext4",
		Over: copyArm(65536), Under: copyArm(4096), By: written, Allows: study.AtLeast(1),
		Holds: "65536 bytes take longer", Not: "65536 bytes take less than 4096",
	}}
}

// copyTimeClaims are its claims about where the CPU time goes.
func copyTimeClaims() []study.Claim {
	return []study.Claim{{
		Name: "copy-user-negligible", Says: "user CPU time is negligible with buffers larger than 4096", Published: "0 to 5 of 111 to 197 ms",
		Arms: []string{copyArm(65536)},
		Figure: func(e study.Evidence) study.Measured {
			return study.Figure(userShare(e, copyArm(65536)), study.Percent)
		},
		Allows: study.AtMost(0.1), Holds: "at most a tenth of the CPU time is the program's own at 65536 bytes", Not: "more than a tenth of the CPU time is the program's own",
	}, {
		Name: "copy-system", Says: "with small buffers the time is spent in the kernel, hardly any in user space", Published: "67 s of 77 s",
		Arms: []string{copyArm(1)},
		Figure: func(e study.Evidence) study.Measured {
			u := userShare(e, copyArm(1))
			return study.Measured{Value: 1 - u.Median, Low: 1 - u.High, High: 1 - u.Low, Text: study.Percent}
		},
		Allows: study.AtLeast(0.5), Holds: "most of the CPU time of single bytes is the kernel's", Not: "half of the CPU time or more is the program's own",
	}}
}

// The seconds of part B by one byte are a real time. Those by two bytes are the one run
// that was made, divided by the 20 that were planned.
const byOneByte, byTwoBytes = 1582.07, 42.2356

// copySyncClaims are its claims about O_SYNC.
func copySyncClaims() []study.Claim {
	return []study.Claim{{
		Name: "copy-osync-larger", Says: "with O_SYNC too, the bigger the buffer the better",
		Over: syncArm(1), Under: syncArm(4096), By: written, Allows: study.AtLeast(2),
		Holds: "a byte costs this many times as much if written alone",
		Not:   "the size does not matter here",
	}, {
		Name: "copy-osync-byte", Says: "1 MB by single bytes with O_SYNC takes 1582 s", Published: "1582 s",
		Arms: []string{syncArm(1)},
		Decide: func(e study.Evidence) study.Finding {
			c := copyCell{timing.Synced, syncSize, 1}
			if why := notPredicted(e, c); why != "" {
				return study.Finding{Verdict: study.NotChecked, Why: why, Settle: "--full"}
			}
			f := study.Figure(wholeOf(e, c).elapsed, study.Duration).Judge(study.About(byOneByte*1e9, 2), study.NotHere, "within a factor of two", "another disk: each byte waits for one sync of it")
			if isPredicted(e, c) {
				f.Measured += ", predicted"
			}
			return f
		},
	}, {
		Name: "copy-osync-two", Says: "two bytes a write take a 37th of the time of one", Published: "1582 s, 42.2 s",
		Over: syncArm(1), Under: syncArm(2), By: wholeElapsed, Allows: study.About(byOneByte/byTwoBytes, 2), Otherwise: study.NeverSo, Holds: "so it does",
		Not: fmt.Sprintf("half as many syncs take half the time: the published row is one run divided by 20, and was %.0f s", math.Round(byTwoBytes*20)),
	}}
}
