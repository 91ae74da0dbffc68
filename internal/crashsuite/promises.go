//go:build go1.25

package crashsuite

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
)

// sizes are the record sizes of a short life: below, at and above buffers and limits.
var sizes = []int{30, 70, 20, 255, 120, 300, 40, 64, 1100, 33}

// fillSize is the size of the nth record that fills memory: large ones soon, since some subjects
// have MiB.
func fillSize(n int) int {
	if n < 40 {
		return sizes[n%len(sizes)]
	}
	return 3000
}

// The times of a slow disk's calls. A few calls may add to a bound by time.
const (
	slowWrite = 2 * time.Millisecond
	slowSync  = 7 * time.Millisecond
)

// whole makes many goroutines write to a slow disk. The delay is in turns of the scheduler: fake
// time stands still while a goroutine waits for a mutex.
func whole(r *run) {
	r.disk.Watch(func(fault.DiskCall) { yield() })
	var all sync.WaitGroup
	for stream := range 6 {
		all.Add(1)
		go func() {
			defer all.Done()
			for i := range 20 {
				_, err := r.give(stream, sizes[(3*i+stream)%len(sizes)])
				r.ok("Write", err)
			}
		}()
	}
	all.Wait()
	r.ok("Close", r.Close())
	r.holdsAll("after Close")
}

// yield lets other goroutines run.
func yield() {
	for range 10 {
		runtime.Gosched()
	}
}

// A call is a method that must return an earlier failure.
type call struct {
	name string
	do   func(r *run) (has bool, err error)
}

var calls = []call{
	{"Write", func(r *run) (bool, error) { _, err := r.put(40); return true, err }},
	{"WriteString", func(r *run) (has bool, err error) {
		w, has := r.Subject.(io.StringWriter)
		if has {
			_, err = r.putBy(40, func(p []byte) (int, error) { return w.WriteString(string(p)) })
		}
		return has, err
	}},
	{"ReadFrom", func(r *run) (has bool, err error) {
		w, has := r.Subject.(io.ReaderFrom)
		if has {
			_, err = r.putBy(40, func(p []byte) (int, error) {
				n, err := w.ReadFrom(bytes.NewReader(p))
				return int(n), err
			})
		}
		return has, err
	}},
	{"Flush", (*run).flush},
	{"Sync", (*run).sync},
	{"Close", func(r *run) (bool, error) { return true, r.Close() }},
}

// told makes writes fail after a record was accepted. The failing call returns the error, or the
// next one does, in another goroutine.
func told(in func(string, func(*run)), l *ledger) {
	for _, c := range calls {
		in(c.name, func(r *run) { r.toldBy(c, 0) })
	}
	for _, ops := range [][]fault.DiskOp{{fault.DiskDatasync, fault.DiskClose}, {fault.DiskWrite, fault.DiskClose}} {
		in(fmt.Sprintf("Close tells of %v", ops), func(r *run) { r.closeTells(ops) })
	}
}

// toldOver is told for a failure that was over before the next call.
func toldOver(in func(string, func(*run)), l *ledger) {
	for _, c := range calls {
		if c.name != "Sync" || !l.o.SyncWaits {
			in(c.name, func(r *run) { r.toldBy(c, max(1, r.o.Tries)) })
		}
	}
}

// toldBy makes the given number of writes fail, or all, and checks that c returns the error.
func (r *run) toldBy(c call, times int) {
	r.disk.Add(fault.DiskFault{Op: fault.DiskWrite, Path: r.o.Data, Err: syscall.ENOSPC, Times: times})
	_, first := r.put(40)
	time.Sleep(while)
	met := r.failedCalls(fault.DiskWrite) > 0
	has, err := true, error(nil)
	another(func() error { has, err = c.do(r); return nil })
	if heard := errors.Is(first, syscall.ENOSPC) || errors.Is(err, syscall.ENOSPC); has && met && !heard {
		r.wrong("a write has failed; Write = %v, and then %s = %v", first, c.name, err)
	}
	r.disk.Mend()
	if c.name == "Close" {
		return
	}
	r.putOn(2)
	if has, err := r.sync(); has && err != nil {
		_, err = r.sync() // the first may return an earlier failure
		r.ok("Sync of a disk that works again", err)
	}
	r.ok("Close of a disk that works again", r.Close())
	r.holdsAll("after Close")
}

