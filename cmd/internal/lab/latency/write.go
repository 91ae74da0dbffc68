package latency

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/probe"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

// task opens the file, has do write to it and closes it; afterwards the file must hold the number
// of records that written returns.
func (o sink) task(size int64, written *int64, do func(context.Context, *trial.Clock, io.Writer) error) trial.Task {
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
		probe.Pause(left)
	}
	return ctx.Err()
}
