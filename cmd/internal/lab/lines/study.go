// Package lines is about a program that writes line by line. It measures the time that a buffer
// between the program and its file saves, and the lines it loses when the program dies.
//
// The clock of the group lines covers the document's span: formatting and writing each line, and
// the flush, but neither open nor close. Its two modes do not write the same bytes. All other
// groups write the same bytes in all arms and have open, write, flush, sync and close in the clock,
// apart and together. Formatting is in it too, the same for every arm of a group, and stands apart
// in an arm that does nothing else. The group values is timed as a Go benchmark: making a temporary
// file, writing, closing and removing it is one operation. Into a pipe or a socket the clock ends
// when the other end has read all. The group crash is timed as a whole, from the start of a second
// process until it was killed. Its figures are the lines that the file has lost.
//
// Start with [Study].
package lines

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

// Study returns the study, with its arms and claims.
func Study() study.Study {
	return study.Study{
		Name:      "lines",
		Question:  "what does a buffer save when lines are written one by one, and what does a crash take",
		Source:    study.FileIOExperiment + ", " + study.EfficientBuffering,
		Takes:     []string{study.TakesCount, study.TakesRecord, study.TakesBuffer, study.TakesPolicy},
		Published: linesPublished(),
		Arms:      lineArms,
		Twin:      equalBufio4,
		Show:      showLines,
		Claims:    lineClaims(),
	}
}

func linesPublished() []study.Table {
	return []study.Table{{
		Title:  "100,000 lines",
		Source: study.FileIOExperiment,
		Head:   []string{"Run", "Unbuffered Time", "Buffered Time", "Speedup"},
		Rows: [][]string{
			{"1", "276.4ms", "14.6ms", "18.98x"},
			{"2", "279.8ms", "14.2ms", "19.76x"},
			{"3", "278.7ms", "13.6ms", "20.53x"},
			{"4", "288.6ms", "13.7ms", "21.06x"},
			{"Average", "~280ms", "~14ms", "~20x"},
		},
	}, {
		Title:  "10,000 records into a temporary file",
		Source: study.EfficientBuffering,
		Head:   []string{"Benchmark", "Iterations", "Time per op (ns)", "Bytes per op", "Allocs per op"},
		Rows: [][]string{
			{"BenchmarkWriteNotBuffered-14", "49", "23,672,792", "53,773", "10,007"},
			{"BenchmarkWriteBuffered-14", "3241", "379,703", "70,127", "10,008"},
		},
	}}
}

// The texts of the document's two modes, which are not of one length.
const (
	unbufferedLine = "Line %d: This is unbuffered write data\n"
	bufferedLine   = "Line %d: This is buffered write data\n"
	constantLine   = "line\n"
)

// A lineText makes lines, the i-th always the same.
type lineText struct {
	format string // with one %d, or none
	size   int    // that each line is padded or cut to; 0 leaves it as it is
}

func (t lineText) append(b []byte, i int64) []byte {
	start := len(b)
	if strings.Contains(t.format, "%") {
		b = fmt.Appendf(b, t.format, i)
	} else {
		b = append(b, t.format...)
	}
	if t.size == 0 {
		return b
	}
	b = b[:min(len(b)-1, start+t.size-1)] // without its end
	for len(b) < start+t.size-1 {
		b = append(b, '.')
	}
	return append(b, '\n')
}

// bytes returns how many the first count lines have.
func (t lineText) bytes(count int64) int64 {
	if t.size > 0 {
		return int64(t.size) * count
	}
	if !strings.Contains(t.format, "%") {
		return int64(len(t.format)) * count
	}
	size := int64(len(t.format)-len("%d")+1) * count // each number has one digit
	for least := int64(10); least < count; least *= 10 {
		size += count - least // and those from here on one more
	}
	return size
}

// verify reads r to its end. It must hold the first count lines, each once, in the
// order of each of the writers, which share the lines in turn.
func (t lineText) verify(r io.Reader, count int64, writers int) error {
	next := make([][]byte, writers)
	due := make([]int64, writers)
	for w := range next {
		due[w] = int64(w)
		next[w] = t.append(nil, due[w])
	}
	in := bufio.NewReaderSize(r, max(256<<10, t.size+1))
	offset := int64(0)
	for n := int64(0); ; n++ {
		line, err := in.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF) && len(line) == 0 && n == count:
			return nil
		case errors.Is(err, io.EOF):
			return &trial.ContentError{Offset: offset, Reason: fmt.Sprintf("the lines end, after %d of %d", n, count)}
		case err != nil:
			return fmt.Errorf("read back: %w", err)
		}
		w := writerOf(line, next)
		if w < 0 || due[w] >= count {
			return &trial.ContentError{Offset: offset, Reason: fmt.Sprintf("stands %q, which no writer was to write there", line)}
		}
		due[w] += int64(writers)
		next[w] = t.append(next[w][:0], due[w])
		offset += int64(len(line))
	}
}

