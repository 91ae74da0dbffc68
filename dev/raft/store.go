package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	hashicorp "github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	raftwal "github.com/hashicorp/raft-wal"
	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/adapters/raft"
	"github.com/holdfast-go/holdfast/wal"
)

// A store keeps raft's entries and values.
type store interface {
	hashicorp.LogStore
	hashicorp.StableStore
	io.Closer
}

// stores are the names of the compared stores.
var stores = []string{"holdfast", "raft-wal", "boltdb"}

// openStore opens a store below a directory, each with its defaults; segment is the segment size for
// stores that have one, 0 for its default.
func openStore(name, dir string, segment int) (store, error) {
	dir = filepath.Join(dir, name)
	switch name {
	case "holdfast":
		return raft.Open(dir, wal.Options{SegmentSize: holdfast.Size(segment)})
	case "raft-wal":
		if err := os.Mkdir(dir, 0o777); err != nil && !errors.Is(err, os.ErrExist) {
			return nil, err
		}
		if segment == 0 {
			return raftwal.Open(dir)
		}
		return raftwal.Open(dir, raftwal.WithSegmentSize(segment))
	case "boltdb":
		return raftboltdb.NewBoltStore(dir + ".db")
	case "memory": // it forgets, which a run with kills must find
		return forgetful{hashicorp.NewInmemStore()}, nil
	}
	return nil, fmt.Errorf("a store %q; use holdfast, raft-wal or boltdb", name)
}

type forgetful struct{ *hashicorp.InmemStore }

func (forgetful) Close() error { return nil }
