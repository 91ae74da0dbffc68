package records

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/holdfast-go/holdfast"
)

const (
	durableSize  = 128
	durableClock = "In the clock: from the first record until the last one is known to be durable. Not in it: opening (with the sync of the directory) and closing. Left out: os.File, bufio and lumberjack have no way to wait for stable storage (lumberjack never syncs); zap's BufferedWriteSyncer syncs only by hand, under the lock that its writers take."
	pebbleNote   = "record.LogWriter on vfs.Default as pebble's own WAL manager sets it up (preallocation of 110 % of a 4 MiB memtable, sync offsets), SyncRecord under a mutex as its contract asks, then a wait"
	recycledNote = "the same over the blocks of an older log, as a database that runs for a while does: the file does not grow"
	serialNote   = "; at most 2000 records, as it does not share syncs between callers"
)

// durables are records that each are waited for until they are on stable storage: the disk's, or
// one that takes a time for each sync.
func durables() (all []*group) {
	const drive = 15 * time.Microsecond // of a drive that keeps its cache without power: one goroutine shows what a Writer adds
	for _, sync := range []time.Duration{0, drive, 60 * time.Microsecond, 200 * time.Microsecond, time.Millisecond} {
		disk, title := "disk", ""
		if sync > 0 {
			disk, title = sync.String(), fmt.Sprintf("; the file is in memory, and each sync is a nanosleep(2) of %v, which takes 4 to 20 µs more", sync)
		}
		for _, size := range []int{durableSize, 4 * kib} {
			for _, n := range []int{1, 8, 64, 512, 1024} {
				if sync == drive && n > 1 {
					continue
				}
				w := work{goroutines: n, each: min(300, 128*mib/size/n), size: size, policy: "buffer=64KiB,sync=group", sync: sync, timed: true}
				if n == 1 || n <= 64 && sync < time.Millisecond {
					w.each = min(1000, 128*mib/size/n)
				}
				arms := []*arm{
					{Name: "holdfast", Note: "a Writer, " + w.policy, Do: how{open: openHoldfast}},
					{Name: "pebble", Note: pebbleNote, Do: how{open: openPebble(1, false), read: pebbleRecords}},
				}
				if sync == 0 {
					arms = append(arms, &arm{Name: "pebble-recycled", Note: recycledNote, Do: how{open: openPebble(1, true), read: pebbleRecords}})
				}
				if n == 1 {
					arms = append(arms, syncLimits(w)...)
				}
				if sync == drive {
					arms = append(arms, &arm{Name: "holdfast, its calls", Note: "the same, and behind each sync the two calls that a Writer makes on a disk: statx(2) and fremovexattr(2)", Do: how{open: openHoldfastLooking}})
				}
				g := newGroup(fmt.Sprintf("sync=%s/size=%v/goroutines=%d", disk, holdfast.Size(size), n), fmt.Sprintf("records of %v, each waited for until it is on stable storage%s", holdfast.Size(size), title), w, arms)
				g.Notes = []string{durableClock}
				all = append(all, g)
			}
		}
	}
	return all
}

// serial is the work of an arm whose callers do not share syncs.
func (w work) serial() work {
	w.each = max(1, min(w.each, 2000/w.goroutines))
	return w
}

// syncLimits are the disk's own times for a record of one goroutine: no arm without shared syncs
// can pass them.
func syncLimits(w work) []*arm {
	alone := w
	alone.goroutines = 1
	arms := []*arm{{Name: "limit fdatasync", Note: "one goroutine: write(2) and fdatasync(2) in a loop", Do: how{work: alone, open: openSynced}}}
	if w.sync > 0 {
		return arms
	}
	return append(arms,
		&arm{Name: "limit overwrite-dsync", Note: "one goroutine: pwritev2(2) with RWF_DSYNC over zeros that are on the disk, no format", Do: how{work: alone, open: openGround(false)}},
		&arm{Name: "limit overwrite-direct", Note: "one goroutine: the 4 KiB block of the record over such zeros through O_DIRECT|O_DSYNC", Do: how{work: alone, open: openGround(true)}})
}