// writerOf returns the writer that has this line next, or -1.
func writerOf(line []byte, next [][]byte) int {
	for w := range next {
		if bytes.Equal(line, next[w]) {
			return w
		}
	}
	return -1
}

func (t lineText) verifyFile(path string, count int64, writers int) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return t.verify(f, count, writers)
}

// A lineRun is the work of one arm: count lines, written in one way.
type lineRun struct {
	text    lineText
	count   int64
	writers int // goroutines that share the lines in turn
	way     study.Way
	sync    bool  // before the close
	every   int64 // lines from one sync to the next; 0: no sync
	burst   bool  // every is for a flush, and not for a sync
}

// predictedCalls is under which name the arms report how many write calls follow
// from their bytes and their buffer.
const predictedCalls = "predicted_write_calls"

func (r lineRun) report(c *trial.Clock, w study.Sink) {
	size := r.text.bytes(r.count)
	c.Done(r.count, size)
	if n, ok := r.calls(); ok {
		c.Tell(predictedCalls, float64(n))
	}
	syncs := float64(0)
	switch own, ok := w.(*holdfast.Writer); {
	case ok:
		c.TellWriter(own.Stats())
		syncs = float64(own.Stats().Syncs)
	case r.way.Flag != 0:
		syncs = float64(r.count)
	case r.every > 0 && !r.burst:
		syncs = float64(r.count / r.every)
	}
	if r.sync {
		syncs++
	}
	c.Tell(syncsMade, syncs)
}

// syncsMade is under which name the arms report how often they waited for the disk.
const syncsMade = "syncs"

// calls returns how many write calls are to be expected: a sync within the run
// flushes what the buffer holds.
func (r lineRun) calls() (calls int64, ok bool) {
	if r.every == 0 {
		return r.way.Calls(r.count, r.text.bytes(r.count))
	}
	for done := int64(0); done < r.count; done += r.every {
		until := min(r.count, done+r.every)
		n, ok := r.way.Calls(until-done, r.text.bytes(until)-r.text.bytes(done))
		if !ok {
			return 0, false
		}
		calls += n
	}
	return calls, true
}

// write writes the lines by as many goroutines as the run has.
func (r lineRun) write(ctx context.Context, w study.Sink) error {
	if r.writers == 1 {
		return r.writeShare(ctx, w, 0)
	}
	errs := make([]error, r.writers)
	var done sync.WaitGroup
	for i := range errs {
		done.Go(func() { errs[i] = r.writeShare(ctx, w, int64(i)) })
	}
	done.Wait()
	return errors.Join(errs...)
}

// writeShare writes every writers-th line from the first on.
func (r lineRun) writeShare(ctx context.Context, w study.Sink, first int64) error {
	var line []byte
	left := r.every
	for i := first; i < r.count; i += int64(r.writers) {
		if i%lineCheck == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		line = r.text.append(line[:0], i)
		if _, err := w.Write(line); err != nil {
			return err
		}
		if left--; left == 0 {
			left = r.every
			hand := w.Sync
			if r.burst {
				hand = w.Flush
			}
			if err := hand(); err != nil {
				return err
			}
		}
	}
	return nil
}

// lineCheck is how many lines go by between two looks at the context.
const lineCheck = 64

// A modeRun is the work of one of the document's modes, in its clock and with its
// allocations. These are a string for each line, and for the unbuffered mode its
// bytes.
type modeRun struct {
	buffered bool
	count    int64
}

func (r modeRun) text() lineText {
	if r.buffered {
		return lineText{format: bufferedLine}
	}
	return lineText{format: unbufferedLine}
}

func (r modeRun) task() trial.Task {
	return trial.Task{
		Writes: r.text().bytes(r.count),
		Do: func(_ context.Context, c *trial.Clock) error {
			f, err := study.CreateNew(c.Path, 0)
			if err != nil {
				return err
			}
			size := r.text().bytes(r.count)
			c.Done(r.count, size)
			if r.buffered {
				c.Tell(predictedCalls, float64(study.CallsOf(size, study.BufioDefault)))
				return errors.Join(r.writeBuffered(f, c), f.Close())
			}
			c.Tell(predictedCalls, float64(r.count))
			return errors.Join(r.writeUnbuffered(f, c), f.Close())
		},
		Check: func(path string) error { return r.text().verifyFile(path, r.count, 1) },
	}
}

func (r modeRun) writeUnbuffered(f *os.File, c *trial.Clock) error {
	c.Start()
	for i := range r.count {
		if _, err := f.Write([]byte(fmt.Sprintf(unbufferedLine, i))); err != nil {
			return err
		}
	}
	c.Lap(trial.Write)
	return nil
}

func (r modeRun) writeBuffered(f *os.File, c *trial.Clock) error {
	w := bufio.NewWriter(f)
	c.Start()
	for i := range r.count {
		if _, err := w.WriteString(fmt.Sprintf(bufferedLine, i)); err != nil {
			return err
		}
	}
	c.Lap(trial.Write)
	err := w.Flush()
	c.Lap(trial.Flush)
	return err
}
