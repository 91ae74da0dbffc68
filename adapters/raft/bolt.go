package raft

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/hashicorp/raft"
	"github.com/holdfast-go/holdfast/wal"
	"go.etcd.io/bbolt"
)

// MigrateFromBolt copies the entries and values of a file of raft-boltdb to a new store in dir. Call
// it before each Open: if dir has a store, it does nothing, and does not look for the file. If it
// was interrupted, the next call copies anew, and Open refuses what is there. The file is not
// changed, and may be removed after Open. A path that does not exist is an error that is
// fs.ErrNotExist.
//
// A file may have a gap in its entries, where raft has restored a snapshot. Entries before the last
// gap are not copied: the snapshot has them.
func MigrateFromBolt(dir, path string, o wal.Options) (err error) {
	s, err := open(dir, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	switch first, last, _ := s.Indexes(); {
	case s.stable.values != nil && s.stable.copies == "":
		return nil
	case s.stable.copies != "":
		if err := s.DeleteRange(first, last); err != nil {
			return err
		}
	case last > 0:
		return fmt.Errorf("raft: %s has entries, and no file %s; move it away to copy %s", dir, stableName, path)
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("raft: no file of raft-boltdb to copy: %w", err) // bbolt has no words for it
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		return fmt.Errorf("raft: open %s: %w; no other process may have it open", path, err)
	}
	defer db.Close()
	if err := s.stable.write(map[string][]byte{}, path); err != nil {
		return err
	}
	values := map[string][]byte{}
	err = db.View(func(tx *bbolt.Tx) error {
		logs, conf := tx.Bucket([]byte("logs")), tx.Bucket([]byte("conf"))
		if logs == nil || conf == nil {
			return errors.New("it has no buckets logs and conf; is it of raft-boltdb?")
		}
		if err := s.copyEntries(logs); err != nil {
			return err
		}
		return conf.ForEach(func(key, value []byte) error {
			values[string(key)] = bytes.Clone(value)
			return nil
		})
	})
	if err != nil {
		return fmt.Errorf("raft: copy %s to %s: %w", path, dir, err)
	}
	return s.stable.write(values, "")
}

// copyEntries appends the entries of a bucket of raft-boltdb, in batches.
func (s *Store) copyEntries(logs *bbolt.Bucket) error {
	var batch []*raft.Log
	next, size := uint64(0), 0
	store := func() error {
		err := s.StoreLogs(batch)
		batch, size = nil, 0
		return err
	}
	entries := logs.Cursor()
	for key, value := entries.First(); key != nil; key, value = entries.Next() {
		log := new(raft.Log)
		err := codec.NewDecoderBytes(value, new(codec.MsgpackHandle)).Decode(log)
		if err == nil && (len(key) != 8 || binary.BigEndian.Uint64(key) != log.Index) {
			err = fmt.Errorf("it is the entry %d", log.Index)
		}
		if err != nil {
			return fmt.Errorf("the value of key %x: %w", key, err)
		}
		if log.Index != next && next > 0 {
			batch, size = nil, 0
			if err := s.DeleteRange(0, next-1); err != nil {
				return err
			}
		}
		next = log.Index + 1
		batch = append(batch, log)
		if size += len(value); size > s.most {
			if err := store(); err != nil {
				return err
			}
		}
	}
	return store()
}
