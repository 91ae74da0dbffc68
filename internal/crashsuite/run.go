//go:build go1.25

package crashsuite

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
)

// while is longer than any period of a policy, and than the pauses before another try.
const while = 3 * time.Second

// longestPause is longer than every other pause before a try.
const longestPause = 2 * time.Minute

// dir is a subject's directory on a fault.Disk.
const dir = "/subject"

// A run is one subject under one policy.
type run struct {
	*ledger
	t    *testing.T
	o    Opener
	g    Ground
	disk *fault.Disk
	Subject
	rest   *record  // accepted in part: its rest is written first
	marked [3]int64 // see holdsMarks

	reporting sync.Mutex
	problems  []string
	heard     []error
}

func newRun(t *testing.T, o Opener, p holdfast.Policy, disk *fault.Disk) *run {
	r := &run{ledger: newLedger(o, p), t: t, o: o, disk: disk}
	r.g = Ground{Policy: p, Dir: dir, Disk: disk, OnError: func(err error) {
		r.reporting.Lock()
		defer r.reporting.Unlock()
		r.heard = append(r.heard, err)
	}}
	return r
}

// inBubble returns the check of a test with one open subject, on a disk without faults.
func inBubble(test func(r *run)) func(*testing.T, Opener, holdfast.Policy) []string {
	return func(t *testing.T, o Opener, p holdfast.Policy) []string {
		return bubble(t, o, p, OnDisk(dir, nil), opened(test))
	}
}

// inBubbles is inBubble for a test with several subjects.
func inBubbles(test func(in func(what string, test func(r *run)), r *ledger)) func(*testing.T, Opener, holdfast.Policy) []string {
	return func(t *testing.T, o Opener, p holdfast.Policy) (problems []string) {
		test(func(what string, test func(r *run)) {
			for _, problem := range bubble(t, o, p, OnDisk(dir, nil), opened(test)) {
				problems = append(problems, what+": "+problem)
			}
		}, newLedger(o, p))
		return problems
	}
}

func opened(test func(r *run)) func(r *run) {
	return func(r *run) {
		if r.open() {
			test(r)
		}
	}
}

// bubble runs a test in a bubble of fake time, and closes its subject. No goroutine, no descriptor and
// no misuse of the disk may be left.
func bubble(t *testing.T, o Opener, p holdfast.Policy, disk *fault.Disk, test func(r *run)) (problems []string) {
	r := newRun(t, o, p, disk)
	hang := time.AfterFunc(2*time.Minute, func() { panic("hangs: " + t.Name()) })
	defer hang.Stop()
	defer func() {
		if cause := recover(); cause != nil { // from synctest: goroutines are left, or all of them wait
			problems = append(r.problems, fmt.Sprint(cause))
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		test(r)
		if r.Subject != nil {
			r.Close()
		}
		synctest.Wait()
		r.left()
	})
	return r.problems
}

// left reports goroutines, descriptors and files that a closed subject has left.
func (r *run) left() {
	if n := r.disk.Open(); n != 0 {
		r.wrong("%d descriptors are open after Close", n)
	}
	for _, v := range r.disk.Violations() {
		r.wrong("%s", v)
	}
}

func (r *run) wrong(format string, args ...any) {
	r.reporting.Lock()
	defer r.reporting.Unlock()
	r.problems = append(r.problems, fmt.Sprintf(format, args...))
}

// check reports a problem, unless it is "".
func (r *run) check(problem string) {
	if problem != "" {
		r.wrong("%s", problem)
	}
}

// ok reports an error as a problem, and returns whether there is none.
func (r *run) ok(what string, err error) bool {
	if err != nil {
		r.wrong("%s: %v", what, err)
	}
	return err == nil
}

func (r *run) open() bool {
	s, err := r.o.Open(&r.g)
	if r.ok("Open", err) {
		r.Subject = s
	}
	return err == nil
}

// give writes a stream's next record from memory that is overwritten as soon as the call returns.
func (r *run) give(stream, size int) (n int, err error) {
	return r.write(r.begin(stream, size), r.Write)
}

func (r *run) write(x *record, by func(p []byte) (int, error)) (n int, err error) {
	mine := bytes.Clone(x.text[x.given:])
	n, err = by(mine)
	for i := range mine {
		mine[i] = 0xff
	}
	r.check(r.done(x, n, err))
	return n, err
}

// put is give for a single goroutine: it first writes the rest of a record that was accepted in
// part.
func (r *run) put(size int) (n int, err error) { return r.putBy(size, r.Write) }

func (r *run) putBy(size int, by func(p []byte) (int, error)) (n int, err error) {
	x := r.rest
	if x == nil {
		x = r.begin(0, size)
	}
	n, err = r.write(x, by)
	if r.rest = nil; x.given > 0 && x.given < len(x.text) {
		r.rest = x
	}
	return n, err
}

// putOn puts records until each is accepted, and reports a problem if that takes many calls.
func (r *run) putOn(records int) {
	for range records {
		for try := 1; ; try++ {
			n, err := r.put(40)
			if n > 0 && r.rest == nil {
				break
			}
			if try == 10 {
				r.wrong("Write fails %d times though nothing does: %v", try, err)
				return
			}
			time.Sleep(while)
		}
	}
}

// flush and sync report whether the subject has such a method, and return its error.
func (r *run) flush() (has bool, err error) {
	f, has := r.Subject.(interface{ Flush() error })
	if has {
		all := r.accepted()
		if err = f.Flush(); err == nil {
			r.keep(all, false)
		}
	}
	return has, err
}

