//go:build go1.25

package raft_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/adapters/raft"
	"github.com/holdfast-go/holdfast/wal"
)

// small options make a small store.
var small = wal.Options{SegmentSize: 64 * holdfast.KiB}

func TestValuesAreThereAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stable")
	for round := range uint64(3) {
		s, err := raft.Open(path, small)
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
	s, err := raft.Open(dir, small)
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
	s, err := raft.Open(path, small)
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
	if s, err = raft.Open(path, small); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, key := range keys {
		if value, err := s.Get([]byte(key)); string(value) != "of "+key || err != nil {
			t.Errorf("%q is %q, %v", key, value, err)
		}
	}
}
