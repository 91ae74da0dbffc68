package trial

import (
	"errors"
	"io"
	"os"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/probe"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// The sizes of a control's work. Each of its times is the median of single calls, so that one stall
// does not count.
const (
	controlBlock  = 4 << 10
	controlWrites = 2048
	controlFile   = 512 // writes until the file is emptied: a small disk must hold it

	// At least leastSyncs, and more until controlTime is over.
	leastSyncs, mostSyncs = 5, 64
	controlTime           = 40 * time.Millisecond

	// ControlBytes is the number of bytes that a control writes.
	ControlBytes = controlBlock * (controlWrites + mostSyncs + memoryWrites*(controlFile+mostSyncs))
)

// Control measures calls without any of our code: write(2) and fdatasync(2), on a file of its own.
func (g *WorkDir) Control() (c result.Control, err error) {
	if err := PrepareMemory(g.dir, controlBlock*(controlFile+mostSyncs)); err != nil {
		return c, err
	}
	path, err := g.fresh()
	if err != nil {
		return c, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return c, err
	}
	defer func() {
		err = errors.Join(err, f.Close(), os.Remove(path))
		g.quiesce()
	}()
	h, err := sys.NewHandle(f)
	if err != nil {
		return c, err
	}
	g.quiesce()
	var took []time.Duration
	timed := func(do func() error) error {
		begun := probe.Now()
		err := do()
		took = append(took, max(1, probe.Since(begun)))
		return err
	}
	middle := func() time.Duration {
		slices.Sort(took)
		m := took[len(took)/2]
		took = took[:0]
		return m
	}
	block := make([]byte, controlBlock)
	write := func() error { _, err := f.Write(block); return err }
	for i := range controlWrites {
		if i%controlFile == 0 {
			_, err := f.Seek(0, io.SeekStart)
			if err = errors.Join(err, f.Truncate(0)); err != nil {
				return c, err
			}
		}
		if err := timed(write); err != nil {
			return c, err
		}
	}
	c.Write = middle()
	for begun := time.Now(); len(took) < leastSyncs || len(took) < mostSyncs && time.Since(begun) < controlTime; {
		if err := write(); err != nil {
			return c, err
		}
		if err := timed(func() error { return Datasync(f, h) }); err != nil {
			return c, err
		}
	}
	c.Fdatasync = middle()
	return c, nil
}
