package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"

	"github.com/holdfast-go/holdfast"
	forraft "github.com/holdfast-go/holdfast/adapters/raft"
	"github.com/holdfast-go/holdfast/wal"
)

// A raftStore has the entries of hashicorp/raft, and its state.
type raftStore interface {
	raft.LogStore
	raft.StableStore
	io.Closer
}

func raftBefore(at place) (*use, error) {
	store, err := raftboltdb.NewBoltStore(filepath.Join(at.dir, "raft.db"))
	if err != nil {
		return nil, err
	}
	return useRaft(at, store)
}

func raftAfter(at place) (*use, error) {
	store, err := forraft.Open(filepath.Join(at.dir, "raft"), wal.Options{Policy: holdfast.Durable(), SegmentSize: at.segment})
	if err != nil {
		return nil, err
	}
	return useRaft(at, store)
}

// servers is how many processes a cluster has. Each works in a directory of its own, and hears at a socket, named
// by its number. The first is the leader.
const servers = 3

func nodeDir(dir string, i int) string { return filepath.Join(dir, fmt.Sprint("node", i)) }

// address is a server's. It is relative, as a crash's files may be at another path.
func address(i int) raft.ServerAddress { return raft.ServerAddress(fmt.Sprintf("socket%d", i)) }

// useRaft is a server of the cluster. The leader starts the others, which end when it does.
func useRaft(at place, store raftStore) (*use, error) {
	if at.order.Follow > 0 {
		node, _, err := startRaft(at.order.Follow, store)
		if err != nil {
			return nil, err
		}
		return &use{close: func() error { return errors.Join(node.Shutdown().Error(), store.Close()) }}, nil
	}
	var stops []func() error
	for i := 1; i < servers; i++ {
		stop, err := at.startFollower(i)
		if err != nil {
			return nil, err
		}
		stops = append(stops, stop)
	}
	node, transport, err := startRaft(0, store)
	if err != nil {
		return nil, err
	}
	// It asks for votes without waiting for a timeout first.
	var answer raft.TimeoutNowResponse
	header := raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte("0"), Addr: []byte(address(0))}
	if err := transport.TimeoutNow("0", address(0), &raft.TimeoutNowRequest{RPCHeader: header}, &answer); err != nil {
		return nil, err
	}
	for end := time.Now().Add(time.Minute); node.State() != raft.Leader; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			return nil, errors.New("raft has no leader after a minute")
		}
	}
	return &use{
		put: func(n uint64) error { return node.Apply(fmt.Append(nil, "record ", n), 0).Error() },
		close: func() error {
			err := errors.Join(node.Shutdown().Error(), store.Close())
			for _, stop := range stops {
				err = errors.Join(err, stop())
			}
			return err
		},
	}, nil
}

// startRaft starts a server, whose state machine does nothing. A follower waits for its leader for long: a majority that
// has what was acknowledged elects any server whose log is as long, and the leader's is never shorter.
func startRaft(i int, store raftStore) (*raft.Raft, *raft.NetworkTransport, error) {
	path := string(address(i))
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) { // a killed server's
		return nil, nil, err
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, nil, err
	}
	config := raft.DefaultConfig()
	config.LocalID, config.Logger = raft.ServerID(fmt.Sprint(i)), hclog.NewNullLogger()
	config.LeaderLeaseTimeout = 3 * time.Second
	config.HeartbeatTimeout, config.ElectionTimeout = 3*time.Second, 3*time.Second
	if i > 0 {
		config.HeartbeatTimeout, config.ElectionTimeout = time.Minute, time.Minute
	}
	transport := raft.NewNetworkTransportWithLogger(socketLayer{listener}, servers, 10*time.Second, config.Logger)
	snapshots := raft.NewInmemSnapshotStore()
	var all raft.Configuration
	for s := range servers {
		all.Servers = append(all.Servers, raft.Server{ID: raft.ServerID(fmt.Sprint(s)), Address: address(s)})
	}
	err = raft.BootstrapCluster(config, store, store, snapshots, transport, all)
	if err != nil && !errors.Is(err, raft.ErrCantBootstrap) {
		return nil, nil, err
	}
	node, err := raft.NewRaft(config, machine{}, store, store, snapshots, transport)
	return node, transport, err
}

