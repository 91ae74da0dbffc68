package main

import (
	"bufio"
	"encoding/gob"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	hashicorp "github.com/hashicorp/raft"
)

// nodeWord is the first argument of a process of a cluster.
const nodeWord = "node"

// A server is the process of a node. It takes orders by standard input, a line each, and answers
// each with a line: "done", what is asked for, or "error: why". Beside them it prints
//
//	ack N        command N of this life was applied
//	acks N M     and so were these
type server struct {
	raft    *hashicorp.Raft
	store   store
	machine *machine
	life    uint32
	number  atomic.Uint32 // of the last command of this life
	out     sync.Mutex
	load    atomic.Int32 // how many clients give commands while it leads
}

func node(args []string) error {
	flags := flag.NewFlagSet(nodeWord, flag.ContinueOnError)
	dir := flags.String("dir", "", "")
	kind := flags.String("store", "", "")
	me := flags.Int("me", 0, "")
	peers := flags.String("peers", "", "")
	life := flags.Uint("life", 0, "")
	trailing := flags.Uint64("trailing", 0, "")
	snapshots := flags.Uint64("snapshots", 0, "")
	segment := flags.Int("segment", 0, "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	s := &server{machine: new(machine), life: uint32(*life)}
	config := hashicorp.DefaultConfig()
	config.HeartbeatTimeout, config.ElectionTimeout, config.LeaderLeaseTimeout = 500*time.Millisecond, 500*time.Millisecond, 500*time.Millisecond
	config.TrailingLogs, config.SnapshotThreshold, config.SnapshotInterval = *trailing, *snapshots, 500*time.Millisecond
	config.Logger = hclog.New(&hclog.LoggerOptions{Level: hclog.Info, Output: os.Stderr})
	var all hashicorp.Configuration
	for i, address := range strings.Split(*peers, ",") {
		all.Servers = append(all.Servers, hashicorp.Server{ID: hashicorp.ServerID(fmt.Sprint(i)), Address: hashicorp.ServerAddress(address)})
	}
	config.LocalID = all.Servers[*me].ID
	var err error
	if s.store, err = openStore(*kind, *dir, *segment); err != nil {
		return err
	}
	kept, err := hashicorp.NewFileSnapshotStoreWithLogger(*dir, 2, config.Logger)
	if err != nil {
		return err
	}
	transport, err := hashicorp.NewTCPTransportWithLogger(string(all.Servers[*me].Address), nil, 3, 10*time.Second, config.Logger)
	if err != nil {
		return err
	}
	err = hashicorp.BootstrapCluster(config, s.store, s.store, kept, transport, all)
	if err != nil && !errors.Is(err, hashicorp.ErrCantBootstrap) {
		return err
	}
	if s.raft, err = hashicorp.NewRaft(config, s.machine, s.store, s.store, kept, transport); err != nil {
		return err
	}
	s.say("ready")
	for range 64 {
		go s.client()
	}
	for orders := bufio.NewScanner(os.Stdin); orders.Scan(); {
		answer, err := s.obey(strings.Fields(orders.Text()))
		if err != nil {
			answer = "error: " + strings.ReplaceAll(err.Error(), "\n", "; ")
		}
		s.say(answer)
		if orders.Text() == "stop" {
			return err
		}
	}
	return errors.New("no more orders") // the other process has ended
}

func (s *server) say(line string) {
	s.out.Lock()
	defer s.out.Unlock()
	fmt.Println(line)
}

// obey does what an order says.
func (s *server) obey(words []string) (answer string, err error) {
	number := func(i int) (n int) {
		if _, bad := fmt.Sscan(words[i], &n); bad != nil {
			err = bad
		}
		return n
	}
	switch words[0] {
	case "load": // CLIENTS
		s.load.Store(int32(number(1)))
	case "fill": // ENTRIES SIZE
		return "done", s.fill(number(1), number(2))
	case "bench": // CLIENTS SIZE MILLISECONDS
		text, err := json.Marshal(s.bench(number(1), number(2), time.Duration(number(3))*time.Millisecond))
		return string(text), err
	case "leads":
		return fmt.Sprint(s.raft.State() == hashicorp.Leader), nil
	case "barrier":
		err := s.raft.Barrier(10 * time.Second).Error()
		return fmt.Sprint(s.raft.LastIndex()), err
	case "applied":
		return fmt.Sprint(s.raft.AppliedIndex()), nil
	case "counts": // FILE
		f, err := os.Create(words[1])
		if err != nil {
			return "", err
		}
		return "done", errors.Join(gob.NewEncoder(f).Encode(s.machine.copy()), f.Close())
	case "stop":
		s.load.Store(0)
		return "done", errors.Join(s.raft.Shutdown().Error(), s.store.Close())
	default:
		err = fmt.Errorf("an order %q", words)
	}
	return "done", err
}

// client gives commands of 1 B to 1 MiB while the node leads, and says which were applied. It is
// one of 64, so that they come in batches.
func (s *server) client() {
	for i := 0; ; i++ {
		if s.load.Load() == 0 || s.raft.State() != hashicorp.Leader {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		data := make([]byte, int(math.Exp(rand.Float64()*math.Log(1<<20))))
		for at := 0; at < len(data); at += 64 {
			data[at] = byte(rand.Uint32())
		}
		n := s.number.Add(1)
		if s.raft.ApplyLog(command(s.life, n, data), time.Second).Error() == nil {
			s.say(fmt.Sprint("ack ", n))
		}
	}
}

// fill gives commands as fast as they are taken.
func (s *server) fill(entries, size int) error {
	data := make([]byte, size)
	first := s.number.Add(uint32(entries)) - uint32(entries) + 1
	var waiting []hashicorp.ApplyFuture
	for i := range entries {
		waiting = append(waiting, s.raft.ApplyLog(command(s.life, first+uint32(i), data), time.Minute))
		if len(waiting) == 1024 || i == entries-1 {
			for _, f := range waiting {
				if err := f.Error(); err != nil {
					return err
				}
			}
			waiting = waiting[:0]
		}
	}
	s.say(fmt.Sprint("acks ", first, " ", first+uint32(entries)-1))
	return nil
}

// A figure has the throughput and the latencies of a load.
type figure struct {
	Rate                 float64 // commands a second
	P50, P99, P999, Most float64 // ms
}

// bench measures clients that each wait for a command before the next.
func (s *server) bench(clients, size int, long time.Duration) figure {
	data := make([]byte, size)
	took := make([][]float64, clients)
	begin := time.Now()
	var group sync.WaitGroup
	for i := range took {
		group.Go(func() {
			for time.Since(begin) < long {
				start := time.Now()
				if s.raft.ApplyLog(command(s.life, s.number.Add(1), data), time.Minute).Error() == nil {
					took[i] = append(took[i], time.Since(start).Seconds()*1000)
				}
			}
		})
	}
	group.Wait()
	elapsed := time.Since(begin)
	all := slices.Sorted(slices.Values(slices.Concat(took...)))
	if len(all) == 0 {
		return figure{}
	}
	at := func(p float64) float64 { return all[min(len(all)-1, int(p*float64(len(all))))] }
	return figure{float64(len(all)) / elapsed.Seconds(), at(0.5), at(0.99), at(0.999), at(1)}
}

// nodeDir is where a node has its files.
func nodeDir(dir string, i int) string { return filepath.Join(dir, fmt.Sprint("node", i)) }
