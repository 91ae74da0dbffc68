//go:build go1.25

package raft_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	hashicorp "github.com/hashicorp/raft"
	raftbench "github.com/hashicorp/raft/bench"
	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/adapters/raft"
	"github.com/holdfast-go/holdfast/wal"
)

// open opens a store of small segments, which the test closes. As under raft, it has a value before
// it has an entry.
func open(t testing.TB, dir string) *raft.Store {
	t.Helper()
	s, err := raft.Open(dir, wal.Options{SegmentSize: 64 * holdfast.KiB})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get([]byte("key")); err != nil {
		if err := s.Set([]byte("key"), nil); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func entry(r *rand.Rand, index uint64) *hashicorp.Log {
	log := &hashicorp.Log{Index: index, Term: r.Uint64N(1 << 40), Type: hashicorp.LogType(r.IntN(6)), Data: make([]byte, r.IntN(3)*r.IntN(500))}
	for i := range log.Data {
		log.Data[i] = byte(r.Int())
	}
	if r.IntN(2) == 0 {
		log.Extensions = []byte("extension")
		log.AppendedAt = time.Unix(0, r.Int64N(1<<61)-1<<60|1) // some before 1970
	}
	return log
}

func same(a, b *hashicorp.Log) bool {
	return a.Index == b.Index && a.Term == b.Term && a.Type == b.Type && bytes.Equal(a.Data, b.Data) &&
		bytes.Equal(a.Extensions, b.Extensions) && a.AppendedAt.Equal(b.AppendedAt)
}

// TestLogTakesTheOptionsOfWal but for a policy that raft can't live with.
func TestLogTakesTheOptionsOfWal(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	if _, err := raft.Open(dir, wal.Options{Policy: holdfast.Periodic(time.Second)}); err == nil || !strings.Contains(err.Error(), "sync=1s") {
		t.Errorf("a policy without a sync for each entry: %v", err)
	}
	s, err := raft.Open(dir, wal.Options{SegmentSize: 64 * holdfast.KiB, Perm: 0o600})
	if err != nil {
		t.Fatal(err)
	}
	index, err := s.Append([]byte("entry"))
	if durable := s.Durable(); err != nil || index != 1 || durable != 1 {
		t.Errorf("index %d, durable %d, %v; the zero policy is Durable", index, durable, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(dir, "*.wal"))
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	is, err := os.Stat(found[0])
	if err != nil || is.Size() != 64<<10 || runtime.GOOS != "windows" && is.Mode().Perm()&0o077 != 0 {
		t.Errorf("%v, %v; want 64 KiB for the owner alone", is, err)
	}
}

// TestLogIsAsRaftsOwn does the same to this store and to raft's own in memory, and opens this
// one anew at times.
func TestLogIsAsRaftsOwn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	ours, theirs := open(t, dir), hashicorp.NewInmemStore()
	defer func() { ours.Close() }()
	r := rand.New(rand.NewPCG(7, 7))
	agree := func(what string) (first, last uint64) {
		t.Helper()
		for _, f := range []func(hashicorp.LogStore) (uint64, error){hashicorp.LogStore.FirstIndex, hashicorp.LogStore.LastIndex} {
			got, err := f(ours)
			want, _ := f(theirs)
			if err != nil || got != want {
				t.Fatalf("after %s: index %d, %v; raft's own has %d", what, got, err, want)
			}
			first, last = last, got
		}
		for index := first; index <= last+1; index++ {
			var got, want hashicorp.Log
			err, theirErr := ours.GetLog(index, &got), theirs.GetLog(index, &want)
			if err != theirErr || !same(&got, &want) {
				t.Fatalf("after %s: entry %d is %+v, %v; raft's own has %+v, %v", what, index, got, err, want, theirErr)
			}
		}
		return first, last
	}
	first, last := uint64(0), uint64(0)
	for range 120 {
		what := "storing"
		switch n := r.IntN(8); {
		case n == 0 && last > 0: // from the end
			from := first + r.Uint64N(last-first+1)
			what = fmt.Sprintf("deleting %d to %d", from, last)
			if err := ours.DeleteRange(from, last); err != nil {
				t.Fatal(what, err)
			}
			theirs.DeleteRange(from, last)
		case n == 1 && last > first: // from the beginning
			to := first + r.Uint64N(last-first)
			what = fmt.Sprintf("deleting %d to %d", first, to)
			if err := ours.DeleteRange(first, to); err != nil {
				t.Fatal(what, err)
			}
			theirs.DeleteRange(first, to)
		case n == 2:
			what = "opening it anew"
			if err := ours.Close(); err != nil {
				t.Fatal(err)
			}
			ours = open(t, dir)
		default:
			next := last + 1
			if last == 0 { // as after a snapshot of others
				next = max(3, ours.Last()+r.Uint64N(5)) - 2
			}
			var logs []*hashicorp.Log
			for i := range uint64(1 + r.IntN(4)) {
				logs = append(logs, entry(r, next+i))
			}
			if err := ours.StoreLogs(logs); err != nil {
				t.Fatal(err)
			}
			theirs.StoreLogs(logs)
		}
		first, last = agree(what)
	}
}

// TestRangesReachBeyondTheLog at each end, as those do that raft counts from a snapshot.
func TestRangesReachBeyondTheLog(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "log"))
	defer s.Close()
	r := rand.New(rand.NewPCG(3, 3))
	check := func(from, to, first, last uint64) {
		t.Helper()
		err := s.DeleteRange(from, to)
		gotFirst, firstErr := s.FirstIndex()
		gotLast, lastErr := s.LastIndex()
		if err := errors.Join(err, firstErr, lastErr); err != nil || gotFirst != first || gotLast != last {
			t.Errorf("without %d to %d it has %d to %d, %v; want %d to %d", from, to, gotFirst, gotLast, err, first, last)
		}
		for _, index := range []uint64{0, first - 1, last + 1, math.MaxUint64} {
			if err := s.GetLog(index, new(hashicorp.Log)); err != hashicorp.ErrLogNotFound {
				t.Errorf("entry %d of %d to %d: %v", index, first, last, err)
			}
		}
	}
	store := func(first, last uint64) {
		t.Helper()
		for index := first; index <= last; index++ {
			if err := s.StoreLog(entry(r, index)); err != nil {
				t.Fatal(err)
			}
		}
	}
	check(0, 0, 0, 0)
	check(0, math.MaxUint64, 0, 0)
	store(5, 12)
	check(0, 4, 5, 12)
	check(13, math.MaxUint64, 5, 12)
	check(9, 8, 5, 12)
	check(0, 6, 7, 12)
	check(12, math.MaxUint64, 7, 11)
	check(7, 7, 8, 11)
	check(11, 11, 8, 10)
	check(0, 10, 0, 0)
	store(8, 9) // it goes on there
	check(3, math.MaxUint64, 0, 0)
	store(20, 21)
	check(0, 0, 20, 21)
	check(20, 21, 0, 0)
	store(3, 4) // as raft's own and raft-wal, which begin anywhere when they are empty
	check(0, 2, 3, 4)
	check(0, 3, 4, 4)
	if err := s.StoreLog(entry(r, math.MaxUint64)); err == nil {
		t.Error("an entry behind a gap was stored")
	}
}

