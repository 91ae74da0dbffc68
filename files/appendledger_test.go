//go:build go1.25

package files_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
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

// A ledger holds the calls' results to one goroutine, for the paths that only it appends to.
type ledger struct {
	t        *testing.T
	f        *files.Set
	disk     *fault.Disk
	policy   holdfast.Policy
	r        *rand.Rand
	paths    []string
	accepted map[string][]byte
	durable  map[string]int      // how many of the accepted bytes were reported durable
	alone    map[string][][]byte // bytes that were reported durable, behind others that were not
	hopeless map[string]bool
}

var ledgerSeeds = flag.Uint64("ledger.seeds", 20, "how many `seeds` of each policy TestFilesKeepTheirWordOnADiskThatFails takes")

// TestFilesKeepTheirWordOnADiskThatFails lets goroutines append, flush, sync and release under
// every policy, and write batches. They use two Sets, through links and in a directory that
// moves, on a disk that fails in seeded ways. It compares the files, and the files after crashes,
// with the calls' results.
func TestFilesKeepTheirWordOnADiskThatFails(t *testing.T) {
	needsNoFollow(t)
	isolate.Once(t, isolate.Ordinary)
	policies := append(appendPolicies(), holdfast.Policy{Buffer: 200, FlushEvery: 20 * time.Millisecond, Sync: holdfast.SyncEvery(50 * time.Millisecond)})
	seeds := *ledgerSeeds
	if isolate.RaceEnabled {
		seeds = min(seeds, 4)
	}
	for _, p := range policies {
		for seed := range seeds {
			t.Run(fmt.Sprint(p, "/", seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { keepWord(t, p, seed) })
			})
		}
	}
}

func keepWord(t *testing.T, p holdfast.Policy, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 5))
	disk := fault.NewDisk()
	disk.SetSyncsAll("/", r.IntN(2) == 0)
	options := files.Options{
		Policy: p, Handles: 4 + 2*r.IntN(4), Memory: holdfast.Size(1+r.IntN(8)) * holdfast.KiB, Workers: 1 + r.IntN(3), MkdirAll: r.IntN(2) == 0,
	}
	sets, two := []*files.Set{onDisk(t, disk, options)}, r.IntN(2) == 0
	if sets = append(sets, sets[0]); two {
		sets[1] = onDisk(t, disk, options)
		sets[1].SharesKernel(sets[0])
		disk.SetCap(2 * options.Handles)
	}
	if err := errors.Join(disk.MkdirAll("/d"), disk.Mount("/m"), disk.Symlink("/m", "/way")); err != nil {
		t.Fatal(err)
	}
	var ledgers []*ledger
	for g := range 3 {
		l := &ledger{t: t, f: sets[g%2], disk: disk, policy: p, r: rand.New(rand.NewPCG(seed, uint64(g))),
			accepted: map[string][]byte{}, durable: map[string]int{}, alone: map[string][][]byte{}, hopeless: map[string]bool{}}
		for _, way := range []string{"/", "/link", "/way/", "/d/"} {
			l.paths = append(l.paths, fmt.Sprint(way, g))
		}
		if err := disk.Symlink(fmt.Sprint("m/to", g), l.paths[1]); err != nil {
			t.Fatal(err)
		}
		ledgers = append(ledgers, l)
	}
	var all sync.WaitGroup
	for _, l := range ledgers {
		all.Go(l.run)
	}
	which := r.IntN(3) // both, most often
	if which != 0 {
		all.Go(func() { breaks(disk, rand.New(rand.NewPCG(seed, 9))) })
	}
	if which != 1 {
		all.Go(func() { moves(t, disk, rand.New(rand.NewPCG(seed, 11))) })
	}
	all.Wait()
	disk.Mend()
	err := [2]error{sets[0].Close(), sets[1].Close()}
	for g, l := range ledgers {
		l.check(err[g%2])
	}
}

const mostMoves = 3

