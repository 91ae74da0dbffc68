package fsync

import (
	"context"
	"os"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/stats"
)

// An engine is bench's own measurement, on a file that grows.
type engine struct {
	size    int
	open    func(path string) (trial.Target, error) // nil is a Writer with sync=each
	records int64                                   // of a trial; 0 until the first
}

// probe is the number of records that show how many fit into a trial.
const probe = 100

func (e *engine) try(ctx context.Context, s *site) (sample, error) {
	if e.records == 0 {
		probed, err := e.run(ctx, s, probe)
		if err != nil {
			return sample{}, err
		}
		e.records = max(probe, int64(float64(s.length)/probed.Time()))
	}
	return e.run(ctx, s, e.records)
}

func (e *engine) run(ctx context.Context, s *site, records int64) (sample, error) {
	a := trial.Append{
		Policy: holdfast.EachDurable(), RecordBytes: int64(e.size), Writers: 1,
		Records: records, Stride: 1, Open: e.open,
	}
	m, err := a.Run(ctx, s.ground)
	if err != nil {
		return sample{}, err
	}
	return sample{Units: int(m.Records), Elapsed: m.Write}, nil
}

// A bare is a file that is written and synced by system calls alone.
type bare struct {
	*os.File
	handle  *sys.Handle // nil does not sync after each write
	written int64
}

// openBare returns what makes a bare.
func openBare(flags int, sync bool) func(path string) (trial.Target, error) {
	return func(path string) (trial.Target, error) {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|flags, 0o600)
		if err != nil || !sync {
			return &bare{File: f}, err
		}
		handle, err := sys.NewHandle(f)
		return &bare{File: f, handle: handle}, err
	}
}

func (b *bare) Write(p []byte) (int, error) {
	n, err := b.File.Write(p)
	b.written += int64(n)
	if err != nil || b.handle == nil {
		return n, err
	}
	return n, b.handle.Datasync()
}

func (b *bare) Flush() error        { return nil }
func (b *bare) Written() int64      { return b.written }
func (b *bare) Stats() stats.Counts { return stats.Counts{} }

// mean returns how long one of n took.
func mean(total time.Duration, n int64) time.Duration {
	if n == 0 {
		return 0
	}
	return total / time.Duration(n)
}
