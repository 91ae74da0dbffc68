package latency

import (
	"fmt"
	"math"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
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

func latencyClaims() []study.Claim {
	return []study.Claim{
		// A spike is the 99.9th percentile of a Write's time.
		{
			Name: "latency-spikes", Source: study.EfficientBuffering, Says: "buffering smooths latency spikes", Arms: []string{plainWrite, smallWrite},
			Over: smallWrite, Under: plainWrite, By: p999, Allows: study.AtMost(1),
			Holds: "even the slowest Write in a thousand is quicker behind a buffer of 4KiB: ",
			Not:   "the slowest Write in a thousand is not quicker, it pays for all that the buffer holds: ",
			Add: func(e study.Evidence, f *study.Finding) {
				against := func(of study.Metric) study.Measured { return study.Ratio(e.Ratio(smallWrite, plainWrite, of)) }
				if f.Verdict == study.Holds || f.Verdict == study.NotHere {
					f.Why += fmt.Sprintf("p50 %v, p99 %v, the longest %v of the unbuffered", against(p50), against(p99), against(longestOf))
				}
			},
		},
		{
			Name: "latency-small-buffer", Source: study.EfficientBuffering, Says: "where latency is critical, a smaller buffer may be more appropriate",
			Over: smallWrite, Under: largeWrite, By: p999, Allows: study.AtMost(1),
			Holds: "the slowest Write in a thousand hands over less at 4KiB than at 64KiB",
			Not:   "the slowest Write in a thousand is no quicker at 4KiB than at 64KiB",
		},
		{
			Name: "latency-sooner", Source: study.EfficientBuffering, Says: "a smaller buffer flushes data more frequently: it can be read sooner",
			Over: smallSight, Under: largeSight, By: study.Value("visible_p50_ns"), Allows: study.AtMost(1 / longer),
			Holds: "another process sees a record sooner behind 4KiB than behind 64KiB, as the buffers' sizes say",
			Not:   "another process sees a record no sooner behind 4KiB than behind 64KiB",
		},
		{
			Name: "latency-delays", Source: study.EfficientBuffering, Says: "buffers introduce delays by design",
			Arms: []string{plainSight, smallSight}, Over: smallSight, Under: plainSight, By: study.Value("visible_p50_ns"), Allows: study.AtLeast(longer),
			Holds: "a record waits in the buffer until it is full, and only then can another process read it",
			Not:   "another process sees a buffered record no later than an unbuffered one",
		},
		{
			Name: "latency-4096", Source: study.EfficientBuffering + ", " + study.FileIOExperiment, Says: "by default bufio.NewWriter allocates a 4096-byte buffer", Published: "4096",
			Over: thousand, By: heapEach, Allows: study.Span{Least: study.BufioDefault, Most: study.BufioDefault * 1.1}, Otherwise: study.NeverSo,
			Text:  func(x float64) string { return study.Whole(x) + " bytes" },
			Holds: "the heap grows by that, and some 100 bytes for the Writer itself",
			Not:   "the heap grows by another size",
		},
		{
			Name: "latency-unlimited", Source: study.EfficientBuffering, Says: "without limits or proper flushing buffers can grow large",
			Over: thousand, By: heapGrowth, Text: study.Times, Allows: study.AtLeast(grown), Otherwise: study.NeverSo,
			Holds: "the heap grows with what is written",
			Not:   "a bufio.Writer never grows its buffer: memory is buffers × writers; a bytes.Buffer has no limit",
		},
		{
			Name: "latency-window", Source: study.FileIOExperiment, Says: "periodic flushing bounds data loss to a time window", Published: "the interval",
			Over: ticked, By: study.Value("lost_age_ns"), Text: study.Duration, Allows: study.AtMost(oneFlush * float64(lossWindow)),
			Holds: "all records older than the interval and one flush were in the killed process's file",
			Not:   "the killed process lost records older than the interval and one flush",
			Add:   study.Ending(" of " + lossWindow.String()),
		},
		{
			Name: "latency-window-seen", Source: study.FileIOExperiment, Says: "and so it bounds how old a record is before another process can read it", Published: "the interval",
			Over: tickedSight, By: study.Value("visible_max_ns"), Text: study.Duration, Allows: study.AtMost(oneFlush * float64(window)),
			Holds: "the longest delay is the interval and one flush",
			Not:   "the longest delay is more than the interval and one flush",
			Add:   study.Ending(" of " + window.String()),
		},
	}
}

// heapEach is the heap's growth for each of a thousand Writers, and heapGrowth the further growth
// when all have written.
func heapEach(t result.Trial) float64 { return math.Round(study.Value("heap_bytes")(t) / 1000) }
func heapGrowth(t result.Trial) float64 {
	return study.Value("heap_written_bytes")(t) / study.Value("heap_bytes")(t)
}

// grown is by how much a buffer must grow for it to be said that it does.
const grown = 1.5
