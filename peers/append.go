package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"sync"

	"go.uber.org/zap/zapcore"
	"gopkg.in/natefinch/lumberjack.v2"
)

const kib = 1 << 10

// appending compares how fast small records reach the page cache.
func appending() comparison {
	return comparison{
		name:  "append",
		title: "Append: 40-byte records until all are in the page cache",
		size:  40,
		loads: []load{
			{1, 2_000_000}, {2, 2_000_000}, {8, 2_000_000}, {64, 2_000_000},
		},
		closeTimed: true,
		arms: append(holdfastAppenders(),
			arm{name: "os.File", note: "one write(2) a record", open: openFile},
			arm{name: "bufio-4KiB", note: "bufio's default size" + lockedNote, open: openBufio(4 * kib)},
			arm{name: "bufio-64KiB", note: "bufio" + lockedNote, open: openBufio(64 * kib)},
			arm{name: "bufio-256KiB", note: "bufio" + lockedNote, open: openBufio(256 * kib)},
			arm{name: "zap", note: "zapcore.BufferedWriteSyncer, 256 KiB and a flush every 30 s (its defaults); it syncs in Stop, which is made to do nothing here since no arm syncs", open: openZap},
			arm{name: "lumberjack", note: "a rotating log that never has to rotate: its MaxSize is out of reach", open: openLumberjack},
			arm{name: "limit", note: "no sink at all: one goroutine makes the records where they lie and passes them on with write(2) in blocks of 256 KiB", alone: true, open: openInPlace(256 * kib)},
		),
		notes: []string{
			"In the clock: from the first record until the sink is flushed and closed. Not in it: opening. Nothing is synced.",
			"Left out: etcd's wal and pebble's LogWriter give each record a header and a checksum; theirs is other work and another file.",
		},
	}
}

const lockedNote = ", with a sync.Mutex around it when goroutines share it"

// create opens the file that an arm appends to, for every arm that does not
// insist on doing so itself.
func create(dir string) (*os.File, error) { return os.Create(logPath(dir)) }

func openFile(dir string, _ work) (*sink, error) {
	f, err := create(dir)
	if err != nil {
		return nil, err
	}
	return &sink{writer: shared(f), close: f.Close}, nil
}

func openBufio(size int) func(string, work) (*sink, error) {
	return func(dir string, w work) (*sink, error) {
		f, err := create(dir)
		if err != nil {
			return nil, err
		}
		b := bufio.NewWriterSize(f, size)
		var to io.Writer = b
		if w.goroutines > 1 {
			to = &locked{w: b}
		}
		return &sink{
			writer: shared(to),
			close:  func() error { return errors.Join(b.Flush(), f.Close()) },
		}, nil
	}
}

// locked is the mutex that people put around a bufio.Writer.
type locked struct {
	mu sync.Mutex
	w  *bufio.Writer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	n, err := l.w.Write(p)
	l.mu.Unlock() // not deferred: the cheapest that the mutex can be
	return n, err
}

func openZap(dir string, _ work) (*sink, error) {
	f, err := create(dir)
	if err != nil {
		return nil, err
	}
	// AddSync hides the file's Sync, so that Stop flushes without an fsync.
	z := &zapcore.BufferedWriteSyncer{WS: zapcore.AddSync(struct{ io.Writer }{f})}
	return &sink{
		writer: shared(z),
		close:  func() error { return errors.Join(z.Stop(), f.Close()) },
	}, nil
}

func openLumberjack(dir string, _ work) (*sink, error) {
	l := &lumberjack.Logger{Filename: logPath(dir), MaxSize: 1 << 20} // megabytes
	// Rotate opens the file now: without it the first Write would, in the clock.
	if err := l.Rotate(); err != nil {
		return nil, err
	}
	return &sink{writer: shared(l), close: l.Close}, nil
}

func openInPlace(block int) func(string, work) (*sink, error) {
	return func(dir string, w work) (*sink, error) {
		f, err := create(dir)
		if err != nil {
			return nil, err
		}
		to := &inPlace{File: f, block: make([]byte, block/w.size*w.size)}
		return &sink{writer: shared(to), close: f.Close}, nil
	}
}

// inPlace makes records in its block and writes the block when it is full.
type inPlace struct {
	*os.File
	block []byte
}

func (p *inPlace) produce(w work, goroutine int) error {
	for rest := p.block; len(rest) > 0; rest = rest[w.size:] {
		copy(rest, newRecord(w.size, goroutine))
	}
	used := 0
	for seq := range w.each {
		record(p.block[used : used+w.size]).number(seq)
		if used += w.size; used == len(p.block) {
			if _, err := p.Write(p.block); err != nil {
				return err
			}
			used = 0
		}
	}
	_, err := p.Write(p.block[:used])
	return err
}
