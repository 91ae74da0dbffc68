// Package raft gives hashicorp/raft a LogStore over package wal, and a StableStore in a small
// file: each is durable when its call returns.
package raft

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/hashicorp/raft"
	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/wal"
)

// A LogStore keeps raft's log in a [wal.Log]. Its indices have no gap: see IsMonotonic.
type LogStore struct{ *wal.Log }

// OpenLog opens the log in a directory, or makes a new one, as [wal.Open] does. The zero Policy is
// [holdfast.Durable] here. A policy whose Append does not wait for the disk is refused, because
// raft tells its peers that it has the entries of StoreLogs when that returns.
func OpenLog(dir string, o wal.Options) (*LogStore, error) {
	switch {
	case o.Policy == holdfast.Policy{}:
		o.Policy = holdfast.Durable()
	case !o.Policy.Sync.Waits():
		return nil, fmt.Errorf("raft: under policy %v an entry may be lost after StoreLogs; use holdfast.Durable()", o.Policy)
	}
	l, _, err := wal.Open(dir, o)
	if err != nil {
		return nil, err
	}
	return &LogStore{l}, nil
}

// IsMonotonic returns true: raft removes all entries before it continues after a gap.
func (s *LogStore) IsMonotonic() bool { return true }

// FirstIndex returns the index of the first entry, or 0.
func (s *LogStore) FirstIndex() (uint64, error) {
	if first := s.First(); first <= s.Last() {
		return first, nil
	}
	return 0, nil
}

// LastIndex returns the index of the last entry, or 0.
func (s *LogStore) LastIndex() (uint64, error) {
	if last := s.Last(); s.First() <= last {
		return last, nil
	}
	return 0, nil
}

// GetLog reads an entry, or returns raft.ErrLogNotFound.
func (s *LogStore) GetLog(index uint64, to *raft.Log) error {
	data, err := s.Read(index)
	if errors.Is(err, wal.ErrNotFound) {
		return raft.ErrLogNotFound
	}
	if err != nil {
		return err
	}
	return decode(data, index, to)
}

// StoreLog appends an entry.
func (s *LogStore) StoreLog(log *raft.Log) error { return s.StoreLogs([]*raft.Log{log}) }

// StoreLogs appends entries: a crash leaves all of them or none.
func (s *LogStore) StoreLogs(logs []*raft.Log) error {
	if len(logs) == 0 {
		return nil
	}
	next, first := s.Last()+1, logs[0].Index
	if first != next && first > 0 && s.First() == next { // the log is empty, and may continue at any index
		begin := s.TruncateBefore
		if first < next {
			begin = func(index uint64) error { return s.TruncateAfter(index - 1) }
		}
		if err := begin(first); err != nil {
			return err
		}
		next = first
	}
	records := make([][]byte, len(logs))
	for i, log := range logs {
		if log.Index != next+uint64(i) {
			return fmt.Errorf("raft: entry %d can't follow entry %d; entries have no gap", log.Index, next+uint64(i)-1)
		}
		records[i] = encode(log)
	}
	_, err := s.Append(records...)
	return err
}

// DeleteRange removes entries at the log's beginning or at its end.
func (s *LogStore) DeleteRange(from, to uint64) error {
	first, last := s.First(), s.Last()
	switch {
	case to < first || from > last || from > to:
		return nil
	case to >= last:
		return s.TruncateAfter(max(from, first) - 1)
	case from <= first:
		return s.TruncateBefore(to + 1)
	}
	return fmt.Errorf("raft: entries %d to %d are in the middle of %d to %d; remove them from an end", from, to, first, last)
}

// A record is the entry's type, term, time in Unix ns (0: none), length of its extensions, the
// extensions, and its data.
func encode(log *raft.Log) []byte {
	at := int64(0)
	if !log.AppendedAt.IsZero() {
		at = log.AppendedAt.UnixNano()
	}
	p := make([]byte, 0, 1+3*binary.MaxVarintLen64+len(log.Extensions)+len(log.Data))
	p = append(p, byte(log.Type))
	p = binary.AppendUvarint(p, log.Term)
	p = binary.AppendVarint(p, at)
	p = binary.AppendUvarint(p, uint64(len(log.Extensions)))
	return append(append(p, log.Extensions...), log.Data...)
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

// A StableStore keeps raft's few values in one file; each Set replaces the whole file.
type StableStore struct {
	set    *files.Set
	path   string
	mu     sync.Mutex
	values map[string][]byte
}

// OpenStable reads the values from a file, if it exists.
func OpenStable(path string) (*StableStore, error) {
	s := &StableStore{path: path, values: map[string][]byte{}}
	text, err := os.ReadFile(path)
	var values map[string][]byte
	if err == nil {
		err = json.Unmarshal(text, &values)
	}
	for name, value := range values {
		key, bad := url.QueryUnescape(name)
		err = errors.Join(err, bad)
		s.values[key] = value
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("raft: values of %s: %w", path, err)
	}
	s.set, err = files.New(files.Options{Policy: holdfast.Durable()})
	return s, err
}

// Set makes a value durable.
func (s *StableStore) Set(key, value []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := maps.Clone(s.values)
	changed[string(key)] = bytes.Clone(value)
	named := map[string][]byte{} // JSON text must be UTF-8
	for key, value := range changed {
		named[url.QueryEscape(key)] = value
	}
	text, err := json.Marshal(named)
	if err != nil {
		return err
	}
	if _, err := s.set.WriteFile(context.Background(), s.path, text, files.Replace); err != nil {
		return err
	}
	s.values = changed
	return nil
}

// errNotFound has the text by which raft recognizes it.
var errNotFound = errors.New("not found")

// Get returns a value, or the error "not found".
func (s *StableStore) Get(key []byte) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	value, ok := s.values[string(key)]
	if !ok {
		return nil, errNotFound
	}
	return bytes.Clone(value), nil
}

// SetUint64 makes a number durable.
func (s *StableStore) SetUint64(key []byte, value uint64) error {
	return s.Set(key, binary.BigEndian.AppendUint64(nil, value))
}

// GetUint64 returns a number, or 0.
func (s *StableStore) GetUint64(key []byte) (uint64, error) {
	value, err := s.Get(key)
	if err == errNotFound {
		return 0, nil
	}
	if len(value) != 8 {
		return 0, fmt.Errorf("raft: the value of %q is no number", key)
	}
	return binary.BigEndian.Uint64(value), nil
}

// Close closes the store.
func (s *StableStore) Close() error { return s.set.Close() }
