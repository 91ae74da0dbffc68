// Package raft gives hashicorp/raft a store over package wal, as a LogStore and a StableStore in
// one directory. Entries and values are durable when the call returns that stores them.
//
//	store, err := raft.Open("raft/store", wal.Options{})
//	r, err := hashicorp.NewRaft(config, fsm, store, store, snapshots, transport)
//
// [MigrateFromBolt] makes such a store of a file of raft-boltdb.
package raft

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/wal"
)

// A Store keeps raft's log in a [wal.Log], and raft's few values in the file "stable" beside its
// segments. Any number of goroutines may call its methods at once.
//
// Stats, Err, Follow and the like are the Log's. Don't append to it or truncate it but through raft.
type Store struct {
	*wal.Log
	stable stable
	counts counts
	most   int // bytes of the entries of a batch

	// undo is the first index that the last StoreLogs failed to store; 0: it did not fail. Raft
	// does not have these entries, and stores others under their indices.
	undo atomic.Uint64

	mu     sync.Mutex // of calls that change the end of the log
	buffer []byte     // of encoded entries; kept for the next call
}

var (
	_ raft.LogStore          = (*Store)(nil)
	_ raft.MonotonicLogStore = (*Store)(nil)
	_ raft.StableStore       = (*Store)(nil)
)

const (
	defaultSegment = 64 * holdfast.MiB
	mostBatch      = 8 << 20
)

