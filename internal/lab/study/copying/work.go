package copying

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-go/holdfast/internal/lab/study"
	"github.com/holdfast-go/holdfast/internal/lab/study/copysource"
	"github.com/holdfast-go/holdfast/internal/lab/timing"
	"github.com/holdfast-go/holdfast/internal/lab/trial"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// task copies or writes n bytes.
func (c copyCell) task(choice study.Choice, n int64, source *copysource.Source) trial.Task {
	t := trial.Task{
		Make:   func(path string) error { return source.Make(path, n) },
		Within: filepath.Join("..", copysource.Name(n)), Cache: c.cache(choice),
		Writes: n,
		Do: func(ctx context.Context, clock *trial.Clock) error {
			b := make([]byte, c.buffer)
			clock.Start()
			from, err := os.Open(copysource.Of(clock.Path, n))
			if err != nil {
				return err
			}
			to, err := c.create(clock.Path)
			clock.Lap(trial.Open)
			if err != nil {
				return errors.Join(err, from.Close())
			}
			err = c.loop(ctx, clock, n, func(until int64) (int64, error) { return copyLoop(ctx, to, from, b, until) })
			if c.form == timing.EndSynced && err == nil {
				err = to.Sync()
				clock.Lap(trial.Sync)
			}
			err = errors.Join(err, from.Close(), to.Close())
			clock.Lap(trial.Close)
			return err
		},
		Check: func(path string) error { return copysource.Holds(path, source.Sum(n)) },
	}
	if c.form.Writes() {
		block := source.Block(c.buffer)
		t.Make = nil
		t.Do = func(ctx context.Context, clock *trial.Clock) error {
			clock.Start()
			to, err := c.create(clock.Path)
			clock.Lap(trial.Open)
			if err != nil {
				return err
			}
			left, each := n, c.each(to)
			err = c.loop(ctx, clock, n, func(until int64) (int64, error) {
				written, err := writeLoop(ctx, to, block, min(until, left), each)
				left -= written
				return written, err
			})
			err = errors.Join(err, to.Close())
			clock.Lap(trial.Close)
			return err
		}
		t.Check = func(path string) error { return copysource.Holds(path, copysource.Repeated(block, n)) }
	}
	return t
}

// each is what the form does after each write, or nil.
func (c copyCell) each(to *os.File) func() error {
	fd := int(to.Fd())
	switch c.form {
	case timing.EachData:
		return func() error { return sys.Disk{}.Datasync(fd) }
	case timing.EachSync:
		return to.Sync
	}
	return nil
}

// create makes the file that is written to, by the form.
func (c copyCell) create(path string) (*os.File, error) {
	flags := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	switch c.form {
	case timing.Synced, timing.WriteSync:
		flags |= os.O_SYNC
	case timing.DSynced, timing.WriteData:
		flags |= study.OpenDataSync
	}
	return os.OpenFile(path, flags, 0o666)
}

// loop copies n bytes in two parts, which are one to the clock, and reports what the
// second took.
func (c copyCell) loop(ctx context.Context, clock *trial.Clock, n int64, run func(until int64) (int64, error)) error {
	head, err := run(n / 2 / c.buffer * c.buffer)
	if err != nil {
		return err
	}
	begun := time.Now()
	tail, err := run(math.MaxInt64)
	took := time.Since(begun)
	clock.Lap(trial.Write)
	clock.Done(head+tail, head+tail)
	clock.Tell(wholeBytes, float64(c.size))
	clock.Tell(tailBytes, float64(tail))
	clock.Tell(tailNs, float64(took))
	return errors.Join(err, ctx.Err())
}

// everyCalls is how many calls go by for each look at the context.
const everyCalls = 256

// copyLoop is read and write and nothing else, until the end or until so many bytes
// are copied: io.Copy would have the kernel copy.
func copyLoop(ctx context.Context, to io.Writer, from io.Reader, b []byte, until int64) (copied int64, err error) {
	for calls := 0; copied < until; calls++ {
		if calls%everyCalls == 0 && ctx.Err() != nil {
			return copied, ctx.Err()
		}
		n, err := from.Read(b)
		if err == io.EOF {
			return copied, nil
		}
		if err != nil {
			return copied, err
		}
		if _, err := to.Write(b[:n]); err != nil {
			return copied, err
		}
		copied += int64(n)
	}
	return copied, nil
}

// writeLoop writes the block over and over, the last one only so far as there are
// bytes to write; each is done after each, unless it is nil.
func writeLoop(ctx context.Context, to io.Writer, block []byte, until int64, each func() error) (written int64, err error) {
	for calls := 0; written < until; calls++ {
		if calls%everyCalls == 0 && ctx.Err() != nil {
			return written, ctx.Err()
		}
		n, err := to.Write(block[:min(int64(len(block)), until-written)])
		written += int64(n)
		if err == nil && each != nil {
			err = each()
		}
		if err != nil {
			return written, err
		}
	}
	return written, nil
}
