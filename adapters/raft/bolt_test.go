//go:build go1.25

package raft_test

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/go-msgpack/v2/codec"
	hashicorp "github.com/hashicorp/raft"
	"github.com/holdfast-go/holdfast/adapters/raft"
	"go.etcd.io/bbolt"
)

// boltFile makes a file as raft-boltdb does: the entries in bucket logs, by big-endian indices, and
// the values in bucket conf.
func boltFile(t *testing.T, logs []*hashicorp.Log, values map[string]string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "raft.db")
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		entries, err := tx.CreateBucket([]byte("logs"))
		if err != nil {
			return err
		}
		for i, log := range logs {
			var text []byte
			var handle codec.MsgpackHandle
			handle.TimeNotBuiltin = i%2 == 0 // the older format
			err := codec.NewEncoderBytes(&text, &handle).Encode(log)
			if err = errors.Join(err, entries.Put(binary.BigEndian.AppendUint64(nil, log.Index), text)); err != nil {
				return err
			}
		}
		conf, err := tx.CreateBucket([]byte("conf"))
		for key, value := range values {
			err = errors.Join(err, conf.Put([]byte(key), []byte(value)))
		}
		return err
	})
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

func checkCopied(t *testing.T, dir string, want []*hashicorp.Log, values map[string]string) {
	t.Helper()
	s, err := raft.Open(dir, small)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	first, last, _ := s.Indexes()
	if n := len(want); n == 0 && last > 0 || n > 0 && (first != want[0].Index || last != want[n-1].Index) {
		t.Fatalf("it has %d to %d of %d entries", first, last, n)
	}
	for _, log := range want {
		var is hashicorp.Log
		if err := s.GetLog(log.Index, &is); err != nil || !same(&is, log) {
			t.Errorf("%+v, %v; want %+v", is, err, log)
		}
	}
	for key, value := range values {
		if is, err := s.Get([]byte(key)); string(is) != value || err != nil {
			t.Errorf("%q is %q, %v; want %q", key, is, err, value)
		}
	}
}

func someEntries(first, last uint64) (logs []*hashicorp.Log) {
	r := rand.New(rand.NewPCG(first, last))
	for index := first; index <= last; index++ {
		logs = append(logs, entry(r, index))
	}
	return logs
}

func TestBoltFileIsCopied(t *testing.T) {
	values := map[string]string{"CurrentTerm": "\x00\x00\x00\x00\x00\x00\x00\x07", "LastVoteCand": "b", "\xff": ""}
	for name, test := range map[string]struct{ logs, want []*hashicorp.Log }{
		"empty":             {},
		"from 1":            {someEntries(1, 300), someEntries(1, 300)},
		"after a snapshot":  {someEntries(70, 90), someEntries(70, 90)},
		"with a gap":        {append(someEntries(3, 30), someEntries(70, 75)...), someEntries(70, 75)},
		"with a gap, large": {append(someEntries(3, 300), someEntries(400, 900)...), someEntries(400, 900)},
	} {
		t.Run(name, func(t *testing.T) {
			path := boltFile(t, test.logs, values)
			dir := filepath.Join(t.TempDir(), "store")
			if err := raft.MigrateFromBolt(dir, path, small); err != nil {
				t.Fatal(err)
			}
			checkCopied(t, dir, test.want, values)
			// Each start calls it, also when the file is gone.
			s, err := raft.Open(dir, small)
			if err != nil {
				t.Fatal(err)
			}
			_, last, _ := s.Indexes()
			more := someEntries(last+1, last+2)
			if err := errors.Join(s.StoreLogs(more), s.Set([]byte("LastVoteCand"), []byte("c")), s.Close(), os.Remove(path)); err != nil {
				t.Fatal(err)
			}
			if err := raft.MigrateFromBolt(dir, path, small); err != nil {
				t.Fatal(err)
			}
			checkCopied(t, dir, append(test.want, more...), map[string]string{"LastVoteCand": "c"})
		})
	}
}

// TestInterruptedCopyIsMadeAnew, and is no store until then.
func TestInterruptedCopyIsMadeAnew(t *testing.T) {
	logs := someEntries(5, 60)
	broken := append(someEntries(5, 60)[:50:50], &hashicorp.Log{Index: 55, Data: []byte("x")})
	path := boltFile(t, broken, nil)
	db, err := bbolt.Open(path, 0o600, nil)
	if err == nil {
		err = db.Update(func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte("logs")).Put(binary.BigEndian.AppendUint64(nil, 55), []byte{0x91})
		})
		err = errors.Join(err, db.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "store")
	options := small
	options.SegmentSize = 8 << 10 // some batches are stored before the broken entry
	for range 2 {
		if err := raft.MigrateFromBolt(dir, path, options); err == nil || !strings.Contains(err.Error(), "0000000000000037") {
			t.Fatal("a broken entry:", err)
		}
		if _, err := raft.Open(dir, options); err == nil || !strings.Contains(err.Error(), "call MigrateFromBolt again") {
			t.Fatal("a half copy is opened:", err)
		}
	}
	values := map[string]string{"k": "v"}
	if err := raft.MigrateFromBolt(dir, boltFile(t, logs, values), options); err != nil {
		t.Fatal(err)
	}
	checkCopied(t, dir, logs, values)
}

func TestWhatIsNoBoltFileIsRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	missing := filepath.Join(t.TempDir(), "raft.db")
	if err := raft.MigrateFromBolt(dir, missing, small); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), missing) {
		t.Errorf("a file that is not there: %v", err)
	}
	other := filepath.Join(t.TempDir(), "other.db")
	db, err := bbolt.Open(other, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := raft.MigrateFromBolt(dir, other, small); err == nil || !strings.Contains(err.Error(), "no other process") {
		t.Errorf("a file that is open: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := raft.MigrateFromBolt(dir, other, small); err == nil || !strings.Contains(err.Error(), "buckets") {
		t.Errorf("a file of something else: %v", err)
	}
}

// TestEntriesWithoutValuesAreRefused: a log that was repaired is no store before the values are
// beside it.
func TestEntriesWithoutValuesAreRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s, err := raft.Open(dir, small)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.StoreLogs(someEntries(1, 3)), s.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := raft.Open(dir, small); err == nil || !strings.Contains(err.Error(), "no file stable") {
		t.Errorf("without values: %v", err)
	}
	if err := raft.MigrateFromBolt(dir, boltFile(t, nil, nil), small); err == nil || !strings.Contains(err.Error(), "move it away") {
		t.Errorf("a copy over entries: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "stable"), []byte(`{}`), 0o666); err != nil {
		t.Fatal(err)
	}
	checkCopied(t, dir, someEntries(1, 3), nil)
	if err := os.WriteFile(filepath.Join(dir, "stable"), []byte(`{"a":`), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := raft.Open(dir, small); err == nil || !strings.Contains(err.Error(), "stable") {
		t.Errorf("values that are no JSON: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "stable")); err != nil {
		t.Fatal(err)
	}
}
