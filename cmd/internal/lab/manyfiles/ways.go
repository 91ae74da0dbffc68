package manyfiles

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
	"github.com/holdfast-go/holdfast/files"
)

// A batch is the files that one operation makes, in a new directory of their own.
type batch struct {
	dir   string
	paths []string
}

// newBatch makes the directory and the paths of n files in it.
func newBatch(dir string, n int) (batch, error) {
	b := batch{dir: dir}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return b, err
	}
	for i := range n {
		b.paths = append(b.paths, filepath.Join(dir, strconv.Itoa(i)))
	}
	return b, nil
}

// all are the writes of the files from one to another.
func (b batch) all(from, to int, mode files.Mode) iter.Seq[files.Write] {
	data := []byte(message)
	return func(yield func(files.Write) bool) {
		for i := from; i < to; i++ {
			if !yield(files.Write{Path: b.paths[i], Data: data, Mode: mode}) {
				return
			}
		}
	}
}

// A fileWay is one way to make the files of a batch. It reports all its work to the clock.
type fileWay struct {
	name string
	does string
	make func(ctx context.Context, c *trial.Clock, b batch) error
}

// A workerRule says how many workers a batch has, and how that is named.
type workerRule struct {
	text string
	of   func(files int) int
}

var (
	oneWorker = workerRule{"1 worker", func(int) int { return 1 }}
	perCPU    = workerRule{"a worker a CPU", func(int) int { return runtime.GOMAXPROCS(0) }}
	sixtyFour = workerRule{"64 workers", func(int) int { return 64 }}
	perFile   = workerRule{"a worker a file", func(files int) int { return files }}
)

// The ways' names, behind the number of files.
const (
	byFiles        = "Files"
	withoutRetries = "Files, no retries"
	inBatches      = "Files, batches of 500"
	oneByOne       = "os.WriteFile, one by one"
)

func byPool(w workerRule) string { return "os.WriteFile, " + w.text }

// batchFiles is how many files a batch has where they are written in batches.
const batchFiles = 500

var loopWay = fileWay{oneByOne, "os.WriteFile in a loop", func(ctx context.Context, c *trial.Clock, b batch) error {
	var err error
	data := []byte(message)
	for i := 0; i < len(b.paths) && err == nil && ctx.Err() == nil; i++ {
		err = os.WriteFile(b.paths[i], data, 0o666)
	}
	c.Lap(trial.Write)
	return err
}}

func poolWay(w workerRule) fileWay {
	return fileWay{byPool(w), "os.WriteFile by a pool: " + w.text, func(ctx context.Context, c *trial.Clock, b batch) error {
		data := []byte(message)
		err := inPool(ctx, len(b.paths), w.of(len(b.paths)), func(i int) error { return os.WriteFile(b.paths[i], data, 0o666) })
		c.Lap(trial.Write)
		return err
	}}
}

// inPool does work n times, by a pool of workers.
func inPool(ctx context.Context, n, workers int, work func(i int) error) error {
	var next atomic.Int64
	var pool sync.WaitGroup
	errs := make([]error, workers)
	for worker := range errs {
		pool.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && errs[worker] == nil && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				errs[worker] = work(i)
			}
		})
	}
	pool.Wait()
	return errors.Join(errs...)
}

func filesWay() fileWay {
	return fileWay{byFiles, "Files.WriteAll with paths", writeAll{}.make}
}

func workersWay(w workerRule) fileWay {
	return fileWay{"Files, " + w.text, "Files.WriteAll: " + w.text, writeAll{workers: w.of}.make}
}

// retriesOffWay differs from [filesWay] in nothing else.
func retriesOffWay() fileWay {
	return fileWay{withoutRetries, "Files.WriteAll with paths, Attempts 1", writeAll{options: files.Options{Retry: files.Retry{Attempts: 1}}}.make}
}

// A writeAll is a way that a files.Set goes about a batch.
type writeAll struct {
	options files.Options
	mode    files.Mode
	workers func(files int) int // nil: as Files decides
	each    int                 // files of a WriteAll; 0 is all
	outcome holdfast.Outcome    // that every file is to have; untouched asks for none
}

// make has the Set open and close its own, as a program that writes one batch would.
func (w writeAll) make(ctx context.Context, c *trial.Clock, b batch) error {
	o := w.options
	if w.workers != nil {
		o.Workers = w.workers(len(b.paths))
	}
	f, err := files.New(o)
	if err != nil {
		return err
	}
	c.Lap(trial.Open)
	all, err := w.write(ctx, f, b)
	c.Lap(trial.Write)
	err = errors.Join(err, f.Close())
	c.Lap(trial.Close)
	return errors.Join(err, w.check(all))
}

func (w writeAll) write(ctx context.Context, f *files.Set, b batch) (all []*files.Results, err error) {
	each := w.each
	if each == 0 {
		each = len(b.paths)
	}
	for from := 0; from < len(b.paths) && err == nil; from += each {
		var r *files.Results
		r, err = f.WriteAll(ctx, b.all(from, min(from+each, len(b.paths)), w.mode))
		all = append(all, r)
	}
	return all, err
}

// check compares the results with the expected files.
func (w writeAll) check(all []*files.Results) error {
	if w.outcome == holdfast.OutcomeUntouched {
		return nil
	}
	for _, results := range all {
		for _, r := range results.All() {
			if r.Outcome != w.outcome {
				return &trial.ContentError{Reason: fmt.Sprintf("%s is %v, and not %v", filepath.Base(r.Path), r.Outcome, w.outcome)}
			}
		}
	}
	return nil
}

// named makes n files in each pass, and each pass in a directory of its own.
func (w fileWay) named(name, group string, n, passes int) study.Arm {
	return study.Arm{
		Cell:  filesCell(name, group, w.does, n*passes),
		Time:  madeTime(n*passes, 35*time.Microsecond),
		Bytes: int64(n*passes) * block,
		Files: int64(n * passes),
		Task:  func() trial.Task { return w.task(n, passes) },
	}
}

func (w fileWay) task(n, passes int) trial.Task {
	batches := make([]batch, passes)
	dir := func(path string, pass int) string { return filepath.Join(path, strconv.Itoa(pass)) }
	return trial.Task{
		Keep: true,
		Make: func(path string) (err error) {
			for pass := 0; pass < passes && err == nil; pass++ {
				batches[pass], err = newBatch(dir(path, pass), n)
			}
			return err
		},
		Do: func(ctx context.Context, c *trial.Clock) error {
			for _, b := range batches {
				if err := w.make(ctx, c, b); err != nil {
					return err
				}
			}
			return nil
		},
		Check: func(path string) (err error) {
			for pass := 0; pass < passes && err == nil; pass++ {
				err = holdMessages(dir(path, pass), n)
			}
			return err
		},
	}
}

// holdMessages checks that the directory has n files and nothing else, each of them
// with the message.
func holdMessages(dir string, n int) error { return holdTexts(dir, n, message) }

// holdTexts is holdMessages of any text.
func holdTexts(dir string, n int, want string) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if len(files) != n {
		return &trial.ContentError{Reason: fmt.Sprintf("stand %d files, and %d were written", len(files), n)}
	}
	for _, f := range files {
		got, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return err
		}
		if string(got) != want {
			return &trial.ContentError{Reason: fmt.Sprintf("file %s holds %q", f.Name(), got)}
		}
	}
	return nil
}
