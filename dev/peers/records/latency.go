package records

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/cmd/dev/peers/internal/command"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
)

// latencies are how long a Write takes at a rate, beside syncs. Each goroutine sleeps until its
// next record is due. Go's timers wake it up to a millisecond late, and then it writes all that is
// due. So what is counted since a record was due has that millisecond, as the arm without a sink.
func latencies() (all []*group) {
	const goroutines = 8
	none := &arm{Name: "limit no sink", Note: "the same loop, and no file", Do: how{open: openNothing, read: nothing}}
	for _, rate := range []int{200_000, 20_000} {
		seconds := 4
		if rate < 100_000 {
			seconds = 10 // p99.99 leaves 20 Writes above it, and at the other rate 80
		}
		load := func(policy string) work {
			return work{goroutines: goroutines, each: rate * seconds / goroutines, size: 100, policy: policy, rate: rate}
		}
		add := func(name, policy string, arms ...*arm) {
			limit := *none
			g := newGroup(fmt.Sprintf("rate=%d/%s", rate, name), fmt.Sprintf("the slowest of 10,000 Writes of 100B (p99.99), by 8 goroutines at %d a second, %s", rate, policy), load(policy), append(arms, &limit))
			g.Unit = "Write at p99.99"
			g.Notes = []string{"The time is a call's own, from the call of Write to its return (service time). *Since due* is from when a record was due until Write returned (open loop). Go's timers wake the goroutines up to 1 ms late: the arm without a sink shows this delay."}
			all = append(all, g)
		}
		for _, mode := range []struct{ name, policy string }{
			{"sync=1s", "buffer=64KiB,flush=100ms,sync=1s"},
			{"sync=20ms", "buffer=64KiB,sync=20ms"},
		} {
			more := load(mode.policy)
			more.procs = runtime.GOMAXPROCS(0) + 1
			add(mode.name, mode.policy,
				&arm{Name: "holdfast", Note: "a Writer", Do: how{open: openHoldfast}},
				&arm{Name: "holdfast, a P more", Note: "the same with one more than GOMAXPROCS: Go's scheduler leaves a P to a goroutine in a system call, such as a sync, for up to 10 ms", Do: how{work: more, open: openHoldfast}},
				&arm{Name: "zap", Note: "zapcore.BufferedWriteSyncer of 64 KiB, which syncs when it flushes, under the lock of its writers, as often as ours syncs", Do: how{open: openZap}})
		}
		// As klog has it: its lock is held around each Write, and once a period around Flush and Sync.
		const alone, beside = "buffer=256KiB,sync=never", "buffer=256KiB,flush=100ms,sync=1s"
		add("lock", alone,
			&arm{Name: "holdfast", Note: "a Writer under the caller's lock, which the caller flushes and syncs each second under that lock, as klog does", Do: how{open: openLockedHoldfast}},
			&arm{Name: "holdfast syncs too", Note: "the same, and its policy syncs as often: " + beside, Do: how{work: load(beside), open: openLockedHoldfast}},
			&arm{Name: "holdfast alone", Note: "a Writer under the caller's lock that only its policy flushes and syncs: " + beside, Do: how{work: load(beside), open: func(dir string, w work) (*sink, error) {
				k, err := openHoldfast(dir, w)
				if err == nil {
					to, _ := k.writer()
					k.writer = shared(&locked{w: to})
				}
				return k, err
			}}},
			&arm{Name: "bufio", Note: "a bufio.Writer under the caller's lock, flushed and synced each second under that lock", Do: how{open: openLockedBufio}})
	}
	return all
}

// A keeper is a buffer that klog keeps: under one lock it is written to, and each second flushed and
// synced.
type keeper struct {
	locked
	flush, sync func() error
	end         chan struct{}
	ended       chan error
}

