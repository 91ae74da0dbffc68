package holdfast

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/fault"
)

// A ledger is what one goroutine was told of the paths that only it appends to.
type ledger struct {
	t        *testing.T
	f        *Files
	disk     *fault.Disk
	policy   Policy
	r        *rand.Rand
	paths    []string
	accepted map[string][]byte
	durable  map[string]int // how many of the accepted bytes are durable, as was said
	hopeless map[string]bool
}

// TestFilesKeepTheirWordOnADiskThatFails lets goroutines append, flush, sync and
// release under every policy, on a disk that fails in seeded ways, and holds what is
// in the files, and what crashes leave, against what the calls said.
func TestFilesKeepTheirWordOnADiskThatFails(t *testing.T) {
	policies := append(appendPolicies(), Policy{Buffer: 200, FlushEvery: 20 * time.Millisecond, Sync: Sync(50 * time.Millisecond)})
	for _, p := range policies {
		for seed := range uint64(20) {
			t.Run(fmt.Sprint(p, "/", seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { keepWord(t, p, seed) })
			})
		}
	}
}

func keepWord(t *testing.T, p Policy, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 5))
	disk := fault.NewDisk()
	disk.SetSyncsAll("/", r.IntN(2) == 0)
	f := onDisk(t, disk, FilesOptions{
		Policy: p, Handles: 4 + 2*r.IntN(4), Memory: Size(1+r.IntN(8)) * KiB, Workers: 1 + r.IntN(3), Folders: r.IntN(2) == 0,
	})
	var ledgers []*ledger
	for g := range 3 {
		l := &ledger{t: t, f: f, disk: disk, policy: p, r: rand.New(rand.NewPCG(seed, uint64(g))),
			accepted: map[string][]byte{}, durable: map[string]int{}, hopeless: map[string]bool{}}
		for i := range 4 {
			l.paths = append(l.paths, fmt.Sprintf("/%d-%d", g, i))
		}
		ledgers = append(ledgers, l)
	}
	var all sync.WaitGroup
	for _, l := range ledgers {
		all.Go(l.run)
	}
	all.Go(func() { breaks(disk, rand.New(rand.NewPCG(seed, 9))) })
	all.Wait()
	disk.Mend()
	err := f.Close()
	for _, l := range ledgers {
		l.check(err)
	}
}

// breaks adds faults to the disk, and mends it at the end.
func breaks(disk *fault.Disk, r *rand.Rand) {
	errs := []error{syscall.EIO, syscall.ENOSPC, syscall.EINTR, syscall.EMFILE, syscall.EACCES}
	ops := []fault.DiskOp{fault.DiskWrite, fault.DiskWrite, fault.DiskOpen, fault.DiskOpenFolder, fault.DiskDatasync, fault.DiskSync,
		fault.DiskSyncAll, fault.DiskStatFD, fault.DiskStatPath, fault.DiskClose}
	for range r.IntN(12) {
		x := fault.DiskFault{
			Op: ops[r.IntN(len(ops))], First: 1 + r.IntN(10), Times: 1 + r.IntN(6),
			Err: errs[r.IntN(len(errs))], Take: r.IntN(30), Delay: time.Duration(r.IntN(3)) * time.Millisecond,
		}
		if x.Op == fault.DiskWrite && r.IntN(3) == 0 {
			x.Err, x.Take = nil, 1+x.Take // short
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
		switch l.r.IntN(12) {
		case 0:
			l.whole(l.f.Flush(noContext), false)
		case 1:
			l.whole(l.f.Sync(noContext), true)
		case 2:
			l.note(path, l.f.Release(noContext, path), l.policy.syncs())
		case 3:
			time.Sleep(time.Duration(l.r.IntN(60)) * time.Millisecond)
		case 4:
			l.crash()
		default:
			l.append(path, i)
		}
	}
	l.crash()
}

func (l *ledger) append(path string, i int) {
	data := fmt.Appendf(nil, "%s %d %0*d\n", path, i, l.r.IntN(300), i)
	err := l.f.Append(noContext, path, data)
	if err == nil {
		l.accepted[path] = append(l.accepted[path], data...)
		if l.policy.acknowledgesDurable() {
			l.durable[path] = len(l.accepted[path])
		}
		return
	}
	var failed *FileError
	if !errors.As(err, &failed) || failed.Path != path {
		l.t.Errorf("append to %s: %v", path, err)
		return
	}
	l.accepted[path] = append(l.accepted[path], data[:failed.Offset]...)
	l.note(path, err, false)
}

// note is told what a call said of a path.
func (l *ledger) note(path string, err error, durable bool) {
	if err == nil && durable {
		l.durable[path] = len(l.accepted[path])
	}
	if names(err, path) && (strings.Contains(err.Error(), "sync "+path) || strings.Contains(err.Error(), "close "+path)) {
		l.hopeless[path] = true
	}
}

// whole is told what a call said that was for all paths.
func (l *ledger) whole(err error, durable bool) {
	for _, path := range l.paths {
		if names(err, path) {
			l.note(path, err, false)
		} else if err == nil {
			l.note(path, nil, durable)
		}
	}
}

func names(err error, path string) bool {
	return err != nil && strings.Contains(err.Error(), path+":")
}

// crash looks what a crash would leave now.
func (l *ledger) crash() {
	image := l.disk.PowerCut(l.r)
	for path, n := range l.durable {
		if got, _ := image.File(path); !bytes.HasPrefix(got, l.accepted[path][:n]) {
			l.t.Errorf("after a power cut %s lacks some of %d durable bytes: %q", path, n, got)
		}
	}
}

// check holds the files against what was said, until and by Close. An error that names
// the folder speaks of any file there.
func (l *ledger) check(closed error) {
	folderLost := isOf(closed, "/")
	for path, want := range l.accepted {
		got, err := l.disk.ReadFile(path)
		if err != nil && len(want) > 0 && !names(closed, path) {
			l.t.Errorf("%s: %v", path, err)
			continue
		}
		switch {
		case bytes.Equal(got, want):
		case names(closed, path) && bytes.HasPrefix(want, got):
		default:
			l.t.Errorf("%s holds\n%q, not\n%q; Close said %v", path, got, want, closed)
		}
		if l.policy.syncs() && !names(closed, path) && !folderLost && !l.hopeless[path] {
			l.durable[path] = len(want)
		}
	}
	l.crash()
}
