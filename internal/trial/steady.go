package trial

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/machine"
	"github.com/holdfast-go/holdfast/internal/result"
	"github.com/holdfast-go/holdfast/internal/stat"
)

// sampleEvery is the length of a sample. Write-back comes in bursts, and a
// journal commits every five seconds at the latest: see ext4(5), commit.
const sampleEvery = time.Second

// A steadiness follows a long trial and ends it when it has become steady: the
// bytes written in the last samples keep within [stat.Steady]'s limits, and so
// does the memory that waits to be written. A page cache that still fills up takes
// bytes at a steady rate too; that rate ends when the kernel makes writers wait.
type steadiness struct {
	memory  func(*result.Sample) // fills in what waits in memory to be written
	longest time.Duration        // 0 is no bound
	samples []result.Sample
	rates   []float64 // bytes of each sample
	reached bool
}

// await samples until the throughput is steady or it has taken too long, and then
// stops the crew, or until the crew is done.
func (s *steadiness) await(w Target, begun time.Time, c *crew) {
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
			s.take(time.Since(begun), now-written)
			written = now
		}
		s.reached = s.steady()
		if s.reached || s.longest > 0 && time.Since(begun) >= s.longest {
			c.stopped.Store(true)
			<-done
			return
		}
	}
}

// take adds a sample.
func (s *steadiness) take(at time.Duration, size int64) {
	sample := result.Sample{At: at, Size: size}
	s.memory(&sample)
	s.samples = append(s.samples, sample)
	s.rates = append(s.rates, float64(size))
}

// waiting returns what fills in a sample by what the machine tells.
func waiting(o *machine.Observer) func(*result.Sample) {
	return func(s *result.Sample) {
		activity := o.Read()
		if activity.Dirty != nil && activity.Writeback != nil {
			s.Dirty, s.Writeback = *activity.Dirty, *activity.Writeback
		}
		if limits, ok := machine.ReadDirtyLimits(); ok {
			s.Throttle = limits.Throttle
		}
	}
}

// fillLimit is how much of what was written in the window may have stayed in
// memory.
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
