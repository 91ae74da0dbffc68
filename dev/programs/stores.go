package main

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"github.com/prometheus/prometheus/tsdb/wlog"
	"github.com/prometheus/prometheus/util/compression"

	"github.com/holdfast-go/holdfast"
	forraft "github.com/holdfast-go/holdfast/adapters/raft"
	"github.com/holdfast-go/holdfast/wal"
)

// A raftStore has the entries of hashicorp/raft, and its state.
type raftStore interface {
	raft.LogStore
	raft.StableStore
	io.Closer
}

func raftBefore(at place) (*use, error) {
	store, err := raftboltdb.NewBoltStore(filepath.Join(at.dir, "raft.db"))
	if err != nil {
		return nil, err
	}
	return useRaft(store)
}

func raftAfter(at place) (*use, error) {
	store, err := forraft.Open(filepath.Join(at.dir, "raft"), wal.Options{Policy: holdfast.Durable(), SegmentSize: at.segment})
	if err != nil {
		return nil, err
	}
	return useRaft(store)
}

// useRaft is a cluster of one, whose state machine does nothing.
func useRaft(store raftStore) (*use, error) {
	config := raft.DefaultConfig()
	config.LocalID, config.Logger = "one", hclog.NewNullLogger()
	config.HeartbeatTimeout, config.ElectionTimeout, config.LeaderLeaseTimeout = 50*time.Millisecond, 50*time.Millisecond, 50*time.Millisecond
	address, transport := raft.NewInmemTransport("")
	snapshots := raft.NewInmemSnapshotStore()
	err := raft.BootstrapCluster(config, store, store, snapshots, transport, raft.Configuration{Servers: []raft.Server{{ID: "one", Address: address}}})
	if err != nil && !errors.Is(err, raft.ErrCantBootstrap) {
		return nil, err
	}
	node, err := raft.NewRaft(config, machine{}, store, store, snapshots, transport)
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(time.Minute); node.State() != raft.Leader; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			return nil, errors.New("raft has no leader after a minute")
		}
	}
	return &use{
		put:   func(n uint64) error { return node.Apply(fmt.Append(nil, "record ", n), 0).Error() },
		close: func() error { return errors.Join(node.Shutdown().Error(), store.Close()) },
	}, nil
}

// A machine is raft's state machine. There is nothing to do.
type machine struct{}

func (machine) Apply(*raft.Log) any                 { return nil }
func (machine) Snapshot() (raft.FSMSnapshot, error) { return nil, errors.ErrUnsupported }
func (machine) Restore(io.ReadCloser) error         { return nil }

func keptByBolt(dir string) ([]string, error) {
	path := filepath.Join(dir, "raft.db")
	if info, err := os.Stat(path); err != nil || info.Size() == 0 {
		return nil, ignored(err, fs.ErrNotExist)
	}
	store, err := raftboltdb.NewBoltStore(path)
	if err != nil {
		return nil, err
	}
	return entries(store)
}

func keptByRaft(dir string) ([]string, error) {
	dir = filepath.Join(dir, "raft")
	if _, err := os.Stat(dir); err != nil {
		return nil, ignored(err, fs.ErrNotExist)
	}
	store, err := forraft.Open(dir, wal.Options{Policy: holdfast.Durable()})
	if err != nil {
		return nil, err
	}
	return entries(store)
}

// ignored is an error, or nil if it is one of a kind.
func ignored(err, kind error) error {
	if errors.Is(err, kind) {
		return nil
	}
	return err
}

// entries reads a store's commands, and closes it. Two elections may have left the last of them twice.
func entries(store raftStore) (all []string, err error) {
	defer func() { err = errors.Join(err, store.Close()) }()
	first, err := store.FirstIndex()
	if err != nil || first == 0 {
		return nil, err
	}
	last, err := store.LastIndex()
	for i := first; i <= last && err == nil; i++ {
		var e raft.Log
		if err = store.GetLog(i, &e); err == nil && e.Type == raft.LogCommand {
			all = append(all, string(e.Data))
		}
	}
	return all, err
}

func pebbleBefore(at place) (*use, error) {
	return usePebble(&pebble.Options{}, at.dir)
}

func pebbleAfter(at place) (*use, error) {
	return usePebble(&pebble.Options{FS: logFS{vfs.Default}}, at.dir)
}

