package study

import (
	"bufio"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
)

// A Sink accepts lines. A [holdfast.Writer] is one.
type Sink interface {
	Write(line []byte) (int, error)
	Flush() error
	Sync() error
	Close() error
}

// A Maker names the code between the lines and the file.
type Maker string

const (
	Nowhere Maker = "nowhere"  // no file: the lines are only made
	Golang  Maker = "go"       // os.File and bufio.Writer
	Ours    Maker = "holdfast" // holdfast.Writer
)

// A Way is a way for lines to reach a file.
type Way struct {
	By     Maker
	Policy holdfast.Policy // with golang only its buffer and its flush by time
	Flag   int             // for opening the file, added to the flags of all ways
}

// BufioDefault is the buffer size of bufio.NewWriter.
const BufioDefault = 4096

// Open makes the file and puts the way's buffer over it.
func (y Way) Open(path string) (Sink, error) {
	if y.By == Nowhere {
		return NoSink{}, nil
	}
	f, err := CreateNew(path, y.Flag)
	if err != nil {
		return nil, err
	}
	return y.Over(f)
}

// CreateNew makes a file that is not there yet.
func CreateNew(path string, flag int) (*os.File, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|flag, 0o666)
}

// Over puts the way's buffer over a file. It closes the file on an error.
func (y Way) Over(f holdfast.File) (Sink, error) {
	switch {
	case y.By == Ours:
		w, err := holdfast.New(f, y.Policy)
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		return w, nil
	case y.Policy.FlushEvery > 0:
		return newPeriodic(f, int(y.Policy.Buffer), y.Policy.FlushEvery), nil
	case y.Policy.Buffer > 0:
		return bufferedSink{bufio.NewWriterSize(f, int(y.Policy.Buffer)), f}, nil
	}
	return plainSink{f}, nil
}

// Calls returns the number of write calls for the given lines, bytes and buffer. ok is false for a
// group commit and for flushes by bytes, where they do not follow.
func (y Way) Calls(count, size int64) (calls int64, ok bool) {
	switch {
	case y.By == Nowhere:
		return 0, true
	case y.Policy.Sync.Mode == holdfast.SyncGroup, y.Policy.FlushBytes > 0:
		return 0, false
	case y.Policy.Buffer == 0 || y.Policy.Sync.Mode == holdfast.SyncEach:
		return count, true
	}
	return CallsOf(size, int64(y.Policy.Buffer)), true
}

// NoSink accepts bytes, as a file would, and discards them.
type NoSink struct{}

func (NoSink) Write(p []byte) (int, error) { return len(p), nil }
func (NoSink) Flush() error                { return nil }
func (NoSink) Sync() error                 { return nil }
func (NoSink) Close() error                { return nil }

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
// write it. It is safe for many goroutines, loses no error of a flush, and can be closed. bufio keeps
// an error of the ticker's flush: the next Write, Flush or Close returns it.
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
	p.done.Go(func() {
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
	})
	return p
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

// StdioBuffer is the buffer size of stdio, and of code without a buffer size of its own: the block size
// of most file systems.
const StdioBuffer = 4096