// A socketLayer is how servers reach each other.
type socketLayer struct{ net.Listener }

func (socketLayer) Dial(address raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	return net.DialTimeout("unix", string(address), timeout)
}

// startFollower starts a follower's process, and returns when it listens. It ends by itself when its standard input does.
func (at place) startFollower(i int) (stop func() error, err error) {
	o := at.order
	o.Dir, o.Follow, o.Profile = nodeDir(at.dir, i), i, ""
	cmd, err := o.command(context.Background())
	if err != nil {
		return nil, err
	}
	cmd.Dir, cmd.Stderr = "", os.Stderr // the sockets are where the leader is
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		return nil, errors.Join(fmt.Errorf("follower %d does not start: %w", i, err), in.Close(), cmd.Wait())
	}
	return func() error { return errors.Join(in.Close(), cmd.Wait()) }, nil
}

// follow is a follower's process.
func (o order) follow(a arm) error {
	if err := os.MkdirAll(o.Dir, 0o777); err != nil {
		return err
	}
	above, err := os.Open(filepath.Dir(o.Dir))
	if err != nil {
		return err
	}
	if err := errors.Join(above.Sync(), above.Close()); err != nil { // a power cut takes no server's directory
		return err
	}
	at := place{dir: o.Dir, order: o}
	if o.Crash {
		at.segment = crashSegment
	}
	u, err := a.open(at)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	_, err = io.Copy(io.Discard, os.Stdin)
	return errors.Join(err, u.close())
}

// A machine is raft's state machine. There is nothing to do.
type machine struct{}

func (machine) Apply(*raft.Log) any                 { return nil }
func (machine) Snapshot() (raft.FSMSnapshot, error) { return nil, errors.ErrUnsupported }
func (machine) Restore(io.ReadCloser) error         { return nil }

func keptByBolt(dir string) ([]string, error) {
	return keptByMost(dir, func(dir string) (raftStore, error) {
		path := filepath.Join(dir, "raft.db")
		if info, err := os.Stat(path); err != nil || info.Size() == 0 { // it was made just now
			return nil, err
		}
		return raftboltdb.NewBoltStore(path)
	})
}

func keptByRaft(dir string) ([]string, error) {
	return keptByMost(dir, func(dir string) (raftStore, error) {
		path := filepath.Join(dir, "raft")
		if _, err := os.Stat(path); err != nil {
			return nil, err
		}
		return forraft.Open(path, wal.Options{Policy: holdfast.Durable()})
	})
}

// keptByMost has the commands that two of the three servers have: no election loses them.
func keptByMost(dir string, open func(dir string) (raftStore, error)) ([]string, error) {
	var each [servers][]string
	for i := range servers {
		at := dir
		if i > 0 {
			at = nodeDir(dir, i)
		}
		store, err := open(at)
		if err == nil && store != nil {
			each[i], err = entries(store)
		}
		if err := ignored(err, fs.ErrNotExist); err != nil {
			return nil, fmt.Errorf("server %d: %w", i, err)
		}
	}
	slices.SortFunc(each[:], func(a, b []string) int { return len(a) - len(b) })
	return each[1], nil
}

// entries reads a store's commands, and closes it. One that was put again, because only a minority had it, is there once.
func entries(store raftStore) (all []string, err error) {
	defer func() { err = errors.Join(err, store.Close()) }()
	first, err := store.FirstIndex()
	if err != nil || first == 0 {
		return nil, err
	}
	last, err := store.LastIndex()
	seen := map[string]bool{}
	for i := first; i <= last && err == nil; i++ {
		var e raft.Log
		if err = store.GetLog(i, &e); err != nil || e.Type != raft.LogCommand {
			continue
		}
		if command := string(e.Data); !seen[command] {
			seen[command] = true
			all = append(all, command)
		}
	}
	return all, err
}
