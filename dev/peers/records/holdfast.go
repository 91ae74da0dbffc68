package records

import (
	"context"
	"errors"
	"io"

	"github.com/holdfast-go/holdfast"
)

// openWriter opens ours, on the disk or on one that takes a time for each sync.
func openWriter(dir string, w work) (*holdfast.Writer, error) {
	if w.sync == 0 {
		return holdfast.Create(logPath(dir), w.parsed())
	}
	f, err := create(dir)
	if err != nil {
		return nil, err
	}
	return holdfast.New(sleepy{f, w.sync}, w.parsed())
}

func openHoldfast(dir string, w work) (*sink, error) {
	to, err := openWriter(dir, w)
	if err != nil {
		return nil, err
	}
	return &sink{writer: shared(to), close: to.Close}, nil
}

func openHoldfastLooking(dir string, w work) (*sink, error) {
	f, err := create(dir)
	if err != nil {
		return nil, err
	}
	to, err := holdfast.New(looking{sleepy{f, w.sync}}, w.parsed())
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &sink{writer: shared(to), close: to.Close}, nil
}

func openEnqueue(dir string, w work) (*sink, error) {
	to, err := openWriter(dir, w)
	if err != nil {
		return nil, err
	}
	return &sink{
		writer: func() (io.Writer, func() error) {
			e := &enqueuer{w: to}
			return e, e.wait
		},
		close: to.Close,
	}, nil
}

// enqueuer hands one goroutine's records over and waits for each window's last.
type enqueuer struct {
	w     *holdfast.Writer
	count int
	end   int64
}

func (e *enqueuer) Write(p []byte) (n int, err error) {
	if e.end, err = e.w.Enqueue(p); err != nil {
		return 0, err
	}
	if e.count++; e.count%window == 0 {
		err = e.wait()
	}
	return len(p), err
}

func (e *enqueuer) wait() error { return e.w.WaitDurable(context.Background(), e.end) }