// TestEntriesThatComeMeanwhileStay: raft removes entries beside StoreLogs, when it has a snapshot.
func TestEntriesThatComeMeanwhileStay(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "log"))
	defer s.Close()
	var known atomic.Uint64
	var group sync.WaitGroup
	group.Go(func() {
		for last := uint64(0); last < 400; last = known.Load() { // as with TrailingLogs of 0
			if err := s.DeleteRange(0, last); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for index := uint64(1); index <= 400; index++ {
		err := s.StoreLog(&hashicorp.Log{Index: index})
		if err == nil {
			err = s.GetLog(index, new(hashicorp.Log)) // nobody could remove it
		}
		known.Store(index)
		if err != nil {
			t.Error(err)
			break
		}
	}
	known.Store(400)
	group.Wait()
}

// TestMetricsCount what was done; each name is there from the beginning.
func TestMetricsCount(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "log"))
	defer s.Close()
	before := s.Metrics()
	logs := []*hashicorp.Log{{Index: 1, Data: make([]byte, 100)}, {Index: 2}, {Index: 3}, {Index: 4}, {Index: 5}}
	err := errors.Join(s.StoreLogs(logs), s.GetLog(1, new(hashicorp.Log)), s.DeleteRange(1, 1), s.DeleteRange(4, 5), s.SetUint64([]byte("n"), 1))
	if _, missing := s.Get([]byte("n")); err != nil || missing != nil {
		t.Fatal(err, missing)
	}
	after := s.Metrics()
	for name, want := range map[string]float64{
		"log_appends": 1, "log_entries_written": 5, "log_entries_read": 1, "head_truncations": 1, "tail_truncations": 2, "stable_sets": 1, "stable_gets": 1,
		"log_first_index": 2, "log_last_index": 3, "errors": 0, "not_durable_bytes": 0,
	} {
		if _, ok := before[name]; !ok || after[name]-before[name] != want {
			t.Errorf("%s was %v and is %v; want %v more", name, before[name], after[name], want)
		}
	}
	for name, least := range map[string]float64{"log_entry_bytes_written": 100, "log_entry_bytes_read": 100, "syncs": 1, "sync_seconds": 1e-9, "longest_sync_seconds": 1e-9} {
		if after[name]-before[name] < least && name != "longest_sync_seconds" || after[name] < least {
			t.Errorf("%s was %v and is %v; want %v more", name, before[name], after[name], least)
		}
	}
	if len(after) != 16 {
		t.Errorf("%d metrics, some are not checked here", len(after))
	}
}

