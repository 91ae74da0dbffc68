package trial

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
	"github.com/holdfast-go/holdfast/stats"
)

// A Task is any work that is timed as one trial, usually on a file of its own.
type Task struct {
	// Make makes the file for the work, before the clock starts. Nil: there is none, or
	// the work makes it.
	Make func(path string) error

	// Cache is the required state of the page cache for Make's file when the clock starts. If it can't
	// be reached, the trial fails with a *CacheError. Empty: any state.
	Cache result.Cache

	// Within names the file for Cache if Make makes a directory. Empty: the path that Make makes is the
	// file.
	Within string

	// Writes is the approximate number of bytes that the work writes. The trial prepares that much
	// memory (see [PrepareMemory]).
	Writes int64

	// Do is the timed work. It calls the clock's Lap at the end of each stage; work after the last Lap
	// is not timed. The trial's elapsed time is the sum of the stages.
	Do func(ctx context.Context, c *Clock) error

	// Check checks the file after the clock has stopped. Nil: no check. If the file is wrong, the error
	// is a [*ContentError].
	Check func(path string) error

	// Keep keeps the trial's files until the work directory is closed. After many removals, ext4 takes
	// fifty times as long to make new files. It does not reuse inodes that were freed in the last
	// minutes, and looks for others one by one.
	Keep bool

	// Name is the name of the files if the work directory keeps them: see [WorkDir.Kept].
	Name string
}

// A Stage is a part of a trial's time.
type Stage int

// The stages; each has a key in the results.
const (
	Open Stage = iota
	Write
	Flush
	Sync
	Close
	Read
	Work // any other work
)

// of returns the stage's field in a measurement.
func (s Stage) of(m *result.Measurement) *time.Duration {
	return [...]*time.Duration{&m.Open, &m.Write, &m.Flush, &m.Sync, &m.Close, &m.Read, &m.Work}[s]
}

// A Clock times the stages of a [Task]. It is for the goroutine that runs Do.
type Clock struct {
	// Path is the place for the trial's own file or directory. Make's file is there. The trial removes
	// it afterwards.
	Path string

	workDir *WorkDir
	meter   *meter
	m       *result.Measurement
}

// Start discards the time since the last stage ended, or since Do was called: it is in no stage. CPU
// time and calls are counted all the same.
func (c *Clock) Start() { c.meter.lap() }

// Lap ends a stage. Its time is the time since the last stage ended, or since Start. If a stage ends
// more than once, its times add up.
func (c *Clock) Lap(s Stage) { *s.of(c.m) += c.meter.lap() }

// Took adds to a stage a time that the work has measured itself, and calls Start.
func (c *Clock) Took(s Stage, d time.Duration) {
	*s.of(c.m) += d
	c.meter.lap()
}

// Done sets the amount of work: the records (calls, bytes, operations) by which the time is divided,
// and the bytes of data. Without it the cell's numbers are used.
func (c *Clock) Done(records, size int64) { c.m.Records, c.m.Size = records, size }

// Tell keeps a value that is not the time of a stage; the unit is in its name, as in visible_p99_ns.
func (c *Clock) Tell(name string, value float64) {
	if c.m.Values == nil {
		c.m.Values = map[string]float64{}
	}
	c.m.Values[name] = value
}

// TellLatency keeps the distribution h of the times of single operations. Put them into
// h by [result.Record].
func (c *Clock) TellLatency(h *hdrhistogram.Histogram) (err error) {
	c.m.Latency, err = result.NewLatency(h, stat.Supports)
	return err
}

// TellService keeps the service times of an open loop, from the calls to their returns.
// The times of TellLatency then start when the operations were due.
func (c *Clock) TellService(h *hdrhistogram.Histogram) error {
	l, err := result.NewLatency(h, stat.Supports)
	c.m.Service = &l
	return err
}

// TellWriter keeps a Writer's own counts.
func (c *Clock) TellWriter(s stats.Counts) { c.m.Writer = callsOf(s) }

func callsOf(s stats.Counts) result.WriterCalls {
	return result.WriterCalls{Writes: s.Writes, Flushes: s.Flushes, Syncs: s.Syncs, SystemCalls: s.SystemCalls, Waits: s.Waits, LongestSync: s.LongestSync}
}

// Cached returns the part of Path's file that is in the page cache now.
func (c *Clock) Cached() result.Residency { return residency(c.Path) }

// Second returns a second process of this program for the work that args name; see
// [WorkDir.Second]. It is killed when ctx is done.
func (c *Clock) Second(ctx context.Context, args ...string) (*exec.Cmd, error) {
	if c.workDir.Second == nil {
		return nil, fmt.Errorf("a second process: %w", errors.ErrUnsupported)
	}
	return c.workDir.Second(ctx, args...), nil
}

// Run runs the task once on a path of its own. It counts the given records and bytes
// unless Do sets others. It removes its files unless Keep is set.
func (t Task) Run(ctx context.Context, g *WorkDir, counting Counting, records, size int64) (result.Measurement, error) {
	path, err := g.fresh()
	if err != nil {
		return result.Measurement{}, err
	}
	m := result.Measurement{Records: records, Size: size}
	err = t.onPath(ctx, g, counting, path, &m)
	if err == nil && g.Kept != "" && t.Name != "" {
		to := filepath.Join(g.Kept, strings.ReplaceAll(t.Name, "/", "-"))
		err = os.RemoveAll(to)
		if _, none := os.Lstat(path); err == nil && !errors.Is(none, fs.ErrNotExist) { // else the work makes no file
			err = os.Rename(path, to)
		}
		if err != nil {
			err = fmt.Errorf("keep the written files: %w", err)
		}
	}
	if !t.Keep {
		err = errors.Join(err, os.RemoveAll(path))
	}
	if t.Make != nil || t.Writes > 0 {
		g.quiesce()
	}
	return m, err
}

// onPath is Run without the removal.
func (t Task) onPath(ctx context.Context, g *WorkDir, counting Counting, path string, m *result.Measurement) (err error) {
	if t.Writes > 0 {
		if err := PrepareMemory(g.dir, min(t.Writes, prepareMost)); err != nil {
			return err
		}
		g.quiesce()
	}
	if t.Make != nil {
		if err := t.Make(path); err != nil {
			return err
		}
		if t.Cache != "" && t.Cache != result.NewFile {
			if m.Before, err = setCache(g, filepath.Join(path, t.Within), t.Cache); err != nil {
				return err
			}
		}
	}
	if err := t.time(ctx, g, counting, path, m); err != nil {
		return err
	}
	if t.Check == nil {
		return nil
	}
	return t.Check(path)
}

// time runs everything that is timed.
func (t Task) time(ctx context.Context, g *WorkDir, counting Counting, path string, m *result.Measurement) error {
	meter, err := startMeter(g.observer, counting)
	if err != nil {
		return err
	}
	clock := &Clock{Path: path, workDir: g, meter: meter, m: m}
	err = errors.Join(t.Do(ctx, clock), ctx.Err(), meter.stop(m))
	m.Elapsed = m.Open + m.Write + m.Flush + m.Sync + m.Close + m.Read + m.Work
	return err
}

// NewFile makes a file of size bytes at path, block by block; fill returns the next block. It waits
// until the file is on the disk: a page that is not written back can't be evicted.
func NewFile(path string, size int64, fill func(block []byte)) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	block := make([]byte, 256<<10)
	for left := size; left > 0 && err == nil; left -= int64(len(block)) {
		block = block[:min(int64(len(block)), left)]
		fill(block)
		_, err = f.Write(block)
	}
	return errors.Join(err, written(f), f.Close())
}
