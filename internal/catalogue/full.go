//go:build go1.25

package catalogue

import (
	"errors"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
	"github.com/holdfast-go/holdfast/rotate"
)

// fullLog is a log whose disk becomes full while it is rotated. It is asked again at once, before anything more is written: what was accepted
// meanwhile waits in its memory.
func fullLog() *crash.Workload {
	const writers = 2
	return &crash.Workload{Name: "rotate-full", About: "a rotate.File that is rotated twice in a row, while its disk becomes full", InMemory: true,
		Policies: []holdfast.Policy{holdfast.Buffered(4 * holdfast.KiB), holdfast.Unbuffered()}, Targets: logTargets(writers),
		Loss: func(p holdfast.Policy) holdfast.Loss {
			if p.Buffer == 0 { // what a Write returns for is the kernel's, also in the middle of a rotation
				return p.Loss()
			}
			return flushedOrAcknowledged(p) // the log keeps more than its buffer while the disk is full
		},
		Run: func(r *crash.Run) error {
			err := onFullDisk(r, writers)
			if errors.Is(err, syscall.ENOSPC) { // it was told, and then nothing is acknowledged
				return nil
			}
			return err
		}}
}

func onFullDisk(r *crash.Run, writers int) error {
	disk := r.Disk().(*crash.Recorder).Faults
	f, before, err := openRotated(r, rotate.Options{Policy: r.Policy, Compress: true})
	if err != nil {
		return err
	}
	var writing atomic.Int64
	writing.Store(int64(writers))
	streams, errs := make([]*stream, writers), make([]error, writers+1)
	var group sync.WaitGroup
	for id := range writers {
		s := newStream(r, uint32(id), before(uint32(id)))
		streams[id] = s
		group.Go(func() {
			defer writing.Add(-1)
			for errs[id] == nil && r.More(5*s.made) { // in memory each state unpacks all backups
				errs[id] = s.line(f)
			}
		})
	}
	group.Go(func() {
		const times = 40 // each fault slows all calls
		random, pause := r.Random(1<<20), 200*time.Microsecond
		if r.Fake { // where it goes on only when all others wait
			pause = 2 * time.Millisecond
		}
		for made := 0; made < times && errs[writers] == nil && writing.Load() > 0; made++ {
			// A rotation writes twice: what is in memory, and what came meanwhile.
			disk.Add(fault.DiskFault{Op: fault.DiskWrite, Path: rotatedLog, First: 1 + random.IntN(2), Times: 1 + random.IntN(4), Err: syscall.ENOSPC})
			for range 2 {
				if err := f.Rotate(); err != nil && !errors.Is(err, syscall.ENOSPC) {
					errs[writers] = err
				}
			}
			time.Sleep(time.Duration(random.Int64N(int64(pause))))
		}
	})
	group.Wait()
	disk.Mend()
	if err := errors.Join(errs...); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Sync(); err != nil { // which flushes under every policy
		return errors.Join(err, f.Close())
	}
	noteAll(r, crash.Flushed, streams)
	return f.Close()
}