func TestWhatWouldLeaveAGapIsRefused(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "log"))
	defer s.Close()
	r := rand.New(rand.NewPCG(1, 1))
	for i := range uint64(5) {
		if err := s.StoreLog(entry(r, 1+i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.StoreLogs(nil); err != nil {
		t.Error(err)
	}
	for what, err := range map[string]error{
		"a gap":            s.StoreLog(entry(r, 7)),
		"the same again":   s.StoreLog(entry(r, 5)),
		"a gap within":     s.StoreLogs([]*hashicorp.Log{entry(r, 6), entry(r, 8)}),
		"from the middle":  s.DeleteRange(2, 4),
		"beyond the range": nil,
	} {
		if refused := what != "beyond the range"; refused != (err != nil) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := s.DeleteRange(8, 9); err != nil || s.Last() != 5 || !s.IsMonotonic() {
		t.Errorf("after refusals the last is %d, %v", s.Last(), err)
	}
	// By another program: nothing, and extensions that are longer than the record, also by a byte.
	if _, err := s.Append([]byte{}, []byte{0, 1, 0, 5}, []byte{0, 1, 0, 5, 1, 2, 3, 4}); err != nil {
		t.Fatal(err)
	}
	for index := range uint64(3) {
		if err := s.GetLog(6+index, new(hashicorp.Log)); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("record %d is no entry", 6+index)) {
			t.Error(err)
		}
	}
	if err := s.StoreLog(&hashicorp.Log{Index: 9}); err != nil {
		t.Fatal(err)
	}
	var bare hashicorp.Log
	if err := s.GetLog(9, &bare); err != nil || bare.Extensions != nil || bare.Data != nil {
		t.Errorf("%+v, %v; an entry without extensions and data has nil", bare, err)
	}
}

// applied is a state machine that keeps what is applied.
type applied struct{ all []string }

func (a *applied) Apply(log *hashicorp.Log) any { a.all = append(a.all, string(log.Data)); return nil }

func (a *applied) Snapshot() (hashicorp.FSMSnapshot, error) { return nil, io.ErrUnexpectedEOF }
func (a *applied) Restore(io.ReadCloser) error              { return io.ErrUnexpectedEOF }

// startAlone starts a cluster of one server, the first time with a new configuration.
func startAlone(t *testing.T, store *raft.Store, machine hashicorp.FSM) *hashicorp.Raft {
	t.Helper()
	config := hashicorp.DefaultConfig()
	config.LocalID, config.LogOutput = "one", io.Discard
	config.HeartbeatTimeout, config.ElectionTimeout, config.LeaderLeaseTimeout = 50*time.Millisecond, 50*time.Millisecond, 50*time.Millisecond
	address, transport := hashicorp.NewInmemTransport("one")
	snapshots := hashicorp.NewDiscardSnapshotStore()
	servers := hashicorp.Configuration{Servers: []hashicorp.Server{{ID: "one", Address: address}}}
	err := hashicorp.BootstrapCluster(config, store, store, snapshots, transport, servers)
	if err != nil && err != hashicorp.ErrCantBootstrap {
		t.Fatal(err)
	}
	server, err := hashicorp.NewRaft(config, machine, store, store, snapshots, transport)
	if err != nil {
		t.Fatal(err)
	}
	if !<-server.LeaderCh() {
		t.Fatal("it is no leader")
	}
	return server
}

// TestServerStartsAgainWithAllThatWasApplied runs a cluster of one server twice.
func TestServerStartsAgainWithAllThatWasApplied(t *testing.T) {
	dir := t.TempDir()
	var want []string
	for round := range 2 {
		store, err := raft.Open(filepath.Join(dir, "store"), small)
		if err != nil {
			t.Fatal(err)
		}
		machine := &applied{}
		server := startAlone(t, store, machine)
		for i := range 3 {
			want = append(want, fmt.Sprint(round, i))
			if err := server.Apply([]byte(want[len(want)-1]), time.Minute).Error(); err != nil {
				t.Fatal(err)
			}
		}
		if err := server.Shutdown().Error(); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(machine.all, want) {
			t.Errorf("round %d: applied %q, want %q", round, machine.all, want)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// BenchmarkRaft is raft's own benchmark of stores, but for StoreLog: that one begins with an
// entry 0, which raft never stores.
func BenchmarkRaft(b *testing.B) {
	for name, run := range map[string]func(*testing.B, hashicorp.LogStore){
		"FirstIndex": raftbench.FirstIndex, "LastIndex": raftbench.LastIndex, "GetLog": raftbench.GetLog,
	} {
		b.Run(name, func(b *testing.B) {
			s := open(b, filepath.Join(b.TempDir(), "log"))
			defer s.Close()
			run(b, s)
		})
	}
	for name, run := range map[string]func(*testing.B, hashicorp.StableStore){
		"Set": raftbench.Set, "Get": raftbench.Get, "SetUint64": raftbench.SetUint64, "GetUint64": raftbench.GetUint64,
	} {
		b.Run(name, func(b *testing.B) {
			s := open(b, filepath.Join(b.TempDir(), "store"))
			defer s.Close()
			run(b, s)
		})
	}
}
