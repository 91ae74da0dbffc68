package crash

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/google/renameio/v2"
	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	raftwal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/metadb"
	"github.com/moby/sys/atomicwriter"
	"github.com/natefinch/atomic"
	"github.com/peterbourgon/diskv/v3"
	"github.com/prometheus/prometheus/tsdb/wlog"
	"github.com/prometheus/prometheus/util/compression"
	"github.com/syncthing/syncthing/lib/osutil"
	"github.com/syndtr/goleveldb/leveldb"
	"github.com/syndtr/goleveldb/leveldb/opt"
	"github.com/tidwall/buntdb"
	tidwall "github.com/tidwall/wal"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"gopkg.in/natefinch/lumberjack.v2"
)

func number(text []byte) (uint64, error) {
	return strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
}

func text(n uint64) []byte { return strconv.AppendUint(nil, n, 10) }

// state keeps the last number as the content of one file, which write replaces. The files before it are
// superseded: so all numbers up to it count as found.
func state(write func(name string, content []byte) error, read func(name string) ([]byte, error)) func() (*database, error) {
	return func() (*database, error) {
		return &database{
			put: func(n uint64) error { return write("f", text(n)) },
			read: func(do func(uint64)) (last uint64, err error) {
				content, err := read("f")
				if errors.Is(err, fs.ErrNotExist) || err == nil && len(content) == 0 {
					return 0, nil
				}
				if err == nil {
					last, err = number(content)
				}
				for n := range last {
					do(n + 1)
				}
				return last, err
			}}, nil
	}
}

// indexed is a log whose records have the indices 1 to last. A record that was never put, which a log
// without checksums finds behind a failed sync, ends the reading: it is no loss.
func indexed(put func(n uint64) error, last func() (uint64, error), get func(n uint64) ([]byte, error)) *database {
	return &database{put: put, read: func(do func(uint64)) (uint64, error) {
		end, err := last()
		for n := uint64(1); err == nil && n <= end; n++ {
			var content []byte
			if content, err = get(n); err != nil || string(content) != string(text(n)) {
				break
			}
			do(n)
		}
		return end, err
	}}
}

func openEtcd() (*database, error) {
	const dir = "wal"
	create := func() error { // as etcd does, which removes what an interrupted creation has left
		w, err := wal.Create(nil, dir, nil)
		if err == nil {
			err = w.Close()
		}
		return err
	}
	if !wal.Exist(dir) {
		if err := create(); err != nil {
			return nil, err
		}
	}
	w, err := wal.Open(nil, dir, &walpb.Snapshot{})
	if err != nil {
		return nil, err
	}
	_, _, entries, err := w.ReadAll()
	if err != nil {
		return nil, err
	}
	term := uint64(1)
	return &database{
		put: func(n uint64) error {
			return w.Save(&raftpb.HardState{Term: &term, Commit: &n}, []*raftpb.Entry{{Term: &term, Index: &n, Data: text(n)}})
		},
		read: func(do func(uint64)) (last uint64, err error) {
			for _, e := range entries {
				if last, err = number(e.Data); err != nil {
					return 0, err
				}
				do(last)
			}
			return last, nil
		}}, nil
}

func openTidwall() (*database, error) {
	l, err := tidwall.Open(".", nil)
	if err != nil {
		return nil, err
	}
	return indexed(func(n uint64) error { return l.Write(n, text(n)) }, l.LastIndex, l.Read), nil
}

func raftLog(s raft.LogStore) *database {
	return indexed(
		func(n uint64) error { return s.StoreLog(&raft.Log{Index: n, Data: text(n)}) },
		s.LastIndex,
		func(n uint64) ([]byte, error) {
			var e raft.Log
			err := s.GetLog(n, &e)
			return e.Data, err
		})
}

func openRaftWAL() (*database, error) {
	l, err := raftwal.Open(".", raftwal.WithLogger(hclog.NewNullLogger()), raftwal.WithMetaStore(new(metadb.BoltMetaDB)))
	if err != nil {
		return nil, err
	}
	return raftLog(l), nil
}

func openRaftBolt() (*database, error) {
	s, err := raftboltdb.NewBoltStore("raft.db")
	if err != nil {
		return nil, err
	}
	return raftLog(s), nil
}

func openBunt(sync buntdb.SyncPolicy) func() (*database, error) {
	return func() (*database, error) {
		db, err := buntdb.Open("db")
		if err != nil {
			return nil, err
		}
		var config buntdb.Config
		if err := db.ReadConfig(&config); err != nil {
			return nil, err
		}
		config.SyncPolicy = sync
		if err := db.SetConfig(config); err != nil {
			return nil, err
		}
		return &database{
			put: func(n uint64) error {
				return db.Update(func(tx *buntdb.Tx) error {
					_, _, err := tx.Set(string(key(n)), "", nil)
					return err
				})
			},
			read: func(do func(uint64)) (last uint64, err error) {
				return last, db.View(func(tx *buntdb.Tx) error {
					return tx.Ascend("", func(k, _ string) bool {
						last = binary.BigEndian.Uint64([]byte(k))
						do(last)
						return true
					})
				})
			}}, nil
	}
}

