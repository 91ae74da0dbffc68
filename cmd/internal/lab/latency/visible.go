package latency

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/probe"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

// watchRole is the work of the process that reads while another writes.
const watchRole = "watch-file"

// watchPause is how long the watcher waits at the end of the file before it reads
// again. Polling needs nothing of the system, and adds nothing to the writer's calls,
// unlike a notification (inotify). The time from one look to the next is measured and
// reported.
const watchPause = 50 * time.Microsecond

// An observation is the watcher's final report.
type observation struct {
	Records int64          `json:"records"` // that were right and in their order
	Wrong   string         `json:"wrong"`   // the first record that was not, or empty
	Delays  result.Latency `json:"delays"`  // from the record's own time until it was seen
	Looks   result.Latency `json:"looks"`   // from one look at the end of the file to the next
}

// watchedWrites is the task of writing records at a rate while another process
// reads them.
func (o sink) watchedWrites(records, size int64) trial.Task {
	return trial.Task{
		Writes: records * size,
		Do: func(ctx context.Context, c *trial.Clock) error {
			f, err := o.create(c.Path)
			if err != nil {
				return err
			}
			c.Lap(trial.Open)
			s, err := watched(ctx, c, f, records, size)
			if err != nil {
				return err
			}
			// A figure of 0 had too few records.
			c.Tell("visible_count", float64(s.Records))
			for name, d := range map[string]time.Duration{
				"visible_p50_ns": s.Delays.P50, "visible_p99_ns": s.Delays.P99, "visible_max_ns": s.Delays.Max,
				"look_p50_ns": s.Looks.P50, "look_p99_ns": s.Looks.P99,
			} {
				if d > 0 {
					c.Tell(name, float64(d))
				}
			}
			return s.check(records, size)
		},
		Check: func(path string) error { return checkStamped(path, records, size) },
	}
}

// watched writes the records, closes f, and returns what the watcher saw. Neither
// the watcher nor f is left open.
func watched(ctx context.Context, c *trial.Clock, f io.WriteCloser, records, size int64) (observation, error) {
	w, err := startWatcher(ctx, c, size)
	if err != nil {
		return observation{}, errors.Join(err, f.Close())
	}
	h := result.NewHistogram()
	c.Start()
	err = writeByBeat(w.ctx, f, records, size, h)
	c.Lap(trial.Write)
	err = errors.Join(err, f.Close())
	c.Lap(trial.Close)
	s, watchErr := w.end(err)
	if watchErr != nil {
		return s, watchErr
	}
	return s, errors.Join(err, c.TellLatency(h))
}

// writeByBeat writes stamped records when they are due. It times the Writes.
func writeByBeat(ctx context.Context, f io.Writer, records, size int64, h *hdrhistogram.Histogram) error {
	record, b := newStamped(size), newBeat(visibleRate)
	for i := range records {
		if err := b.await(ctx, i); err != nil {
			return context.Cause(ctx)
		}
		now, err := probe.Monotonic()
		if err != nil {
			return err
		}
		r := record.fill(i, now)
		begun := time.Now()
		if _, err := f.Write(r); err != nil {
			return err
		}
		result.Record(h, time.Since(begun))
	}
	return nil
}

func (s observation) check(records, size int64) error {
	switch {
	case s.Wrong != "":
		return &trial.ContentError{Offset: s.Records * size, Reason: s.Wrong}
	case s.Records != records:
		return fmt.Errorf("the reading process saw %d of %d records", s.Records, records)
	}
	return nil
}

// A watcher is the second process, seen from the first. Its ctx is done when the
// process has ended, for then there is nothing to write for.
type watcher struct {
	*study.Companion
	ctx    context.Context
	cancel context.CancelCauseFunc
	ended  chan struct{} // closed when seen and err stand
	seen   observation
	err    error
}

var errWatcherEnded = errors.New("the reading process ended before its report")