func (r *run) sync() (has bool, err error) {
	s, has := r.Subject.(interface{ Sync() error })
	if has {
		all := r.accepted()
		if err = s.Sync(); err == nil {
			r.keep(all, true)
		}
	}
	return has, err
}

// filesOf returns the files of an image below the subject's directory.
func filesOf(m *fault.Image) map[string][]byte {
	files := map[string][]byte{}
	for p, data := range m.Files {
		if name, ok := strings.CutPrefix(p, dir+"/"); ok {
			files[name] = data
		}
	}
	return files
}

// files returns the kernel's files.
func (r *run) files() map[string][]byte {
	if r.disk != nil {
		return filesOf(r.disk.ProcessCrash())
	}
	files, err := read(r.g.Dir)
	r.ok("read", err)
	return files
}

// holds checks the contents of files.
func (r *run) holds(what string, files map[string][]byte, at moment, power bool) {
	pieces, err := r.o.Read(r.t, files)
	if r.ok(what+": read", err) {
		if problem := r.judge(pieces, at, power); problem != "" {
			r.wrong("%s: %s", what, problem)
		}
	}
}

// missingNow counts the accepted records that the kernel lacks.
func (r *run) missingNow() int {
	pieces, err := r.o.Read(r.t, r.files())
	found, problem := r.find(pieces, false)
	if r.check(problem); !r.ok("read", err) {
		return 0
	}
	return r.missing(found)
}

// holdsAll checks at the end that every accepted record is there.
func (r *run) holdsAll(what string) {
	if n := r.missingNow(); n > 0 {
		r.wrong("%s: %d of %d accepted records are lost", what, n, len(r.accepted()))
	}
	if m, ok := r.Subject.(marks); ok {
		for name, kernel := range r.files() {
			if n := m.Flushed(); n != int64(len(kernel)) {
				r.wrong("%s: %d bytes are flushed, and %s has %d", what, n, name, len(kernel))
			}
		}
	}
}

// forget drops the records that a crash has taken: all others must stay from now on.
func (r *run) forget() {
	pieces, err := r.o.Read(r.t, r.files())
	r.ok("read", err)
	found, _ := r.find(pieces, false)
	r.acked, r.ledger.kept[0] = nil, nil
	for k := range found {
		r.ledger.kept[0] = append(r.ledger.kept[0], r.records[k])
	}
}

// marks are the three offsets of a subject that writes one file.
type marks interface {
	Written() int64
	Flushed() int64
	Durable() int64
}

// holdsMarks checks that the marks only grow, and claim no more than the disk has.
func (r *run) holdsMarks(rnd *rand.Rand) {
	m, ok := r.Subject.(marks)
	if !ok {
		return
	}
	durable := m.Durable() // the least first: they may grow meanwhile
	flushed, written := m.Flushed(), m.Written()
	for name, kernel := range r.files() {
		cut := filesOf(r.disk.PowerCut(rnd))[name]
		switch last := r.marked; {
		case durable > flushed || flushed > written, durable < last[0] || flushed < last[1] || written < last[2]:
			r.wrong("marks are %d ≤ %d ≤ %d, and were %v", durable, flushed, written, last)
		case flushed > int64(len(kernel)):
			r.wrong("%d bytes are flushed, and the kernel has %d", flushed, len(kernel))
		case durable > int64(len(cut)) || !bytes.Equal(cut[:durable], kernel[:durable]):
			r.wrong("%d bytes are durable, and a power cut leaves others", durable)
		}
	}
	r.marked = [3]int64{durable, flushed, written}
}

// crash checks the files that a crash of the disk now leaves, and returns them.
func (r *run) crash(what string, rnd *rand.Rand) []left {
	r.holdsMarks(rnd)
	at := r.now() // before the image, because others may write meanwhile
	all := []left{{what + ", killed", r.files(), false}, {what + ", power cut", filesOf(r.disk.PowerCut(rnd)), true}}
	for _, x := range all {
		r.holds(x.what, x.files, at, x.power)
	}
	return all
}

// resume opens the files that a crash has left, and puts one more record. All records must stay.
func (r *run) resume(what string, files map[string][]byte, power bool) {
	before, err := r.o.Read(r.t, files)
	if !r.ok(what+": read", err) {
		return
	}
	disk := OnDisk(dir, files)
	s, err := r.o.Open(&Ground{Policy: r.policy, Dir: dir, Disk: disk, OnError: func(err error) { r.wrong("%s: the next process hears %v", what, err) }})
	if !r.ok(what+": open again", err) {
		return
	}
	x := r.begin(9, 40)
	_, err = s.Write(bytes.Clone(x.text))
	r.ok(what+": the next process", errors.Join(err, s.Close()))
	after, err := r.o.Read(r.t, filesOf(disk.ProcessCrash()))
	if !r.ok(what+": read again", err) {
		return
	}
	old, problem := r.find(before, power)
	r.check(problem)
	found, problem := r.find(after, power)
	r.check(problem)
	for k := range old {
		if !found[k] {
			r.wrong("%s: the next process has lost record %d of stream %d", what, k.seq, k.stream)
		}
	}
	if !found[key{x.stream, x.seq}] {
		r.wrong("%s: the record of the next process is not there", what)
	}
	if n := disk.Open(); n != 0 {
		r.wrong("%s: the next process leaves %d descriptors", what, n)
	}
}

// isClosed reports a problem if err does not wrap os.ErrClosed.
func (r *run) isClosed(what string, err error) {
	if !errors.Is(err, os.ErrClosed) {
		r.wrong("%s after Close: %v; it must be os.ErrClosed", what, err)
	}
}

// another makes a call in a goroutine of its own.
func another(call func() error) (err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		err = call()
	}()
	<-done
	return err
}
