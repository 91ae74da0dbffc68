package study

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/result"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/trial"
)

// timedWrites is the task of writing records as fast as can be, each Write timed.
func (o outlet) timedWrites(records, size int64) trial.Task {
	h, record := result.NewHistogram(), newStamped(size)
	do := func(ctx context.Context, c *trial.Clock, f io.Writer) error {
		total := time.Duration(0)
		for i := range records {
			if err := ctx.Err(); i%256 == 0 && err != nil {
				return err
			}
			r := record.fill(i, 0)
			begun := time.Now()
			_, err := f.Write(r)
			took := time.Since(begun)
			if err != nil {
				return err
			}
			result.Record(h, took)
			total += took
		}
		c.Took(trial.Write, total)
		return c.TellLatency(h)
	}
	return o.task(size, &records, do)
}

// task opens the file, has do write to it and closes it; afterwards it must hold so
// many records as written says.
func (o outlet) task(size int64, written *int64, do func(context.Context, *trial.Clock, io.Writer) error) trial.Task {
	t := trial.Task{
		Writes: *written * size,
		Do: func(ctx context.Context, c *trial.Clock) error {
			f, err := o.create(c.Path)
			if err != nil {
				return err
			}
			c.Lap(trial.Open)
			err = do(ctx, c, f)
			c.Start()
			err = errors.Join(err, f.Close())
			c.Lap(trial.Close)
			if w, ok := f.(*holdfast.Writer); ok {
				c.TellWriter(w.Stats())
			}
			return err
		},
		Check: func(path string) error { return checkStamped(path, *written, size) },
	}
	if o.by == byNothing {
		t.Writes, t.Check = 0, nil
	}
	return t
}

// A beat says when records are due, in equal steps since it began.
type beat struct {
	began time.Time
	step  time.Duration
}

func newBeat(rate int64) beat { return beat{time.Now(), time.Second / time.Duration(rate)} }

func (b beat) due(i int64) time.Duration { return time.Duration(i) * b.step }

// await pauses until record i is due, and not at all if that is past. It does not
// spin: that would take the time of a reader or a flusher.
func (b beat) await(ctx context.Context, i int64) error {
	for ctx.Err() == nil {
		left := b.due(i) - time.Since(b.began)
		if left <= 0 {
			return nil
		}
		sys.Pause(left)
	}
	return ctx.Err()
}

// openLoop is the task of writing records that are due by the clock, whether or not
// those before are written. One that can't keep up is given up after a while: what
// is then due counts with the time that it has waited.
func (o outlet) openLoop(records, size int64) trial.Task {
	response, service, record := result.NewHistogram(), result.NewHistogram(), newStamped(size)
	written := records
	do := func(ctx context.Context, c *trial.Clock, f io.Writer) error {
		c.Start()
		b := newBeat(openRate)
		patience := max(200*time.Millisecond, trial.Patience*b.due(records))
		for written = 0; written < records; written++ {
			if err := b.await(ctx, written); err != nil {
				return err
			}
			begun := time.Since(b.began)
			if begun > patience {
				b.giveUp(response, written, records)
				break
			}
			if _, err := f.Write(record.fill(written, 0)); err != nil {
				return err
			}
			done := time.Since(b.began)
			result.Record(service, done-begun)
			result.Record(response, done-b.due(written))
		}
		c.Lap(trial.Write)
		c.Done(written, written*size)
		c.Tell("unserved_records", float64(records-written))
		return errors.Join(c.TellLatency(response), c.TellService(service))
	}
	return o.task(size, &written, do)
}

// giveUp counts records that are due, or will be, with the time that they wait.
func (b beat) giveUp(h *hdrhistogram.Histogram, next, records int64) {
	for now := time.Since(b.began); next < records; next++ {
		result.Record(h, max(0, now-b.due(next)))
	}
}
