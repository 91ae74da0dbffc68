package records

import (
	"fmt"
	"io"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/dev/peers/internal/waldisk"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/wal"
)

// logSyncs compares logs under syncs of several times: the disk's, and slept ones over a file in memory.
func logSyncs() (all []*group) {
	for _, sync := range []time.Duration{0, 60 * time.Microsecond, 200 * time.Microsecond, time.Millisecond} {
		disk, title := "disk", ""
		if sync > 0 {
			disk, title = sync.String(), fmt.Sprintf("; the files are in memory, and each sync is a nanosleep(2) of %v, which takes 4 to 20 µs more", sync)
		}
		for _, size := range []int{durableSize, 4 * kib} {
			for _, n := range []int{1, 8, 64, 512} {
				w := work{goroutines: n, each: logEach[n], size: size, sync: sync}
				if size > durableSize {
					w.each = min(logEach[n], 8_000/n) // more bytes slow the disk down for the next trial
				}
				if sync > 0 && n >= 64 {
					w.each *= 4
				}
				g := newGroup(fmt.Sprintf("logsync/sync=%s/size=%v/goroutines=%d", disk, holdfast.Size(size), n),
					fmt.Sprintf("records of %v that are found again, each waited for until it is on stable storage%s", holdfast.Size(size), title), w, append(holdfastLogs(),
						&arm{Name: "pebble-recycled", Note: recycledNote, Do: how{open: openPebble(1, true), read: pebbleRecords}}))
				g.Notes = []string{durableClock}
				all = append(all, g)
			}
		}
	}
	return all
}

// openWAL opens a log of package wal on the disk of the work.
func openWAL(dir string, o wal.Options, w work) (*wal.Log, error) {
	if w.sync == 0 {
		l, _, err := wal.Open(logDir(dir), o)
		return l, err
	}
	l, _, err := waldisk.Open(sleepyDisk{sync: w.sync}, logDir(dir), o)
	return l, err
}

// A sleepyDisk takes a time for each sync.
type sleepyDisk struct {
	sys.Disk
	sync time.Duration
}

func (d sleepyDisk) Sync(int) error     { return sleep(d.sync) }
func (d sleepyDisk) Datasync(int) error { return sleep(d.sync) }

func (d sleepyDisk) WriteAtDurably(fd int, p []byte, at int64) (n int, err error) {
	if n, err = d.WriteAt(fd, p, at); err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	if err != nil {
		return n, err
	}
	return n, sleep(d.sync)
}
