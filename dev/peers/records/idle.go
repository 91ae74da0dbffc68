package records

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"time"

	"go.uber.org/zap/zapcore"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/dev/peers/internal/command"
)

// How long writers are idle, and then in use, for the columns of idles.
const (
	idleFor     = 2 * time.Second
	idleRecords = 4 // of each, two a second
)

// idles measure the cost of many writers that have little to do.
func idles() []*group {
	w := work{goroutines: 1, each: 5000, size: 40, policy: "buffer=64KiB,flush=10ms,sync=100ms"}
	g := newGroup("writers=5000", "5,000 writers in one process, each of a file of its own, "+w.policy, w, []*arm{
		{Name: "holdfast", Note: "a Writer for each", Do: how{whole: idle(func(path string, p holdfast.Policy) (io.WriteCloser, error) {
			return holdfast.Create(path, p)
		})}},
		{Name: "zap", Note: "a zapcore.BufferedWriteSyncer of 64 KiB for each, which flushes and syncs every 100 ms", Do: how{whole: idle(openIdleZap)}},
	})
	g.Unit = "record"
	g.Notes = []string{"First each writer gets a record and is left alone. The figures of *idle* are of 2 seconds after that. Then each gets two records a second, all at the same time, so that all come due together; a monitor counts the goroutines every 100 µs, or as often as it is woken. The time of a record is the CPU time of these 2 seconds, the syncs and the monitor included."}
	return []*group{g}
}

var idleColumns = []command.Column{
	command.Value("idle: goroutines", 0, count), command.Value("heap bytes each", 1, count), command.Value("% of a CPU", 2, func(x float64) string { return fmt.Sprintf("%.2f", x) }),
	command.Value("in use: most goroutines", 3, count), command.Value("% of a CPU", 4, func(x float64) string { return fmt.Sprintf("%.1f", x) }),
}

func count(x float64) string { return fmt.Sprintf("%.0f", x) }

// zapFile is zap's writer with its file, which zap does not close.
type zapFile struct {
	zapcore.BufferedWriteSyncer
	file *os.File
}

func (z *zapFile) Close() error { return errors.Join(z.Stop(), z.file.Close()) }

func openIdleZap(path string, p holdfast.Policy) (io.WriteCloser, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o666)
	if err != nil {
		return nil, err
	}
	return &zapFile{zapcore.BufferedWriteSyncer{WS: f, Size: int(p.Buffer), FlushInterval: p.Sync.Every}, f}, nil
}

// idle opens w.each writers. Its sample is their use, and its values are idleColumns'.
func idle(create func(string, holdfast.Policy) (io.WriteCloser, error)) func(string, work) (command.Sample, error) {
	return func(dir string, w work) (s command.Sample, err error) {
		path := func(i int) string { return filepath.Join(dir, fmt.Sprint(i)) }
		all, goroutines, heap := make([]io.WriteCloser, w.each), runtime.NumGoroutine(), liveHeap()
		for i := range all {
			if all[i], err = create(path(i), w.parsed()); err != nil {
				return s, err
			}
		}
		rec := newRecord(w.size, 0)
		round := func(seq int) error {
			rec.number(seq)
			for _, to := range all {
				if _, err := to.Write(rec); err != nil {
					return err
				}
			}
			return nil
		}
		if err := round(0); err != nil {
			return s, err
		}
		time.Sleep(idleFor) // until all is synced
		heap = (liveHeap() - heap) / float64(w.each)
		cpu := command.CPUTime()
		time.Sleep(idleFor)
		idled := command.CPUTime() - cpu
		s.Values = []float64{float64(runtime.NumGoroutine() - goroutines), heap, 100 * idled.Seconds() / idleFor.Seconds()}

		most, stop := watchGoroutines()
		start, cpu := time.Now(), command.CPUTime()
		for seq := range idleRecords {
			if err := round(1 + seq); err != nil {
				return s, err
			}
			time.Sleep(time.Until(start.Add(time.Duration(1+seq) * idleFor / idleRecords)))
		}
		s.CPU = command.CPUTime() - cpu
		s.Values = append(s.Values, float64(most.Load()), 100*s.CPU.Seconds()/time.Since(start).Seconds())
		stop()
		s.Elapsed, s.Units = s.CPU, w.each*idleRecords
		for i, to := range all {
			if err := to.Close(); err != nil {
				return s, err
			}
			info, err := os.Stat(path(i))
			if err == nil && info.Size() != int64(w.size*(1+idleRecords)) {
				err = fmt.Errorf("%s has %d bytes, want %d records of %d", path(i), info.Size(), 1+idleRecords, w.size)
			}
			if err != nil {
				return s, err
			}
		}
		return s, nil
	}
}

// liveHeap is the memory in use after garbage is collected, goroutines' stacks included.
func liveHeap() float64 {
	runtime.GC()
	runtime.GC() // a sync.Pool's memory is gone after the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc + m.StackInuse)
}

// watchGoroutines keeps the largest number of goroutines until stop is called.
func watchGoroutines() (most *atomic.Int64, stop func()) {
	most, done := new(atomic.Int64), make(chan struct{})
	go func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(100 * time.Microsecond):
				most.Store(max(most.Load(), int64(runtime.NumGoroutine())))
			}
		}
	}()
	return most, func() { close(done) }
}
