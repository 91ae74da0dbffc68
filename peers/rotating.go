package main

import (
	"iter"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/DeRuina/timberjack"
	"gopkg.in/natefinch/lumberjack.v2"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/rotate"
)

// rotating compares how fast logs take records that rotate by size: in ./rotate the same are
// compared by what they lose.
func rotating() comparison {
	const size = 8 * holdfast.MiB
	ours := func(p holdfast.Policy) func(string, work) (*sink, error) {
		return func(dir string, _ work) (*sink, error) {
			f, err := rotate.Open(logPath(dir), rotate.Options{Policy: p, MaxSize: size})
			if err != nil {
				return nil, err
			}
			return &sink{writer: shared(f), close: f.Close}, nil
		}
	}
	return comparison{
		name:       "rotate",
		title:      "Logs that rotate at 8 MiB: 128-byte records until all are in the page cache",
		size:       128,
		loads:      []load{{1, 500_000}, {8, 500_000}, {64, 500_000}},
		closeTimed: true,
		arms: []arm{
			{name: baseline, note: "package rotate, " + holdfast.Unbuffered().String(), open: ours(holdfast.Unbuffered()), read: rotatedRecords},
			{name: again, note: "the same arm once more: its ratio is the noise floor", open: ours(holdfast.Unbuffered()), read: rotatedRecords},
			{name: "holdfast-1s", note: "package rotate, " + holdfast.Periodic(time.Second).String() + ": a stronger promise than those of the others", open: ours(holdfast.Periodic(time.Second)), read: rotatedRecords},
			{name: "lumberjack", open: func(dir string, _ work) (*sink, error) {
				l := &lumberjack.Logger{Filename: logPath(dir), MaxSize: int(size / holdfast.MiB)}
				return &sink{writer: shared(l), close: l.Close}, nil
			}, read: rotatedRecords},
			{name: "timberjack", open: func(dir string, _ work) (*sink, error) {
				l := &timberjack.Logger{Filename: logPath(dir), MaxSize: int(size / holdfast.MiB)}
				return &sink{writer: shared(l), close: l.Close}, nil
			}, read: rotatedRecords},
		},
		notes: []string{"In the clock: from the first record until the log is flushed and closed, the rotations included. rotate syncs the directory at each."},
	}
}

// rotatedRecords yields the records of the backups, which sort by their times, and of the log.
func rotatedRecords(dir string, w work) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		paths, err := filepath.Glob(logPath(dir) + "-*")
		slices.Sort(paths)
		for _, path := range append(paths, logPath(dir)) {
			var f *os.File
			if err == nil {
				f, err = os.Open(path)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			more := true
			split(f, w.size, func(p []byte, err error) bool {
				more = yield(p, err)
				return more
			})
			f.Close()
			if !more {
				return
			}
		}
	}
}