func usePebble(options *pebble.Options, dir string) (*use, error) {
	options.Logger = quiet{}
	db, err := pebble.Open(filepath.Join(dir, "db"), options)
	if err != nil {
		return nil, err
	}
	return &use{close: db.Close, put: func(n uint64) error {
		return db.Set(binary.BigEndian.AppendUint64(nil, n), fmt.Append(nil, "record ", n), pebble.Sync)
	}}, nil
}

// logFS is a file system of pebble whose logs are written by a Writer.
type logFS struct{ vfs.FS }

func (f logFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return written(name)(f.FS.Create(name, c))
}

func (f logFS) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return written(name)(f.FS.ReuseForWrite(old, name, c))
}

func written(name string) func(vfs.File, error) (vfs.File, error) {
	return func(f vfs.File, err error) (vfs.File, error) {
		if err != nil || !strings.HasSuffix(name, ".log") {
			return f, err
		}
		w, err := holdfast.New(f, holdfast.Policy{Buffer: 64 * holdfast.KiB, FlushEvery: 100 * time.Millisecond})
		return logFile{f, w}, err
	}
}

// A logFile is a log of pebble. Its other methods are its file's.
type logFile struct {
	vfs.File
	w *holdfast.Writer
}

func (f logFile) Write(p []byte) (int, error) { return f.w.Write(p) }
func (f logFile) Sync() error                 { return f.w.Sync() }
func (f logFile) SyncData() error             { return f.w.Sync() }
func (f logFile) SyncTo(int64) (bool, error)  { return true, f.w.Sync() }
func (f logFile) Close() error                { return f.w.Close() }

// quiet says nothing but the cause of an end.
type quiet struct{}

func (quiet) Infof(string, ...any)              {}
func (quiet) Errorf(string, ...any)             {}
func (quiet) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func keptByPebble(dir string) (all []string, err error) {
	if _, err := os.Stat(filepath.Join(dir, "db")); err != nil {
		return nil, ignored(err, fs.ErrNotExist)
	}
	db, err := pebble.Open(filepath.Join(dir, "db"), &pebble.Options{Logger: quiet{}})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	it, err := db.NewIter(nil)
	if err != nil {
		return nil, err
	}
	for it.First(); it.Valid(); it.Next() {
		all = append(all, string(it.Value()))
	}
	return all, it.Close()
}

// sample stands for a record of Prometheus' log.
func sample(n uint64) []byte { return append(fmt.Append(nil, "record ", n, " "), make([]byte, 180)...) }

func wlogBefore(at place) (*use, error) {
	w, err := wlog.New(nil, nil, filepath.Join(at.dir, "wal"), compression.None)
	if err != nil {
		return nil, err
	}
	return &use{close: w.Close, put: func(n uint64) error {
		return w.Log(sample(n))
	}}, nil
}

func wlogAfter(at place) (*use, error) {
	w, _, err := wal.Open(filepath.Join(at.dir, "wal"), wal.Options{Policy: at.policy, SegmentSize: at.segment})
	if err != nil {
		return nil, err
	}
	return &use{close: w.Close, put: func(n uint64) error {
		_, err := w.Enqueue(sample(n))
		return err
	}}, nil
}

// keptByWlog reads up to the first damage, as Prometheus' repair does.
func keptByWlog(dir string) (all []string, err error) {
	dir = filepath.Join(dir, "wal")
	if _, err := os.Stat(dir); err != nil {
		return nil, ignored(err, fs.ErrNotExist)
	}
	segments, err := wlog.NewSegmentsReader(dir)
	if err != nil {
		return nil, ignored(err, fs.ErrNotExist)
	}
	r := wlog.NewReader(segments)
	for r.Next() {
		all = append(all, string(bytes.TrimRight(r.Record(), "\x00")))
	}
	var damage *wlog.CorruptionErr
	if err = r.Err(); errors.As(err, &damage) {
		err = nil
	}
	return all, cmp.Or(err, segments.Close())
}

func keptByWal(dir string) (all []string, err error) {
	dir = filepath.Join(dir, "wal")
	if _, err := os.Stat(dir); err != nil {
		return nil, ignored(err, fs.ErrNotExist)
	}
	_, err = wal.Scan(dir, func(r wal.Record, damage *wal.DamageError) bool {
		if damage == nil {
			all = append(all, string(bytes.TrimRight(r.Data, "\x00")))
		}
		return damage == nil
	})
	return all, err
}
