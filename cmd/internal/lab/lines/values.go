package lines

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

// The published benchmark: records of a number and a constant, each written by two
// writes, into a temporary file that is removed.
const (
	valueRecords = 10_000
	valueTail    = ":val\n"
	valueBuffer  = 16 << 10
	valueBytes   = 88_890
)

// A valueRun is a number of operations of that benchmark.
type valueRun struct {
	ops  int64
	by   study.Maker
	size int64 // of the buffer; 0: none

	// kept holds the constant in one slice. Else it is turned into a slice for each
	// record, which escapes: that is where the published allocations come from.
	kept bool
}

func (r valueRun) task() trial.Task {
	return trial.Task{Writes: valueBytes,
		// The operations are timed together, as a Go benchmark times them. The memory's counts
		// are read around them, and not in the clock.
		Do: func(ctx context.Context, c *trial.Clock) error {
			if err := os.Mkdir(c.Path, 0o777); err != nil {
				return err
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			c.Start()
			for range r.ops {
				if err := errors.Join(ctx.Err(), r.op(c.Path)); err != nil {
					return err
				}
			}
			c.Lap(trial.Work)
			runtime.ReadMemStats(&after)
			c.Done(r.ops*valueRecords, r.ops*valueBytes)
			c.Tell(study.AllocsPerOp, float64((after.Mallocs-before.Mallocs)/uint64(r.ops)))
			c.Tell(study.BytesPerOp, float64((after.TotalAlloc-before.TotalAlloc)/uint64(r.ops)))
			calls := int64(2 * valueRecords)
			if r.size > 0 {
				calls = study.CallsOf(valueBytes, r.size)
			}
			c.Tell(predictedCalls, float64(calls*r.ops))
			return nil
		}, Check: r.check}
}

// op is one operation.
func (r valueRun) op(dir string) error {
	f, err := os.CreateTemp(dir, "values-")
	if err != nil {
		return err
	}
	return errors.Join(r.fill(f), f.Close(), os.Remove(f.Name()))
}

func (r valueRun) fill(f holdfast.File) error {
	switch {
	case r.by == study.Ours:
		w, err := holdfast.New(unclosed{f}, holdfast.Buffered(holdfast.Size(r.size)))
		if err != nil {
			return err
		}
		return errors.Join(r.values(w), w.Close())
	case r.size > 0:
		return r.bufferedValues(f)
	}
	return r.values(f)
}

// unclosed keeps a Writer from closing the file, which the operation does itself.
type unclosed struct{ holdfast.File }

func (unclosed) Close() error { return nil }

// values hands each record to w in two writes.
func (r valueRun) values(w io.Writer) error {
	number, tail := make([]byte, 0, 8), r.keptTail()
	for i := range int64(valueRecords) {
		number = strconv.AppendInt(number[:0], i, 10)
		if _, err := w.Write(number); err != nil {
			return err
		}
		if !r.kept {
			tail = []byte(valueTail) // escapes: w may keep it, for all that the compiler knows
		}
		if _, err := w.Write(tail); err != nil {
			return err
		}
	}
	return nil
}

// bufferedValues is values through a bufio.Writer. It is no call of values: there
// the Writer would be one more allocation than was published.
func (r valueRun) bufferedValues(f io.Writer) error {
	w := bufio.NewWriterSize(f, int(r.size))
	number, tail := make([]byte, 0, 8), r.keptTail()
	for i := range int64(valueRecords) {
		number = strconv.AppendInt(number[:0], i, 10)
		if _, err := w.Write(number); err != nil {
			return err
		}
		if !r.kept {
			tail = []byte(valueTail)
		}
		if _, err := w.Write(tail); err != nil {
			return err
		}
	}
	return w.Flush()
}

// keptTail is the constant in a slice for all records, or nil.
func (r valueRun) keptTail() []byte {
	if !r.kept {
		return nil
	}
	return []byte(valueTail)
}

// check does the operation once more, on a file that stays until it was read: the
// files of the operations are gone by then.
func (r valueRun) check(dir string) error {
	path := filepath.Join(dir, "check")
	f, err := study.CreateNew(path, 0)
	if err != nil {
		return err
	}
	if err := errors.Join(r.fill(f), f.Close()); err != nil {
		return err
	}
	return lineText{format: "%d" + valueTail}.verifyFile(path, valueRecords, 1)
}
