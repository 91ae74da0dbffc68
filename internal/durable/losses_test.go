package durable

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/keyed"
)

// TestANameThatComesDuringASyncHasItsOwn: the sync under way may have begun before the name was there.
func TestANameThatComesDuringASyncHasItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n NameSyncs
		var began []time.Duration
		start := time.Now()
		var ended atomic.Int64
		for i := range 3 { // the second and the third come while the first is synced, and share one
			time.AfterFunc(time.Duration(i)*time.Second, func() {
				err := n.Directory(keyed.Key{Device: 1, Inode: 2}, func() error {
					began = append(began, time.Since(start))
					time.Sleep(time.Minute)
					return nil
				})
				if err != nil {
					t.Error(err)
				}
				ended.Add(1)
			})
		}
		time.Sleep(time.Minute)
		if synctest.Wait(); ended.Load() != 1 {
			t.Errorf("%d of 3 calls have ended with the first sync", ended.Load())
		}
		time.Sleep(time.Hour)
		if synctest.Wait(); len(began) != 2 || began[1] != time.Minute || ended.Load() != 3 {
			t.Errorf("syncs began at %v, %d calls have ended", began, ended.Load())
		}
	})
}

// TestADirectorysSyncAwaitsThatOfItsFileSystem: if that fails, it may have lost the names.
func TestADirectorysSyncAwaitsThatOfItsFileSystem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n NameSyncs
		directory := keyed.Key{Device: 1, Inode: 2}
		since := n.Losses(directory)
		broken := errors.New("broken")
		go n.Whole(1, func() error {
			time.Sleep(time.Minute)
			return broken
		})
		synctest.Wait()
		err := n.Directory(directory, func() error { return nil })
		if lost := n.LostSince(directory, since); err != nil || !errors.Is(lost, ErrDirLost) {
			t.Errorf("Directory = %v, LostSince = %v", err, lost)
		}
	})
}

func TestALostNameStaysLost(t *testing.T) {
	broken := errors.New("broken")
	syncs := []error{broken, nil}
	s := Step{Names: &NameSyncs{}}
	at := &Place{Key: keyed.Key{Device: 1, Inode: 2}, Device: s.Device(1), Sync: func() error {
		err := syncs[0]
		syncs = syncs[1:]
		return err
	}}
	for i := range 2 {
		if err := s.SyncDir(at); err != broken || s.Loss(at) != broken {
			t.Errorf("sync %d: %v, and the loss is %v", i+1, err, s.Loss(at))
		}
	}
}