// startWatcher returns when the process has opened the file. The caller must call
// end.
func startWatcher(ctx context.Context, c *trial.Clock, size int64) (*watcher, error) {
	w := &watcher{ended: make(chan struct{})}
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	var err error
	if w.Companion, err = study.StartCompanion(w.ctx, c, watchRole, c.Path, strconv.FormatInt(size, 10)); err != nil {
		w.cancel(err)
		return nil, err
	}
	out := json.NewDecoder(w.Out)
	ready := make(chan struct{})
	go w.listen(out, ready)
	select {
	case <-ready:
		return w, nil
	case <-w.ended:
		_, err := w.end(nil)
		return nil, err
	}
}

// listen receives that the process is ready, and later what it saw.
func (w *watcher) listen(out *json.Decoder, ready chan<- struct{}) {
	defer close(w.ended)
	var open bool
	err := out.Decode(&open)
	if err == nil {
		close(ready)
		err = out.Decode(&w.seen)
	}
	if died := w.Wait(); died != nil {
		err = died
	}
	if err != nil {
		w.err = fmt.Errorf("%w: %w", errWatcherEnded, err)
		w.cancel(w.err)
	}
}

// end closes the watcher's input, since the file grows no more, and waits for its report; after an
// error it kills the watcher. Nothing of it is left.
func (w *watcher) end(err error) (observation, error) {
	if err != nil {
		w.cancel(err)
	}
	_ = w.In.Close() // closed already where the process has ended
	<-w.ended
	defer w.cancel(nil)
	if err != nil && !errors.Is(err, errWatcherEnded) {
		return observation{}, err // it was killed for that
	}
	return w.seen, w.err
}

// watchFile is the second process: it reads records from the file at args[0], of
// args[1] bytes each, until stdin ends and the file too. The end of stdin comes
// also if the first process dies.
func watchFile(_ context.Context, args []string, stdin io.Reader, stdout io.Writer) error {
	if len(args) != 2 {
		return fmt.Errorf("a watcher takes a file and the size of its records, and has %d arguments", len(args))
	}
	size, err := strconv.ParseInt(args[1], 10, 64)
	if err != nil || size < leastStamped || size > int64(study.MaxRecord) {
		return fmt.Errorf("records of %q bytes can't be watched", args[1])
	}
	f, err := os.Open(args[0])
	if err != nil {
		return err
	}
	defer f.Close()
	over := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, stdin) // whatever ends it, nothing more comes
		close(over)
	}()
	report := json.NewEncoder(stdout)
	if err := report.Encode(true); err != nil {
		return err
	}
	seen, err := watch(f, size, over)
	if err != nil {
		return err
	}
	return report.Encode(seen)
}

// watch reads records until it is at the end of f after over was closed.
func watch(f io.Reader, size int64, over <-chan struct{}) (s observation, err error) {
	delays, looks := result.NewHistogram(), result.NewHistogram()
	in := make([]byte, max(64<<10, size))
	have, looked := 0, time.Time{}
	for last := false; ; {
		select {
		case <-over:
			last = true
		default:
		}
		n, err := f.Read(in[have:])
		if err != nil && err != io.EOF {
			return s, err
		}
		now, err := probe.Monotonic()
		if err != nil {
			return s, err
		}
		have += n
		// The whole records are taken off; in keeps the rest.
		b := in[:have]
		var used int64
		for ; used+size <= int64(len(b)); used += size {
			r := stamped(b[used : used+size])
			if s.Wrong == "" {
				s.Wrong = r.wrong(s.Records)
			}
			if s.Wrong == "" {
				s.Records++
				result.Record(delays, now-r.at())
			}
		}
		have = copy(in, in[used:have])
		switch {
		case n > 0:
			looked = time.Time{}
			continue
		case last:
			return s, s.measure(delays, looks)
		}
		if !looked.IsZero() {
			result.Record(looks, time.Since(looked))
		}
		looked = time.Now()
		probe.Pause(watchPause)
	}
}

func (s *observation) measure(delays, looks *hdrhistogram.Histogram) (err error) {
	if s.Delays, err = result.NewLatency(delays, stat.Supports); err != nil {
		return err
	}
	s.Looks, err = result.NewLatency(looks, stat.Supports)
	return err
}

func (r stamped) at() time.Duration { return time.Duration(binary.LittleEndian.Uint64(r)) }
