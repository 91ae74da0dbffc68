//go:build go1.25

package files_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
)

// TestEveryByteIsInAFileOrLost has goroutines make all calls of streams in random order, of paths that can't
// be written for some time. Each byte that was accepted is in its file in the end, or was reported as lost,
// and nothing else is there. Then nothing is held, and nothing counted.
func TestEveryByteIsInAFileOrLost(t *testing.T) {
	policies := []string{
		"buffer=64,sync=never", "buffer=256,flush=5ms,sync=close", "buffer=128,sync=10ms", "buffer=64,sync=20ms/100B", "buffer=64,flush=32B,sync=200B",
		"buffer=0,sync=10ms/50B", "buffer=128,sync=group", "buffer=0,sync=group", "buffer=0,sync=each",
	}
	seeds := 10
	if testing.Short() {
		seeds = 3
	}
	for _, policy := range policies {
		for seed := range uint64(seeds) {
			t.Run(fmt.Sprint(policy, "/", seed), func(t *testing.T) {
				p, err := holdfast.ParsePolicy(policy)
				if err != nil {
					t.Fatal(err)
				}
				synctest.Test(t, func(t *testing.T) { accountForStreams(t, p, seed) })
			})
		}
	}
}

// A streamAccount records the outcome of one path's bytes.
type streamAccount struct{ accepted, lost atomic.Int64 }

func accountForStreams(t *testing.T, p holdfast.Policy, seed uint64) {
	const paths, goroutines, calls = 6, 6, 60
	r := rand.New(rand.NewPCG(seed, 0))
	disk := fault.NewDisk(
		fault.DiskFault{Op: fault.DiskWrite, Take: fault.All, Delay: time.Millisecond},
		fault.DiskFault{Op: fault.DiskDatasync, Delay: 2 * time.Millisecond},
		fault.DiskFault{Op: fault.DiskClose, Delay: time.Millisecond})
	disk.SetSyncsAll("/", p.Sync.Mode == holdfast.SyncNever || r.IntN(2) == 0)
	disk.MkdirAll("/0")
	disk.MkdirAll("/2")
	f := onDisk(t, disk, files.Options{Policy: p, Memory: holdfast.KiB, Handles: 4 + r.IntN(12),
		Retry: files.Retry{Attempts: 1 + r.IntN(3), Base: time.Millisecond, Cap: 4 * time.Millisecond}})
	var accounts [paths]streamAccount
	call := func(r *rand.Rand) {
		ctx := context.Background()
		if r.IntN(3) == 0 {
			timeout, cancel := context.WithTimeout(ctx, time.Duration(1+r.IntN(20))*time.Millisecond)
			defer cancel()
			ctx = timeout
		}
		i := r.IntN(paths)
		path := fmt.Sprintf("/%d/log", i)
		switch a := &accounts[i]; r.IntN(12) {
		case 0:
			f.Sync(ctx)
		case 1:
			f.Flush(ctx)
		case 2:
			f.Release(ctx, path)
		case 3:
			lost, _ := f.Discard(ctx, path)
			a.lost.Add(lost)
		case 4:
			disk.Add(fault.DiskFault{Op: fault.DiskWrite, Path: "log", Times: 1 + r.IntN(4), Err: syscall.ENOSPC})
		default:
			data := make([]byte, 1+r.IntN(90))
			err := f.Append(ctx, path, data)
			var failed *files.Error
			switch {
			case err == nil:
				a.accepted.Add(int64(len(data)))
			case errors.As(err, &failed):
				a.accepted.Add(failed.Offset)
			default:
				t.Error(err)
			}
		}
	}
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(1+g)))
			for range calls {
				call(r)
				time.Sleep(time.Duration(r.IntN(3000)) * time.Microsecond)
			}
		})
	}
	all.Wait()
	disk.Mend()
	for i := range paths {
		disk.MkdirAll(fmt.Sprint("/", i))
	}
	f.Sync(noContext) // it returns what failed before
	if err := f.Sync(noContext); err != nil {
		t.Error(err)
	}
	if s := f.Stats(); s.Memory != 0 || s.NotFlushed != 0 || s.NotDurable != 0 {
		t.Errorf("%d bytes of memory, %d and %d bytes wait", s.Memory, s.NotFlushed, s.NotDurable)
	}
	if n := f.Unsynced(); n != 0 {
		t.Errorf("%d bytes are counted for the next sync by bytes", n)
	}
	for i := range accounts {
		got, _ := disk.ReadFile(fmt.Sprintf("/%d/log", i))
		// A call of a group that waited for lost bytes has not counted them as accepted.
		accepted, lost := accounts[i].accepted.Load(), accounts[i].lost.Load()
		if n := int64(len(got)); n > accepted || n+lost < accepted || n+lost > accepted && !p.Sync.Waits() {
			t.Errorf("/%d/log holds %d bytes of %d, and %d are lost", i, n, accepted, lost)
		}
	}
}
