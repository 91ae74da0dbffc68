package slopes

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/dev/peers/internal/command"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/wal"
)

var families = []family{
	{"records", "record", []int{1e4, 1e5, 1e6, 1e7}, []int{1e8}, records},
	{"goroutines", "record", []int{1, 4, 16, 64, 256, 1024, 4096}, nil, goroutines},
	{"goroutines that wait", "record", []int{1, 4, 16, 64, 256, 1024, 4096}, nil, waiting},
	{"Writers", "Writer, of CPU", []int{1, 10, 100, 1000, 5000}, nil, writers},
	{"paths", "path", []int{1e2, 1e3, 1e4, 1e5}, []int{1e6}, paths},
	{"files in a batch", "file", []int{1, 10, 1e2, 1e3, 1e4, 1e5}, []int{1e6}, batch},
	{"records of a log, appended", "record", []int{1e5, 1e6, 1e7}, []int{1e8}, logAppend},
	{"records of a log, opened", "record", []int{1e5, 1e6, 1e7}, []int{1e8}, logOpen},
	{"records of a log, read at random", "read", []int{1e5, 1e6, 1e7}, []int{1e8}, logRead},
	{"trials of a result", "trial", []int{1e2, 1e3, 1e4}, []int{1e5, 1e6}, results},
}

var record = bytes.Repeat([]byte("r"), 40)

