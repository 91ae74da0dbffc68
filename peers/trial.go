package main

import (
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/lab/trial"
	"github.com/holdfast-go/holdfast/peers/internal/command"
)

// A comparison is one piece of work and the arms that do it, each in its own way.
type comparison struct {
	name  string
	title string
	size  int // bytes of a record
	loads []load
	// closeTimed puts the sink's close into the clock: where a record counts as
	// written only after a flush. Opening is never in the clock.
	closeTimed bool
	arms       []arm // the first is the one that the others are compared with
	notes      []string
}

// A load is how many records so many goroutines write between them.
type load struct{ goroutines, records int }

// An arm is one way to do a comparison's work.
type arm struct {
	name string
	note string // its settings and why, for the reader of the table
	// alone keeps the arm to one goroutine: it has no lock and needs none.
	alone bool
	open  func(dir string, w work) (*sink, error)
	// read yields what the arm left in dir, record by record; nil means that the
	// file holds the records and nothing else.
	read func(dir string, w work) iter.Seq2[[]byte, error]
}

// work is what one trial writes: each goroutine so many records of one size.
type work struct{ goroutines, each, size int }

func (w work) records() int { return w.goroutines * w.each }
func (w work) bytes() int64 { return int64(w.records()) * int64(w.size) }

// A sink is an arm that was opened for one trial.
type sink struct {
	// writer is asked once by each goroutine, before the clock starts. The
	// goroutine calls done after its last record, inside the clock.
	writer func() (w io.Writer, done func() error)
	close  func() error
}

// shared gives the same Writer to every goroutine.
func shared(w io.Writer) func() (io.Writer, func() error) {
	return func() (io.Writer, func() error) {
		return w, func() error { return nil }
	}
}

// A producer makes its goroutine's records itself instead of being handed them.
type producer interface {
	produce(w work, goroutine int) error
}

// put writes one goroutine's records.
func (w work) put(to io.Writer, goroutine int) error {
	if p, ok := to.(producer); ok {
		return p.produce(w, goroutine)
	}
	rec := newRecord(w.size, goroutine)
	for seq := range w.each {
		rec.number(seq)
		if n, err := to.Write(rec); err != nil || n != len(rec) {
			return fmt.Errorf("record %d of goroutine %d: wrote %d of %d bytes: %w", seq, goroutine, n, len(rec), err)
		}
	}
	return nil
}

// logPath is the one file of the arms that write one.
func logPath(dir string) string { return filepath.Join(dir, "log") }

// A sample is what one trial took. The times count only if err is nil.
type sample struct {
	open    time.Duration
	elapsed time.Duration // from the first record to the last promise kept
	cpu     time.Duration // user and system, of the whole process, in elapsed
	close   time.Duration // in elapsed too where the comparison says so
	err     error
}

// try runs one trial in a fresh directory under root and removes it again.
func try(root string, c comparison, a arm, w work) (s sample) {
	dir, err := os.MkdirTemp(root, "trial-")
	if err != nil {
		return sample{err: err}
	}
	defer os.RemoveAll(dir)
	if err := prepare(root, w); err != nil {
		return sample{err: err}
	}
	if s = clock(dir, c.closeTimed, a, w); s.err != nil {
		return s
	}
	read := a.read
	if read == nil {
		read = rawRecords
	}
	s.err = verify(read(dir, w), w)
	return s
}

// prepare brings the machine into the same state before every trial. What the
// trial before left is on the disk, the heap is collected, and the page cache
// finds the memory that the trial will fill.
func prepare(root string, w work) error {
	err := trial.PrepareMemory(root, w.bytes())
	command.Settle(root)
	runtime.GC()
	return err
}

// clock opens the arm, starts all goroutines at once and stops when the last
// record is where the comparison wants it.
func clock(dir string, closeTimed bool, a arm, w work) (s sample) {
	start := time.Now()
	k, err := a.open(dir, w)
	if err != nil {
		return sample{err: fmt.Errorf("open: %w", err)}
	}
	run := k.muster(w)
	s.open = time.Since(start)

	start, cpu := time.Now(), command.CPUTime()
	err = run()
	s.elapsed, s.cpu = time.Since(start), command.CPUTime()-cpu

	begin := time.Now()
	closeErr := k.close()
	s.close = time.Since(begin)
	if closeTimed {
		s.elapsed, s.cpu = time.Since(start), command.CPUTime()-cpu
	}
	if err == nil && closeErr != nil {
		err = fmt.Errorf("close: %w", closeErr)
	}
	s.err = err
	return s
}

// muster starts the goroutines; they write when the function that it returns
// is called, which returns the first goroutine's error when all are done.
func (k *sink) muster(w work) func() error {
	var ready, finished sync.WaitGroup
	errs := make([]error, w.goroutines)
	gate := make(chan struct{})
	ready.Add(w.goroutines)
	for g := range w.goroutines {
		to, done := k.writer()
		finished.Go(func() {
			ready.Done()
			<-gate
			if errs[g] = w.put(to, g); errs[g] == nil {
				errs[g] = done()
			}
		})
	}
	ready.Wait()
	return func() error {
		close(gate)
		finished.Wait()
		for _, err := range errs {
			if err != nil {
				return err
			}
		}
		return nil
	}
}
