package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	raftwal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/metadb"
	tidwall "github.com/tidwall/wal"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/wal"
)

// logs compares what it costs to append durably to a log that finds each record again.
func logs(full bool) comparison {
	loads := []load{{1, 1_000}, {8, 4_000}, {64, 16_000}}
	if full {
		loads = append(loads, load{512, 60_000})
	}
	const serial = "; it does not share syncs between callers: a sync.Mutex around it"
	return comparison{
		name:  "log",
		title: "Logs: 128-byte records that are found again, each waited for until it is on stable storage",
		size:  durableSize,
		loads: loads,
		arms: append(holdfastLogs(),
			arm{name: "overwrite-dsync", note: "a limit: pwritev2(2) with RWF_DSYNC over zeros that are on the disk, no format, no lock", alone: true, open: openGround(false)},
			arm{name: "overwrite-direct", note: "a limit: the 4 KiB block of the record over such zeros through O_DIRECT|O_DSYNC", alone: true, open: openGround(true)},
			arm{name: "pebble", note: pebbleNote, open: openPebble(1, false), read: pebbleRecords},
			arm{name: "pebble-recycled", note: "the same over the blocks of an older log", open: openPebble(1, true), read: pebbleRecords},
			arm{name: "etcd-wal", note: "one Save of one entry" + serial, open: openEtcd(1), read: etcdRecords},
			arm{name: "raft-wal", note: "hashicorp's: one StoreLogs of one log" + serial, open: openRaft, read: raftRecords},
			arm{name: "tidwall-wal", note: "one Write, NoSync off" + serial, open: openTidwall, read: tidwallRecords},
			arm{name: "bbolt", note: "one Put under the next sequence; Update with one goroutine, else Batch with MaxBatchDelay 1ms (10ms by default)", open: openBolt, read: boltRecords},
			arm{name: "badger", note: "one Set, SyncWrites on", open: openBadger, read: badgerRecords},
			arm{name: "sqlite", note: "one INSERT, journal_mode=WAL, synchronous=FULL, modernc.org/sqlite (C translated to Go)" + serial, open: openSQLite, read: sqliteRecords},
		),
		notes: []string{durableClock, "Not compared: backbone81/write-ahead-log and barnowlsnest/go-wallib. The module proxy did not have them."},
	}
}

// largeLogs is logs with records of a page, and without those that do not share syncs.
func largeLogs(full bool) comparison {
	c := logs(full)
	c.name, c.title, c.size = "log4k", "Logs: records of 4 KiB, each waited for until it is on stable storage", 4096
	for i := range c.loads { // more bytes a trial slow the disk down for those that follow
		c.loads[i].records = min(c.loads[i].records/2, 8_000)
	}
	c.arms = slices.DeleteFunc(c.arms, func(a arm) bool {
		return !a.alone && !strings.HasPrefix(a.name, baseline) && !strings.HasPrefix(a.name, "pebble")
	})
	return c
}

func holdfastLogs() []arm {
	o := wal.Options{Policy: holdfast.Durable()}
	large := wal.Options{Policy: o.Policy, SegmentSize: 64 * holdfast.MiB}
	return []arm{
		{name: baseline, note: "package wal, " + o.Policy.String() + ", Append", open: openLog(o), read: logRecords},
		{name: again, note: "the same arm once more: its ratio is the noise floor", open: openLog(o), read: logRecords},
		{name: "holdfast-prepared", note: "segments of 64 MiB: all ground is made before the clock starts, as that of pebble-recycled", open: openLog(large), read: logRecords},
		{name: "holdfast-recycled", note: "over the segments of an older log, as pebble-recycled: TruncateBefore keeps the size as it is", open: openRecycled(o), read: newRecords},
	}
}

// recycledSegment is the default size of a segment.
const recycledSegment = 16 * holdfast.MiB

// oldRecords is how many an older log has, and in how many segments. They are full but for one record, so w's
// first record begins a recycled one. There are so many that one is recycled for each that w fills. The rest of
// the older log's last one would not do. Large batches filled the log, so that has room without zeros, and
// syncs in such room take longer (docs/wal.md).
func oldRecords(w work) (n, segments int) {
	const header, frame, align = 4096, 32 + 4, 8 // docs/wal.md, "Format"
	each := (int(recycledSegment) - header) / ((frame + w.size + align - 1) &^ (align - 1))
	segments = 2 + w.records()/each
	return segments*each - 1, segments
}

// openRecycled appends to a log that is full of older records. A program that keeps a size looks
// now and then which of them go.
func openRecycled(o wal.Options) func(string, work) (*sink, error) {
	return func(dir string, w work) (*sink, error) {
		l, _, err := wal.Open(logDir(dir), o)
		if err != nil {
			return nil, err
		}
		old, segments := oldRecords(w)
		for range old {
			if _, err := l.Enqueue(newRecord(w.size, 0)); err != nil {
				return nil, errors.Join(err, l.Close())
			}
		}
		if err := l.Close(); err != nil { // so that nothing is prepared within the clock
			return nil, err
		}
		l, found, err := wal.Open(logDir(dir), o)
		if err != nil {
			return nil, err
		}
		if found.Segments != segments {
			return nil, errors.Join(fmt.Errorf("an older log of %d records has %d segments, want %d", old, found.Segments, segments), l.Close())
		}
		const look = 1000
		keep := holdfast.Size(segments-1) * recycledSegment
		retain := func() error { return l.TruncateBefore(min(l.FirstWithin(keep, 0), uint64(old)+1)) }
		if err := retain(); err != nil { // one segment is recycled from now on
			return nil, errors.Join(err, l.Close())
		}
		return each(func(p []byte) error {
			last, err := l.Append(p)
			if err == nil && last%look == 0 {
				err = retain()
			}
			return err
		}, l.Close), nil
	}
}