// written times the Writes of records by goroutines to one Writer, its close included.
func written(dir string, p holdfast.Policy, goroutines, each int) (c cost, err error) {
	w, err := holdfast.Create(filepath.Join(dir, "log"), p)
	if err != nil {
		return c, err
	}
	start := time.Now()
	var all sync.WaitGroup
	failed := make(chan error, goroutines)
	for range goroutines {
		all.Go(func() {
			for range each {
				if _, err := w.Write(record); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	all.Wait()
	err = w.Close()
	c = cost{time: time.Since(start), units: goroutines * each}
	if len(failed) > 0 {
		err = errors.Join(err, <-failed)
	}
	if w.Written() != int64(c.units*len(record)) {
		err = errors.Join(err, fmt.Errorf("%d bytes are written", w.Written()))
	}
	return c, err
}

func records(dir string, n int) (cost, error) {
	return written(dir, holdfast.Buffered(256*holdfast.KiB), 1, n)
}

func goroutines(dir string, n int) (cost, error) {
	return written(dir, holdfast.Buffered(256*holdfast.KiB), n, 2_000_000/n)
}

func waiting(dir string, n int) (cost, error) {
	return written(dir, holdfast.Durable(), n, max(5, 400/n))
}

// writers makes Writers of a file each, gives each a record, and waits until all are durable by their clocks.
func writers(dir string, n int) (c cost, err error) {
	all := make([]*holdfast.Writer, n)
	for i := range all {
		w, err := holdfast.Create(filepath.Join(dir, fmt.Sprint(i)), holdfast.Policy{Buffer: 64 * holdfast.KiB, FlushEvery: 10 * time.Millisecond, Sync: holdfast.Sync{Mode: holdfast.SyncPeriodic, Every: 100 * time.Millisecond}})
		if err != nil {
			return c, err
		}
		all[i] = w
	}
	cpu := command.CPUTime()
	for _, w := range all {
		if _, err := w.Write(record); err != nil {
			return c, err
		}
	}
	for _, w := range all {
		for w.Durable() < int64(len(record)) {
			time.Sleep(10 * time.Millisecond)
		}
	}
	c = cost{time: command.CPUTime() - cpu, units: n, memory: held()}
	for _, w := range all {
		err = errors.Join(err, w.Close())
	}
	return c, err
}

// held is the heap after a garbage collection.
func held() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// names returns the paths of n files, a thousand in a directory.
func names(dir string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = filepath.Join(dir, fmt.Sprint(i/1000), fmt.Sprint(i))
	}
	return all
}

func paths(dir string, n int) (c cost, err error) {
	all := names(dir, n)
	start := time.Now()
	set, err := files.New(files.Options{Policy: holdfast.Buffered(4 * holdfast.KiB), MkdirAll: true})
	if err != nil {
		return c, err
	}
	for range 2 {
		for _, path := range all {
			if err := set.Append(context.Background(), path, record); err != nil {
				return c, errors.Join(err, set.Close())
			}
		}
	}
	memory := held()
	err = set.Close()
	return cost{time: time.Since(start), units: n, memory: memory}, err
}

func batch(dir string, n int) (c cost, err error) {
	all := names(dir, n)
	start := time.Now()
	set, err := files.New(files.Options{MkdirAll: true})
	if err != nil {
		return c, err
	}
	_, err = set.WriteEach(context.Background(), all, record, files.Create)
	return cost{time: time.Since(start), units: n}, errors.Join(err, set.Close())
}

// logOf makes a log of n records of 128 bytes.
func logOf(dir string, n int) (took time.Duration, err error) {
	l, _, err := wal.Open(dir, wal.Options{Policy: holdfast.Buffered(256 * holdfast.KiB)})
	if err != nil {
		return 0, err
	}
	p := bytes.Repeat([]byte("r"), 128)
	start := time.Now()
	for range n {
		if _, err := l.Append(p); err != nil {
			return 0, errors.Join(err, l.Close())
		}
	}
	err = l.Close()
	return time.Since(start), err
}

func logAppend(dir string, n int) (cost, error) {
	took, err := logOf(dir, n)
	return cost{time: took, units: n}, err
}

func logOpen(dir string, n int) (c cost, err error) {
	if _, err := logOf(dir, n); err != nil {
		return c, err
	}
	before, start := held(), time.Now()
	l, found, err := wal.Open(dir, wal.Options{Policy: holdfast.Buffered(256 * holdfast.KiB)})
	if err != nil {
		return c, err
	}
	c = cost{time: time.Since(start), units: n}
	c.memory = max(held(), before) - before
	if l.Last() != uint64(n) {
		err = fmt.Errorf("the log ends at %d: %+v", l.Last(), found)
	}
	return c, errors.Join(err, l.Close())
}

func logRead(dir string, n int) (c cost, err error) {
	if _, err := logOf(dir, n); err != nil {
		return c, err
	}
	l, _, err := wal.Open(dir, wal.Options{Policy: holdfast.Buffered(256 * holdfast.KiB)})
	if err != nil {
		return c, err
	}
	const reads = 20_000
	draw, start := rand.New(rand.NewPCG(1, 2)), time.Now()
	for range reads {
		if _, err := l.Read(1 + draw.Uint64N(uint64(n))); err != nil {
			return c, errors.Join(err, l.Close())
		}
	}
	return cost{time: time.Since(start), units: reads}, l.Close()
}

// measured is a recorded run, from this module's directory.
const measured = "../../docs/measured/policy.jsonl.gz"

// results reads a result that has the trials of a recorded run again and again, each time in later rounds.
func results(_ string, n int) (c cost, err error) {
	text, err := longResult(n)
	if err != nil {
		return c, err
	}
	start := time.Now()
	run, err := result.ReadMost(bytes.NewReader(text), n)
	if err != nil {
		return c, err
	}
	run.Indexed()
	c = cost{time: time.Since(start), units: n, memory: held()}
	if len(run.Trials) != n {
		err = fmt.Errorf("%d trials are read", len(run.Trials))
	}
	return c, err
}

func longResult(n int) (text []byte, err error) {
	f, err := os.Open(measured)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	var trials []map[string]any
	lines := bufio.NewReader(unzipped)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		var one map[string]any
		if err := json.Unmarshal(line, &one); err != nil {
			return nil, err
		}
		switch one["kind"] {
		case "header":
			out.Write(line)
		case "trial":
			trials = append(trials, one)
		}
	}
	const rounds = 1000 // more than the run has
	for i := range n {
		one := trials[i%len(trials)]
		if i >= len(trials) {
			one["round"] = one["round"].(float64) + rounds
		}
		line, err := json.Marshal(one)
		if err != nil {
			return nil, err
		}
		out.Write(append(line, '\n'))
	}
	return out.Bytes(), nil
}
