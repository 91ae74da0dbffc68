package files

import (
	"bytes"
	"errors"
	"math"
	"os"
	"sync"

	"github.com/natefinch/atomic"
	"golang.org/x/sync/errgroup"
	"gopkg.in/natefinch/lumberjack.v2"
)

// A writeFile writes one file whole.
type writeFile func(path string, data []byte) error

func osWrite(path string, data []byte) error { return os.WriteFile(path, data, 0o666) }

// osSync writes a new file and syncs it.
func osSync(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func atomicWrite(path string, data []byte) error {
	return atomic.WriteFile(path, bytes.NewReader(data))
}

// inTurn writes the files one after the other.
func inTurn(write writeFile) func(s *site) error {
	return func(s *site) error {
		for i, path := range s.paths {
			if err := write(path, s.content(i)); err != nil {
				return err
			}
		}
		return nil
	}
}

// pooled writes them as users of errgroup do: a goroutine a file, at most width at once.
func pooled(width int, write writeFile) func(s *site) error {
	return func(s *site) error {
		var g errgroup.Group
		g.SetLimit(width)
		for i, path := range s.paths {
			g.Go(func() error { return write(path, s.content(i)) })
		}
		return g.Wait()
	}
}

// channelled writes them with width goroutines that take them from a channel.
func channelled(width int, write writeFile) func(s *site) error {
	return func(s *site) error {
		todo := make(chan int)
		errs := make([]error, width)
		var all sync.WaitGroup
		for w := range width {
			all.Go(func() {
				for i := range todo {
					errs[w] = errors.Join(errs[w], write(s.paths[i], s.content(i)))
				}
			})
		}
		for i := range s.paths {
			todo <- i
		}
		close(todo)
		all.Wait()
		return errors.Join(errs...)
	}
}

// thenDir syncs the directory at the end.
func thenDir(write func(s *site) error) func(s *site) error {
	return func(s *site) error {
		if err := write(s); err != nil {
			return err
		}
		d, err := os.Open(s.dir)
		if err != nil {
			return err
		}
		return errors.Join(d.Sync(), d.Close())
	}
}

func openAppendClose(s *site) error {
	for line := range s.Lines {
		if err := appendOnce(s.paths[line%s.Files], s.number(line)); err != nil {
			return err
		}
	}
	return nil
}

func appendOnce(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// ourDescriptors is more than a Go process needs beside the files it works on.
const ourDescriptors = 64

// newLogger returns one that never rotates, its MaxSize being out of reach.
func newLogger(path string) *lumberjack.Logger {
	return &lumberjack.Logger{Filename: path, MaxSize: math.MaxInt32}
}

// openLoggers gives each file a Logger.
func openLoggers(s *site) (func() error, error) {
	if err := raiseDescriptors(uint64(s.Files + ourDescriptors)); err != nil {
		return nil, err
	}
	return func() error {
		loggers := make([]*lumberjack.Logger, s.Files)
		for i, path := range s.paths {
			loggers[i] = newLogger(path)
		}
		for line := range s.Lines {
			if _, err := loggers[line%s.Files].Write(s.number(line)); err != nil {
				return err
			}
		}
		var err error
		for _, l := range loggers {
			err = errors.Join(err, l.Close())
		}
		return err
	}, nil
}
