//go:build go1.25

package files_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// A crowd is goroutines that use one Set in every way at once. Each record that one
// of them adds to a file names it and is numbered, so that the files show what was kept.
type crowd struct {
	t     *testing.T
	f     *files.Set
	disk  *fault.Disk
	seed  uint64
	paths int

	mu   sync.Mutex
	kept map[string][]string // by goroutine and path: what must be there, in this order

}

// TestCrowdOnADiskThatFails lets 200 goroutines append to 50 paths, write whole files
// behind existing bytes, release and sync. They use the least number of descriptors, on
// a disk that fails in seeded ways. Every record that was acknowledged is there once and
// in its goroutine's order, others at most once, and none in parts.
func TestCrowdOnADiskThatFails(t *testing.T) {
	isolate.Once(t, isolate.Ordinary)
	policies := append(appendPolicies(), holdfast.Policy{Buffer: 100, FlushEvery: 10 * time.Millisecond, Sync: holdfast.SyncEvery(30 * time.Millisecond)})
	seeds := uint64(3)
	if testing.Short() {
		seeds = 1
	}
	for i, p := range policies {
		for seed := range seeds {
			t.Run(fmt.Sprint(p, "/", seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { inCrowd(t, p, seed*10+uint64(i)) })
			})
		}
	}
}

func inCrowd(t *testing.T, p holdfast.Policy, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 7))
	disk := fault.NewDisk()
	disk.SetSyncsAll("/", r.IntN(2) == 0)
	disk.MkdirAll("a")
	f := onDisk(t, disk, files.Options{
		Policy: p, Handles: 4, Memory: holdfast.Size(2+r.IntN(8)) * holdfast.KiB, Workers: 1 + r.IntN(3), MkdirAll: true,
		Retry: files.Retry{Attempts: 2, Base: time.Millisecond, Cap: 4 * time.Millisecond},
	})
	c, goroutines := &crowd{t: t, f: f, disk: disk, seed: seed, paths: 50, kept: map[string][]string{}}, 200
	if isolate.RaceEnabled { // a quarter of them meets in the same places: still many for each of 4 handles
		goroutines, c.paths = 50, 12
	}
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() { c.run(g) })
	}
	all.Go(func() { passing(disk, r) })
	all.Wait()
	disk.Mend()
	f.Close() // a file that a failed directory or look left in doubt is there all the same
	c.check()
}

// passing adds faults that pass: none loses what was written.
func passing(disk *fault.Disk, r *rand.Rand) {
	errs := []error{syscall.EIO, syscall.ENOSPC, syscall.EINTR, syscall.EMFILE, syscall.EACCES}
	ops := []fault.DiskOp{fault.DiskWrite, fault.DiskWrite, fault.DiskOpen, fault.DiskOpenDir, fault.DiskStatFD, fault.DiskStatPath}
	for range 10 {
		x := fault.DiskFault{
			Op: ops[r.IntN(len(ops))], First: 1 + r.IntN(20), Times: 1 + r.IntN(10),
			Err: errs[r.IntN(len(errs))], Take: r.IntN(30), Delay: time.Duration(r.IntN(3)) * time.Millisecond,
		}
		if x.Op == fault.DiskWrite && r.IntN(2) == 0 {
			x.Err, x.Take = nil, 1+x.Take // short
		}
		disk.Add(x)
		time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
	}
}

func (c *crowd) run(g int) {
	r := rand.New(rand.NewPCG(c.seed, uint64(g)))
	for i := range 12 {
		path := fmt.Sprint("/a/", r.IntN(c.paths))
		record := fmt.Sprintf("<%d %d %s>", g, i, strings.Repeat("x", r.IntN(150)))
		ctx, cancel := context.WithTimeout(noContext, time.Duration(1+r.IntN(200))*time.Millisecond)
		if r.IntN(2) == 0 {
			ctx = noContext
		}
		switch r.IntN(10) {
		case 0:
			c.f.Release(ctx, path)
		case 1:
			c.f.Sync(ctx)
		case 2:
			result, err := c.f.WriteFile(ctx, path, []byte(record), files.Append)
			c.note(g, path, record, err == nil, int(result.Bytes))
		case 3:
			results, _ := c.f.WriteAll(ctx, one(files.Write{Path: path, Data: []byte(record), Mode: files.Append}))
			c.note(g, path, record, results.At(0).Err == nil, int(results.At(0).Bytes))
		case 4:
			time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
		default:
			err := c.f.Append(ctx, path, []byte(record))
			n := 0
			if failed := (*files.Error)(nil); errors.As(err, &failed) {
				n = int(failed.Offset)
			}
			c.note(g, path, record, err == nil, n)
		}
		cancel()
	}
}

// note takes that a record is kept, or that n bytes of it are.
func (c *crowd) note(g int, path, record string, kept bool, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := fmt.Sprint(g, path)
	switch {
	case kept || n == len(record):
		c.kept[key] = append(c.kept[key], record)
	case n > 0: // a part of it is there
		c.kept[key] = append(c.kept[key], record[:n])
	}
}

func (c *crowd) check() {
	for g := range 200 {
		for i := range c.paths {
			path := fmt.Sprint("/a/", i)
			data, _ := c.disk.ReadFile(path)
			for _, record := range c.kept[fmt.Sprint(g, path)] {
				at := bytes.Index(data, []byte(record))
				if at < 0 {
					c.t.Errorf("%s lacks %.30q, or has it before an earlier one", path, record)
					break
				}
				data = data[at+len(record):]
			}
		}
	}
	size := map[string]int{}
	for key, records := range c.kept {
		for _, record := range records {
			size[key[strings.Index(key, "/"):]] += len(record)
		}
	}
	for path, n := range size {
		if data, _ := c.disk.ReadFile(path); len(data) != n {
			c.t.Errorf("%s has %d bytes, and %d were acknowledged", path, len(data), n)
		}
	}
}
