//go:build go1.25

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

// TestWhatRepeatsAFailureIsNoLossOfItsOwn: no sync was made, so no name was lost that came since.
func TestWhatRepeatsAFailureIsNoLossOfItsOwn(t *testing.T) {
	var n NameSyncs
	directory := keyed.Key{Device: 1, Inode: 2}
	since := n.Now()
	if err := n.Directory(directory, func() error { return ErrDirLost }); err != ErrDirLost {
		t.Errorf("Directory = %v", err)
	}
	if err := n.Whole(1, func() error { return errDeviceLost }); err != errDeviceLost {
		t.Errorf("Whole = %v", err)
	}
	if n.Now() != since || n.LostSince(directory, since) != nil {
		t.Errorf("%d syncs have failed, and %d had before", n.Now(), since)
	}
}

// TestSettledAwaitsTheSyncOfTheDirectory: it may have begun before, and have lost the names.
func TestSettledAwaitsTheSyncOfTheDirectory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n NameSyncs
		directory := keyed.Key{Device: 1, Inode: 2}
		since := n.Losses(directory)
		go n.Directory(directory, func() error {
			time.Sleep(time.Minute)
			return errors.New("broken")
		})
		synctest.Wait()
		if err := n.Settled(directory, since); err != ErrDirLost {
			t.Errorf("Settled = %v", err)
		}
	})
}

// TestAbreastDoesEachOnce and no more of them at the same time than it may.
func TestAbreastDoesEachOnce(t *testing.T) {
	for _, some := range []int{1, 2, 5} {
		for _, n := range []int{0, 1, 3, 20} {
			synctest.Test(t, func(t *testing.T) {
				done := make([]atomic.Int64, n)
				var now, most atomic.Int64
				Abreast(some, n, func(i int) {
					most.Store(max(most.Load(), now.Add(1)))
					time.Sleep(time.Minute)
					now.Add(-1)
					done[i].Add(1)
				})
				for i := range done {
					if done[i].Load() != 1 {
						t.Errorf("%d of %d was done %d times", i, n, done[i].Load())
					}
				}
				if most.Load() > int64(min(some, n)) {
					t.Errorf("%d of %d were done at the same time, and %d may be", most.Load(), n, some)
				}
			})
		}
	}
}
