//go:build go1.25

package raft_test

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"

	hashicorp "github.com/hashicorp/raft"
	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/adapters/raft"
	"github.com/holdfast-go/holdfast/internal/crashsuite"
	"github.com/holdfast-go/holdfast/wal"
)

// openGround opens the store of a suite, which has a value before it has an entry.
func openGround(g *crashsuite.Ground) (*raft.Store, error) {
	s, err := raft.Open(g.Dir, wal.Options{Policy: g.Policy, SegmentSize: 8 * holdfast.KiB, OnError: func(e *wal.Error) { g.OnError(e) }})
	if err != nil {
		return nil, err
	}
	if _, err := s.Get([]byte("term")); err != nil {
		if err := s.Set([]byte("term"), nil); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

func TestLogKeepsThePromises(t *testing.T) {
	crashsuite.Run(t, crashsuite.Opener{
		Name: "Store's log",
		Open: func(g *crashsuite.Ground) (crashsuite.Subject, error) {
			s, err := openGround(g)
			return &entries{Store: s}, err
		},
		Read: func(t *testing.T, files map[string][]byte) (all [][]byte, err error) {
			s := open(t, crashsuite.Lay(t, files))
			defer s.Close()
			first, last, _ := s.Indexes()
			for index := max(1, first); index <= last && err == nil; index++ {
				var log hashicorp.Log
				err = s.GetLog(index, &log)
				all = append(all, log.Data)
			}
			return all, err
		},
		Policies: func(p holdfast.Policy) bool { return p.Sync.Waits() },
		Data:     "*.wal",
		Resumes:  true,
		NoDisk:   "it opens a wal.Log on the kernel's disk; package wal has this promise on others",
	})
}

// entries stores one entry at a time, as raft does.
type entries struct {
	*raft.Store
	one sync.Mutex
}

func (s *entries) Write(p []byte) (n int, err error) {
	s.one.Lock()
	defer s.one.Unlock()
	last, err := s.LastIndex()
	if err == nil {
		err = s.StoreLog(&hashicorp.Log{Index: last + 1, Data: p})
	}
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

func TestValuesKeepThePromises(t *testing.T) {
	crashsuite.Run(t, crashsuite.Opener{
		Name: "Store's values",
		Open: func(g *crashsuite.Ground) (crashsuite.Subject, error) {
			s, err := openGround(g)
			return values{s}, err
		},
		Read: func(_ *testing.T, files map[string][]byte) (all [][]byte, err error) {
			var named map[string][]byte
			if files["stable"] != nil {
				err = json.Unmarshal(files["stable"], &named)
			}
			delete(named, "term")
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
type values struct{ *raft.Store }

func (s values) Write(p []byte) (n int, err error) {
	if err := s.Set(p[:6], p); err != nil {
		return 0, err
	}
	return len(p), nil
}
