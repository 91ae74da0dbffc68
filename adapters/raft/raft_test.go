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
	"testing"
	"time"

	hashicorp "github.com/hashicorp/raft"
	raftbench "github.com/hashicorp/raft/bench"
	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/adapters/raft"
	"github.com/holdfast-go/holdfast/wal"
)

// openLog opens a store, which the test closes.
func openLog(t testing.TB, dir string) *raft.LogStore {
	t.Helper()
	s, err := raft.OpenLog(dir, wal.Options{})
	if err != nil {
		t.Fatal(err)
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

// TestLogTakesTheOptionsOfWal but for a policy that raft can't live with.
func TestLogTakesTheOptionsOfWal(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	if _, err := raft.OpenLog(dir, wal.Options{Policy: holdfast.Periodic(time.Second)}); err == nil || !strings.Contains(err.Error(), "sync=1s") {
		t.Errorf("a policy without a sync for each entry: %v", err)
	}
	s, err := raft.OpenLog(dir, wal.Options{SegmentSize: 64 * holdfast.KiB, Perm: 0o600})
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
	ours, theirs := openLog(t, dir), hashicorp.NewInmemStore()
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
			same := got.Index == want.Index && got.Term == want.Term && got.Type == want.Type && bytes.Equal(got.Data, want.Data) &&
				bytes.Equal(got.Extensions, want.Extensions) && got.AppendedAt.Equal(want.AppendedAt)
			if err != theirErr || !same {
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
			ours = openLog(t, dir)
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
	s := openLog(t, filepath.Join(t.TempDir(), "log"))
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

func TestWhatWouldLeaveAGapIsRefused(t *testing.T) {
	s := openLog(t, filepath.Join(t.TempDir(), "log"))
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

func TestValuesAreThereAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stable")
	for round := range uint64(3) {
		s, err := raft.OpenStable(path)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := s.GetUint64([]byte("term")); n != round || err != nil {
			t.Errorf("round %d: %d, %v", round, n, err)
		}
		if round == 0 {
			if _, err := s.Get([]byte("vote")); err == nil || err.Error() != "not found" {
				t.Error("raft wants the text not found:", err)
			}
		} else if v, err := s.Get([]byte("vote")); string(v) != "b\x00\xff" || err != nil {
			t.Errorf("%q, %v", v, err)
		}
		if err := s.SetUint64([]byte("term"), round+1); err != nil {
			t.Fatal(err)
		}
		if err := s.Set([]byte("vote"), []byte("b\x00\xff")); err != nil {
			t.Fatal(err)
		}
		if _, err := s.GetUint64([]byte("vote")); err == nil {
			t.Error("a vote is a number")
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestValuesAreTheStoresOwn, whatever callers do with theirs; a Set that fails changes none.
func TestValuesAreTheStoresOwn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dir")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	s, err := raft.OpenStable(filepath.Join(dir, "stable"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	key, value := []byte("vote"), []byte("mine")
	if err := s.Set(key, value); err != nil {
		t.Fatal(err)
	}
	value[0] = 'x'
	got, err := s.Get(key)
	if string(got) != "mine" || err != nil {
		t.Errorf("after a change of what was given: %q, %v", got, err)
	}
	got[0] = 'x'
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := s.Set(key, []byte("lost")); err == nil {
		t.Error("a value was set in a directory that is gone")
	}
	if got, err := s.Get(key); string(got) != "mine" || err != nil {
		t.Errorf("after a change of what was got, and a Set that failed: %q, %v", got, err)
	}
}

// TestKeysAreAnyBytes stores values under keys that no text can be.
func TestKeysAreAnyBytes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stable")
	keys := []string{"", "\xff", "\xfe", "\x00", "a+b c%20", "CurrentTerm", "\u00e9"}
	s, err := raft.OpenStable(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		if err := s.Set([]byte(key), []byte("of "+key)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = raft.OpenStable(path); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, key := range keys {
		if value, err := s.Get([]byte(key)); string(value) != "of "+key || err != nil {
			t.Errorf("%q is %q, %v", key, value, err)
		}
	}
}

// applied is a state machine that keeps what is applied.
type applied struct{ all []string }

func (a *applied) Apply(log *hashicorp.Log) any { a.all = append(a.all, string(log.Data)); return nil }

func (a *applied) Snapshot() (hashicorp.FSMSnapshot, error) { return nil, io.ErrUnexpectedEOF }
func (a *applied) Restore(io.ReadCloser) error              { return io.ErrUnexpectedEOF }

// TestServerStartsAgainWithAllThatWasApplied runs a cluster of one server twice.
func TestServerStartsAgainWithAllThatWasApplied(t *testing.T) {
	dir := t.TempDir()
	var want []string
	for round := range 2 {
		logs := openLog(t, filepath.Join(dir, "log"))
		stable, err := raft.OpenStable(filepath.Join(dir, "stable"))
		if err != nil {
			t.Fatal(err)
		}
		config := hashicorp.DefaultConfig()
		config.LocalID, config.LogOutput = "one", io.Discard
		config.HeartbeatTimeout, config.ElectionTimeout, config.LeaderLeaseTimeout = 50*time.Millisecond, 50*time.Millisecond, 50*time.Millisecond
		address, transport := hashicorp.NewInmemTransport("one")
		snapshots := hashicorp.NewDiscardSnapshotStore()
		if round == 0 {
			servers := hashicorp.Configuration{Servers: []hashicorp.Server{{ID: "one", Address: address}}}
			if err := hashicorp.BootstrapCluster(config, logs, stable, snapshots, transport, servers); err != nil {
				t.Fatal(err)
			}
		}
		machine := &applied{}
		server, err := hashicorp.NewRaft(config, machine, logs, stable, snapshots, transport)
		if err != nil {
			t.Fatal(err)
		}
		if !<-server.LeaderCh() {
			t.Fatal("it is no leader")
		}
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
		if err := logs.Close(); err != nil {
			t.Fatal(err)
		}
		if err := stable.Close(); err != nil {
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
			s := openLog(b, filepath.Join(b.TempDir(), "log"))
			defer s.Close()
			run(b, s)
		})
	}
	for name, run := range map[string]func(*testing.B, hashicorp.StableStore){
		"Set": raftbench.Set, "Get": raftbench.Get, "SetUint64": raftbench.SetUint64, "GetUint64": raftbench.GetUint64,
	} {
		b.Run(name, func(b *testing.B) {
			s, err := raft.OpenStable(filepath.Join(b.TempDir(), "stable"))
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			run(b, s)
		})
	}
}
