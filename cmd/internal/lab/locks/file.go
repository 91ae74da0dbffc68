package locks

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

// linesArm writes lines to a file, each with a call of its own or through bufio.
func linesArm(name string, lines int64, buffered bool) study.Arm {
	cell := result.Cell{Name: name, Group: "file", Does: "one write(2) a line", Writers: 1, Records: lines, RecordBytes: int64(len(fileLine(0)))}
	each := 1500 * time.Nanosecond
	if buffered {
		cell.Does, each = "lines through bufio.Writer of 4 KiB", 100*time.Nanosecond
	}
	return study.Arm{Cell: cell, Time: stepsTime(lines, each), Bytes: lines * cell.RecordBytes, Task: func() trial.Task { return linesTask(lines, buffered) }}
}

// fileLine is as long as the published ones are, and has one length for all i.
func fileLine(i int64) []byte {
	return fmt.Appendf(nil, "Line %08d: This is the write data\n", i%100_000_000)
}

func linesTask(lines int64, buffered bool) trial.Task {
	var text []byte
	return trial.Task{
		Writes: lines * int64(len(fileLine(0))),
		Make: func(string) error {
			for i := range lines {
				text = append(text, fileLine(i)...)
			}
			return nil
		},
		Do: func(_ context.Context, c *trial.Clock) error {
			f, err := study.CreateNew(c.Path, 0)
			if err != nil {
				return err
			}
			c.Start()
			err = writeLines(f, text, buffered, c)
			return errors.Join(err, f.Close())
		},
		Check: func(path string) error {
			got, err := os.ReadFile(path)
			if err == nil && !bytes.Equal(got, text) {
				err = &trial.ContentError{Reason: fmt.Sprintf("begin %d bytes that are not the %d of the lines", len(got), len(text))}
			}
			return err
		},
	}
}

func writeLines(f io.Writer, text []byte, buffered bool, c *trial.Clock) error {
	flush := func() error { return nil }
	if buffered {
		w := bufio.NewWriter(f)
		f, flush = w, w.Flush
	}
	size := len(fileLine(0))
	for at := 0; at < len(text); at += size {
		if _, err := f.Write(text[at : at+size]); err != nil {
			return err
		}
	}
	c.Lap(trial.Write)
	err := flush()
	c.Lap(trial.Flush)
	return err
}
