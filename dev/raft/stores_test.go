package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	hashicorp "github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"github.com/hashicorp/raft-wal/metrics"
	"github.com/hashicorp/raft-wal/migrate"
	"github.com/hashicorp/raft-wal/verifier"
	"github.com/holdfast-go/holdfast/adapters/raft"
	"github.com/holdfast-go/holdfast/wal"
)

// segment makes the stores of tests small.
const segment = 64 << 10

func mustOpen(t *testing.T, name, dir string) store {
	t.Helper()
	s, err := openStore(name, dir, segment)
	if err != nil {
		t.Fatal(name, err)
	}
	return s
}

func someLog(r *rand.Rand, index uint64) *hashicorp.Log {
	log := &hashicorp.Log{Index: index, Term: r.Uint64N(9), Type: hashicorp.LogType(r.IntN(3)), Data: bytes.Repeat([]byte{byte(r.Int())}, r.IntN(3)*r.IntN(30_000))}
	if r.IntN(2) == 0 {
		log.Extensions = []byte("extension")
		log.AppendedAt = time.Unix(int64(r.Int32()), int64(r.IntN(1e9)))
	}
	return log
}

// describe lists a store's answers to raft: each entry, and the answers for missing ones.
func describe(t *testing.T, s store) string {
	t.Helper()
	first, err := s.FirstIndex()
	last, err2 := s.LastIndex()
	text := fmt.Sprintln(first, err, last, err2)
	for index := first; index <= last+1; index++ {
		var log hashicorp.Log
		if err := s.GetLog(index, &log); err != nil {
			text += fmt.Sprintln(index, err == hashicorp.ErrLogNotFound)
			continue
		}
		text += fmt.Sprintf("%d %d %d %d %.9x %q %d\n", log.Index, log.Term, log.Type, len(log.Data), log.Data, log.Extensions, log.AppendedAt.UnixNano())
	}
	for _, key := range []string{"CurrentTerm", "LastVoteTerm", "none"} {
		n, err := s.GetUint64([]byte(key))
		if err != nil && err.Error() == "not found" { // raft takes both
			n, err = 0, nil
		}
		text += fmt.Sprintln(key, n, err)
	}
	v, err := s.Get([]byte("LastVoteCand"))
	if err != nil && err.Error() == "not found" {
		v, err = nil, nil
	}
	return text + fmt.Sprintf("vote %q %v\n", v, err)
}

// TestStoresAgree does to each store what raft does, and compares what it gets.
func TestStoresAgree(t *testing.T) {
	dir := t.TempDir()
	all := map[string]store{}
	for _, name := range stores {
		all[name] = mustOpen(t, name, dir)
	}
	defer func() {
		for _, s := range all {
			s.Close()
		}
	}()
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 0))
	each := func(what string, do func(s store) error) {
		t.Helper()
		for name, s := range all {
			if err := do(s); err != nil {
				t.Fatalf("seed %d: %s: %s: %v", seed, name, what, err)
			}
		}
		want := describe(t, all["boltdb"])
		for name, s := range all {
			if got := describe(t, s); got != want {
				t.Fatalf("seed %d: after %s %s has\n%s\nand boltdb\n%s", seed, what, name, got, want)
			}
		}
	}
	each("a value", func(s store) error { return s.SetUint64([]byte("CurrentTerm"), 1) })
	for range 60 {
		first, _ := all["boltdb"].FirstIndex()
		last, _ := all["boltdb"].LastIndex()
		switch n := r.IntN(9); {
		case n == 0 && last > first: // what another leader's entries replace
			from := first + 1 + r.Uint64N(last-first)
			each(fmt.Sprintf("deleting %d to %d", from, last), func(s store) error { return s.DeleteRange(from, last) })
		case n == 1 && last > first: // what a snapshot has
			to := first + r.Uint64N(last-first)
			each(fmt.Sprintf("deleting %d to %d", first, to), func(s store) error { return s.DeleteRange(first, to) })
		case n == 2 && last > 0: // a snapshot of another: all is removed, and the log begins behind a gap
			next := last + 1 + r.Uint64N(50)
			each("deleting all", func(s store) error { return s.DeleteRange(first, last) })
			log := someLog(r, next)
			each("beginning again", func(s store) error { return s.StoreLog(log) })
		case n == 3:
			each("a vote", func(s store) error {
				if err := s.SetUint64([]byte("LastVoteTerm"), last); err != nil {
					return err
				}
				return s.Set([]byte("LastVoteCand"), fmt.Append(nil, "b", last))
			})
		case n == 4:
			for _, name := range []string{"holdfast", "boltdb"} { // raft-wal keeps its lock until the process ends
				if err := all[name].Close(); err != nil {
					t.Fatal(name, err)
				}
				all[name] = mustOpen(t, name, dir)
			}
			each("opening again", func(store) error { return nil })
		default:
			var logs []*hashicorp.Log
			for i := range 1 + r.Uint64N(20) {
				logs = append(logs, someLog(r, last+1+i))
			}
			each(fmt.Sprintf("storing %d to %d", last+1, last+uint64(len(logs))), func(s store) error { return s.StoreLogs(logs) })
		}
	}
}

