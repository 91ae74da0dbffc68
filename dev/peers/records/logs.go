package records

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
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

// logEach maps a number of goroutines to the number of records that each writes.
var logEach = map[int]int{1: 1000, 8: 500, 64: 250, 512: 117}

// logs compares what it costs to append durably to a log that finds each record again.
func logs() (all []*group) {
	for _, n := range []int{1, 8, 64, 512} {
		w := work{goroutines: n, each: logEach[n], size: durableSize}
		serial := w.serial()
		const note = serialNote + ": a sync.Mutex around it"
		arms := append(holdfastLogs(),
			&arm{Name: "pebble", Note: pebbleNote, Do: how{open: openPebble(1, false), read: pebbleRecords}},
			&arm{Name: "pebble-recycled", Note: recycledNote, Do: how{open: openPebble(1, true), read: pebbleRecords}},
			&arm{Name: "etcd-wal", Note: "one Save of one entry" + note, Do: how{work: serial, open: openEtcd(1), read: etcdRecords}},
			&arm{Name: "raft-wal", Note: "hashicorp's: one StoreLogs of one log" + note, Do: how{work: serial, open: openRaft, read: raftRecords}},
			&arm{Name: "tidwall-wal", Note: "one Write, NoSync off" + note, Do: how{work: serial, open: openTidwall, read: tidwallRecords}},
			&arm{Name: "bbolt", Note: "one Put under the next sequence; Update with one goroutine, else Batch with MaxBatchDelay 1ms (10ms by default)", Do: how{open: openBolt, read: boltRecords}},
			&arm{Name: "badger", Note: "one Set, SyncWrites on", Do: how{open: openBadger, read: badgerRecords}},
			&arm{Name: "sqlite", Note: "one INSERT, journal_mode=WAL, synchronous=FULL, modernc.org/sqlite (C translated to Go)" + note, Do: how{work: serial, open: openSQLite, read: sqliteRecords}})
		g := newGroup(fmt.Sprintf("log/goroutines=%d", n), fmt.Sprintf("records of %d bytes that are found again, each waited for until it is on stable storage", w.size), w, append(arms, syncLimits(w)...))
		g.Notes = []string{durableClock, "Not compared: backbone81/write-ahead-log and barnowlsnest/go-wallib. The module proxy did not have them."}
		all = append(all, g)
	}
	return all
}

// largeLogs is logs with records of a page, without the logs that do not share syncs.
func largeLogs() (all []*group) {
	for _, n := range []int{1, 8, 64, 512} {
		// More bytes a trial slow the disk down for the following trials.
		w := work{goroutines: n, each: min(logEach[n]/2, 8_000/n), size: 4 * kib}
		arms := append(holdfastLogs(),
			&arm{Name: "pebble", Note: pebbleNote, Do: how{open: openPebble(1, false), read: pebbleRecords}},
			&arm{Name: "pebble-recycled", Note: recycledNote, Do: how{open: openPebble(1, true), read: pebbleRecords}})
		all = append(all, newGroup(fmt.Sprintf("log4k/goroutines=%d", n), "records of 4 KiB that are found again, each waited for until it is on stable storage", w, append(arms, syncLimits(w)...)))
	}
	return all
}

func holdfastLogs() []*arm {
	o := wal.Options{Policy: holdfast.Durable()}
	large := wal.Options{Policy: o.Policy, SegmentSize: 64 * holdfast.MiB}
	return []*arm{
		{Name: "holdfast", Note: "package wal, " + o.Policy.String() + ", Append", Do: how{open: openLog(o), read: logRecords}},
		{Name: "holdfast-prepared", Note: "segments of 64 MiB: all segments are made before the clock starts, as for pebble-recycled", Do: how{open: openLog(large), read: logRecords}},
		{Name: "holdfast-recycled", Note: "over the segments of an older log, as pebble-recycled: TruncateBefore keeps the size as it is", Do: how{open: openRecycled(o), read: newRecords}},
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
		l, err := openWAL(dir, o, w)
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
		if l, err = openWAL(dir, o, w); err != nil {
			return nil, err
		}
		keep := holdfast.Size(segments-1) * recycledSegment
		if kept := l.FirstWithin(keep, 0); kept != uint64(old+1)/uint64(segments)+1 {
			return nil, errors.Join(fmt.Errorf("an older log of %d records has not %d segments: its second begins with %d", old, segments, kept), l.Close())
		}
		const look = 1000
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

// newRecords is logRecords without the older log's records.
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
	return func(dir string, w work) (*sink, error) {
		l, err := openWAL(dir, o, w)
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

// groundBlock is a block for O_DIRECT: a multiple of every usual sector.
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
