package manyfiles

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
	"github.com/holdfast-go/holdfast/files"
)

// Arms that append lines to many files in turn, with more files than handles and
// with fewer.

// appendLine is the length of a line.
const appendLine = 100

const openEach = "lines, open, append and close each"

// An appendLoad appends lines to each of the files in turn.
type appendLoad struct{ files, lines int }

func (l appendLoad) all() int { return l.files * l.lines }

func (l appendLoad) arms() []study.Arm {
	arm := func(name, does string, each time.Duration, do func(context.Context, *trial.Clock, []string) error) study.Arm {
		cell := filesCell(name, "lines", does, l.all())
		cell.RecordBytes = appendLine
		return study.Arm{
			Cell: cell, Time: madeTime(l.files, 0) + time.Duration(l.all())*each, Bytes: int64(l.files) * block, Files: int64(l.files),
			Task: func() trial.Task {
				paths := make([]string, l.files)
				return trial.Task{
					Keep: true,
					Make: func(path string) error {
						for i := range paths {
							paths[i] = filepath.Join(path, strconv.Itoa(i))
						}
						return os.Mkdir(path, 0o777)
					},
					Do:    func(ctx context.Context, c *trial.Clock) error { return do(ctx, c, paths) },
					Check: l.check,
				}
			},
		}
	}
	arms := []study.Arm{arm(openEach, "os.OpenFile with O_APPEND, a write and a close for each line", 12*time.Microsecond, func(ctx context.Context, c *trial.Clock, paths []string) error {
		defer c.Lap(trial.Write)
		return l.inTurn(ctx, paths, func(path string, line []byte) error {
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
			if err != nil {
				return err
			}
			_, err = f.Write(line)
			return errors.Join(err, f.Close())
		})
	})}
	// The lines of a file fit into the buffer of the second policy.
	for _, p := range []holdfast.Policy{holdfast.Unbuffered(), holdfast.Buffered(4 * holdfast.KiB)} {
		for _, handles := range []int{16, 500} { // few files fit into the first, and all into the second
			o := files.Options{Policy: p, Handles: handles}
			arms = append(arms, arm(fmt.Sprintf("lines, Files, %d handles, buffer=%v", handles, p.Buffer), "Files.Append of each line", 8*time.Microsecond,
				func(ctx context.Context, c *trial.Clock, paths []string) error {
					f, err := files.New(o)
					if err != nil {
						return err
					}
					c.Lap(trial.Open)
					err = l.inTurn(ctx, paths, func(path string, line []byte) error { return f.Append(ctx, path, line) })
					c.Lap(trial.Write)
					err = errors.Join(err, f.Close())
					c.Lap(trial.Close)
					s := f.Stats()
					c.Tell(handleHits, float64(s.Hits))
					c.Tell(handleMisses, float64(s.Misses))
					c.Tell(handleClosed, float64(s.Evictions))
					return err
				}))
		}
	}
	return arms
}

// line is the nth of a file: no two are the same.
func (l appendLoad) line(to []byte, file, n int) []byte {
	return fmt.Appendf(to[:0], "%*d of %*d\n", appendLine/2, n, appendLine-appendLine/2-5, file)
}

// inTurn gives each file its first line, then each its second. The lines are made in
// the clock of all arms alike.
func (l appendLoad) inTurn(ctx context.Context, paths []string, write func(path string, line []byte) error) error {
	line := make([]byte, 0, appendLine)
	for n := range l.lines {
		for file, path := range paths {
			if err := errors.Join(ctx.Err(), write(path, l.line(line, file, n))); err != nil {
				return err
			}
		}
	}
	return nil
}

// The names of a files.Set's figures about its handles.
const (
	handleHits   = "handle_hits"
	handleMisses = "handle_misses"
	handleClosed = "handle_evictions"
)

// check reads every file: its own lines, in their order, and nothing else.
func (l appendLoad) check(dir string) error {
	line, want := make([]byte, 0, appendLine), make([]byte, 0, l.lines*appendLine)
	for file := range l.files {
		got, err := os.ReadFile(filepath.Join(dir, strconv.Itoa(file)))
		if err != nil {
			return err
		}
		want = want[:0]
		for n := range l.lines {
			want = append(want, l.line(line, file, n)...)
		}
		if string(got) != string(want) {
			return &trial.ContentError{Reason: fmt.Sprintf("file %d is not its %d lines", file, l.lines)}
		}
	}
	return nil
}
