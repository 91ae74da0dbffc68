package copying

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/lab/copysource"
	"github.com/holdfast-go/holdfast/cmd/internal/lab/cstdio"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

// Exercise 13-3 asks what fflush(fp); fsync(fileno(fp)); does. Its arms write a stream in elements;
// at every nth element they do both, one, or nothing.
const (
	stdioElement = 100 // bytes: no buffer holds a whole number of them
	stdioPoint   = 150 * stdioElement
	stdioPoints  = 20
)

// behindBytes counts the written bytes that are not in the file at the last point.
// It is in the process's memory, and lost with it.
const behindBytes = "behind_bytes"

// A pointed stream can be flushed into the kernel, and its file be synced.
type pointed interface {
	Write(n int64) (int64, error)
	Flush() error
	Close() error
	syncFile() error
}

// A pointWay is the action at each point.
type pointWay struct {
	name  string
	flush bool
	sync  bool
}

func pointWays() []pointWay {
	return []pointWay{
		{"nothing", false, false}, {"fflush", true, false}, {"fsync alone", false, true}, {"fflush and fsync", true, true},
	}
}

// The streams: C's, and ours, which is there too where there is no C.
const (
	inStdio  = "stdio"
	inWriter = "Writer"
)

func pointArm(stream string, w pointWay) string { return stream + ", " + w.name }

func (w pointWay) arm(stream, missing string, open func(path string) (pointed, error)) study.Arm {
	const size = stdioPoint * stdioPoints
	a := study.Arm{
		Cell: result.Cell{
			Name: pointArm(stream, w), Group: "stream", Records: stdioPoints, RecordBytes: stdioPoint, Writers: 1,
			Does: fmt.Sprintf("a stream of %d bytes a call, and every %d %s", stdioElement, stdioPoint, w.name),
		},
		Missing: missing, Time: copysource.Start, Bytes: size,
		Task: func() trial.Task {
			return trial.Task{Do: w.work(open),
				// The file must be the first bytes of the pattern.
				Check: func(path string) error {
					want := make([]byte, size)
					cstdio.Fill(want, 0)
					got, err := os.ReadFile(path)
					if err == nil && !bytes.Equal(got, want) {
						err = &trial.ContentError{Reason: fmt.Sprintf("the file is not the %d bytes of the pattern", size)}
					}
					return err
				}}
		},
	}
	if w.sync {
		a.Time += stdioPoints * 4 * nominalSync
	}
	return a
}

func (w pointWay) work(open func(path string) (pointed, error)) func(context.Context, *trial.Clock) error {
	return func(_ context.Context, c *trial.Clock) error {
		c.Start()
		s, err := open(c.Path)
		c.Lap(trial.Open)
		if err != nil {
			return err
		}
		for range stdioPoints {
			if err == nil {
				err = w.point(s, c)
			}
		}
		if err == nil {
			var info os.FileInfo
			if info, err = os.Stat(c.Path); err == nil {
				c.Tell(behindBytes, float64(stdioPoint*stdioPoints-info.Size()))
			}
		}
		c.Start()
		err = errors.Join(err, s.Close())
		c.Lap(trial.Close)
		return err
	}
}

func (w pointWay) point(s pointed, c *trial.Clock) error {
	_, err := s.Write(stdioPoint)
	c.Lap(trial.Write)
	if w.flush && err == nil {
		err = s.Flush()
		c.Lap(trial.Flush)
	}
	if w.sync && err == nil {
		err = s.syncFile()
		c.Lap(trial.Sync)
	}
	return err
}

type cStream struct{ *cstdio.Stream }

func (s cStream) syncFile() error { return s.Sync() }

type ourStream struct {
	*holdfast.Writer
	f       *os.File
	pattern []byte
	at      int64
}

func (s *ourStream) Write(n int64) (written int64, err error) {
	for written < n && err == nil {
		at := s.at % cstdio.Period
		_, err = s.Writer.Write(s.pattern[at : at+stdioElement])
		s.at, written = s.at+stdioElement, written+stdioElement
	}
	return written, err
}

func (s *ourStream) syncFile() error { return s.f.Sync() }
