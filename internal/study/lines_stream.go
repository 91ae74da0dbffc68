package study

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/trial"
)

// A lineStream is a run whose lines go to another goroutine instead of a file. In
// the clock, besides the writing, is that the other end reads all: close lasts
// until then.
type lineStream struct {
	lineRun
	connect connector
}

// A connector makes the two ends of a stream.
type connector func() (to holdfast.File, from io.ReadCloser, err error)

// connectPipe returns the two ends of a pipe.
func connectPipe() (holdfast.File, io.ReadCloser, error) {
	from, to, err := os.Pipe()
	return to, from, err
}

// connectSocket returns the two ends of a TCP connection on the loopback.
func connectSocket() (holdfast.File, io.ReadCloser, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	to, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		return nil, nil, errors.Join(err, l.Close())
	}
	from, err := l.Accept()
	if err = errors.Join(err, l.Close()); err != nil {
		return nil, nil, errors.Join(err, to.Close())
	}
	return unsynced{to}, from, nil
}

// noSocket says why there can be no connection here, or is empty.
func noSocket() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		err = l.Close()
	}
	if err != nil {
		return fmt.Sprintf("no TCP socket on the loopback: %v", err)
	}
	return ""
}

// unsynced is a connection as a file that can't be synced.
type unsynced struct{ net.Conn }

func (unsynced) Sync() error { return errors.ErrUnsupported }

// A reading is what the other end has got.
type reading struct {
	got  []byte // with room for one byte more than is written
	err  error
	done chan struct{}
}

// run reads until the other end is closed, or has written too much.
func (r *reading) run(from io.ReadCloser) {
	defer close(r.done)
	for r.err == nil && len(r.got) < cap(r.got) {
		n := 0
		n, r.err = from.Read(r.got[len(r.got):min(cap(r.got), len(r.got)+readingBlock)])
		r.got = r.got[:len(r.got)+n]
	}
	if errors.Is(r.err, io.EOF) {
		r.err = nil
	}
	r.err = errors.Join(r.err, from.Close())
}

// readingBlock is the most that one call reads: as much as a pipe holds.
const readingBlock = 64 << 10

func (s lineStream) task() trial.Task {
	r := &reading{got: make([]byte, 0, s.text.bytes(s.count)+1), done: make(chan struct{})}
	return trial.Task{
		Do:    func(ctx context.Context, c *trial.Clock) error { return s.do(ctx, c, r) },
		Check: func(string) error { return s.text.verify(bytes.NewReader(r.got), s.count, 1) },
	}
}

func (s lineStream) do(ctx context.Context, c *trial.Clock, r *reading) error {
	to, from, err := s.connect()
	if err != nil {
		return err
	}
	go r.run(from)
	w, err := s.way.over(to)
	if err != nil {
		<-r.done
		return err
	}
	c.Lap(trial.Open)
	err = s.write(ctx, w)
	c.Lap(trial.Write)
	err = errors.Join(err, w.Flush())
	c.Lap(trial.Flush)
	err = errors.Join(err, w.Close())
	<-r.done
	c.Lap(trial.Close)
	s.tell(c, w)
	return errors.Join(err, r.err)
}
