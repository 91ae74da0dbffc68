package lines

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

// A lineCrash is a second process that writes lines and is killed in the middle.
// It says on its standard output when a line was accepted: outside of the process that the kill
// destroys.
type lineCrash struct {
	way     study.Way
	atLeast int64 // lines that are accepted before the kill, and up to as many again: where in a buffer it comes is chance
}

// Figures of a lineCrash.
const (
	acceptedLines = "accepted_lines"
	lostLines     = "lost_lines"
	lostBytes     = "lost_bytes"
	lostAge       = "lost_age_ns" // since the oldest lost line was known to be accepted, until the kill
)

// killedWriter is the role of the process that is killed.
const killedWriter = "lines-writer"

// The killed writer is no faster than this, some lines at a time. So a flush by
// time has something to do before a buffer is full.
const (
	killedPause = time.Millisecond
	killedLines = 20
)

var killedText = lineText{format: bufferedLine}

// writeUntilKilled is the role: its arguments are the maker, the policy and the
// path. It writes a byte to stdout for each line that was accepted.
func writeUntilKilled(ctx context.Context, args []string, _ io.Reader, stdout io.Writer) error {
	if len(args) != 3 {
		return fmt.Errorf("%s takes a maker, a policy and a path, not %d arguments", killedWriter, len(args))
	}
	policy, err := holdfast.ParsePolicy(args[1])
	if err != nil {
		return err
	}
	w, err := study.Way{By: study.Maker(args[0]), Policy: policy}.Open(args[2])
	if err != nil {
		return err
	}
	pace := time.NewTicker(killedPause)
	defer pace.Stop()
	var line []byte
	for i := int64(0); ; i++ {
		if i%killedLines == 0 {
			select {
			case <-pace.C:
			case <-ctx.Done():
				return errors.Join(ctx.Err(), w.Close())
			}
		}
		line = killedText.append(line[:0], i)
		if _, err := w.Write(line); err != nil {
			return err
		}
		if _, err := stdout.Write([]byte{'+'}); err != nil {
			return err
		}
	}
}

func (k lineCrash) task() trial.Task {
	return trial.Task{Do: func(ctx context.Context, c *trial.Clock) error {
		known, killed, err := k.kill(ctx, c)
		if err != nil {
			return err
		}
		c.Lap(trial.Work)
		return tellLoss(c, known, killed)
	}}
}

// An acceptance is how many lines were known to be accepted at a time.
type acceptance struct {
	lines int64
	at    time.Time
}

// kill starts the process, kills it when it has accepted enough lines, and returns what
// it had reported and when it was killed.
func (k lineCrash) kill(ctx context.Context, c *trial.Clock) (known []acceptance, killed time.Time, err error) {
	p, err := study.StartCompanion(ctx, c, killedWriter, string(k.way.By), k.way.Policy.String(), c.Path)
	if err != nil {
		return nil, killed, err
	}
	block, lines, until := make([]byte, 4096), int64(0), k.atLeast+rand.Int64N(k.atLeast)
	for {
		n, readErr := p.Out.Read(block)
		if n > 0 {
			lines += int64(n)
			known = append(known, acceptance{lines, time.Now()})
		}
		if readErr != nil {
			break // the process is dead: wait says why
		}
		if lines >= until && killed.IsZero() {
			killed = time.Now()
			err = p.Cmd.Process.Kill()
		}
	}
	died := p.Wait()
	if err = errors.Join(err, ctx.Err()); err == nil && killed.IsZero() {
		err = fmt.Errorf("the writer ended by itself after %d lines: %v", lines, died)
	}
	return known, killed, err
}

// tellLoss reads the file: it must hold the first of the lines and nothing else; the
// last of them may be torn.
func tellLoss(c *trial.Clock, known []acceptance, killed time.Time) error {
	accepted := known[len(known)-1].lines
	whole, size, err := readLines(c.Path)
	if err != nil {
		return err
	}
	lost := max(0, accepted-whole)
	c.Done(accepted, size)
	c.Tell(acceptedLines, float64(accepted))
	c.Tell(lostLines, float64(lost))
	c.Tell(lostBytes, float64(max(0, killedText.bytes(accepted)-size)))
	if lost > 0 {
		c.Tell(lostAge, float64(max(0, killed.Sub(knownAt(known, whole)))))
	} else {
		c.Tell(lostAge, 0)
	}
	return nil
}

// knownAt returns when line i was known to be accepted.
func knownAt(known []acceptance, i int64) time.Time {
	for _, k := range known {
		if k.lines > i {
			return k.at
		}
	}
	return known[len(known)-1].at
}

// readLines returns how many whole lines the file holds, and how many bytes.
func readLines(path string) (whole, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	in := bufio.NewReader(f)
	var want []byte
	for {
		line, err := in.ReadSlice('\n')
		want = killedText.append(want[:0], whole)
		if !bytes.HasPrefix(want, line) {
			return whole, size, &trial.ContentError{Offset: size, Reason: fmt.Sprintf("stands %q where line %d is due", line, whole)}
		}
		size += int64(len(line))
		switch {
		case errors.Is(err, io.EOF):
			return whole, size, nil
		case err != nil:
			return whole, size, fmt.Errorf("read back: %w", err)
		}
		whole++
	}
}

// A forgotten is a run that closes the file without a flush.
type forgotten struct {
	by     study.Maker
	buffer holdfast.Size
	count  int64
}

func (r forgotten) task() trial.Task {
	return trial.Task{Writes: killedText.bytes(r.count), Do: func(ctx context.Context, c *trial.Clock) error {
		f, err := study.CreateNew(c.Path, 0)
		if err != nil {
			return err
		}
		run := lineRun{text: killedText, count: r.count, writers: 1}
		c.Lap(trial.Open)
		w, closing, err := r.over(f)
		if err == nil {
			err = run.write(ctx, w)
		}
		c.Lap(trial.Write)
		err = errors.Join(err, closing())
		c.Lap(trial.Close)
		if err != nil {
			return err
		}
		_, size, err := readLines(c.Path)
		c.Done(r.count, killedText.bytes(r.count))
		c.Tell(lostBytes, float64(killedText.bytes(r.count)-size))
		return err
	}, Check: func(path string) error {
		_, _, err := readLines(path)
		return err
	}}
}

// over returns the writer, and the function that closes the file: bufio's does not flush the
// buffer.
func (r forgotten) over(f *os.File) (study.Sink, func() error, error) {
	w, err := study.Way{By: r.by, Policy: holdfast.Buffered(r.buffer)}.Over(f)
	if err != nil || r.by == study.Golang {
		return w, f.Close, err
	}
	return w, w.Close, nil
}

// Roles are the work of the study's second process.
func Roles() map[string]study.Role {
	return map[string]study.Role{
		killedWriter: writeUntilKilled,
		// Keeps a processor busy until its input ends. It writes a byte when it begins.
		spinner: func(ctx context.Context, _ []string, stdin io.Reader, stdout io.Writer) error {
			ended := make(chan error, 1)
			go func() {
				_, err := io.Copy(io.Discard, stdin)
				ended <- err
			}()
			if _, err := stdout.Write([]byte{'+'}); err != nil {
				return err
			}
			for ctx.Err() == nil {
				select {
				case err := <-ended:
					return err
				default:
				}
			}
			return ctx.Err()
		},
	}
}