// closeTells makes several calls fail in Close, which must return every error.
func (r *run) closeTells(ops []fault.DiskOp) {
	_, err := r.put(40)
	r.ok("Write", err)
	before := len(r.disk.Calls())
	for i, op := range ops {
		r.disk.Add(fault.DiskFault{Op: op, Path: r.o.Data, Err: []error{syscall.EIO, syscall.EDQUOT}[i]})
	}
	err = r.Close()
	for _, c := range r.disk.Calls()[before:] {
		planned := errors.Is(c.Err, syscall.EIO) || errors.Is(c.Err, syscall.EDQUOT)
		if planned && c.Path != dir && !errors.Is(err, c.Err) {
			r.wrong("Close = %v; it does not tell of %v", err, c.Err)
		}
	}
	r.disk.Mend()
	if again := r.Close(); !errors.Is(again, os.ErrClosed) && fmt.Sprint(again) != fmt.Sprint(err) {
		r.wrong("Close = %v, and then %v", err, again)
	}
}

// failedCalls counts the failed calls of the given kinds.
func (r *run) failedCalls(ops ...fault.DiskOp) (n int) {
	for _, c := range r.disk.Calls() {
		if c.Err != nil && slices.Contains(ops, c.Op) {
			n++
		}
	}
	return n
}

// syncs are the calls that make data durable.
var syncs = []fault.DiskOp{fault.DiskDatasync, fault.DiskSync, fault.DiskSyncAll}

// failSyncs makes the next sync of the data fail, by any call.
func (r *run) failSyncs() {
	for _, op := range syncs {
		r.disk.Add(fault.DiskFault{Op: op, Path: r.o.Data, Times: 1, Err: syscall.EIO})
	}
}

// failWrites makes writes of the data fail.
func (r *run) failWrites() {
	r.disk.Add(fault.DiskFault{Op: fault.DiskWrite, Path: r.o.Data, Err: syscall.ENOSPC})
}

// finalSync makes one sync fail and all later ones succeed.
func finalSync(r *run) {
	_, err := r.put(40)
	r.ok("Write", err)
	r.failSyncs()
	_, first := r.put(40)
	time.Sleep(while)
	told := errors.Is(first, syscall.EIO)
	if r.failedCalls(syncs...) == 0 { // the policy has not synced yet
		has, err := r.sync()
		if told = errors.Is(err, syscall.EIO); has && !told {
			r.wrong("a sync has failed, and Sync = %v", err)
		}
		if !has {
			err := r.Close()
			if r.failedCalls(syncs...) > 0 && !errors.Is(err, syscall.EIO) {
				r.wrong("a sync has failed, and Close = %v", err)
			}
			return
		}
	}
	r.disk.Mend()
	for round := range 3 {
		for _, c := range calls {
			if c.name == "Close" && round < 2 {
				continue
			}
			has, err := c.do(r)
			switch {
			case !has, r.o.FailedSync == OfCall, r.o.FailedSync == Later && c.name != "Sync" && c.name != "Close":
			case err == nil:
				r.wrong("round %d: a sync has failed, and %s = nil", round, c.name)
			}
			told = told || errors.Is(err, syscall.EIO)
		}
		time.Sleep(while)
	}
	if !told {
		r.wrong("no call has told that a sync failed")
	}
	if r.o.FailedSync != Final {
		r.holdsAll("after Close")
	}
}

