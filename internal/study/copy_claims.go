package study

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/result"
	"github.com/holdfast-go/holdfast/internal/timing"
)

func copyClaims() []Claim {
	return slices.Concat([]Claim{
		copyLarger(), copySlip(), copyBtrfs(), copyBtrfsCPU(), copyExt4(), copyUser(), copySystem(), copySyncLarger(), copySyncByte(), copySyncAverage(),
	}, copyClaimsAcross())
}

// written is the time of the loop alone, for a byte.
func written(t result.Trial) float64 { return float64(t.Write) / float64(t.Records) }

// userShare is the part of the CPU time that was spent in user mode.
func userShare(t result.Trial) float64 { return float64(t.User) / float64(t.User+t.System) }

// onFileSystem judges only where the folder is on that file system.
func onFileSystem(name, folder string, judge func(Evidence) Finding) func(Evidence) Finding {
	return func(e Evidence) Finding {
		if found := e.Fact("file system"); found != name {
			return Finding{Verdict: NotChecked, Why: fmt.Sprintf("it is said of %s, and this folder is on %s", name, found), Settle: "--dir " + folder}
		}
		return judge(e)
	}
}

func copyLarger() Claim {
	return Claim{
		Name: "copy-larger", Source: copyBufferSizes, Says: "a bigger buffer performs better", Published: "512 B before 4096 B before 65536 B",
		Arms: []string{copyArm(512), copyArm(4096), copyArm(65536)},
		Judge: func(e Evidence) Finding {
			first := ratio(e.Ratio(copyArm(512), copyArm(4096), written))
			second := ratio(e.Ratio(copyArm(4096), copyArm(65536), written))
			worse := first
			if second.low < first.low {
				worse = second
			}
			return worse.judge(atLeast(1), NotHere, "each step up to 64 KiB saves time", "a step up costs time here")
		},
	}
}

// userOf8MB is the user CPU time of a copy of 8 MB, the least size of which it is
// said.
func userOf8MB(t result.Trial) float64 { return float64(t.User) / float64(t.Size) * 8e6 }

func copySlip() Claim {
	return Claim{
		Name: "copy-user-16284", Source: copyBufferSizes, Says: "from 8 MB on user time is near zero for a buffer of 16284 bytes, unlike others", Published: "0 s, by a clock of 1 ms",
		Arms: []string{copyArm(oddBuffer), copyArm(16384)},
		Judge: func(e Evidence) Finding {
			odd, even := figure(e.Summary(copyArm(oddBuffer), userOf8MB), duration), figure(e.Summary(copyArm(16384), userOf8MB), duration)
			f := Finding{Measured: fmt.Sprintf("%v; 16384 bytes: %v", odd, even)}
			const clock = float64(time.Millisecond)
			zero := atMost(clock)
			switch a, b := zero.place(odd.low, odd.high), zero.place(even.low, even.high); {
			case a == inside && b == inside:
				f.Verdict, f.Why = NeverSo, "both take less than the 1 ms that its clock could tell; and 16284 is a slip for 16384"
			case a == inside && b == outside:
				f.Verdict, f.Why = Holds, "16384 bytes take more than 1 ms"
			case a == outside:
				f.Verdict, f.Why = NotHere, "it takes more than 1 ms"
			default:
				f.Verdict, f.Why, f.Settle = NotChecked, odd.unsettled(), "--full"
			}
			return f
		},
	}
}

const btrfsFolder = "A_FOLDER_ON_BTRFS"

func copyBtrfs() Claim {
	return Claim{
		Name: "copy-btrfs-16284", Source: copyBufferSizes, Says: "btrfs takes longer with 16284 bytes than with 4096", Published: "0.341 s, 0.0786 s", Of: "btrfs",
		Arms: []string{copyArm(oddBuffer), copyArm(4096)},
		Judge: onFileSystem("btrfs", btrfsFolder, func(e Evidence) Finding {
			return ratio(e.Ratio(copyArm(oddBuffer), copyArm(4096), written)).judge(atLeast(1), NotHere, "so it does", "it takes less")
		}),
	}
}

