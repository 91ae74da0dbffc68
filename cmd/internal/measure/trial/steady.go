package trial

import (
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/probe"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
)

// sampleEvery is the length of a sample. Write-back comes in bursts, and a
// journal commits every five seconds at the latest: see ext4(5), commit.
const sampleEvery = time.Second

// A steadiness follows a long trial and ends it when it has become steady: the bytes written in the
// last samples are within [stat.Steady]'s limits, and the growth of dirty memory within fillLimit. A
// page cache that still fills up accepts bytes at a steady rate too; that rate ends when the kernel
// makes writers wait.
type steadiness struct {
	memory  func(*result.Sample) // fills in the amount of dirty memory
	longest time.Duration        // 0 is no bound
	samples []result.Sample
	rates   []float64 // bytes of each sample
	reached bool
}

// await samples until the throughput is steady or the time is up, and then stops the workers. It
// returns earlier if the workers are done.
func (s *steadiness) await(w Target, begun probe.Instant, c *workers) {
	done := make(chan struct{})
	go func() {
		c.done.Wait()
		close(done)
	}()
	ticker := time.NewTicker(sampleEvery)
	defer ticker.Stop()
	written := int64(0)
	for {
		select {
		case <-done:
			return
		case <-ticker.C:
			now := w.Written()
			sample := result.Sample{At: probe.Since(begun), Size: now - written}
			s.memory(&sample)
			s.samples = append(s.samples, sample)
			s.rates = append(s.rates, float64(sample.Size))
			written = now
		}
		s.reached = s.steady()
		if s.reached || s.longest > 0 && probe.Since(begun) >= s.longest {
			c.stopped.Store(true)
			<-done
			return
		}
	}
}

// fillLimit is the part of the window's bytes that may have stayed in memory.
const fillLimit = 0.10

func (s *steadiness) steady() bool {
	w, ok := stat.Steady(s.rates)
	if !ok {
		return false
	}
	last := s.samples[len(s.samples)-stat.SteadyWindow:]
	first, end := last[0], last[len(last)-1]
	filled := float64(end.Dirty + end.Writeback - first.Dirty - first.Writeback)
	return filled <= fillLimit*w.Mean*float64(stat.SteadyWindow-1)
}
