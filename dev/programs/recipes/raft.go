package recipes

import (
	"errors"
	"io/fs"
	"path/filepath"

	hashicorp "github.com/hashicorp/raft"
	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/adapters/raft"
	"github.com/holdfast-go/holdfast/wal"
)

// OpenNode is a node of hashicorp/raft whose entries and votes are in one directory. A node that had raft-boltdb begins with a copy of its
// file, once. An entry is durable when raft is told so; each batch is one write and one sync. Close the store behind node.Shutdown.
func OpenNode(dir string, config *hashicorp.Config, machine hashicorp.FSM, transport hashicorp.Transport) (*hashicorp.Raft, *raft.Store, error) {
	options := wal.Options{Policy: holdfast.Durable()}
	path := filepath.Join(dir, "entries")
	err := raft.MigrateFromBolt(path, filepath.Join(dir, "raft.db"), options)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // there is no such file
		return nil, nil, err
	}
	store, err := raft.Open(path, options)
	if err != nil {
		return nil, nil, err
	}
	snapshots, err := hashicorp.NewFileSnapshotStoreWithLogger(dir, 2, nil)
	if err != nil {
		return nil, nil, errors.Join(err, store.Close())
	}
	node, err := hashicorp.NewRaft(config, machine, store, store, snapshots, transport)
	if err != nil {
		return nil, nil, errors.Join(err, store.Close())
	}
	return node, store, nil
}
