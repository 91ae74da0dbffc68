package manyfiles

import (
	"bufio"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/probe"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
	"github.com/holdfast-go/holdfast/files"
)

// Arms that time the steps of a file apart, and the published operation on two
// temporary files.

const (
	createTemp = "CreateTemp apart"
	openFile   = "OpenFile apart"
	poolApart  = "os.WriteFile apart, a worker a CPU"
	filesApart = "Files apart, 1 worker"
	twoByFile  = "2 files as published, os.File"
	twoByFiles = "2 files as published, Files"
	twoByBufio = "2 files as published, bufio"
)

// temps is how many files the arms make whose steps are timed apart.
const temps = 200

// opsEach is how many of the published operations a trial has. They remove their files,
// which makes later ones dearer: there are few.
const opsEach = 10

// aFile is the stage of making, writing and closing a file, where these are one.
const aFile = trial.Write

func apartArms(n int) []study.Arm {
	arm := func(name, does string, make func(context.Context, *trial.Clock, batch) error) study.Arm {
		return fileWay{does: does, make: make}.named(name, "apart", n, 1)
	}
	return []study.Arm{
		arm(createTemp, "os.CreateTemp, the write and the close of each file, apart", func(ctx context.Context, c *trial.Clock, b batch) error {
			return stepByStep(ctx, c, len(b.paths), func(int) (*os.File, error) { return os.CreateTemp(b.dir, "message-") })
		}),
		arm(openFile, "os.OpenFile, the write and the close of each file, apart", func(ctx context.Context, c *trial.Clock, b batch) error {
			return stepByStep(ctx, c, len(b.paths), func(i int) (*os.File, error) {
				return os.OpenFile(b.paths[i], os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
			})
		}),
		poolApartWay.named(poolApart, "apart", n, 1),
		arm(filesApart, "Files.WriteAll by one worker: the files' own time, and the rest", func(ctx context.Context, c *trial.Clock, b batch) error {
			begun := time.Now()
			f, err := files.New(files.Options{Workers: 1})
			if err != nil {
				return err
			}
			results, err := f.WriteAll(ctx, b.all(0, len(b.paths), files.Create))
			err = errors.Join(err, f.Close())
			all, files := time.Since(begun), time.Duration(0)
			for _, r := range results.All() {
				files += r.Elapsed
			}
			splitTime(c, all, files)
			return err
		}),
	}
}

var poolApartWay = fileWay{poolApart, "os.WriteFile by a pool: the time in it, and the pool's own", func(ctx context.Context, c *trial.Clock, b batch) error {
	var inside atomic.Int64
	data := []byte(message)
	workers := runtime.GOMAXPROCS(0)
	begun := probe.Now()
	err := inPool(ctx, len(b.paths), workers, func(i int) error {
		begun := probe.Now()
		err := os.WriteFile(b.paths[i], data, 0o666)
		inside.Add(int64(probe.Since(begun)))
		return err
	})
	splitTime(c, probe.Since(begun), time.Duration(inside.Load()/int64(workers)))
	return err
}}

func stepByStep(ctx context.Context, c *trial.Clock, n int, open func(int) (*os.File, error)) error {
	for i := 0; i < n && ctx.Err() == nil; i++ {
		f, err := open(i)
		if err != nil {
			return err
		}
		c.Lap(trial.Open)
		_, err = f.WriteString(message)
		c.Lap(trial.Write)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
		c.Lap(trial.Close)
	}
	return nil
}

// splitTime reports to the clock how much of the whole the files took, and the rest.
func splitTime(c *trial.Clock, all, files time.Duration) {
	files = min(files, all)
	c.Took(aFile, files)
	c.Took(trial.Work, all-files)
}

// publishedOps are the original's smallest operation: two temporary files are made,
// written, closed and removed; with os.File, and with the writing left to a files.Set.
func publishedOps() []study.Arm {
	arm := func(name, does string, write publishedOp) study.Arm {
		return study.Arm{
			Cell:  filesCell(name, "2 temporary files", does, 2*opsEach),
			Time:  madeTime(2*opsEach, 40*time.Microsecond),
			Bytes: 2 * opsEach * block,
			Files: 2,
			Task: func() trial.Task {
				return trial.Task{
					Keep: true,
					Make: func(path string) error { return os.Mkdir(path, 0o777) },
					Do: func(ctx context.Context, c *trial.Clock) error {
						for range opsEach {
							if err := write.once(ctx, c.Path, true); err != nil {
								return err
							}
						}
						c.Lap(trial.Work)
						return nil
					},
					// The files are gone: one more operation leaves its own to be looked at.
					Check: func(path string) error {
						if err := holdMessages(path, 0); err != nil {
							return err
						}
						return errors.Join(write.once(context.Background(), path, false), holdMessages(path, 2))
					},
				}
			},
		}
	}
	return []study.Arm{
		arm(twoByFile, "two temporary files are made, written, closed and removed", func(_ context.Context, files []*os.File) (err error) {
			for _, f := range files {
				_, failed := f.WriteString(message)
				err = errors.Join(err, failed, f.Close())
			}
			return err
		}),
		arm(twoByBufio, "the same, by a worker and a bufio.Writer of 4 KiB for each", func(ctx context.Context, files []*os.File) error {
			return inPool(ctx, len(files), len(files), func(i int) error {
				w := bufio.NewWriterSize(files[i], study.BufioDefault)
				_, err := w.WriteString(message)
				return errors.Join(err, w.Flush(), files[i].Close())
			})
		}),
		arm(twoByFiles, "the same, written by a WriteAll of both", func(ctx context.Context, open []*os.File) (err error) {
			b := batch{}
			for _, f := range open {
				b.paths = append(b.paths, f.Name())
				err = errors.Join(err, f.Close())
			}
			f, failed := files.New(files.Options{})
			if failed != nil {
				return errors.Join(err, failed)
			}
			_, failed = f.WriteAll(ctx, b.all(0, len(b.paths), files.Append))
			return errors.Join(err, failed, f.Close())
		}),
	}
}

// A publishedOp writes the message to files that are open, and closes them.
type publishedOp func(ctx context.Context, files []*os.File) error

func (write publishedOp) once(ctx context.Context, dir string, remove bool) error {
	var files []*os.File
	for i := range 2 {
		f, err := os.CreateTemp(dir, "message-"+strconv.Itoa(i)+"-")
		if err != nil {
			return err
		}
		files = append(files, f)
	}
	err := write(ctx, files)
	for _, f := range files {
		if remove {
			err = errors.Join(err, os.Remove(filepath.Clean(f.Name())))
		}
	}
	return err
}
