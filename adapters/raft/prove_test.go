//go:build go1.25

package raft_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	hashicorp "github.com/hashicorp/raft"
	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/adapters/raft"
	"github.com/holdfast-go/holdfast/internal/isolate"
	"github.com/holdfast-go/holdfast/provetest"
	"github.com/holdfast-go/holdfast/wal"
)

// TestStoreSurvives crashes a store under raft's calls: batches of entries, entries taken back,
// snapshots (in a value), the removal of the entries they cover, terms.
func TestStoreSurvives(t *testing.T) {
	isolate.Once(t)
	provetest.Test(t, provetest.Workload{Write: keepStoring, Read: stored, Synced: true, Time: 400 * time.Millisecond})
}

func openProved(dir string) (*raft.Store, error) {
	return raft.Open(dir+"/store", wal.Options{SegmentSize: 16 * holdfast.KiB})
}

func keepStoring(dir string, log *provetest.Log) error {
	s, err := openProved(dir)
	if err != nil {
		return err
	}
	state, err := stateOf(s)
	if err != nil {
		return errors.Join(err, s.Close())
	}
	for n := 0; err == nil; n++ {
		err = storeOnce(s, log, state, n)
	}
	return errors.Join(err, s.Close())
}

func storeOnce(s *raft.Store, log *provetest.Log, state map[string]string, n int) error {
	value := strconv.FormatInt(time.Now().UnixNano(), 36)
	first, last, _ := s.Indexes()
	switch n % 8 {
	case 0:
		log.Begin("term", value)
		if err := s.Set([]byte("term"), []byte(value)); err != nil {
			return err
		}
		state["term"] = value
		log.Ack("term", value)
		return nil
	case 1: // an entry that another leader takes back
		key := "cut/" + value
		log.Begin(key, value)
		if err := s.StoreLog(&hashicorp.Log{Index: last + 1, Data: []byte(key + " " + value)}); err != nil {
			return err
		}
		log.Ack(key, value)
		log.Begin(key, "")
		if err := s.DeleteRange(last+1, last+1); err != nil {
			return err
		}
		log.Ack(key, "")
		return nil
	case 2:
		text, err := json.Marshal(state)
		if err == nil {
			err = s.Set([]byte("snapshot"), text)
		}
		if err == nil && last > first+3 {
			err = s.DeleteRange(first, last-3)
		}
		return err
	}
	var logs []*hashicorp.Log
	for i := range n%8 + 1 {
		key := fmt.Sprintf("%d/%d", i, n%5)
		log.Begin(key, value)
		padding := strings.Repeat(" ", n*i*977%9000) // a batch may be larger than a segment
		logs = append(logs, &hashicorp.Log{Index: last + 1 + uint64(i), Data: []byte(key + " " + value + padding)})
	}
	if err := s.StoreLogs(logs); err != nil {
		return err
	}
	for i := range logs {
		key := fmt.Sprintf("%d/%d", i, n%5)
		state[key] = value
		log.Ack(key, value)
	}
	return nil
}

func stored(dir string) (map[string]string, error) {
	s, err := openProved(dir)
	if err != nil {
		return nil, err
	}
	state, err := stateOf(s)
	return state, errors.Join(err, s.Close())
}

// stateOf reads the snapshot, the term and the entries.
func stateOf(s *raft.Store) (map[string]string, error) {
	state := map[string]string{}
	if text, err := s.Get([]byte("snapshot")); err == nil {
		if err := json.Unmarshal(text, &state); err != nil {
			return nil, err
		}
	}
	if term, err := s.Get([]byte("term")); err == nil {
		state["term"] = string(term)
	}
	first, last, _ := s.Indexes()
	for index := max(1, first); index <= last; index++ {
		var log hashicorp.Log
		if err := s.GetLog(index, &log); err != nil {
			return nil, err
		}
		key, value, _ := strings.Cut(strings.TrimRight(string(log.Data), " "), " ")
		state[key] = value
	}
	return state, nil
}
