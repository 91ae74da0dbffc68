package study

import (
	"bufio"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
)

// A lineSink takes lines. A [holdfast.Writer] is one.
type lineSink interface {
	Write(line []byte) (int, error)
	Flush() error
	Sync() error
	Close() error
}

// A maker is whose code stands between the lines and the file.
type maker string

const (
	nowhere maker = "nowhere"  // no file: the lines are only made
	golang  maker = "go"       // os.File and bufio.Writer
	ours    maker = "holdfast" // holdfast.Writer
)

// A lineWay is how lines reach a file.
type lineWay struct {
	by     maker
	policy holdfast.Policy // what of it there is with golang: its buffer, and its flush by time
	flag   int             // for opening the file, besides those of all
}

// bufioDefault is the size of a bufio.Writer that is told none.
const bufioDefault = 4096

func (y lineWay) open(path string) (lineSink, error) {
	if y.by == nowhere {
		return noSink{}, nil
	}
	f, err := createNew(path, y.flag)
	if err != nil {
		return nil, err
	}
	return y.over(f)
}

// createNew makes a file that is not there yet.
func createNew(path string, flag int) (*os.File, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|flag, 0o666)
}

// over puts the way's buffer over a file, which is closed if that fails.
func (y lineWay) over(f holdfast.File) (lineSink, error) {
	switch {
	case y.by == ours:
		w, err := holdfast.New(f, y.policy)
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		return w, nil
	case y.policy.FlushEvery > 0:
		return newPeriodic(f, int(y.policy.Buffer), y.policy.FlushEvery), nil
	case y.policy.Buffer > 0:
		return bufferedSink{bufio.NewWriterSize(f, int(y.policy.Buffer)), f}, nil
	}
	return plainSink{f}, nil
}

// calls returns how many write calls follow from the number of lines, their bytes
// and the buffer; of a group commit nothing does.
func (y lineWay) calls(count, size int64) (calls int64, ok bool) {
	switch {
	case y.by == nowhere:
		return 0, true
	case y.policy.Sync == holdfast.SyncGroup:
		return 0, false
	case y.policy.Buffer == 0 || y.policy.Sync == holdfast.SyncEach:
		return count, true
	}
	return parts(size, int64(y.policy.Buffer)), true
}

// noSink takes bytes, as a file would, and does nothing with them.
type noSink struct{}

func (noSink) Write(p []byte) (int, error) { return len(p), nil }
func (noSink) Flush() error                { return nil }
func (noSink) Sync() error                 { return nil }
func (noSink) Close() error                { return nil }

// plainSink has one write call for each line.
type plainSink struct{ holdfast.File }

func (plainSink) Flush() error { return nil }

// bufferedSink is a bufio.Writer and its file.
type bufferedSink struct {
	*bufio.Writer
	file holdfast.File
}

func (s bufferedSink) Sync() error  { return errors.Join(s.Flush(), s.file.Sync()) }
func (s bufferedSink) Close() error { return errors.Join(s.Flush(), s.file.Close()) }

// A periodic is a bufio.Writer that a ticker flushes, as a program would have to
// write it: safe for many goroutines, without a flush that nobody hears of, and
// with an end. An error of the ticker's flush is bufio's from then on: the next
// Write, Flush or Close returns it.
type periodic struct {
	mu     sync.Mutex
	buffer *bufio.Writer // guarded by mu
	closed bool          // guarded by mu
	file   holdfast.File
	stop   chan struct{}
	done   sync.WaitGroup
}

func newPeriodic(f holdfast.File, size int, every time.Duration) *periodic {
	p := &periodic{buffer: bufio.NewWriterSize(f, size), file: f, stop: make(chan struct{})}
	p.done.Go(func() { p.run(every) })
	return p
}

func (p *periodic) run(every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if p.Flush() != nil {
				return // bufio keeps the error
			}
		case <-p.stop:
			return
		}
	}
}

func (p *periodic) Write(line []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return 0, os.ErrClosed
	}
	return p.buffer.Write(line)
}

func (p *periodic) Flush() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.buffer.Flush()
}

func (p *periodic) Sync() error { return errors.Join(p.Flush(), p.file.Sync()) }

// Close ends the ticker and flushes once more.
func (p *periodic) Close() error {
	p.mu.Lock()
	again := p.closed
	p.closed = true
	p.mu.Unlock()
	if again {
		return os.ErrClosed
	}
	close(p.stop)
	p.done.Wait()
	return errors.Join(p.Flush(), p.file.Close())
}