func copyBtrfsCPU() Claim {
	return Claim{
		Name: "copy-btrfs-16284-cpu", Source: copyBufferSizes, Says: "what btrfs takes longer with 16284 bytes is not CPU time", Published: "0.0578 s, 0.068 s at 4096", Of: "btrfs",
		Arms: []string{copyArm(oddBuffer), copyArm(4096)},
		Judge: onFileSystem("btrfs", btrfsFolder, func(e Evidence) Finding {
			return ratio(e.Ratio(copyArm(oddBuffer), copyArm(4096), cpuTime)).judge(atMost(1), NotHere, "a byte takes no more CPU time than with 4096", "a byte takes more CPU time than with 4096")
		}),
	}
}

func copyExt4() Claim {
	return Claim{
		Name: "copy-ext4-4096", Source: copyBufferSizes, Says: "ext4 peaks at 4096 bytes and gets slower with larger buffers", Published: "0.110 s at 4096, 0.133 s at 65536", Of: "ext4",
		Arms: []string{copyArm(65536), copyArm(4096)},
		Judge: onFileSystem("ext4", "A_FOLDER_ON_EXT4", func(e Evidence) Finding {
			return ratio(e.Ratio(copyArm(65536), copyArm(4096), written)).judge(atLeast(1), NotHere, "65536 bytes take longer", "65536 bytes take less than 4096")
		}),
	}
}

func copyUser() Claim {
	return Claim{
		Name: "copy-user-negligible", Source: copyBufferSizes, Says: "user CPU time is negligible with buffers larger than 4096", Published: "0 to 5 of 111 to 197 ms",
		Arms: []string{copyArm(65536)},
		Judge: func(e Evidence) Finding {
			s := figure(e.Summary(copyArm(65536), userShare), percent)
			return s.judge(atMost(0.1), NotHere, "at most a tenth of the CPU time is the program's own at 65536 bytes", "more than a tenth of the CPU time is the program's own")
		},
	}
}

func copySystem() Claim {
	return Claim{
		Name: "copy-system", Source: copyBufferSizes, Says: "with small buffers the time is spent in the kernel, hardly any in user space", Published: "67 s of 77 s",
		Arms: []string{copyArm(1)},
		Judge: func(e Evidence) Finding {
			system := func(t result.Trial) float64 { return 1 - userShare(t) }
			s := figure(e.Summary(copyArm(1), system), percent)
			return s.judge(atLeast(0.5), NotHere, "most of the CPU time of single bytes is the kernel's", "half of the CPU time or more is the program's own")
		},
	}
}

func copySyncLarger() Claim {
	return Claim{
		Name: "copy-osync-larger", Source: copyBufferSizes, Says: "with O_SYNC too, the bigger the buffer the better",
		Arms: []string{syncArm(1), syncArm(4096)},
		Judge: func(e Evidence) Finding {
			return ratio(e.Ratio(syncArm(1), syncArm(4096), written)).judge(atLeast(2), NotHere, "a byte costs that many times as much in single bytes", "the size does not matter here")
		},
	}
}

// publishedBytes are the published seconds of part B with one byte, which is a real
// time, and with two, which is the one run that was made divided by the 20 that were
// planned.
func publishedBytes() (one, two float64) {
	rows := timing.PublishedSynced()
	return rows[0].Elapsed, rows[1].Elapsed
}

func copySyncByte() Claim {
	one, _ := publishedBytes()
	return Claim{
		Name: "copy-osync-byte", Source: copyBufferSizes, Says: "1 MB by single bytes with O_SYNC takes 1582 s", Published: "1582 s",
		Arms: []string{syncArm(1)},
		Judge: func(e Evidence) Finding {
			s := figure(e.Summary(syncArm(1), wholeElapsed), duration)
			f := s.judge(about(one*1e9, 2), NotHere, "within a factor of two", "another disk: the time is that of a sync, once for each byte")
			if e.predicted(copyCell{timing.Synced, syncSize, 1}) {
				f.Measured += ", predicted"
			}
			return f
		},
	}
}

func copySyncAverage() Claim {
	one, two := publishedBytes()
	return Claim{
		Name: "copy-osync-two", Source: copyBufferSizes, Says: "two bytes a write take a 37th of the time of one", Published: "1582 s, 42.2 s",
		Arms: []string{syncArm(1), syncArm(2)},
		Judge: func(e Evidence) Finding {
			c := ratio(e.Ratio(syncArm(1), syncArm(2), wholeElapsed))
			return c.judge(about(one/two, 2), NeverSo, "so it does",
				fmt.Sprintf("half as many syncs take half the time: the published row is one run divided by 20, and was %.0f s", math.Round(two*20)))
		},
	}
}
