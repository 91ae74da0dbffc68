package study

import (
	"fmt"
	"math"
	"time"

	"github.com/holdfast-go/holdfast/internal/result"
)

// The arms that the claims compare.
const (
	plainWrite  = inWrites + "/os.File"
	smallWrite  = inWrites + "/bufio 4KiB"
	largeWrite  = inWrites + "/bufio 64KiB"
	plainSight  = inSight + "/os.File"
	smallSight  = inSight + "/bufio 4KiB"
	largeSight  = inSight + "/bufio 64KiB"
	tickedSight = inSight + "/bufio 256KiB, flushed every 100ms"
	largeKilled = inKilled + "/bufio 64KiB"
	ticked      = inKilled + "/bufio 256KiB, flushed every 20ms"
	thousand    = inMemory + "/" + bufioUnsized + " ×1000"
)

// oneFlush is how much longer than its interval the flush of a window may take to
// be done and seen: a quarter of it.
const oneFlush = 1.25

// longer is how many times as long a delay must be for it to be called longer: two
// of the same length differ by chance.
const longer = 1.5

func latencyClaims() []Claim {
	return []Claim{
		{
			Name: "latency-spikes", Source: efficientBuffering, Says: "buffering smooths latency spikes",
			Arms: []string{plainWrite, smallWrite}, Judge: judgeSpikes,
		},
		{
			Name: "latency-small-buffer", Source: efficientBuffering, Says: "where latency is critical, a smaller buffer may be more appropriate",
			Arms: []string{smallWrite, largeWrite}, Judge: judgeSmallBuffer,
		},
		{
			Name: "latency-sooner", Source: efficientBuffering, Says: "a smaller buffer flushes data more frequently: it can be read sooner",
			Arms: []string{smallSight, largeSight}, Judge: judgeSooner,
		},
		{
			Name: "latency-delays", Source: efficientBuffering, Says: "buffers introduce delays by design",
			Arms: []string{plainSight, smallSight}, Judge: judgeDelays,
		},
		{
			Name: "latency-4096", Source: efficientBuffering + ", " + fileIOExperiment, Says: "by default bufio.NewWriter allocates a 4096-byte buffer", Published: "4096",
			Arms: []string{thousand}, Judge: judgeDefault,
		},
		{
			Name: "latency-unlimited", Source: efficientBuffering, Says: "without limits or proper flushing buffers can grow large",
			Arms: []string{thousand}, Judge: judgeGrowth,
		},
		{
			Name: "latency-window", Source: fileIOExperiment, Says: "periodic flushing bounds data loss to a time window", Published: "the interval",
			Arms: []string{ticked}, Judge: judgeWindow,
		},
		{
			Name: "latency-window-seen", Source: fileIOExperiment, Says: "and so it bounds how old a record is before another process can read it", Published: "the interval",
			Arms: []string{tickedSight}, Judge: judgeWindowSeen,
		},
	}
}

// judgeSpikes takes a spike for what one Write in a thousand takes at least.
func judgeSpikes(e Evidence) Finding {
	against := func(of Metric) measured { return ratio(e.Ratio(smallWrite, plainWrite, of)) }
	rest := fmt.Sprintf("p50 %v, p99 %v, the longest %v of the unbuffered", against(p50), against(p99), against(longestOf))
	return against(p999).judge(atMost(1), NotHere,
		"even the slowest Write in a thousand is quicker behind a buffer of 4KiB: "+rest,
		"the slowest Write in a thousand is not quicker, it pays for all that the buffer holds: "+rest)
}

func judgeSmallBuffer(e Evidence) Finding {
	return ratio(e.Ratio(smallWrite, largeWrite, p999)).judge(atMost(1), NotHere,
		"the slowest Write in a thousand hands over less at 4KiB than at 64KiB",
		"the slowest Write in a thousand is no quicker at 4KiB than at 64KiB")
}

func judgeSooner(e Evidence) Finding {
	return ratio(e.Ratio(smallSight, largeSight, Value("visible_p50_ns"))).judge(atMost(1/longer), NotHere,
		"another process sees a record sooner behind 4KiB than behind 64KiB, as the buffers' sizes say",
		"another process sees a record no sooner behind 4KiB than behind 64KiB")
}

func judgeDelays(e Evidence) Finding {
	return ratio(e.Ratio(smallSight, plainSight, Value("visible_p50_ns"))).judge(atLeast(longer), NotHere,
		"a record waits in the buffer until it is full, and only then can another process read it",
		"another process sees a buffered record no later than an unbuffered one")
}

// judgeDefault allows for what a Writer has besides its buffer.
func judgeDefault(e Evidence) Finding {
	each := func(t result.Trial) float64 { return math.Round(Value("heap_bytes")(t) / 1000) }
	return figure(e.Summary(thousand, each), inBytes).judge(span{bufioDefault, bufioDefault * 1.1}, NeverSo,
		"it is what the heap grows by, with some 100 bytes of the Writer itself",
		"the heap grows by another size")
}

func inBytes(x float64) string { return whole(x) + " bytes" }

// grown is by how much a buffer must grow for it to be said that it does.
const grown = 1.5

func judgeGrowth(e Evidence) Finding {
	growth := func(t result.Trial) float64 { return Value("heap_written_bytes")(t) / Value("heap_bytes")(t) }
	return figure(e.Summary(thousand, growth), times).judge(atLeast(grown), NeverSo,
		"the heap grows with what is written",
		"a bufio.Writer keeps the buffer that it was made with, whatever is written and however seldom it is flushed: memory is buffers × writers; what has no limit is a bytes.Buffer")
}

func judgeWindow(e Evidence) Finding {
	return judgeWithin(figure(e.Summary(ticked, Value("lost_age_ns")), duration), lossWindow,
		"what a killed process had accepted longer ago than the interval and one flush was in the file",
		"a killed process lost what it had accepted longer ago than the interval and one flush")
}

func judgeWindowSeen(e Evidence) Finding {
	return judgeWithin(figure(e.Summary(tickedSight, Value("visible_max_ns")), duration), window,
		"the longest delay is the interval and one flush",
		"the longest delay is more than the interval and one flush")
}

// judgeWithin holds times against an interval and one flush.
func judgeWithin(m measured, interval time.Duration, holds, not string) Finding {
	f := m.judge(atMost(oneFlush*float64(interval)), NotHere, holds, not)
	if !math.IsNaN(m.value) {
		f.Measured += fmt.Sprintf(" of %v", interval)
	}
	return f
}
