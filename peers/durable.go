package main

import (
	"errors"
	"io"
	"os"
	"sync"
)

const durableSize = 128

// durable compares what it costs to know of each record that it is on stable
// storage before the next is written.
func durable(full bool) comparison {
	loads := []load{{1, 1_000}, {8, 4_000}, {64, 16_000}}
	if full {
		loads = append(loads, load{512, 60_000})
	}
	return comparison{
		name:  "durable",
		title: "Durable: 128-byte records, each waited for until it is on stable storage",
		size:  durableSize,
		loads: loads,
		arms: append(holdfastDurables(),
			arm{name: "mutex", note: "a sync.Mutex around write(2) and fdatasync(2)", open: openSynced},
			arm{name: "bare", note: "write(2) and fdatasync(2) in a loop, no lock", alone: true, open: openSynced},
			arm{name: "etcd-wal", note: "one Save of one entry a record; the wal does not share syncs between callers (etcd gathers proposals above it)", open: openEtcd(1), read: etcdRecords},
			arm{name: "pebble", note: pebbleNote, open: openPebble(1, false), read: pebbleRecords},
			arm{name: "pebble-recycled", note: "the same over the blocks of an older log, as a database that runs for a while does: the file does not grow", open: openPebble(1, true), read: pebbleRecords},
		),
		notes: []string{durableClock, noSyncNote},
	}
}

// window is how many records a goroutine hands over before it waits for them.
const window = 64

// windows compares the same where a goroutine waits once for 64 records.
func windows() comparison {
	return comparison{
		name:  "window",
		title: "Durable in windows: 128-byte records, each goroutine waits once for every 64",
		size:  durableSize,
		loads: []load{{1, 32_000}, {8, 128_000}, {64, 256_000}},
		arms: append(holdfastWindows(),
			arm{name: "mutex", note: "a window in one write(2) and one fdatasync(2) under a sync.Mutex", open: openSyncedWindow},
			arm{name: "etcd-wal", note: "one Save of 64 entries", open: openEtcd(window), read: etcdRecords},
			arm{name: "pebble", note: "63 WriteRecord and one SyncRecord, which covers them", open: openPebble(window, false), read: pebbleRecords},
			arm{name: "pebble-recycled", note: "the same over the blocks of an older log", open: openPebble(window, true), read: pebbleRecords},
		),
		notes: []string{durableClock},
	}
}

const (
	durableClock = "In the clock: from the first record until the last one is known to be durable. Not in it: opening (with the sync of the directory) and closing."
	noSyncNote   = "Left out: os.File, bufio and lumberjack have no way to wait for stable storage (lumberjack never syncs); zap's BufferedWriteSyncer syncs only by hand, under the lock that its writers take, which is the arm mutex."
	pebbleNote   = "record.LogWriter on vfs.Default as pebble's own WAL manager sets it up (preallocation of 110 % of a 4 MiB memtable, sync offsets), SyncRecord under a mutex as its contract asks, then a wait"
)

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

func openSynced(dir string, w work) (*sink, error) {
	f, err := createDurable(dir)
	if err != nil {
		return nil, err
	}
	s := &synced{f: f}
	if w.goroutines > 1 {
		s.mu = new(sync.Mutex)
	}
	return &sink{writer: shared(s), close: f.Close}, nil
}

// synced makes each Write durable before it returns.
type synced struct {
	mu *sync.Mutex // nil for one goroutine
	f  *os.File
}

func (s *synced) Write(p []byte) (int, error) {
	if s.mu != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
	}
	n, err := s.f.Write(p)
	if err != nil {
		return n, err
	}
	return n, fdatasync(s.f)
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