// heard counts the calls of OnError when writes fail, twice, and a sync.
func heard(r *run) {
	want := 0
	is := func(when string) {
		synctest.Wait()
		r.reporting.Lock()
		defer r.reporting.Unlock()
		if len(r.heard) != want {
			r.problems = append(r.problems, fmt.Sprintf("%s OnError was called %d times, want %d: %v", when, len(r.heard), want, r.heard))
			want = len(r.heard)
		}
		for _, err := range r.heard {
			if !errors.Is(err, syscall.EIO) && !errors.Is(err, syscall.ENOSPC) {
				r.problems = append(r.problems, fmt.Sprintf("OnError was given %v", err))
			}
		}
	}
	for range 2 {
		r.putOn(1)
		is("before a failure,")
		r.failWrites()
		for range 3 {
			r.put(40)
			r.flush()
			time.Sleep(while)
		}
		if has, _ := r.sync(); has || r.failedCalls(fault.DiskWrite) > 0 {
			want++
		}
		r.holdsAtRisk()
		is("while writes fail,")
		now, has := r.Subject.(interface{ Err() error })
		if has && r.missingNow() > 0 && !errors.Is(now.Err(), syscall.ENOSPC) {
			r.wrong("while writes fail, Err = %v", now.Err())
		}
		r.disk.Mend()
		time.Sleep(while)
		r.putOn(1)
		r.sync() // it may return an earlier failure
		r.sync()
		if has && now.Err() != nil {
			r.wrong("with a disk that works again, Err = %v", now.Err())
		}
	}
	is("with a disk that works again,")
	r.failSyncs()
	r.put(40)
	r.sync()
	time.Sleep(while)
	if r.failedCalls(syncs...) > 0 {
		want++
	}
	is("after a failed sync,")
}

// holdsAtRisk checks that the last failure's AtRisk is at least one record, if the kernel lacks any
// accepted one.
func (r *run) holdsAtRisk() {
	r.reporting.Lock()
	heard := slices.Clone(r.heard)
	r.reporting.Unlock()
	if len(heard) == 0 || r.o.AtRisk == nil || r.missingNow() == 0 {
		return
	}
	last := heard[len(heard)-1]
	if n := r.o.AtRisk(last); n < 40 {
		r.wrong("more than 40 bytes are at risk, and the failure says %d: %v", n, last)
	}
}

// within closes the subject from within OnError. If a lock were held, all goroutines of the bubble
// would wait.
func within(r *run) {
	closed := make(chan struct{})
	var once sync.Once
	r.Close() // the new subject gets this OnError
	r.ledger = newLedger(r.o, r.policy)
	r.g.Disk, r.disk = OnDisk(dir, nil), nil
	r.disk = r.g.Disk
	r.g.OnError = func(error) {
		once.Do(func() {
			r.Write([]byte("from within\n"))
			r.flush()
			r.sync()
			r.Close()
			close(closed)
		})
	}
	if !r.open() {
		return
	}
	r.put(40)
	r.failWrites()
	r.put(40)
	r.flush()
	r.sync()
	select {
	case <-closed:
	case <-time.After(time.Hour):
		if r.failedCalls(fault.DiskWrite) > 0 {
			r.wrong("writes fail, and OnError was not called")
		}
		return
	}
	_, err := r.Write([]byte("late\n"))
	r.isClosed("Write", err)
}

// full fills the disk at several bytes of a record, and frees space again.
func full(r *run) {
	r.fail() // bounds by time hold on a working disk only
	for _, room := range []int64{0, 1, 100, 3000} {
		r.disk.SetRoom(r.disk.Used() + room)
		refused := 0
		for try := 0; refused < 3 && try < 5000; try++ {
			n, err := r.put(fillSize(try))
			if n == 0 {
				refused++
			}
			if err != nil && !errors.Is(err, syscall.ENOSPC) {
				r.wrong("Write to a full disk = %d, %v", n, err)
			}
		}
		if refused < 3 {
			r.wrong("a full disk with room for %d bytes takes everything", room)
		}
		if has, err := r.sync(); has && err == nil && r.missingNow() > 0 {
			r.wrong("Sync of a full disk = nil")
		}
		time.Sleep(while)
		r.holds("while the disk is full", r.files(), r.now(), false)
		r.disk.SetRoom(fault.Unlimited)
		if p := r.loss.Process; !p.None() && p.Time != holdfast.Unlimited { // then the clock writes without a call
			time.Sleep(longestPause)
			if n := r.missingNow(); n > 0 {
				r.wrong("there is room again, and %d records wait for a call", n)
			}
		}
		r.putOn(2)
		if _, err := r.sync(); err != nil {
			_, err = r.sync() // the first may return an earlier failure
			r.ok("Sync with room again", err)
		}
	}
	r.ok("Close", r.Close())
	r.holdsAll("after Close")
}

