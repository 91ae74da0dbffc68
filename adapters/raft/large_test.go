//go:build go1.25

package raft_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	hashicorp "github.com/hashicorp/raft"
	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/adapters/raft"
	"github.com/holdfast-go/holdfast/internal/isolate"
	"github.com/holdfast-go/holdfast/wal"
)

// filled returns an entry whose data has its index at both ends.
func filled(index uint64, size int) *hashicorp.Log {
	data := make([]byte, size)
	copy(data, fmt.Sprint(index))
	if size > 40 {
		copy(data[size-20:], fmt.Sprint(index))
	}
	return &hashicorp.Log{Index: index, Term: 1, Data: data}
}

// checkFilled reads the entries from first to last, whose sizes size returns.
func checkFilled(t *testing.T, s *raft.Store, first, last uint64, size func(index uint64) int) {
	t.Helper()
	if gotFirst, gotLast, err := s.Indexes(); gotFirst != first || gotLast != last || err != nil {
		t.Fatalf("it has %d to %d, %v; want %d to %d", gotFirst, gotLast, err, first, last)
	}
	for index := first; index <= last; index++ {
		var log hashicorp.Log
		if err := s.GetLog(index, &log); err != nil || !bytes.Equal(log.Data, filled(index, size(index)).Data) {
			t.Fatalf("entry %d has %d bytes, %v; want %d", index, len(log.Data), err, size(index))
		}
	}
}

// TestABatchIsLargerThanASegment, as when 64 entries wait; one entry may be larger too.
func TestABatchIsLargerThanASegment(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	size := func(index uint64) int { return []int{1, 300 << 10, 0, 70 << 10, 64<<10 - 100, 5}[index%6] }
	s := open(t, dir)
	for next := uint64(1); next < 192; next += 64 {
		var logs []*hashicorp.Log
		for i := range uint64(64) {
			logs = append(logs, filled(next+i, size(next+i)))
		}
		if err := s.StoreLogs(logs); err != nil {
			t.Fatal(err)
		}
	}
	if durable := s.Durable(); durable != 192 {
		t.Errorf("%d of 192 are durable", durable)
	}
	checkFilled(t, s, 1, 192, size)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries { // a file has one large entry, and no whole call: who reads an entry reads what was written with it
		if info, err := e.Info(); err == nil && info.Size() > 320<<10 {
			t.Errorf("%s has %d bytes", e.Name(), info.Size())
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	defer s.Close()
	checkFilled(t, s, 1, 192, size)
	if err := errors.Join(s.DeleteRange(100, 192), s.DeleteRange(1, 49)); err != nil {
		t.Fatal(err)
	}
	checkFilled(t, s, 50, 99, size)
}

// TestAnEntryOf512MiB takes 2 GiB of memory and a second: with HOLDFAST_LARGE=1.
func TestAnEntryOf512MiB(t *testing.T) {
	if os.Getenv("HOLDFAST_LARGE") == "" {
		t.Skip("takes memory and time; HOLDFAST_LARGE=1 runs it")
	}
	dir := filepath.Join(isolate.OnDisk(t), "store")
	s, err := raft.Open(dir, wal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	size := func(index uint64) int { return []int{512 << 20, 1, 65 << 20}[index%3] }
	if err := s.SetUint64([]byte("CurrentTerm"), 1); err != nil {
		t.Fatal(err)
	}
	for index := uint64(1); index <= 5; index++ {
		if err := s.StoreLog(filled(index, size(index))); err != nil {
			t.Fatal(index, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = raft.Open(dir, wal.Options{}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	checkFilled(t, s, 1, 5, size)
}

// counted is a state machine that counts what is applied.
type counted struct{ n int }

func (c *counted) Apply(*hashicorp.Log) any                 { c.n++; return nil }
func (c *counted) Snapshot() (hashicorp.FSMSnapshot, error) { return nil, io.ErrUnexpectedEOF }
func (c *counted) Restore(io.ReadCloser) error              { return io.ErrUnexpectedEOF }

// TestALeaderOfLargeCommandsStaysLeader: 64 commands of 300 KiB are one batch of raft.
func TestALeaderOfLargeCommandsStaysLeader(t *testing.T) {
	s, err := raft.Open(t.TempDir()+"/store", wal.Options{SegmentSize: 8 * holdfast.MiB})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	machine := new(counted)
	server := startAlone(t, s, machine)
	var group sync.WaitGroup
	for range 100 {
		group.Go(func() {
			if err := server.Apply(make([]byte, 300<<10), time.Minute).Error(); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if state := server.State(); state != hashicorp.Leader {
		t.Error("it is", state)
	}
	if err := server.Shutdown().Error(); err != nil || machine.n != 100 {
		t.Errorf("%d commands were applied, %v", machine.n, err)
	}
	if n := s.Metrics()["log_appends"]; n >= 100 {
		t.Errorf("no batch had two commands: %v", strconv.FormatFloat(n, 'f', 0, 64))
	}
}