// TestOtherStoresAreCopied: the file of raft-boltdb by MigrateFromBolt, raft-wal by its own functions.
func TestOtherStoresAreCopied(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	fill := func(s store) {
		t.Helper()
		for index := uint64(11); index < 80; index++ {
			if err := s.StoreLog(someLog(r, index)); err != nil {
				t.Fatal(err)
			}
		}
		for key, n := range map[string]uint64{"CurrentTerm": 7, "LastVoteTerm": 1 << 60} {
			if err := s.SetUint64([]byte(key), n); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Set([]byte("LastVoteCand"), []byte("b\xff")); err != nil {
			t.Fatal(err)
		}
	}
	for _, oldTime := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "raft.db")
		bolt, err := raftboltdb.New(raftboltdb.Options{Path: path, MsgpackUseNewTimeFormat: !oldTime})
		if err != nil {
			t.Fatal(err)
		}
		fill(bolt)
		want := describe(t, bolt)
		if err := bolt.Close(); err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if err := raft.MigrateFromBolt(filepath.Join(dir, "holdfast"), path, wal.Options{SegmentSize: segment}); err != nil {
			t.Fatal(err)
		}
		s := mustOpen(t, "holdfast", dir)
		if got := describe(t, s); got != want {
			t.Errorf("the copy has\n%s\nand raft-boltdb\n%s", got, want)
		}
		s.Close()
	}
	dir := t.TempDir()
	from, to := mustOpen(t, "raft-wal", dir), mustOpen(t, "holdfast", dir)
	defer from.Close()
	defer to.Close()
	fill(from)
	if err := migrate.CopyStable(t.Context(), to, from, nil, nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := migrate.CopyLogs(t.Context(), to, from, 100_000, nil); err != nil {
		t.Fatal(err)
	}
	if got, want := describe(t, to), describe(t, from); got != want {
		t.Errorf("the copy has\n%s\nand raft-wal\n%s", got, want)
	}
}

// TestVerifierAgrees runs raft-wal's verifier over the store of a leader and the store of a follower.
func TestVerifierAgrees(t *testing.T) {
	reports := make(chan verifier.VerificationReport, 8)
	isCheckpoint := func(log *hashicorp.Log) (bool, error) { return string(log.Data) == "checkpoint", nil }
	report := func(r verifier.VerificationReport) { reports <- r }
	open := func() *verifier.LogStore {
		return verifier.NewLogStore(mustOpen(t, "holdfast", t.TempDir()), isCheckpoint, report, &metrics.NoOpCollector{})
	}
	leader, follower := open(), open()
	defer leader.Close()
	defer follower.Close()
	if !leader.IsMonotonic() {
		t.Error("it is not monotonic")
	}
	r := rand.New(rand.NewPCG(6, 6))
	for next := uint64(1); next < 400; next += 100 {
		var logs []*hashicorp.Log
		for i := range uint64(99) {
			logs = append(logs, someLog(r, next+i))
			logs[i].Extensions = nil
		}
		logs = append(logs, &hashicorp.Log{Index: next + 99, Data: []byte("checkpoint")})
		for _, s := range []*verifier.LogStore{leader, follower} {
			if err := s.StoreLogs(logs); err != nil {
				t.Fatal(err)
			}
			select {
			case is := <-reports:
				if is.Err != nil || is.ReadSum == 0 || is.ReadSum != is.ExpectedSum || is.WrittenSum != is.ExpectedSum {
					t.Errorf("from %d: %+v", next, is)
				}
			case <-time.After(patience):
				t.Fatal("no report")
			}
		}
	}
}