func keep(to io.Writer, flush, sync func() error) *keeper {
	k := &keeper{locked: locked{w: to}, flush: flush, sync: sync, end: make(chan struct{}), ended: make(chan error, 1)}
	go func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		var err error
		for {
			select {
			case <-k.end:
				k.ended <- err
				return
			case <-tick.C:
				k.mu.Lock()
				err = errors.Join(err, k.flush(), k.sync())
				k.mu.Unlock()
			}
		}
	}()
	return k
}

func (k *keeper) close() error {
	close(k.end)
	return <-k.ended
}

func openLockedHoldfast(dir string, w work) (*sink, error) {
	to, err := openWriter(dir, w)
	if err != nil {
		return nil, err
	}
	k := keep(to, to.Flush, to.Sync)
	return &sink{writer: shared(k), close: func() error { return errors.Join(k.close(), to.Close()) }}, nil
}

func openLockedBufio(dir string, w work) (*sink, error) {
	f, err := create(dir)
	if err != nil {
		return nil, err
	}
	b := bufio.NewWriterSize(f, w.buffer())
	k := keep(b, b.Flush, func() error { return fdatasync(f) })
	return &sink{writer: shared(k), close: func() error { return errors.Join(k.close(), b.Flush(), f.Close()) }}, nil
}

// The columns of distribution's result.
var (
	callColumns = []command.Column{
		command.Value("call: p50", 0, command.Duration), command.Value("p99", 1, command.Duration), command.Value("slowest", 2, command.Duration),
		command.Value("slowest ÷ p50", 3, func(x float64) string { return fmt.Sprintf("%.3g", x) }),
	}
	dueColumns = []command.Column{
		command.Value("since due: p50", 4, command.Duration), command.Value("p99.9", 5, command.Duration), command.Value("p99.99", 6, command.Duration), command.Value("slowest", 7, command.Duration),
	}
)

// A call is how long one Write took, and how long after it was due it returned.
type call struct{ took, late time.Duration }

// distribution completes the sample of a trial whose Writes were timed.
func (w work) distribution(s command.Sample, calls []call) command.Sample {
	took, late := make([]float64, len(calls)), make([]float64, len(calls))
	for i, c := range calls {
		took[i], late[i] = float64(c.took), float64(c.late)
	}
	s.Values = []float64{stat.Quantile(took, 0.5), stat.Quantile(took, 0.99), slices.Max(took), slices.Max(took) / stat.Quantile(took, 0.5)}
	if w.rate > 0 {
		s.CPU, s.Units, s.Elapsed = s.CPU/time.Duration(s.Units), 1, time.Duration(stat.Quantile(took, 0.9999))
		s.Values = append(s.Values, stat.Quantile(late, 0.5), stat.Quantile(late, 0.999), stat.Quantile(late, 0.9999), slices.Max(late))
	}
	return s
}

// await sleeps until the n-th record of all is due, and returns when after the start that is; 0
// without a rate.
func (w work) await(start time.Time, n int) (due time.Duration) {
	if w.rate == 0 {
		return 0
	}
	due = time.Duration(n) * time.Second / time.Duration(w.rate)
	// Not nanosleep(2): a goroutine that makes only such calls keeps its P for 10 ms.
	// A goroutine that a lock has parked waits for that.
	for time.Since(start) < due {
		time.Sleep(due - time.Since(start))
	}
	return due
}

// format is a program's work before a Write: it formats a time and numbers, in memory of its own. A
// round takes some 200 ns on a Xeon of model 207; `limit no sink` has what it takes here.
func format(text []byte, rounds int) []byte {
	for i := range rounds {
		text = time.Unix(1_700_000_000, int64(i)*1001).UTC().AppendFormat(text[:0], time.RFC3339Nano)
		text = strconv.AppendFloat(append(text, ' '), 1.5*float64(i)+0.1234, 'g', -1, 64)
		text = strconv.AppendFloat(append(text, ' '), 3.25*float64(i)+0.777, 'g', -1, 64)
		text = strconv.AppendInt(append(text, ' '), int64(i)+1_234_567_890, 10)
	}
	return text
}
