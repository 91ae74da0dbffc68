package lines

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
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

// unsynced is a connection as a file that can't be synced.
type unsynced struct{ net.Conn }

func (unsynced) Sync() error { return errors.ErrUnsupported }

// A reading has the bytes that the other end has received.
type reading struct {
	got  []byte // with room for one byte more than is written
	err  error
	done chan struct{}
}

// run reads until the other end is closed, or has written too much.
func (r *reading) run(from io.ReadCloser) {
	defer close(r.done)
	const block = 64 << 10 // as much as a pipe holds
	for r.err == nil && len(r.got) < cap(r.got) {
		n := 0
		n, r.err = from.Read(r.got[len(r.got):min(cap(r.got), len(r.got)+block)])
		r.got = r.got[:len(r.got)+n]
	}
	if errors.Is(r.err, io.EOF) {
		r.err = nil
	}
	r.err = errors.Join(r.err, from.Close())
}

func (s lineStream) task() trial.Task {
	r := &reading{got: make([]byte, 0, s.text.bytes(s.count)+1), done: make(chan struct{})}
	return trial.Task{
		Do: func(ctx context.Context, c *trial.Clock) error {
			to, from, err := s.connect()
			if err != nil {
				return err
			}
			go r.run(from)
			w, err := s.way.Over(to)
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
			s.report(c, w)
			return errors.Join(err, r.err)
		},
		Check: func(string) error { return s.text.verify(bytes.NewReader(r.got), s.count, 1) },
	}
}
