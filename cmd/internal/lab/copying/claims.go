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
// divide it by the ticks of its clock. Each of that many ticks is one or the other, and the
// interval is that of a proportion (Wilson's, 95 %). Of fewer than leastTicks there is none.
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

// onFileSystem judges only where the directory is on that file system.
func onFileSystem(name, dir string, judge func(study.Evidence) study.Finding) func(study.Evidence) study.Finding {
	return func(e study.Evidence) study.Finding {
		if found := e.Fact("file system"); found != name {
			return study.Finding{Verdict: study.NotChecked, Why: fmt.Sprintf("it is said of %s, and this directory is on %s", name, found), Settle: "--dir " + dir}
		}
		return judge(e)
	}
}

const btrfsDir = "A_DIRECTORY_ON_BTRFS"

// copyBufferClaims are what the document says of the size of the buffer.
func copyBufferClaims() []study.Claim {
	return []study.Claim{{
		Name: "copy-larger", Source: study.CopyBufferSizes, Says: "a bigger buffer performs better", Published: "512 B before 4096 B before 65536 B",
		Arms: []string{copyArm(512), copyArm(4096), copyArm(65536)},
		Judge: func(e study.Evidence) study.Finding {
			first := study.Ratio(e.Ratio(copyArm(512), copyArm(4096), written))
			second := study.Ratio(e.Ratio(copyArm(4096), copyArm(65536), written))
			worse := first
			if second.Low < first.Low {
				worse = second
			}
			return worse.Judge(study.AtLeast(1), study.NotHere, "each step up to 64 KiB saves time", "a step up costs time here")
		},
	}, {
		Name: "copy-user-16284", Source: study.CopyBufferSizes, Says: "from 8 MB on user time is near zero for a buffer of 16284 bytes, unlike others", Published: "0 s, by a clock of 1 ms",
		Arms: []string{copyArm(oddBuffer), copyArm(16384)},
		Judge: func(e study.Evidence) study.Finding {
			// The user CPU time of a copy of 8 MB, the least size that the claim is about.
			userOf8MB := func(t result.Trial) float64 { return float64(t.User) / float64(t.Size) * 8e6 }
			odd, even := study.Figure(e.Summary(copyArm(oddBuffer), userOf8MB), study.Duration), study.Figure(e.Summary(copyArm(16384), userOf8MB), study.Duration)
			f := study.Finding{Measured: fmt.Sprintf("%v; 16384 bytes: %v", odd, even)}
			const clock = float64(time.Millisecond)
			zero := study.AtMost(clock)
			switch a, b := zero.Place(odd.Low, odd.High), zero.Place(even.Low, even.High); {
			case a == study.Inside && b == study.Inside:
				f.Verdict, f.Why = study.NeverSo, "both take less than the 1 ms that its clock could tell; and 16284 is a slip for 16384"
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
		Name: "copy-btrfs-16284", Source: study.CopyBufferSizes, Says: "btrfs takes longer with 16284 bytes than with 4096", Published: "0.341 s, 0.0786 s", Of: "btrfs",
		Arms: []string{copyArm(oddBuffer), copyArm(4096)},
		Judge: onFileSystem("btrfs", btrfsDir, func(e study.Evidence) study.Finding {
			return study.Ratio(e.Ratio(copyArm(oddBuffer), copyArm(4096), written)).Judge(study.AtLeast(1), study.NotHere, "so it does", "it takes less")
		}),
	}, {
		Name: "copy-btrfs-16284-cpu", Source: study.CopyBufferSizes, Says: "what btrfs takes longer with 16284 bytes is not CPU time", Published: "0.0578 s, 0.068 s at 4096", Of: "btrfs",
		Arms: []string{copyArm(oddBuffer), copyArm(4096)},
		Judge: onFileSystem("btrfs", btrfsDir, func(e study.Evidence) study.Finding {
			return study.Ratio(e.Ratio(copyArm(oddBuffer), copyArm(4096), study.CPUTime)).Judge(study.AtMost(1), study.NotHere, "a byte takes no more CPU time than with 4096", "a byte takes more CPU time than with 4096")
		}),
	}, {
		Name: "copy-btrfs-16284-writes", Source: study.CopyBufferSizes, Says: "perhaps btrfs creates more disk writes with 16284 bytes", Published: "none: a guess", Of: "btrfs",
		Arms: []string{copyArm(oddBuffer), copyArm(4096)},
		Judge: onFileSystem("btrfs", btrfsDir, func(e study.Evidence) study.Finding {
			blocks := study.Each(func(t result.Trial) float64 { return float64(t.BlocksOut) })
			f := study.Ratio(e.Ratio(copyArm(oddBuffer), copyArm(4096), blocks)).Judge(study.AtLeast(1.05), study.NotHere,
				"more blocks were dirtied for a byte than with 4096", "as many blocks were dirtied for a byte as with 4096: a page that two writes fill is written once")
			if f.Measured != "" {
				f.Measured += " of the blocks written"
			}
			return f
		}),
	}, {
		Name: "copy-ext4-4096", Source: study.CopyBufferSizes, Says: "ext4 peaks at 4096 bytes and gets slower with larger buffers", Published: "0.110 s at 4096, 0.133 s at 65536", Of: "ext4",
		Arms: []string{copyArm(65536), copyArm(4096)},
		Judge: onFileSystem("ext4", "A_DIRECTORY_ON_EXT4", func(e study.Evidence) study.Finding {
			return study.Ratio(e.Ratio(copyArm(65536), copyArm(4096), written)).Judge(study.AtLeast(1), study.NotHere, "65536 bytes take longer", "65536 bytes take less than 4096")
		}),
	}}
}

// copyTimeClaims are what it says of where the CPU time goes.
func copyTimeClaims() []study.Claim {
	return []study.Claim{{
		Name: "copy-user-negligible", Source: study.CopyBufferSizes, Says: "user CPU time is negligible with buffers larger than 4096", Published: "0 to 5 of 111 to 197 ms",
		Arms: []string{copyArm(65536)},
		Judge: func(e study.Evidence) study.Finding {
			s := study.Figure(userShare(e, copyArm(65536)), study.Percent)
			return s.Judge(study.AtMost(0.1), study.NotHere, "at most a tenth of the CPU time is the program's own at 65536 bytes", "more than a tenth of the CPU time is the program's own")
		},
	}, {
		Name: "copy-system", Source: study.CopyBufferSizes, Says: "with small buffers the time is spent in the kernel, hardly any in user space", Published: "67 s of 77 s",
		Arms: []string{copyArm(1)},
		Judge: func(e study.Evidence) study.Finding {
			u := userShare(e, copyArm(1))
			u.Median, u.Low, u.High = 1-u.Median, 1-u.High, 1-u.Low
			return study.Figure(u, study.Percent).Judge(study.AtLeast(0.5), study.NotHere, "most of the CPU time of single bytes is the kernel's", "half of the CPU time or more is the program's own")
		},
	}}
}

// copySyncClaims are what it says of O_SYNC.
// The seconds of part B by one byte are a real time. Those by two bytes are the one run
// that was made, divided by the 20 that were planned.
const byOneByte, byTwoBytes = 1582.07, 42.2356

func copySyncClaims() []study.Claim {
	return []study.Claim{{
		Name: "copy-osync-larger", Source: study.CopyBufferSizes, Says: "with O_SYNC too, the bigger the buffer the better",
		Arms: []string{syncArm(1), syncArm(4096)},
		Judge: func(e study.Evidence) study.Finding {
			return study.Ratio(e.Ratio(syncArm(1), syncArm(4096), written)).Judge(study.AtLeast(2), study.NotHere, "a byte costs that many times as much in single bytes", "the size does not matter here")
		},
	}, {
		Name: "copy-osync-byte", Source: study.CopyBufferSizes, Says: "1 MB by single bytes with O_SYNC takes 1582 s", Published: "1582 s",
		Arms: []string{syncArm(1)},
		Judge: func(e study.Evidence) study.Finding {
			c := copyCell{timing.Synced, syncSize, 1}
			if why := notPredicted(e, c); why != "" {
				return study.Finding{Verdict: study.NotChecked, Why: why, Settle: "--full"}
			}
			f := study.Figure(wholeOf(e, c).elapsed, study.Duration).Judge(study.About(byOneByte*1e9, 2), study.NotHere, "within a factor of two", "another disk: the time is that of a sync, once for each byte")
			if isPredicted(e, c) {
				f.Measured += ", predicted"
			}
			return f
		},
	}, {
		Name: "copy-osync-two", Source: study.CopyBufferSizes, Says: "two bytes a write take a 37th of the time of one", Published: "1582 s, 42.2 s",
		Arms: []string{syncArm(1), syncArm(2)},
		Judge: func(e study.Evidence) study.Finding {
			c := study.Ratio(e.Ratio(syncArm(1), syncArm(2), wholeElapsed))
			return c.Judge(study.About(byOneByte/byTwoBytes, 2), study.NeverSo, "so it does",
				fmt.Sprintf("half as many syncs take half the time: the published row is one run divided by 20, and was %.0f s", math.Round(byTwoBytes*20)))
		},
	}}
}