func openLevel(sync bool) func() (*database, error) {
	return func() (*database, error) {
		db, err := leveldb.OpenFile(".", nil)
		if err != nil {
			return nil, err
		}
		return &database{
			put: func(n uint64) error { return db.Put(key(n), key(n), &opt.WriteOptions{Sync: sync}) },
			read: func(do func(uint64)) (last uint64, err error) {
				it := db.NewIterator(nil, nil)
				defer it.Release()
				for it.Next() {
					last = binary.BigEndian.Uint64(it.Key())
					do(last)
				}
				return last, it.Error()
			}}, nil
	}
}

// openDiskv writes as diskv does where a caller asks for a sync of each value.
func openDiskv(sync bool) func() (*database, error) {
	d := diskv.New(diskv.Options{BasePath: ".", TempDir: "tmp"})
	return state(
		func(name string, content []byte) error { return d.WriteStream(name, bytes.NewReader(content), sync) },
		d.Read)
}

// openGoGit makes a commit a record, with the number as its message.
func openGoGit() (*database, error) {
	store := filesystem.NewStorage(osfs.New(".git"), cache.NewObjectLRUDefault())
	work := osfs.New(".")
	r, err := git.Open(store, work)
	if errors.Is(err, git.ErrRepositoryNotExists) {
		r, err = git.Init(store, work)
	}
	if err != nil {
		return nil, err
	}
	tree, err := r.Worktree()
	if err != nil {
		return nil, err
	}
	return &database{
		put: func(n uint64) error {
			if err := os.WriteFile("f", text(n), 0o666); err != nil {
				return err
			}
			if _, err := tree.Add("f"); err != nil {
				return err
			}
			_, err := tree.Commit(string(text(n)), &git.CommitOptions{Author: &object.Signature{Name: "a", Email: "a@example.org", When: time.Unix(int64(n), 0)}})
			return err
		},
		read: func(do func(uint64)) (last uint64, err error) {
			head, err := r.Head()
			if errors.Is(err, plumbing.ErrReferenceNotFound) {
				return 0, nil
			}
			if err != nil {
				return 0, err
			}
			commits, err := r.Log(&git.LogOptions{From: head.Hash()})
			if err != nil {
				return 0, err
			}
			var found []uint64
			err = commits.ForEach(func(c *object.Commit) error {
				n, err := number([]byte(c.Message))
				if err != nil {
					return err
				}
				found = append(found, n)
				_, err = c.Tree()
				return err
			})
			for _, last = range slices.Backward(found) {
				do(last)
			}
			return last, err
		}}, nil
}

// openLumberjack makes a line a record.
func openLumberjack() (*database, error) {
	l := &lumberjack.Logger{Filename: "log"}
	return &database{
		put: func(n uint64) error {
			_, err := l.Write(append(text(n), '\n'))
			return err
		},
		read: func(do func(uint64)) (last uint64, err error) {
			content, err := os.ReadFile("log")
			if errors.Is(err, fs.ErrNotExist) {
				return 0, nil
			}
			for line := range bytes.Lines(content) {
				if n, err := number(line); err == nil && bytes.HasSuffix(line, []byte("\n")) {
					last = n
					do(n)
				}
			}
			return last, err
		}}, nil
}

func writeAtomic(name string, content []byte) error {
	return atomic.WriteFile(name, bytes.NewReader(content))
}

func writeRenameio(name string, content []byte) error {
	return renameio.WriteFile(name, content, 0o666)
}

// writeMoby writes by the function that Docker uses for its state.
func writeMoby(name string, content []byte) error {
	return atomicwriter.WriteFile(name, content, 0o666)
}

func writeSyncthing(name string, content []byte) error {
	w, err := osutil.CreateAtomic(name)
	if err != nil {
		return err
	}
	if _, err := w.Write(content); err != nil {
		return errors.Join(err, w.Close())
	}
	return w.Close()
}

// openWlog has the log of Prometheus' database. It repairs what a crash has left, as Prometheus does when it starts.
func openWlog() (*database, error) {
	const dir = "wal"
	var found []uint64
	damage := error(nil)
	if segments, err := wlog.NewSegmentsReader(dir); err == nil {
		r := wlog.NewReader(segments)
		for r.Next() {
			n, err := number(r.Record())
			if err != nil {
				return nil, err
			}
			found = append(found, n)
		}
		damage = r.Err()
		if err := segments.Close(); err != nil {
			return nil, err
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	w, err := wlog.New(nil, nil, dir, compression.None)
	if err != nil {
		return nil, err
	}
	if damage != nil {
		if err := w.Repair(damage); err != nil {
			return nil, err
		}
	}
	return &database{
		put: func(n uint64) error { return w.Log(text(n)) },
		read: func(do func(uint64)) (last uint64, err error) {
			for _, last = range found {
				do(last)
			}
			return last, nil
		}}, nil
}

func writeInPlace(name string, content []byte) error { return os.WriteFile(name, content, 0o666) }