// closed closes the subject while others write, and then calls it.
func closed(r *run) {
	var all sync.WaitGroup
	for stream := range 3 {
		all.Add(1)
		go func() {
			defer all.Done()
			for i := range 100 {
				n, err := r.give(stream, 40+i)
				if n == 0 {
					r.isClosed("Write", err)
					return
				}
				time.Sleep(time.Millisecond)
			}
			r.wrong("Write goes on after Close")
		}()
	}
	time.Sleep(20 * time.Millisecond)
	var first [3]error
	for i := range first {
		all.Add(1)
		go func() {
			defer all.Done()
			first[i] = r.Close()
		}()
	}
	all.Wait()
	for _, err := range first {
		if err != nil && !errors.Is(err, os.ErrClosed) {
			r.wrong("Close = %v", err)
		}
	}
	time.Sleep(while)
	r.holdsAll("after Close")
	r.afterClose(nil)
}

// afterClose makes each call once more. If the first Close has failed, each may return its error.
func (r *run) afterClose(first error) {
	for _, c := range calls {
		has, err := c.do(r)
		switch {
		case !has, c.name == "Sync" && r.o.SyncWaits, c.name == "Close" && err == nil:
		case err != nil && first != nil:
		default:
			r.isClosed(c.name, err)
		}
	}
}

// A flaw makes a file panic, or end its goroutine, instead of a call.
type flaw struct {
	op    fault.DiskOp
	exits bool // it ends its goroutine, as a failed test does
}

func (x *flaw) may(op fault.DiskOp) {
	switch {
	case x == nil || x.op != op:
	case x.exits:
		runtime.Goexit()
	default:
		panic(errPlanned)
	}
}

// panics makes each call of a file panic, or end its goroutine, during each call of the subject.
func panics(in func(string, func(*run)), l *ledger) {
	if p := l.policy; p.FlushEvery > 0 || p.Sync.Every > 0 || p.Sync.Bytes > 0 {
		return // a panic in the background ends the program
	}
	for _, op := range []fault.DiskOp{fault.DiskWrite, fault.DiskSync, fault.DiskClose} {
		for _, c := range calls {
			for _, exits := range []bool{false, true} {
				in(fmt.Sprintf("%v below %s, exits: %v", op, c.name, exits), func(r *run) { r.panicsBelow(c, flaw{op, exits}) })
			}
		}
	}
}

func (r *run) panicsBelow(c call, planned flaw) {
	r.Close()
	r.g.flaw = &flaw{op: fault.AnyDiskOp}
	if !r.open() {
		return
	}
	_, err := r.put(40)
	r.ok("Write", err)
	*r.g.flaw = planned
	var cause any
	ended := false
	for range 500 { // fills memory
		if cause, ended = caught(func() { c.do(r) }); cause != nil || ended {
			break
		}
	}
	if r.rest = nil; cause == nil && !ended {
		caught(func() { r.Close() }) // Write or Close may not reach the file
		return
	}
	if cause != nil && cause != any(errPlanned) {
		r.wrong("it panics with %v", cause)
	}
	if planned.op == fault.DiskClose {
		return // and is closed
	}
	says := errPlanned.Error()
	if planned.exits {
		says = "" // the file has no name
	}
	for _, later := range calls {
		var has bool
		again, ended := caught(func() { has, err = later.do(r) })
		if again != nil || ended || has && (err == nil || !strings.Contains(err.Error(), says)) && !errors.Is(err, os.ErrClosed) {
			r.wrong("later, %s = %v, panic %v, ended %v", later.name, err, again, ended)
		}
	}
}

// caught calls f in a goroutine of its own. It returns the panic value, and whether f ended its
// goroutine without returning or panicking.
func caught(f func()) (cause any, ended bool) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		ended = true
		defer func() {
			if cause = recover(); cause != nil {
				ended = false
			}
		}()
		f()
		ended = false
	}()
	<-done
	return cause, ended
}
