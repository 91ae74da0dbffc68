package records

import (
	"io"
	"iter"
	"path/filepath"
	"sync"

	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
)

func openEtcd(entries int) func(string, work) (*sink, error) {
	return func(dir string, _ work) (*sink, error) {
		w, err := wal.Create(nil, etcdPath(dir), nil)
		if err != nil {
			return nil, err
		}
		e := &etcdLog{wal: w}
		return &sink{
			writer: func() (io.Writer, func() error) {
				l := &etcdLane{log: e, entries: entries}
				return l, l.save
			},
			close: w.Close,
		}, nil
	}
}

func etcdPath(dir string) string { return filepath.Join(dir, "wal") }

// etcdLog gives the entries the gapless indices that the wal's reader asks for.
type etcdLog struct {
	mu    sync.Mutex
	index uint64
	wal   *wal.WAL
}

func (l *etcdLog) save(entries []*raftpb.Entry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range entries {
		l.index++
		e.Index = new(l.index)
	}
	return l.wal.Save(nil, entries)
}

// etcdLane gathers one goroutine's records up to one Save.
type etcdLane struct {
	log     *etcdLog
	entries int
	held    []*raftpb.Entry
}

func (l *etcdLane) Write(p []byte) (int, error) {
	// An entry keeps its Data until it is saved, and p is the caller's.
	l.held = append(l.held, &raftpb.Entry{Data: append([]byte(nil), p...)})
	if len(l.held) < l.entries {
		return len(p), nil
	}
	return len(p), l.save()
}

func (l *etcdLane) save() error {
	if len(l.held) == 0 {
		return nil
	}
	err := l.log.save(l.held)
	l.held = l.held[:0]
	return err
}

// etcdRecords reads the log back with the wal's own reader, which checks the
// checksums.
func etcdRecords(dir string, _ work) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		w, err := wal.OpenForRead(nil, etcdPath(dir), &walpb.Snapshot{})
		if err != nil {
			yield(nil, err)
			return
		}
		defer w.Close()
		_, _, entries, err := w.ReadAll()
		for _, e := range entries {
			if !yield(e.GetData(), nil) {
				return
			}
		}
		if err != nil {
			yield(nil, err)
		}
	}
}
