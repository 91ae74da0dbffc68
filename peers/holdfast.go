package main

import (
	"context"
	"io"

	"github.com/holdfast-go/holdfast"
)

// baseline is the arm that the others are compared with, again the same code
// under a second name: what they differ by is noise.
const (
	baseline = "holdfast"
	again    = "holdfast-again"
)

func holdfastAppenders() []arm {
	const againNote = "the same arm once more: its ratio is the noise floor"
	large := holdfast.Buffered(256 * holdfast.KiB)
	return []arm{
		{name: baseline, note: large.String(), open: openHoldfast(large)},
		{name: again, note: againNote, open: openHoldfast(large)},
		{name: "holdfast-lane", note: large.String() + ", a Lane for each goroutine", open: openLanes(large)},
		{name: "holdfast-64KiB", note: holdfast.Buffered(64 * holdfast.KiB).String(), open: openHoldfast(holdfast.Buffered(64 * holdfast.KiB))},
		{name: "holdfast-4KiB", note: holdfast.Buffered(4 * holdfast.KiB).String(), open: openHoldfast(holdfast.Buffered(4 * holdfast.KiB))},
	}
}

func holdfastDurables() []arm {
	p := holdfast.Durable()
	return []arm{
		{name: baseline, note: p.String() + "; the sync of the directory is in its clock, where the policy puts it", open: openHoldfast(p)},
		{name: again, note: "the same arm once more: its ratio is the noise floor", open: openHoldfast(p)},
	}
}

func holdfastWindows() []arm {
	p := holdfast.Durable()
	large := holdfast.Policy{Buffer: holdfast.MiB, Sync: holdfast.Sync{Mode: holdfast.SyncGroup}}
	return []arm{
		{name: baseline, note: p.String() + ", Enqueue for each record and WaitDurable for each window", open: openEnqueue(p)},
		{name: again, note: "the same arm once more: its ratio is the noise floor", open: openEnqueue(p)},
		{name: "holdfast-1MiB", note: large.String() + ", room for the windows of 64 goroutines, which the peers keep in memory without a limit", open: openEnqueue(large)},
	}
}

func openHoldfast(p holdfast.Policy) func(string, work) (*sink, error) {
	return func(dir string, _ work) (*sink, error) {
		w, err := holdfast.Create(logPath(dir), p)
		if err != nil {
			return nil, err
		}
		return &sink{writer: shared(w), close: w.Close}, nil
	}
}

func openLanes(p holdfast.Policy) func(string, work) (*sink, error) {
	return func(dir string, _ work) (*sink, error) {
		w, err := holdfast.Create(logPath(dir), p)
		if err != nil {
			return nil, err
		}
		return &sink{
			writer: func() (io.Writer, func() error) {
				l := w.Lane()
				return l, l.Close
			},
			close: w.Close,
		}, nil
	}
}

func openEnqueue(p holdfast.Policy) func(string, work) (*sink, error) {
	return func(dir string, _ work) (*sink, error) {
		w, err := holdfast.Create(logPath(dir), p)
		if err != nil {
			return nil, err
		}
		return &sink{
			writer: func() (io.Writer, func() error) {
				e := &enqueuer{w: w}
				return e, e.wait
			},
			close: w.Close,
		}, nil
	}
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