// moves moves a directory away, and makes another at its path, some times.
func moves(t *testing.T, disk *fault.Disk, r *rand.Rand) {
	for i := range 1 + r.IntN(mostMoves) {
		time.Sleep(time.Duration(r.IntN(300)) * time.Millisecond)
		if err := disk.Displace("/d", fmt.Sprint("/d", i)); err != nil {
			t.Error(err)
		}
	}
}

// find joins what the files hold that a path has named, the one that it named first before the others.
func (l *ledger) find(path string, read func(path string) []byte) (all []byte) {
	dir, base := filepath.Split(path)
	switch dir {
	case "/way/":
		return read("/m/" + base)
	case "/d/":
		for i := range mostMoves {
			all = append(all, read(fmt.Sprint("/d", i, "/", base))...)
		}
	}
	if base, ok := strings.CutPrefix(path, "/link"); ok && !strings.Contains(base, ".") {
		path = "/m/to" + base
	}
	return append(all, read(path)...)
}

// breaks adds faults to the disk, and mends it at the end.
func breaks(disk *fault.Disk, r *rand.Rand) {
	errs := []error{syscall.EIO, syscall.ENOSPC, syscall.EINTR, syscall.EMFILE, syscall.EACCES}
	ops := []fault.DiskOp{fault.DiskWrite, fault.DiskWrite, fault.DiskOpen, fault.DiskOpenDir,
		fault.DiskDatasync, fault.DiskSync, fault.DiskSyncAll, fault.DiskStatFD, fault.DiskStatPath, fault.DiskClose}
	for range r.IntN(12) {
		x := fault.DiskFault{
			Op: ops[r.IntN(len(ops))], First: 1 + r.IntN(10), Times: 1 + r.IntN(6),
			Err: errs[r.IntN(len(errs))], Take: r.IntN(30), Delay: time.Duration(r.IntN(3)) * time.Millisecond,
		}
		if x.Op == fault.DiskWrite && r.IntN(3) == 0 {
			x.Err, x.Take = nil, 1+x.Take // short
		}
		if x.Op == fault.DiskOpenDir {
			x.Delay = 0 // a mark is opened under a mutex, and time stands still while others wait for one
		}
		disk.Add(x)
		time.Sleep(time.Duration(r.IntN(40)) * time.Millisecond)
	}
	if r.IntN(2) == 0 {
		disk.SetRoom(disk.Used() + 500)
		time.Sleep(time.Second)
		disk.SetRoom(fault.Unlimited)
	}
}

func (l *ledger) run() {
	for i := range 60 {
		path := l.paths[l.r.IntN(len(l.paths))]
		switch l.r.IntN(13) {
		case 0:
			l.whole(l.f.Flush(noContext), false)
		case 1:
			l.whole(l.f.Sync(noContext), true)
		case 2:
			l.note(path, l.f.Release(noContext, path), l.policy.Sync.Mode != holdfast.SyncNever)
		case 3:
			time.Sleep(time.Duration(l.r.IntN(60)) * time.Millisecond)
		case 4:
			l.crash()
		case 5:
			l.batch(path, i)
		default:
			l.append(path, i)
		}
	}
	l.crash()
}

// data returns a record, some of 3 to 16 KiB.
func (l *ledger) data(path string, i int) []byte {
	n := l.r.IntN(300)
	if l.r.IntN(10) == 0 {
		n = 3<<10 + l.r.IntN(13<<10)
	}
	return fmt.Appendf(nil, "%s %d %0*d\n", path, i, n, i)
}

// batch writes new files beside a path.
func (l *ledger) batch(path string, i int) {
	var writes []files.Write
	for j, mode := range []files.Mode{files.Create, files.Replace, files.Append} {
		to := fmt.Sprint(path, ".", i, ".", j)
		writes = append(writes, files.Write{Path: to, Data: l.data(to, i), Mode: mode})
	}
	results, _ := l.f.WriteAll(noContext, one(writes...))
	for j := range results.Len() {
		if r := results.At(j); r.Err == nil {
			l.accepted[r.Path] = writes[j].Data
			if r.Outcome == holdfast.OutcomeDurable {
				l.durable[r.Path] = len(writes[j].Data)
			}
		}
	}
}

