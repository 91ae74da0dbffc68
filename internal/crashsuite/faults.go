//go:build go1.25

package crashsuite

import (
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
)

var (
	seed = flag.Uint64("crash.seed", 1, "`seed` of the lives in which each call of the disk fails")
	only = flag.String("crash.case", "", "run just this `case` of those lives, as a failure prints it")
	most = flag.Int("crash.each", 0, "at how many `calls` of a kind each fault comes; 0 takes the default")
)

// A harm is a fault at the nth call of a kind.
type harm struct {
	name  string
	torn  bool // a Write may be partial
	fault fault.DiskFault
}

var harms = []harm{
	{"fails once", false, fault.DiskFault{Times: 1, Err: syscall.EIO}},
	{"fails", false, fault.DiskFault{Err: syscall.EIO}},
	{"is torn", true, fault.DiskFault{Times: 2, Err: syscall.ENOSPC, Take: 13}},
	{"is short", true, fault.DiskFault{Times: 3, Take: 5}},
	{"is interrupted", false, fault.DiskFault{Times: 2, Err: syscall.EINTR}},
	{"is slow, and fails", false, fault.DiskFault{Times: 1, Err: syscall.EIO}},
}

// leaves makes each disk call of a life fail in each way.
func leaves(t *testing.T, o Opener, p holdfast.Policy) (problems []string) {
	each := *most
	switch {
	case each > 0:
	case testing.Short():
		each = 1
	default:
		each = 2
	}
	plain := OnDisk(dir, nil)
	problems = live(t, o, p, plain, "nothing fails", true)
	for _, op := range fault.DiskOps() {
		calls := plain.Count(op)
		for i, h := range harms {
			if h.torn && op != fault.DiskWrite || calls == 0 || h.fault.Err == syscall.EINTR && slices.Contains(syncs, op) {
				continue
			}
			for k := range each {
				n := 1 + (calls*k/each+i*(1+calls/7))%calls
				x := h.fault
				x.Op, x.First = op, n
				if i == len(harms)-1 && o.Slow && (op == fault.DiskWrite || op == fault.DiskDatasync) {
					x.Delay = slowSync
				}
				what := fmt.Sprintf("%v %d %s", op, n, h.name)
				if *only != "" && *only != what {
					continue
				}
				disk := OnDisk(dir, nil)
				disk.Add(x)
				for _, problem := range live(t, o, p, disk, what, k%2 == 0 || h.torn) {
					problems = append(problems, fmt.Sprintf("%s: %s\n\tgo test -run '^%s$' -crash.seed=%d -crash.case='%s'", what, problem, strings.ReplaceAll(t.Name(), "/", "$/^"), *seed, what))
				}
				if len(problems) > 10 {
					return problems
				}
			}
		}
	}
	return problems
}

// A life makes one goroutine's decisions from a seed.
type life struct{ *rand.Rand }

func newLife(purpose string) life {
	h := fnv.New64a()
	h.Write([]byte(purpose))
	return life{rand.New(rand.NewPCG(*seed, h.Sum64()))}
}

func (l life) size() int { return sizes[l.IntN(len(sizes))] }

func (l life) pause() time.Duration { return time.Duration(l.IntN(5)) * time.Millisecond }

// acknowledged crashes a fast disk and a slow one after each call that changes it. Nothing fails, so that bounds by time hold.
func acknowledged(t *testing.T, o Opener, p holdfast.Policy) []string {
	problems := live(t, o, p, OnDisk(dir, nil), eachCall, true)
	if o.Slow {
		slow := OnDisk(dir, nil)
		slow.Add(fault.DiskFault{Op: fault.DiskWrite, Take: fault.All, Delay: slowWrite})
		slow.Add(fault.DiskFault{Op: fault.DiskDatasync, Delay: slowSync})
		problems = append(problems, live(t, o, p, slow, eachCall+" of a slow disk", true)...)
	}
	return problems
}

// eachCall is a life that crashes after each call.
const eachCall = "each call"

// readers are the calls that change nothing on a disk.
var readers = []fault.DiskOp{fault.DiskStat, fault.DiskStatFD, fault.DiskStatPath, fault.DiskResolve, fault.DiskClose, fault.DiskOpenDir, fault.DiskLock, fault.DiskRead, fault.DiskReadNames}

// A left has the files behind a crash.
type left struct {
	what  string
	files map[string][]byte
	power bool
}

