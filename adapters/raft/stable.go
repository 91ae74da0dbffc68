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
	"path/filepath"
	"sync"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
)

// stableName is the file of the values: JSON text, by escaped keys. The file is replaced as a whole.
const stableName = "stable"

// copying is the name of the path that MigrateFromBolt copies from, until it is done. No escaped key
// has it.
const copying = "%copying"

// stable keeps raft's few values in one file.
type stable struct {
	set    *files.Set
	path   string
	copies string // the path that MigrateFromBolt copies from
	mu     sync.Mutex
	values map[string][]byte // nil: there is no file
}

func (s *stable) open(dir string, perm fs.FileMode) error {
	s.path = filepath.Join(dir, stableName)
	text, err := os.ReadFile(s.path)
	switch {
	case err == nil:
		var named map[string][]byte
		if err = json.Unmarshal(text, &named); err == nil {
			s.values = map[string][]byte{}
		}
		for name, value := range named {
			if name == copying {
				s.copies = string(value)
				continue
			}
			key, bad := url.QueryUnescape(name)
			err = errors.Join(err, bad)
			s.values[key] = value
		}
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	}
	if err != nil {
		return fmt.Errorf("raft: values of %s: %w", s.path, err)
	}
	s.set, err = files.New(files.Options{Policy: holdfast.Durable(), Perm: perm})
	return err
}

// write makes the values durable, with the path that is copied from.
func (s *stable) write(values map[string][]byte, copies string) error {
	named := map[string][]byte{} // JSON text must be UTF-8
	for key, value := range values {
		named[url.QueryEscape(key)] = value
	}
	if copies != "" {
		named[copying] = []byte(copies)
	}
	text, err := json.Marshal(named)
	if err != nil {
		return err
	}
	if _, err := s.set.WriteFile(context.Background(), s.path, text, files.Replace); err != nil {
		return err
	}
	s.values, s.copies = values, copies
	return nil
}

// Set makes a value durable.
func (s *Store) Set(key, value []byte) error {
	s.counts.sets.Add(1)
	s.stable.mu.Lock()
	defer s.stable.mu.Unlock()
	changed := map[string][]byte{}
	maps.Copy(changed, s.stable.values)
	changed[string(key)] = bytes.Clone(value)
	return s.stable.write(changed, "")
}

// errNotFound has the text by which raft recognizes it.
var errNotFound = errors.New("not found")

// Get returns a value, or the error "not found".
func (s *Store) Get(key []byte) ([]byte, error) {
	s.counts.gets.Add(1)
	s.stable.mu.Lock()
	defer s.stable.mu.Unlock()
	value, ok := s.stable.values[string(key)]
	if !ok {
		return nil, errNotFound
	}
	return bytes.Clone(value), nil
}

// SetUint64 makes a number durable.
func (s *Store) SetUint64(key []byte, value uint64) error {
	return s.Set(key, binary.BigEndian.AppendUint64(nil, value))
}

// GetUint64 returns a number, or 0.
func (s *Store) GetUint64(key []byte) (uint64, error) {
	value, err := s.Get(key)
	if err == errNotFound {
		return 0, nil
	}
	if len(value) != 8 {
		return 0, fmt.Errorf("raft: the value of %q is no number", key)
	}
	return binary.BigEndian.Uint64(value), nil
}