// newRecords is logRecords without those of the older log.
func newRecords(dir string, w work) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		old, _ := oldRecords(w)
		_, err := wal.Scan(logDir(dir), func(r wal.Record, damage *wal.DamageError) bool {
			switch {
			case damage != nil:
				return yield(nil, damage)
			case r.Index <= uint64(old):
				return true
			}
			return yield(r.Data, nil)
		})
		if err != nil {
			yield(nil, err)
		}
	}
}

// each makes a sink of a function that makes one record durable.
func each(put func(p []byte) error, close func() error) *sink {
	return &sink{writer: shared(putter(put)), close: close}
}

type putter func(p []byte) error

func (put putter) Write(p []byte) (int, error) {
	if err := put(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// numbered serialises put, and gives each call the next index.
func numbered(put func(index uint64, p []byte) error) func(p []byte) error {
	var mu sync.Mutex
	var index uint64
	return func(p []byte) error {
		mu.Lock()
		defer mu.Unlock()
		index++
		return put(index, p)
	}
}

func logDir(dir string) string { return filepath.Join(dir, "wal") }

func openLog(o wal.Options) func(string, work) (*sink, error) {
	return func(dir string, _ work) (*sink, error) {
		l, _, err := wal.Open(logDir(dir), o)
		if err != nil {
			return nil, err
		}
		return each(func(p []byte) error { _, err := l.Append(p); return err }, l.Close), nil
	}
}

func logRecords(dir string, _ work) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		_, err := wal.Scan(logDir(dir), func(r wal.Record, damage *wal.DamageError) bool {
			if damage != nil {
				return yield(nil, damage)
			}
			return yield(r.Data, nil)
		})
		if err != nil {
			yield(nil, err)
		}
	}
}

// groundBlock is what O_DIRECT wants: a multiple of every usual sector.
const groundBlock = 4096

// openGround overwrites a file of zeros that was synced, and cuts it to length at the end.
func openGround(direct bool) func(string, work) (*sink, error) {
	return func(dir string, w work) (*sink, error) {
		if err := zeros(logPath(dir), w.bytes()+groundBlock); err != nil {
			return nil, err
		}
		if err := syncDir(dir); err != nil {
			return nil, err
		}
		f, put, err := openOverwrite(logPath(dir), direct)
		if err != nil {
			return nil, err
		}
		return each(put, func() error {
			return errors.Join(f.Close(), os.Truncate(logPath(dir), w.bytes()))
		}), nil
	}
}

func zeros(path string, size int64) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.CopyN(f, zeroReader{}, size)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// raftLog opens raft-wal with its own store of segments, which its Close leaves open and locked.
func raftLog(dir string) (l *raftwal.WAL, shut func() error, err error) {
	meta := new(metadb.BoltMetaDB)
	l, err = raftwal.Open(dir, raftwal.WithLogger(hclog.NewNullLogger()), raftwal.WithMetaStore(meta))
	if err != nil {
		return nil, nil, errors.Join(err, meta.Close())
	}
	return l, func() error { return errors.Join(l.Close(), meta.Close()) }, nil
}

func openRaft(dir string, _ work) (*sink, error) {
	if err := os.Mkdir(logDir(dir), 0o777); err != nil {
		return nil, err
	}
	l, shut, err := raftLog(logDir(dir))
	if err != nil {
		return nil, err
	}
	return each(numbered(func(index uint64, p []byte) error {
		return l.StoreLog(&raft.Log{Index: index, Data: p})
	}), shut), nil
}

func raftRecords(dir string, _ work) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		l, shut, err := raftLog(logDir(dir))
		if err != nil {
			yield(nil, err)
			return
		}
		defer shut()
		indexed(l.LastIndex, func(i uint64) ([]byte, error) {
			var r raft.Log
			err := l.GetLog(i, &r)
			return r.Data, err
		}, yield)
	}
}

// indexed yields the records 1 to last.
func indexed(last func() (uint64, error), read func(i uint64) ([]byte, error), yield func([]byte, error) bool) {
	n, err := last()
	if err != nil {
		yield(nil, err)
		return
	}
	for i := uint64(1); i <= n; i++ {
		data, err := read(i)
		if !yield(data, err) || err != nil {
			return
		}
	}
}

func openTidwall(dir string, _ work) (*sink, error) {
	l, err := tidwall.Open(logDir(dir), nil)
	if err != nil {
		return nil, err
	}
	return each(numbered(l.Write), l.Close), nil
}

func tidwallRecords(dir string, _ work) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		l, err := tidwall.Open(logDir(dir), nil)
		if err != nil {
			yield(nil, err)
			return
		}
		defer l.Close()
		indexed(l.LastIndex, l.Read, yield)
	}
}

// A counter numbers the keys of a database from 1 on.
type counter struct{ n atomic.Uint64 }

func (c *counter) key() []byte { return binary.BigEndian.AppendUint64(nil, c.n.Add(1)) }