func (l *ledger) append(path string, i int) {
	data := l.data(path, i)
	err := l.f.Append(noContext, path, data)
	if err == nil {
		before := len(l.accepted[path])
		l.accepted[path] = append(l.accepted[path], data...)
		switch {
		case !l.policy.Sync.Waits():
		case l.durable[path] == before:
			l.durable[path] += len(data)
		default: // what an append that failed has left may be in a directory that was moved away
			l.alone[path] = append(l.alone[path], data)
		}
		return
	}
	var failed *files.Error
	if !errors.As(err, &failed) || !isPath(failed.Path, path) {
		l.t.Errorf("append to %s: %v", path, err)
		return
	}
	l.accepted[path] = append(l.accepted[path], data[:failed.Offset]...)
	l.note(path, err, false)
}

// note takes what a call returned for a path.
func (l *ledger) note(path string, err error, durable bool) {
	if err == nil && durable {
		l.durable[path] = len(l.accepted[path])
	}
	for _, failed := range failuresOf(err, path) {
		l.hopeless[path] = l.hopeless[path] || failed.Op == "sync" || failed.Op == "close"
	}
}

// whole takes what a call returned that was for all paths.
func (l *ledger) whole(err error, durable bool) {
	for _, path := range l.paths {
		if isOf(err, path) {
			l.note(path, err, false)
		} else if err == nil {
			l.note(path, nil, durable)
		}
	}
}

// failuresOf returns what an error says of just this path.
func failuresOf(err error, path string) (all []*files.Error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range joined.Unwrap() {
			all = append(all, failuresOf(err, path)...)
		}
	} else if failed := (*files.Error)(nil); errors.As(err, &failed) && isPath(failed.Path, path) {
		all = append(all, failed)
	}
	return all
}

// directoryOf returns the path of the directory that a path's name is in, as errors name it.
func directoryOf(path string) string {
	if base, ok := strings.CutPrefix(path, "/link"); ok && !strings.Contains(base, ".") {
		return "/m"
	}
	return path[:max(1, strings.LastIndexByte(path, '/'))]
}

// crash looks what a crash would leave now.
func (l *ledger) crash() {
	image := l.disk.PowerCut(l.r)
	for path := range l.accepted {
		got := l.find(path, func(at string) []byte { data, _ := image.File(at); return data })
		if n := l.durable[path]; !bytes.HasPrefix(got, l.accepted[path][:n]) {
			l.t.Errorf("after a power cut %s lacks some of %d durable bytes: %.200q, %d bytes", path, n, got, len(got))
		}
		for _, record := range l.alone[path] {
			if !bytes.Contains(got, record) {
				l.t.Errorf("after a power cut %s lacks a record that is durable, %.200q: %.200q, %d bytes", path, record, got, len(got))
			}
		}
	}
}

// check holds the files against what was said, until and by Close. An error that names
// a directory speaks of any file that its path has named, also where it was moved away since.
func (l *ledger) check(closed error) {
	for path, want := range l.accepted {
		got := l.find(path, func(at string) []byte { data, _ := l.disk.ReadFile(at); return data })
		switch {
		case bytes.Equal(got, want):
		case isOf(closed, path) && bytes.HasPrefix(want, got):
		default:
			l.t.Errorf("%s holds\n%.200q, %d bytes, not\n%.200q, %d bytes; Close said %v", path, got, len(got), want, len(want), closed)
		}
		if l.policy.Sync.Mode != holdfast.SyncNever && !isOf(closed, path) && !isOf(closed, directoryOf(path)) && !l.hopeless[path] {
			l.durable[path] = len(want)
		}
	}
	l.crash()
}