// window is how many records a goroutine hands over before it waits for them.
const window = 64

// windows compares the same where a goroutine waits once for 64 records.
func windows() (all []*group) {
	for _, n := range []int{1, 8, 64} {
		w := work{goroutines: n, each: 1 << 15 / max(1, n/8), size: durableSize, policy: "buffer=64KiB,sync=group"}
		large := w
		large.policy = "buffer=1MiB,sync=group"
		g := newGroup(fmt.Sprintf("window/goroutines=%d", n), fmt.Sprintf("records of %d bytes, each goroutine waits once for every %d", w.size, window), w, []*arm{
			{Name: "holdfast", Note: "Enqueue for each record and WaitDurable for each window, " + w.policy, Do: how{open: openEnqueue}},
			{Name: "holdfast-1MiB", Note: large.policy + ", room for the windows of 64 goroutines, which the peers keep in memory without a limit", Do: how{work: large, open: openEnqueue}},
			{Name: "mutex", Note: "a window in one write(2) and one fdatasync(2) under a sync.Mutex", Do: how{open: openSyncedWindow}},
			{Name: "etcd-wal", Note: "one Save of 64 entries", Do: how{open: openEtcd(window), read: etcdRecords}},
			{Name: "pebble", Note: "63 WriteRecord and one SyncRecord, which covers them", Do: how{open: openPebble(window, false), read: pebbleRecords}},
			{Name: "pebble-recycled", Note: "the same over the blocks of an older log", Do: how{open: openPebble(window, true), read: pebbleRecords}},
		})
		g.Notes = []string{durableClock}
		all = append(all, g)
	}
	return all
}

// createDurable is create with the file's name made durable, which the peers
// that open their own files do as well.
func createDurable(dir string) (*os.File, error) {
	f, err := create(dir)
	if err != nil {
		return nil, err
	}
	if err := syncDir(dir); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// A sleepy is a file on a disk that takes a time for each sync.
type sleepy struct {
	*os.File
	sync time.Duration
}

func (f sleepy) Sync() error { return sleep(f.sync) }

// A looking file makes the calls behind each sync that a Writer makes behind a sync of a file on a disk.
type looking struct{ sleepy }

func (f looking) Sync() error { return errors.Join(f.sleepy.Sync(), look(f.File)) }

// synced makes each Write durable before it returns.
type synced struct{ holdfast.File }

func (s synced) Write(p []byte) (int, error) {
	n, err := s.File.Write(p)
	if err != nil {
		return n, err
	}
	if f, ok := s.File.(*os.File); ok {
		return n, fdatasync(f)
	}
	return n, s.File.Sync()
}

func openSynced(dir string, w work) (*sink, error) {
	f, err := createDurable(dir)
	if err != nil {
		return nil, err
	}
	s := synced{f}
	if w.sync > 0 {
		s.File = sleepy{f, w.sync}
	}
	return &sink{writer: shared(lock(s, w)), close: f.Close}, nil
}

func openSyncedWindow(dir string, w work) (*sink, error) {
	k, err := openSynced(dir, w)
	if err != nil {
		return nil, err
	}
	to, _ := k.writer()
	k.writer = func() (io.Writer, func() error) {
		b := &batch{to: to}
		return b, b.flush
	}
	return k, nil
}

// batch is one goroutine's window of records.
type batch struct {
	to    io.Writer
	held  []byte
	count int
}

func (b *batch) Write(p []byte) (int, error) {
	b.held = append(b.held, p...)
	if b.count++; b.count < window {
		return len(p), nil
	}
	return len(p), b.flush()
}

func (b *batch) flush() error {
	if b.count == 0 {
		return nil
	}
	_, err := b.to.Write(b.held)
	b.held, b.count = b.held[:0], 0
	return err
}
