package records

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/dev/peers/internal/command"
)

// errUnsupported says that an arm can't do its work here: the table shows it.
var errUnsupported = errors.ErrUnsupported

// work is the load of one trial: each goroutine writes `each` records of one size.
type work struct {
	goroutines, each, size int
	policy                 string        // ours; the buffer of the others is as large
	closeTimed             bool          // a record counts as written only after a flush: the close is in the clock
	sync                   time.Duration // of each sync, or 0 for the disk's own
	procs                  int           // GOMAXPROCS, or 0
	format                 int           // rounds of formatting before each record
	timed                  bool          // each Write is timed, for the columns of durable
	rate                   int           // records a second, and the result is p99.99; or 0
}

func (w work) records() int { return w.goroutines * w.each }
func (w work) bytes() int64 { return int64(w.records()) * int64(w.size) }

// quick is a tenth of the work.
func (w work) quick(quick bool) work {
	if quick {
		w.each = max(1, w.each/10)
	}
	return w
}

// parsed is the policy, which is a constant of this package.
func (w work) parsed() holdfast.Policy {
	p, err := holdfast.ParsePolicy(w.policy)
	if err != nil {
		panic(err)
	}
	return p
}

// buffer is how much each arm gathers.
func (w work) buffer() int { return int(w.parsed().Buffer) }

// how is how an arm does its work.
type how struct {
	work work
	open func(dir string, w work) (*sink, error)
	// read yields what the arm left in dir, record by record; nil means that the
	// file holds the records and nothing else.
	read func(dir string, w work) iter.Seq2[[]byte, error]
	// whole does all of the work in place of open and read, and verifies it.
	whole func(dir string, w work) (command.Sample, error)
	same  string // the arm of the other build that it is, or nothing
}

// newGroup makes a group of ours, its twin and the others.
func newGroup(name, title string, w work, arms []*arm) *group {
	for _, a := range arms {
		if a.Do.work.goroutines == 0 {
			a.Do.work = w
		}
	}
	twin := *arms[0]
	twin.Name, twin.Note = arms[0].Name+" (twin)", command.Twin
	return &group{Name: name, Title: title, Unit: "record", Arms: slices.Insert(arms, 1, &twin)}
}

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

// put writes one goroutine's records, at its part of the rate if there is one. It returns how
// long each took, where this is asked for.
func (w work) put(to io.Writer, goroutine int, start time.Time) (took []call, err error) {
	if p, ok := to.(producer); ok {
		return nil, p.produce(w, goroutine)
	}
	if w.timed || w.rate > 0 {
		took = make([]call, 0, w.each)
	}
	rec, text := newRecord(w.size, goroutine), make([]byte, 0, ownLines)
	for seq := range w.each {
		rec.number(seq)
		text = format(text, w.format)
		due := w.await(start, seq*w.goroutines+goroutine)
		var begin time.Time
		if took != nil {
			begin = time.Now()
		}
		if n, err := to.Write(rec); err != nil || n != len(rec) {
			return nil, fmt.Errorf("record %d of goroutine %d: wrote %d of %d bytes: %w", seq, goroutine, n, len(rec), err)
		}
		if took != nil {
			end := time.Now()
			took = append(took, call{end.Sub(begin), end.Sub(start) - due})
		}
	}
	return took, nil
}

// logPath is the one file of the arms that write one.
func logPath(dir string) string { return filepath.Join(dir, "log") }

// try runs one trial in a fresh directory under root and removes it again.
func try(root string, h how, w work) (s command.Sample, err error) {
	dir, err := os.MkdirTemp(root, "trial-")
	if err != nil {
		return s, err
	}
	defer os.RemoveAll(dir)
	runtime.GC()
	if h.whole != nil {
		return h.whole(dir, w)
	}
	if s, err = clock(dir, h, w); err != nil {
		return s, err
	}
	read := h.read
	if read == nil {
		read = rawRecords
	}
	return s, verify(read(dir, w), w)
}

// clock opens the arm, starts all goroutines at once and stops when the last
// record is where the work wants it.
func clock(dir string, h how, w work) (s command.Sample, err error) {
	k, err := h.open(dir, w)
	if err != nil {
		return s, fmt.Errorf("open: %w", err)
	}
	run := k.muster(w)
	start, cpu := time.Now(), command.CPUTime()
	took, err := run(start)
	s = command.Sample{Elapsed: time.Since(start), CPU: command.CPUTime() - cpu, Units: w.records()}
	closeErr := k.close()
	if w.closeTimed {
		s.Elapsed, s.CPU = time.Since(start), command.CPUTime()-cpu
	}
	if len(took) > 0 {
		s = w.distribution(s, took)
	}
	if err == nil && closeErr != nil {
		err = fmt.Errorf("close: %w", closeErr)
	}
	return s, err
}

// muster starts the goroutines. They write when the function that it returns is called. That
// returns how long each record took, where this is asked for, and the first goroutine's error
// when all are done.
func (k *sink) muster(w work) func(start time.Time) ([]call, error) {
	var ready, finished sync.WaitGroup
	errs, took := make([]error, w.goroutines), make([][]call, w.goroutines)
	gate, start := make(chan struct{}), time.Time{}
	ready.Add(w.goroutines)
	for g := range w.goroutines {
		to, done := k.writer()
		finished.Go(func() {
			ready.Done()
			<-gate
			if took[g], errs[g] = w.put(to, g, start); errs[g] == nil {
				errs[g] = done()
			}
		})
	}
	ready.Wait()
	return func(now time.Time) ([]call, error) {
		start = now
		close(gate)
		finished.Wait()
		for _, err := range errs {
			if err != nil {
				return nil, err
			}
		}
		return slices.Concat(took...), nil
	}
}