// live is a short life of one goroutine or several, and Close, on a disk that works again or does
// not. No record may be lost without an error.
func live(t *testing.T, o Opener, p holdfast.Policy, disk *fault.Disk, what string, mended bool) []string {
	rnd := newLife("images of " + what)
	each := strings.HasPrefix(what, eachCall)
	var dice sync.Mutex
	var later []left
	return bubble(t, o, p, disk, func(r *run) {
		disk.Watch(func(c fault.DiskCall) {
			if strings.Contains(what, "slow") {
				yield()
			}
			if c.Err != nil && !each {
				r.fail()
			}
			dice.Lock()
			defer dice.Unlock()
			if each && !c.End.IsZero() && !slices.Contains(readers, c.Op) {
				lefts := r.crash(fmt.Sprintf("after %v %d of %s", c.Op, c.N, c.Path), rnd.Rand)
				if rnd.IntN(8) == 0 {
					later = append(later, lefts...)
				}
			}
			if !each && !c.End.IsZero() && (c.Op == fault.DiskWrite || slices.Contains(syncs, c.Op)) && rnd.IntN(12) == 0 {
				r.crash(fmt.Sprintf("after %v %d", c.Op, c.N), rnd.Rand)
			}
		})
		if strings.Contains(what, "slow") {
			r.stall = 4 * (slowWrite + slowSync)
		}
		if s, err := o.Open(&r.g); err == nil {
			dice.Lock() // the disk may already be in use
			r.Subject = s
			dice.Unlock()
		} else {
			disk.Mend()
			if !r.open() {
				return
			}
		}
		torn := strings.Contains(what, "torn") || strings.Contains(what, "short")
		// The subject continues after these, and reports nothing.
		harmless := each || !o.WriteSyncs && strings.HasPrefix(what, "write") && (strings.Contains(what, "short") || strings.Contains(what, "interrupted"))
		live := newLife(what)
		var all sync.WaitGroup
		for stream := range 3 {
			if torn { // a part of a record would stand between others
				break
			}
			own := newLife(fmt.Sprint(what, stream))
			all.Add(1)
			go func() {
				defer all.Done()
				for i := range 5 {
					time.Sleep(own.pause())
					_, err := r.give(1+stream, own.size())
					if each && i == 3 { // beside the others' Writes
						_, flushed := r.flush()
						_, synced := r.sync()
						err = errors.Join(err, flushed, synced)
					}
					if harmless {
						r.ok("Write", err)
					}
				}
			}()
		}
		all.Wait()
		for range 12 {
			_, err := r.put(live.size())
			if harmless {
				r.ok("Write", err)
			}
			switch live.IntN(6) {
			case 0:
				_, err = r.flush()
			case 1:
				_, err = r.sync()
			}
			if each {
				r.ok("Flush or Sync", err)
			}
			time.Sleep(live.pause())
		}
		for range 100 { // bounds by time hold without a call too
			if !each || len(r.problems) > 0 {
				break
			}
			time.Sleep(time.Millisecond)
			r.crash("while nothing is written", rnd.Rand)
		}
		time.Sleep(while)
		if mended {
			disk.Mend()
			time.Sleep(longestPause)
		}
		for range 3 {
			r.put(50)
		}
		r.sync()
		err := r.Close()
		if each {
			r.ok("Close", err)
		}
		// A failed write is not final. Another failure may be, and then Close returns it.
		writes := !o.WriteSyncs && r.failedCalls(fault.DiskOps()...) == r.failedCalls(fault.DiskWrite)
		if err == nil || mended && (writes || o.FailedSync != Final) {
			r.holdsAll(fmt.Sprintf("Close = %v", err))
		}
		disk.Mend()
		r.crash("after Close", rnd.Rand)
		r.afterClose(err)
		if o.OpenSyncs {
			r.resumeHere(rnd.Rand)
		}
		if disk.Watch(nil); o.Resumes {
			for _, x := range later {
				r.resume(x.what, x.files, x.power)
			}
		}
	})
}

// resumeHere opens the subject on the same disk again, where the kernel may still show bytes that a
// failed sync has lost. With the next record all records found become durable.
func (r *run) resumeHere(rnd *rand.Rand) {
	r.disk.Watch(nil)
	before, err := r.o.Read(r.t, r.files())
	if !r.ok("read", err) || !r.open() {
		return
	}
	r.put(40)
	if has, err := r.sync(); has && r.ok("Sync of the next process", err) {
		found, _ := r.find(before, false)
		after, err := r.o.Read(r.t, filesOf(r.disk.PowerCut(rnd)))
		r.ok("read", err)
		left, _ := r.find(after, true)
		for k := range found {
			if !left[k] {
				r.wrong("the next process has found record %d of stream %d, and a power cut takes it", k.seq, k.stream)
			}
		}
	}
}
