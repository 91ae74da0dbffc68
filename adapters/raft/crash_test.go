package raft_test

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	hashicorp "github.com/hashicorp/raft"
	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/adapters/raft"
	"github.com/holdfast-go/holdfast/internal/crashsuite"
	"github.com/holdfast-go/holdfast/wal"
)

func TestLogKeepsThePromises(t *testing.T) {
	crashsuite.Run(t, crashsuite.Opener{
		Name: "LogStore",
		Open: func(g *crashsuite.Ground) (crashsuite.Subject, error) {
			s, err := raft.OpenLog(g.Dir, wal.Options{Policy: g.Policy, SegmentSize: 8 * holdfast.KiB, OnError: func(e *wal.Error) { g.OnError(e) }})
			return &entries{LogStore: s}, err
		},
		Read: func(t *testing.T, files map[string][]byte) (all [][]byte, err error) {
			s := openLog(t, crashsuite.Lay(t, files))
			defer s.Close()
			first, _ := s.FirstIndex()
			last, _ := s.LastIndex()
			for index := max(1, first); index <= last && err == nil; index++ {
				var log hashicorp.Log
				err = s.GetLog(index, &log)
				all = append(all, log.Data)
			}
			return all, err
		},
		Policies: func(p holdfast.Policy) bool { return p.Sync.Waits() },
		Resumes:  true,
		NoDisk:   "it opens a wal.Log on the kernel's disk; package wal has this promise on others",
	})
}

// entries stores one entry at a time, as raft does.
type entries struct {
	*raft.LogStore
	one sync.Mutex
}

func (s *entries) Write(p []byte) (n int, err error) {
	s.one.Lock()
	defer s.one.Unlock()
	next := s.Last() + 1
	err = s.StoreLog(&hashicorp.Log{Index: next, Data: p})
	if s.Last() < next {
		return 0, err
	}
	return len(p), err
}

func TestStableStoreKeepsThePromises(t *testing.T) {
	crashsuite.Run(t, crashsuite.Opener{
		Name: "StableStore",
		Open: func(g *crashsuite.Ground) (crashsuite.Subject, error) {
			s, err := raft.OpenStable(filepath.Join(g.Dir, "stable"))
			return values{s}, err
		},
		Read: func(_ *testing.T, files map[string][]byte) (all [][]byte, err error) {
			var named map[string][]byte
			if files["stable"] != nil {
				err = json.Unmarshal(files["stable"], &named)
			}
			for _, name := range slices.Sorted(maps.Keys(named)) {
				all = append(all, named[name])
			}
			return all, err
		},
		Policies:   func(p holdfast.Policy) bool { return p == holdfast.Durable() },
		FailedSync: crashsuite.OfCall,
		Resumes:    true,
		NoDisk:     "it has a files.Set on the kernel's disk; package files has this promise on others",
		Lacks:      map[string]string{crashsuite.Heard: "a failure is in the result of Set alone"},
	})
}

// values keeps each record under its head.
type values struct{ *raft.StableStore }

func (s values) Write(p []byte) (n int, err error) {
	if err := s.Set(p[:6], p); err != nil {
		return 0, err
	}
	return len(p), nil
}