// Open opens the store in a directory, or makes a new one, as [wal.Open] does. A zero Policy is
// [holdfast.Durable] here. A policy whose Append does not wait for the disk is refused, because
// raft tells its peers that it has the entries of StoreLogs when that returns. A zero SegmentSize
// is 64 MiB here. A larger entry gets a segment of its size.
//
// Entries without the file of values are refused: a server without its vote may vote twice.
func Open(dir string, o wal.Options) (*Store, error) {
	s, err := open(dir, o)
	if err != nil {
		return nil, err
	}
	switch {
	case s.stable.copies != "":
		err = fmt.Errorf("raft: the copy of %s to %s was interrupted; call MigrateFromBolt again", s.stable.copies, dir)
	case s.stable.values == nil && s.First() <= s.Last():
		err = fmt.Errorf("raft: %s has entries, and no file %s; a repaired log needs that of the log which it was made from", dir, stableName)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func open(dir string, o wal.Options) (*Store, error) {
	switch {
	case o.Policy == holdfast.Policy{}:
		o.Policy = holdfast.Durable()
	case !o.Policy.Sync.Waits():
		return nil, fmt.Errorf("raft: under policy %v an entry may be lost after StoreLogs; use holdfast.Durable()", o.Policy)
	}
	if o.SegmentSize == 0 {
		o.SegmentSize = defaultSegment
	}
	l, _, err := wal.Open(dir, o)
	if err != nil {
		return nil, err
	}
	s := &Store{Log: l, most: min(mostBatch, int(o.SegmentSize)/4)}
	if err := s.stable.open(dir, o.Perm); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return s, nil
}

// Close closes the store.
func (s *Store) Close() error { return errors.Join(s.Log.Close(), s.stable.set.Close()) }

// IsMonotonic returns true: entries have no gap, and raft removes all of them before it continues
// after one.
func (s *Store) IsMonotonic() bool { return true }

// Indexes returns the indices of the first entry and of the last, or 0 and 0.
func (s *Store) Indexes() (first, last uint64, err error) {
	first, last = s.First(), s.Last()
	if undo := s.undo.Load(); undo > 0 {
		last = min(last, undo-1)
	}
	if first > last {
		return 0, 0, nil
	}
	return first, last, nil
}

// FirstIndex returns the index of the first entry, or 0.
func (s *Store) FirstIndex() (uint64, error) {
	first, _, err := s.Indexes()
	return first, err
}

// LastIndex returns the index of the last entry, or 0.
func (s *Store) LastIndex() (uint64, error) {
	_, last, err := s.Indexes()
	return last, err
}

// GetLog reads an entry, or returns raft.ErrLogNotFound.
func (s *Store) GetLog(index uint64, to *raft.Log) error {
	if undo := s.undo.Load(); undo > 0 && index >= undo {
		return raft.ErrLogNotFound
	}
	data, err := s.Read(index)
	if errors.Is(err, wal.ErrNotFound) {
		return raft.ErrLogNotFound
	}
	if err != nil {
		return err
	}
	s.counts.entriesRead.Add(1)
	s.counts.bytesRead.Add(int64(len(data)))
	return decode(data, index, to)
}

// StoreLog appends an entry.
func (s *Store) StoreLog(log *raft.Log) error { return s.StoreLogs([]*raft.Log{log}) }

// StoreLogs appends entries. A crash during the call leaves none, some of the first, or all. After
// an error it can be called again, with these entries or with others.
func (s *Store) StoreLogs(logs []*raft.Log) error {
	if len(logs) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.beginAtLocked(logs[0].Index); err != nil {
		return err
	}
	first := s.Last() + 1
	for i, log := range logs {
		if log.Index != first+uint64(i) {
			return fmt.Errorf("raft: entry %d can't follow entry %d; entries have no gap", log.Index, first+uint64(i)-1)
		}
	}
	for rest := logs; len(rest) > 0; {
		n := s.fit(rest)
		append := s.Enqueue
		if n == len(rest) {
			append = s.Append // it waits for all before
		}
		if _, err := append(s.encodeLocked(rest[:n])...); err != nil {
			if s.Last() >= first {
				s.undo.Store(first)
			}
			return err
		}
		rest = rest[n:]
	}
	s.counts.batches.Add(1)
	s.counts.entries.Add(int64(len(logs)))
	return nil
}

// beginAtLocked lets the log continue at an index, if it is empty or if what it has from there on
// was never stored for raft.
func (s *Store) beginAtLocked(index uint64) error {
	if err := s.undoLocked(); err != nil {
		return err
	}
	next := s.Last() + 1
	switch empty := s.First() == next; {
	case !empty || index == next || index == 0:
		return nil
	case index < next:
		return s.TruncateAfter(index - 1)
	}
	return s.TruncateBefore(index)
}

// undoLocked removes what a failed StoreLogs has left.
func (s *Store) undoLocked() error {
	undo := s.undo.Load()
	if undo == 0 {
		return nil
	}
	if s.Last() >= undo {
		if err := s.TruncateAfter(undo - 1); err != nil {
			return err
		}
	}
	s.undo.Store(0)
	return nil
}

// fit returns how many of the logs go into the next batch. It is at least one.
func (s *Store) fit(logs []*raft.Log) int {
	size := 0
	for i, log := range logs {
		if size += entryHeader + len(log.Extensions) + len(log.Data); size > s.most {
			return max(1, i)
		}
	}
	return len(logs)
}

// DeleteRange removes entries at the log's beginning or at its end.
func (s *Store) DeleteRange(from, to uint64) error {
	if first, last := s.First(), s.Last(); from <= first {
		// Raft does this beside StoreLogs: entries that come meanwhile must stay.
		to = min(to, last)
		if to < first {
			return nil
		}
		err := s.TruncateBefore(to + 1)
		if err == nil {
			s.counts.removedFirst.Add(int64(to + 1 - first))
		}
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.undoLocked(); err != nil {
		return err
	}
	first, last := s.First(), s.Last()
	switch {
	case from > last || from > to:
		return nil
	case to < last:
		return fmt.Errorf("raft: entries %d to %d are in the middle of %d to %d; remove them from an end", from, to, first, last)
	}
	err := s.TruncateAfter(from - 1)
	if err == nil {
		s.counts.removedLast.Add(int64(last + 1 - from))
	}
	return err
}

// counts holds the totals of the calls of raft since Open.
type counts struct {
	batches, entries, bytes   atomic.Int64
	entriesRead, bytesRead    atomic.Int64
	removedFirst, removedLast atomic.Int64
	gets, sets                atomic.Int64
}

// Metrics returns what the store has done since Open, and its state, by names for a sink of
// metrics. A counter that raft-wal has too keeps raft-wal's name. Names that end with _seconds are
// times, names with _bytes sizes.
func (s *Store) Metrics() map[string]float64 {
	m := map[string]float64{
		"log_appends":             float64(s.counts.batches.Load()),
		"log_entries_written":     float64(s.counts.entries.Load()),
		"log_entry_bytes_written": float64(s.counts.bytes.Load()),
		"log_entries_read":        float64(s.counts.entriesRead.Load()),
		"log_entry_bytes_read":    float64(s.counts.bytesRead.Load()),
		"head_truncations":        float64(s.counts.removedFirst.Load()),
		"tail_truncations":        float64(s.counts.removedLast.Load()),
		"stable_gets":             float64(s.counts.gets.Load()),
		"stable_sets":             float64(s.counts.sets.Load()),
	}
	first, last, _ := s.Indexes()
	m["log_first_index"], m["log_last_index"] = float64(first), float64(last)
	stats := s.Stats()
	m["syncs"] = float64(stats.Syncs)
	m["sync_seconds"] = stats.Sync.Sum().Seconds()
	m["longest_sync_seconds"] = stats.LongestSync.Seconds()
	m["errors"] = float64(stats.Errors)
	m["not_durable_bytes"] = float64(stats.NotDurable)
	return m
}

// entryHeader is the most that a record has before its extensions.
const entryHeader = 1 + 3*binary.MaxVarintLen64

// encodeLocked returns the records of logs, which are valid until the next call. A record is the
// entry's type, term, time in Unix ns (0: none), length of its extensions, the extensions, and its
// data.
func (s *Store) encodeLocked(logs []*raft.Log) [][]byte {
	size := 0
	for _, log := range logs {
		size += entryHeader + len(log.Extensions) + len(log.Data)
	}
	p := s.buffer[:0]
	if size > cap(p) {
		p = make([]byte, 0, size)
		if size <= s.most {
			s.buffer = p
		}
	}
	records := make([][]byte, len(logs))
	for i, log := range logs {
		at := int64(0)
		if !log.AppendedAt.IsZero() {
			at = log.AppendedAt.UnixNano()
		}
		begin := len(p)
		p = append(p, byte(log.Type))
		p = binary.AppendUvarint(p, log.Term)
		p = binary.AppendVarint(p, at)
		p = binary.AppendUvarint(p, uint64(len(log.Extensions)))
		p = append(append(p, log.Extensions...), log.Data...)
		records[i] = p[begin:]
	}
	s.counts.bytes.Add(int64(len(p)))
	return records
}

func decode(p []byte, index uint64, to *raft.Log) error {
	bad := fmt.Errorf("raft: record %d is no entry of this package", index)
	if len(p) == 0 {
		return bad
	}
	log := raft.Log{Index: index, Type: raft.LogType(p[0])}
	p = p[1:]
	term, n := binary.Uvarint(p)
	if n <= 0 {
		return bad
	}
	p = p[n:]
	at, n := binary.Varint(p)
	if n <= 0 {
		return bad
	}
	p = p[n:]
	size, n := binary.Uvarint(p)
	if n <= 0 || size > uint64(len(p)-n) {
		return bad
	}
	p = p[n:]
	log.Term = term
	if at != 0 {
		log.AppendedAt = time.Unix(0, at)
	}
	if size > 0 {
		log.Extensions = p[:size:size]
	}
	if p = p[size:]; len(p) > 0 { // else nil, as in raft's own entries without data
		log.Data = p
	}
	*to = log
	return nil
}
