package reads

import (
	"fmt"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/probe"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

var readsClaims = []study.Claim{
	// It asks whether 4 KiB takes no longer than twice as much: a size that
	// maps best onto what lies below would.
	{
		Name: "reads-4k", Says: "reading in 4 KB increments maps efficiently onto what lies below",
		Published: "4 KB",
		Over:      warmBlocks(4 * holdfast.KiB), Under: warmBlocks(8 * holdfast.KiB), Allows: study.AtMost(1),
		Holds: "4 KiB at once take no longer for a byte than 8 KiB do",
		Not:   "8 KiB at once take less time for a byte than 4 KiB: the calls cost, and there are half as many",
	},
	// It counts the page faults of whole trials, whatever raised them: a
	// thing that a size minimizes is less at that size than at another.
	{
		Name: "reads-4k-faults", Says: "reading in 4 KB increments minimizes page faults",
		Arms: []string{warmBlocks(4 * holdfast.KiB), warmBlocks(2 * holdfast.KiB)},
		Figure: func(e study.Evidence) study.Measured {
			text := func(x float64) string { return fmt.Sprintf("%.2g fewer faults a page than with 2 KiB", x) }
			return study.Figure(differencesOf(e, warmBlocks(2*holdfast.KiB), warmBlocks(4*holdfast.KiB), faultsPerPage), text)
		},
		Allows: study.AtLeast(leastFaults), Otherwise: study.NeverSo,
		Holds: "the process faults less often for each page of the file",
		Not:   "read(2) copies into one buffer, whose pages are there after the first call: how much is read at once changes no page fault",
	},
	{
		Name: "reads-32k-calls", Says: "a buffer of 32 KB for input reduces system calls further than the usual 4 KB",
		Over: warmRecords(4 * holdfast.KiB), Under: warmRecords(32 * holdfast.KiB), By: study.Reads, Allows: study.About(8, 1.1), Otherwise: study.NeverSo,
		Holds: "a call fills the whole buffer, and it is eight times as large",
		Not:   "the calls do not follow from the size of the buffer",
	},
	{
		Name: "reads-32k", Says: "a buffer of 32 KB for input improves throughput over the usual 4 KB",
		Over: warmRecords(4 * holdfast.KiB), Under: warmRecords(32 * holdfast.KiB), Allows: study.More,
		Holds: "the calls that are left out took more than the larger buffer does",
		Not:   "with 4 KiB the calls take so little already that fewer are no gain",
	},
	bufferedReadsClaim("reads-buffered", result.Warm, "from the page cache"),
	bufferedReadsClaim("reads-buffered-cold", result.Cold, "from the disk"),
	{
		Name: "reads-cpu-cache", Says: "CPU cache sizes influence the optimal buffer size (1 MiB is slower than 256 KiB)",
		Over: warmBlocks(holdfast.MiB), Under: warmBlocks(256 * holdfast.KiB), Allows: study.More,
		Holds: "1 MiB has left the near cache again before it is looked at",
		Not:   "1 MiB is no slower: its bytes are still near enough when they are looked at",
	},
	// It asks what the kernel's read-ahead does to reads of 4 KiB.
	{
		Name: "reads-read-ahead", Says: "reading in 4 KB increments aligns with kernel read-ahead",
		Over: coldAccess(probe.Random), Under: coldAccess(probe.Normal), Allows: study.AtLeast(significant),
		Holds: "one small read after the other lets the kernel read far ahead of them, and without that each waits for the disk",
		Not:   "the disk answers small reads as fast as the kernel asks ahead",
	},
}

// leastFaults is the least number of faults that a size must save for each page read.
// It is a part of one, much more than the runtime itself needs.
const leastFaults = 0.1

func faultsPerPage(t result.Trial) float64 {
	return float64(t.MinorFaults+t.MajorFaults) / (float64(t.Size) / study.PageBytes)
}

// differencesOf summarizes the difference of two arms' figures, round by round.
func differencesOf(e study.Evidence, more, arm string, of study.Metric) stat.Summary {
	from, less := e.Samples(more, of), e.Samples(arm, of)
	differences := make([]float64, min(len(from), len(less)))
	for i := range differences {
		differences[i] = from[i] - less[i]
	}
	return stat.Summarize(differences)
}

// bufferedReadsClaim takes records of 64 bytes, which a call for each would read.
func bufferedReadsClaim(name string, cache result.Cache, from string) study.Claim {
	without, with := readName(blocksOf(recordSize), cache), readName(recordsOf(4*holdfast.KiB), cache)
	return study.Claim{
		Name: name, Says: fmt.Sprintf("buffered reads show significant gains (records of %d bytes, %s)", recordSize, from),
		Published: "significant",
		Over:      without, Under: with, Allows: study.AtLeast(significant),
		Holds: "a record in the buffer costs a copy, and a record outside of it costs a system call",
		Not:   fmt.Sprintf("it is less than %vx", significant),
	}
}

// significant is the least that we take the word for.
const significant = 1.5

// Names of the arms that claims, tables and the sentence take.
func warmBlocks(size holdfast.Size) string  { return readName(blocksOf(size), result.Warm) }
func warmRecords(size holdfast.Size) string { return readName(recordsOf(size), result.Warm) }

func coldAccess(a probe.Access) string {
	return readName(accessOf(4*holdfast.KiB, a), result.Cold)
}
