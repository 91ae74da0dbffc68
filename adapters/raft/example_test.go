//go:build go1.25

package raft_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"time"

	hashicorp "github.com/hashicorp/raft"
	"github.com/holdfast-go/holdfast/adapters/raft"
	"github.com/holdfast-go/holdfast/wal"
)

// A server of a cluster of one. If it had a file of raft-boltdb, the store begins as a copy.
func Example() {
	dir, err := os.MkdirTemp("", "raft")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "store")
	err = raft.MigrateFromBolt(path, filepath.Join(dir, "raft.db"), wal.Options{})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Fatal(err)
	}
	store, err := raft.Open(path, wal.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	config := hashicorp.DefaultConfig()
	config.LocalID, config.LogOutput = "one", io.Discard
	address, transport := hashicorp.NewInmemTransport("one")
	snapshots := hashicorp.NewInmemSnapshotStore()
	cluster := hashicorp.Configuration{Servers: []hashicorp.Server{{ID: "one", Address: address}}}
	if err := hashicorp.BootstrapCluster(config, store, store, snapshots, transport, cluster); err != nil {
		log.Fatal(err)
	}
	server, err := hashicorp.NewRaft(config, new(counted), store, store, snapshots, transport)
	if err != nil {
		log.Fatal(err)
	}
	<-server.LeaderCh()
	if err := server.Apply([]byte("x = 1"), time.Second).Error(); err != nil {
		log.Fatal(err)
	}
	if err := server.Shutdown().Error(); err != nil {
		log.Fatal(err)
	}
	last, err := store.LastIndex()
	var entry hashicorp.Log
	if err == nil {
		err = store.GetLog(last, &entry)
	}
	fmt.Printf("entry %d: %s, %v\n", last, entry.Data, err)
	// Output: entry 3: x = 1, <nil>
}
