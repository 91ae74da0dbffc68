package manyfiles

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// Arms that do what was in the published clock from 100 files on. The message goes to
// files that are open before it starts, and are closed after it has stopped.

const (
	openByFile  = "open before, os.File, a worker a CPU"
	openByFiles = "open before, Files.Append, a worker a CPU"
	openByBufio = "open before, a bufio.Writer for each, a worker a CPU"
)

// An openWay opens the files of a batch and writes one message to each; in the clock
// it writes one more.
type openWay struct {
	name, does string
	open       func(b batch) (openBatch, error)
	cpus       int // GOMAXPROCS meanwhile; 0 is as it is
}

// openOn is the name of the way that writes by os.File on the given number of CPUs.
func openOn(cpus int) string { return fmt.Sprintf("open before, os.File, GOMAXPROCS=%d", cpus) }

// fewerCPUs are the ways that write by os.File on one of the processors, and on a part of them.
func fewerCPUs() (ways []openWay) {
	for cpus := 1; cpus == 1 || cpus < runtime.GOMAXPROCS(0); cpus *= 2 {
		ways = append(ways, openWay{openOn(cpus), fmt.Sprintf("os.File.Write to open files by a pool on %d of the CPUs", cpus), byFileWay.open, cpus})
	}
	return ways
}

// An openBatch is files that are open. Close is called once.
type openBatch interface {
	write(i int) error
	Close() error
}

var (
	byFileWay  = openWay{name: openByFile, does: "os.File.Write to open files by a pool", open: func(b batch) (openBatch, error) { return openFiles(b, false) }}
	byBufioWay = openWay{name: openByBufio, does: "a new bufio.Writer of 4 KiB on an open file for each write, by a pool", open: func(b batch) (openBatch, error) { return openFiles(b, true) }}
	appendWay  = openWay{name: openByFiles, does: "Files.Append to files whose handles are open, by a pool", open: func(b batch) (openBatch, error) {
		f, err := files.New(files.Options{Handles: len(b.paths) + besides})
		if err != nil {
			return nil, err
		}
		all := appendedFiles{f, b.paths, []byte(message)}
		for i := 0; i < len(b.paths) && err == nil; i++ {
			err = all.write(i)
		}
		return all, err
	}}
)

func openFiles(b batch, buffered bool) (openBatch, error) {
	all := osFiles{data: []byte(message), buffered: buffered}
	for i, path := range b.paths {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if err != nil {
			return all, err
		}
		all.files = append(all.files, f)
		if err := all.write(i); err != nil {
			return all, err
		}
	}
	return all, nil
}

type osFiles struct {
	files    []*os.File
	data     []byte
	buffered bool // by a new bufio.Writer, as the original does
}

func (a osFiles) write(i int) error {
	if !a.buffered {
		_, err := a.files[i].Write(a.data)
		return err
	}
	w := bufio.NewWriterSize(a.files[i], study.BufioDefault)
	_, err := w.Write(a.data)
	return errors.Join(err, w.Flush())
}

func (a osFiles) Close() (err error) {
	for _, f := range a.files {
		err = errors.Join(err, f.Close())
	}
	return err
}

type appendedFiles struct {
	*files.Set
	paths []string
	data  []byte
}

// besides is the number of descriptors that must fit beside the files' own. They are the
// directory's, and the others that a files.Set and the program have open.
const besides = 16

// noDescriptors says why n files can't be open at once, or is empty.
func noDescriptors(n int) string {
	if limit, ok := sys.DescriptorLimit(); ok && n+2*besides > limit {
		return fmt.Sprintf("%d files can't be open at once: this process may open %d (ulimit -n)", n, limit)
	}
	return ""
}

func (a appendedFiles) write(i int) error {
	return a.Append(context.Background(), a.paths[i], a.data)
}

func (w openWay) arm(n, passes int) study.Arm {
	return study.Arm{
		Cell:  filesCell(filesArm(n, w.name), fmt.Sprintf("%d open files", n), w.does, n*passes),
		Time:  madeTime(n*passes, 35*time.Microsecond),
		Bytes: int64(n*passes) * block,
		Files: int64(n * passes),
		Task:  func() trial.Task { return w.task(n, passes) },

		Missing: noDescriptors(n),
	}
}

func (w openWay) task(n, passes int) trial.Task {
	task := fileWay{
		// The memory of the writing alone is counted, as by a Go benchmark that stops its timer.
		make: func(ctx context.Context, c *trial.Clock, b batch) (err error) {
			files, err := w.open(b)
			if files != nil {
				defer func() { err = errors.Join(err, files.Close()) }()
			}
			if err != nil {
				return err
			}
			var before, after runtime.MemStats
			if w.cpus > 0 {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(w.cpus))
			}
			runtime.ReadMemStats(&before)
			c.Start()
			err = inPool(ctx, len(b.paths), runtime.GOMAXPROCS(0), files.write)
			c.Lap(trial.Write)
			runtime.ReadMemStats(&after)
			c.Tell(study.AllocsPerOp, float64(after.Mallocs-before.Mallocs))
			c.Tell(study.BytesPerOp, float64(after.TotalAlloc-before.TotalAlloc))
			return err
		}}.task(n, passes)
	task.Check = func(path string) (err error) {
		for pass := 0; pass < passes && err == nil; pass++ {
			err = holdTexts(filepath.Join(path, strconv.Itoa(pass)), n, message+message)
		}
		return err
	}
	return task
}
