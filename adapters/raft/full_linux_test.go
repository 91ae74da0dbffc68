//go:build go1.25

package raft_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	hashicorp "github.com/hashicorp/raft"
	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/isolate"
)

// TestRaftGoesOnAfterAFullDisk: what StoreLogs failed to store is not there for raft, which stores
// other entries in its place.
func TestRaftGoesOnAfterAFullDisk(t *testing.T) {
	isolate.Mounts(t, func(t *testing.T) {
		at := t.TempDir()
		if err := unix.Mount("none", at, "tmpfs", 0, "size=2m"); err != nil {
			t.Skip(err)
		}
		defer unix.Unmount(at, unix.MNT_DETACH)
		s := open(t, filepath.Join(at, "store"))
		defer func() { s.Close() }()
		size := func(index uint64) int { return int(index%7) * 2000 }
		last := uint64(0)
		storing := func(n uint64, size func(uint64) int) error {
			var logs []*hashicorp.Log
			for i := range n {
				logs = append(logs, filled(last+1+i, size(last+1+i)))
			}
			err := s.StoreLogs(logs)
			if err == nil {
				last += n
			}
			return err
		}
		larger := func(index uint64) int { return size(index) + 1 }
		filler := filepath.Join(at, "filler")
		for round := range 3 {
			if err := storing(5, size); err != nil {
				t.Fatal(err)
			}
			f, err := os.Create(filler)
			if err != nil {
				t.Fatal(err)
			}
			for n := 1; n > 0 && err == nil; {
				n, err = f.Write(make([]byte, 4096))
			}
			f.Close()
			err = nil
			for err == nil {
				err = storing(32, larger) // in several batches
				if err == nil {           // there was a spare segment
					err = s.DeleteRange(last-31, last)
					last -= 32
				}
			}
			if !errors.Is(err, syscall.ENOSPC) {
				t.Fatal(err)
			}
			checkFilled(t, s, 1, last, size)
			if err := s.GetLog(last+1, new(hashicorp.Log)); err != hashicorp.ErrLogNotFound {
				t.Error("an entry that was not stored:", err)
			}
			if err := os.Remove(filler); err != nil {
				t.Fatal(err)
			}
			switch round {
			case 0: // a new leader's entries
				err = storing(3, size)
			case 1: // what raft knows is removed too
				err = s.DeleteRange(last, last)
				last--
			case 2: // the process ends: what is left is for raft to judge
				err = s.Close()
				s = open(t, filepath.Join(at, "store"))
				if _, is, _ := s.Indexes(); is < last {
					t.Errorf("the last entry is %d; %d was stored", is, last)
				}
				err = errors.Join(err, s.DeleteRange(last+1, last+100))
			}
			if err != nil {
				t.Fatal(round, err)
			}
			checkFilled(t, s, 1, last, size)
		}
	})
}
