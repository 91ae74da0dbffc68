package main

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/prometheus/tsdb/wlog"
	"github.com/prometheus/prometheus/util/compression"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/wal"
)

// ignored is an error, or nil if it is one of a kind.
func ignored(err, kind error) error {
	if errors.Is(err, kind) {
		return nil
	}
	return err
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
