//go:build go1.25

package holdfast_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
	"github.com/holdfast-go/holdfast/internal/isolate"
	"github.com/holdfast-go/holdfast/internal/policies"
)

var (
	livenessSeed   = flag.Uint64("liveness.seed", 0, "run just this `seed` of the liveness test, as a failure prints it")
	livenessRounds = flag.Int("liveness.rounds", 1, "how often the liveness test meets each policy with each fault")
)

// A trouble is the file's behaviour from one moment to another.
type trouble struct {
	name        string
	write, sync time.Duration // how long the calls of the file may take meanwhile
	fails       bool          // a call of the file may fail
	final       bool          // and that ends the Writer
	panics      string        // the method of the file that panics
	begin       func(f *fault.File, r *rand.Rand)
}

var troubles = []trouble{
	{name: "none", begin: func(*fault.File, *rand.Rand) {}},
	{name: "full disk", fails: true, begin: func(f *fault.File, r *rand.Rand) { f.SetRoom(f.Size() + r.Int64N(16)) }},
	{name: "failing sync", fails: true, final: true, begin: func(f *fault.File, r *rand.Rand) {
		f.Add(fault.Fault{Op: fault.Sync, First: f.Count(fault.Sync) + 1, Times: 1, Err: syscall.EIO})
	}},
	{name: "slow failing sync", fails: true, final: true, sync: 25 * ms, begin: func(f *fault.File, r *rand.Rand) {
		f.Add(fault.Fault{Op: fault.Sync, Delay: upTo(r, 25*ms)})
		f.Add(fault.Fault{Op: fault.Sync, First: f.Count(fault.Sync) + 1 + r.IntN(3), Times: 1, Err: syscall.EIO})
	}},
	{name: "slow sync", sync: 25 * ms, begin: func(f *fault.File, r *rand.Rand) {
		f.Add(fault.Fault{Op: fault.Sync, Delay: upTo(r, 25*ms)})
	}},
	{name: "slow write", write: 8 * ms, begin: func(f *fault.File, r *rand.Rand) {
		f.Add(fault.Fault{Op: fault.Write, Take: fault.All, Delay: upTo(r, 8*ms)})
	}},
	{name: "slow disk", write: 4 * ms, sync: 25 * ms, begin: func(f *fault.File, r *rand.Rand) {
		f.Add(fault.Fault{Op: fault.Write, Take: fault.All, Delay: upTo(r, 4*ms)})
		f.Add(fault.Fault{Op: fault.Sync, Delay: upTo(r, 25*ms)})
	}},
	{name: "slow full disk", fails: true, write: 4 * ms, sync: 4 * ms, begin: func(f *fault.File, r *rand.Rand) {
		f.Add(fault.Fault{Op: fault.Write, Take: fault.All, Delay: upTo(r, 4*ms)})
		f.Add(fault.Fault{Op: fault.Sync, Delay: upTo(r, 4*ms)})
		f.SetRoom(f.Size() + r.Int64N(16))
	}},
	{name: "short writes", begin: func(f *fault.File, r *rand.Rand) {
		f.Add(fault.Fault{Op: fault.Write, First: f.Count(fault.Write) + 1, Times: 60, Take: 1 + r.IntN(8)})
	}},
	{name: "interrupted writes", begin: func(f *fault.File, r *rand.Rand) {
		f.Add(fault.Fault{Op: fault.Write, First: f.Count(fault.Write) + 1, Times: 3, Err: syscall.EINTR, Take: r.IntN(4)})
	}},
	{name: "panic of Write", panics: "Write"},
	{name: "panic of Sync", panics: "Sync"},
}

func upTo(r *rand.Rand, most time.Duration) time.Duration {
	return most - time.Duration(r.Int64N(int64(most)))
}

// passes reports whether a panic of the file passes through a call under the policy. In a goroutine
// of the Writer's own it would end the program.
func (x trouble) passes(c policies.Case) bool {
	p := c.Policy
	switch {
	case p.Sync.Mode == holdfast.SyncPeriodic:
		return x.panics == ""
	case x.panics == "Write":
		return p.Buffer == 0
	}
	return true
}

// A liveness is one run. Its seed decides all, but for the order of goroutines that run at the same time.
type liveness struct {
	seed uint64
	policies.Case
	trouble
	procs int
	r     *rand.Rand
	l     *ledger
	heard reports
}

var pairs = policies.Pairs()

// livenessRuns is how many seeds in a row meet each policy with each trouble and each number of CPUs.
var livenessRuns = uint64(3 * len(pairs) * len(troubles))

func newLiveness(seed uint64) *liveness {
	i := int(seed % livenessRuns)
	return &liveness{
		seed:    seed,
		Case:    pairs[i%len(pairs)],
		trouble: troubles[i/len(pairs)%len(troubles)],
		procs:   []int{1, 2, 8}[i/len(pairs)/len(troubles)],
		r:       rand.New(rand.NewPCG(seed, 11)),
	}
}

// TestEveryByteArrivesAndNoCallHangs lets goroutines use a Writer under each policy while its file is
// in trouble, in fake time. While the file answers, calls return. When the trouble is over and no call is
// made any more, every byte arrives within the bounds of its policy. The ledger judges the rest.
func TestEveryByteArrivesAndNoCallHangs(t *testing.T) {
	isolate.Once(t, isolate.Ordinary)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	if *livenessSeed != 0 {
		newLiveness(*livenessSeed).check(t)
		return
	}
	each := uint64(1)
	switch { // no divisor of how many policies there are, or troubles
	case isolate.RaceEnabled: // goroutines meet in the same places in each
		each = 13
	case testing.Short():
		each = 4
	}
	first := (1 + rand.Uint64N(1e6)) * livenessRuns
	last := first + uint64(*livenessRounds)*livenessRuns
	runs, failures := 0, 0
	for seed := first; seed < last && failures < 5; seed += each {
		if x := newLiveness(seed); x.passes(x.Case) {
			runs++
			if !x.check(t) {
				failures++
			}
		}
	}
	t.Logf("%d runs, seeds from %d", runs, first)
}

// check says how to make just this run again if something is wrong.
func (x *liveness) check(t *testing.T) bool {
	t.Helper()
	replay := fmt.Sprintf("go test . -run '^TestEveryByteArrivesAndNoCallHangs$' -liveness.seed=%d  # %v, %s, GOMAXPROCS=%d", x.seed, x.Case, x.name, x.procs)
	// A Writer that spins stops the clock of its bubble: only a real one helps.
	hang := time.AfterFunc(2*time.Minute, func() { panic("hangs: " + replay) })
	defer hang.Stop()
	runtime.GOMAXPROCS(x.procs)
	problems := x.inBubble(t)
	if len(problems) > 0 {
		t.Errorf("%s\n%s\n%s", replay, strings.Join(problems[:min(len(problems), 8)], "\n"), x.l.story())
	}
	return len(problems) == 0
}

// inBubble returns what is wrong. Of a bubble that can't end it says so.
func (x *liveness) inBubble(t *testing.T) (problems []string) {
	defer func() {
		if cause := recover(); cause != nil {
			problems = append(problems, fmt.Sprint(cause))
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		f := fault.New()
		f.SetSector(16)
		var err error
		if x.l, err = newLedger(x.Policy, f, x.seed); err != nil {
			t.Fatal(err)
		}
		if x.panics != "" {
			if x.l.w, err = holdfast.New(&panicsOnce{File: f, method: x.panics, after: 1 + x.r.IntN(8)}, x.Policy); err != nil {
				t.Fatal(err)
			}
		}
		x.l.w.OnError(x.heard.add)
		problems = x.run()
	})
	return problems
}

func (x *liveness) run() (problems []string) {
	var calls sync.WaitGroup
	over := make(chan struct{})
	early := x.r.IntN(4) == 0
	bare, goroutines := x.r.IntN(2) == 0, 2+x.r.IntN(3)
	flood := x.r.IntN(5) == 0 // nothing but the file slows the calls down
	if flood {
		bare, goroutines = true, 6
	}
	for i := range goroutines {
		c := &liver{l: x.l, shape: x.Shape, stream: byte(1 + i), r: rand.New(rand.NewPCG(x.seed, uint64(i))), bare: bare, flood: flood, endless: x.panics != ""}
		calls.Go(c.run)
	}
	if early {
		after := upTo(x.r, 20*ms)
		calls.Go(func() {
			time.Sleep(after)
			(&liver{l: x.l}).plain("Close", 0, x.l.w.Close)
		})
	}
	begin, end := upTo(x.r, 6*ms), upTo(x.r, 80*ms)
	if x.begin != nil {
		go func() {
			time.Sleep(begin)
			x.begin(x.l.file, x.r)
			time.Sleep(end)
			x.l.file.Mend()
			x.l.file.SetRoom(fault.Unlimited)
			close(over)
		}()
	} else {
		close(over)
	}
	if problems := x.await(func() { calls.Wait() }); problems != nil {
		return problems
	}
	<-over
	if !early {
		if problems = x.settled(); problems != nil {
			return problems
		}
	}
	problems = x.await(func() { x.finale() })
	if problems != nil {
		return problems
	}
	synctest.Wait()
	if left := bubble(); left != "" {
		problems = append(problems, "after Close goroutines are left:\n"+left)
	}
	before := len(x.l.file.Calls())
	time.Sleep(time.Hour)
	if x.panics != "" {
		return append(problems, x.judgePanic()...)
	}
	if n := len(x.l.file.Calls()); n != before {
		problems = append(problems, fmt.Sprintf("%d calls of the file after Close", n-before))
	}
	return append(problems, append(x.l.judge(), x.judgeReports()...)...)
}

// finale makes one call after the other, Close among them.
func (x *liveness) finale() {
	c := &liver{l: x.l, shape: x.Shape, stream: 7, r: x.r, endless: x.panics != ""}
	for range x.r.IntN(4) {
		time.Sleep(time.Nanosecond)
		c.call()
	}
	time.Sleep(time.Nanosecond)
	c.plain("Close", 0, x.l.w.Close)
	time.Sleep(time.Nanosecond)
	for range 4 {
		c.call()
	}
	x.l.Close()
}

// patience is how long calls may wait until one of them returns. A call may wait for the flush and
// the sync in flight, for a flush and a sync of a large Write that came first, for its own flush, in
// two writes across the end of the ring, and for its own sync. A leader of a group commit waits for
// others for no longer than a sync. All that twice. Without a slow file this is less than any period,
// so that no clock comes to the help of a call that was forgotten.
func (x *liveness) patience() time.Duration { return ms + 10*(x.write+x.sync) }

// await runs calls, and returns what waits if for too long no call returns.
func (x *liveness) await(calls func()) []string {
	done := make(chan struct{})
	go func() {
		calls()
		close(done)
	}()
	for {
		select {
		case <-done:
			return nil
		case <-time.After(x.patience() / 4):
			if hung := x.hung(); hung != nil {
				return hung
			}
		}
	}
}

func (x *liveness) hung() []string {
	l := x.l
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Since(l.birth)
	last, since := time.Duration(0), now // when a call returned, and when the oldest waiting call was made
	var waiting []*call
	for _, c := range l.calls {
		if c.end > 0 {
			last = max(last, c.until)
		} else {
			waiting = append(waiting, c)
			since = min(since, c.at)
		}
	}
	stands := now - max(last, since)
	if len(waiting) == 0 || stands <= x.patience() {
		return nil
	}
	in := [3]int{}
	for _, e := range l.events {
		in[e.Op]++
		if e.done {
			in[e.Op] -= 2
		}
	}
	problems := []string{fmt.Sprintf("no call has returned for %v; the file has %d writes and %d syncs in flight\n%s", stands, in[fault.Write], in[fault.Sync], bubble())}
	for _, c := range waiting {
		problems = append(problems, fmt.Sprint("waits: ", c))
	}
	return problems
}

// bubble returns the stacks of this bubble's goroutines, but for the caller's and the test's.
func bubble() string {
	all := make([]byte, 1<<20)
	stacks := strings.Split(string(all[:runtime.Stack(all, true)]), "\n\n")
	_, mine, _ := strings.Cut(stacks[0], "synctest bubble ")
	mine, _, _ = strings.Cut(mine, "]")
	var others []string
	for _, stack := range stacks[1:] {
		head, _, _ := strings.Cut(stack, "\n")
		if strings.Contains(head, "synctest bubble "+mine+"]") && !strings.Contains(stack, "ynctest.Run(") && !strings.Contains(stack, "testingSynctestTest(") {
			others = append(others, stack)
		}
	}
	return strings.Join(others, "\n\n")
}

// settled waits as long as a byte may take to arrive, makes no call that helps it, and returns
// which bytes have not arrived.
//
// Time: the period, and before it the flush and the sync in flight and a large Write's, and then the
// own ones: a flush across the end of the ring is two writes. Bytes: no time at all but for the flushes
// and syncs in flight.
func (x *liveness) settled() (problems []string) {
	w, p := x.l.w, x.Policy
	if x.panics != "" {
		return nil
	}
	wrong := func(format string, args ...any) {
		if x.final && w.Err() != nil {
			return
		}
		s := w.Stats()
		problems = append(problems, fmt.Sprintf(format, args...)+fmt.Sprintf(": written %d, flushed %d, durable %d, Err %v, oldest %v", w.Written(), w.Flushed(), w.Durable(), w.Err(), s.Oldest))
	}
	begin := time.Now()
	until := func(after time.Duration) {
		time.Sleep(time.Until(begin.Add(after + 4*(x.write+x.sync))))
		synctest.Wait()
	}
	flush, every := p.FlushEvery, p.Sync.Every
	if flush == 0 || every > 0 && every < flush {
		flush = every
	}
	until(0)
	if limit := int64(p.Sync.Bytes); limit > 0 && w.Flushed()-w.Durable() >= limit {
		wrong("the kernel has as many bytes as start a sync by bytes, and there is none")
	}
	waits := w.Written() - w.Flushed()
	if waits > 2*int64(p.Buffer) {
		wrong("memory holds more than two buffers")
	}
	if !x.fails && (p.FlushBytes > 0 && waits >= int64(p.FlushBytes) || waits > int64(p.Buffer)) {
		wrong("memory holds as many bytes as start a flush, and there is none")
	}
	if until(flush); flush > 0 && w.Flushed() < w.Written() {
		wrong("no call is made and nothing fails any more, and in %v not every byte was flushed", flush)
	}
	if until(every); every > 0 && w.Durable() < w.Written() {
		wrong("no call is made and nothing fails any more, and in %v not every byte was synced", every)
	}
	return problems
}

// judgeReports checks that OnError was called once for each failure. Failed writes are one failure
// until a write works, or until Close, which loses what it can't write.
func (x *liveness) judgeReports() (problems []string) {
	writes, syncs, failing := 0, 0, false
	for _, e := range x.l.events {
		switch {
		case e.failed() && e.Op == fault.Sync:
			syncs++
		case e.failed() && e.Op == fault.Write && !failing:
			writes, failing = writes+1, true
		case e.done && e.Op == fault.Write && int(e.To-e.From) == e.Len:
			failing = false
		}
	}
	heardWrites, heardSyncs := 0, 0
	for _, err := range x.heard.taken() {
		var failedWrite *holdfast.WriteError
		var failedSync *holdfast.SyncError
		switch {
		case errors.As(err, &failedWrite):
			heardWrites++
		case errors.As(err, &failedSync):
			heardSyncs++
		default:
			problems = append(problems, fmt.Sprintf("OnError is called with %v", err))
		}
	}
	if more := heardWrites - writes; heardSyncs != syncs || more < 0 || more > 1 || more == 1 && writes == 0 {
		problems = append(problems, fmt.Sprintf("OnError is called for %d failures to write and %d to sync; there were %d and %d", heardWrites, heardSyncs, writes, syncs))
	}
	return problems
}

// judgePanic checks the other calls' errors after a panic of the file, and the bytes it left there.
func (x *liveness) judgePanic() (problems []string) {
	v := &verdict{ledger: x.l, data: x.l.file.ProcessCrash(), place: map[*call]span{}}
	v.problems = append(v.problems, x.l.file.Violations()...)
	v.takeApart()
	panicked := int64(0)
	for _, c := range x.l.calls {
		if c.err == errPanicked && c.method != piece {
			if panicked > 0 {
				v.wrong("a second call panics: %v", c)
			}
			panicked = c.end
		}
	}
	for _, c := range x.l.calls {
		if panicked > 0 && c.begin > panicked && c.reports() && c.err == nil {
			v.wrong("after a panic of the file there is no error: %v", c)
		}
	}
	if n := x.l.file.Count(fault.Close); n != 1 {
		v.wrong("the file was closed %d times", n)
	}
	if heard := x.heard.taken(); panicked > 0 && len(heard) != 1 {
		v.wrong("OnError was called with %v, want the panic alone", heard)
	}
	return v.problems
}

var errPanicked = errors.New("it panicked")

// panicsOnce is a file that panics in one call.
type panicsOnce struct {
	*fault.File
	method string
	mu     sync.Mutex
	after  int
}

func (f *panicsOnce) panics(method string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.method == method {
		if f.after--; f.after == 0 {
			panic(errPanicked)
		}
	}
}

func (f *panicsOnce) Write(p []byte) (int, error) {
	f.panics("Write")
	return f.File.Write(p)
}

func (f *panicsOnce) Sync() error {
	f.panics("Sync")
	return f.File.Sync()
}

// A liver is one goroutine's calls.
type liver struct {
	l     *ledger
	shape policies.Shape
	r     *rand.Rand
	// stream is whose records these are.
	stream  byte
	bare    bool // makes no call that flushes or syncs, so that the policy alone moves bytes
	flood   bool // makes many calls and never pauses
	endless bool // gives no context that can end: below it a panic of the file ends the program
	ends    int64
}

func (c *liver) run() {
	pause := []time.Duration{0, 0, 100 * time.Microsecond, 3 * ms}[c.r.IntN(4)]
	calls := 4 + c.r.IntN(20)
	if c.flood {
		pause, calls = 0, 30
	}
	for range calls {
		if pause > 0 && c.r.IntN(3) == 0 {
			time.Sleep(upTo(c.r, pause))
		}
		c.call()
	}
}

func (c *liver) call() {
	n := c.r.IntN(24)
	if c.bare {
		n = 6 + c.r.IntN(18)
	}
	w := c.l.w
	switch {
	case n == 0:
		c.plain("Flush", 0, w.Flush)
	case n == 1:
		c.plain("Sync", 0, w.Sync)
	case n == 2, n > 8 && c.shape == policies.Enqueue:
		c.enqueue()
	case n == 3:
		c.wait()
	case n == 4:
		c.readFrom()
	case n == 5:
		c.give("WriteString", func(p []byte) (int, error) { return w.WriteString(string(p)) })
	case n == 6:
		w.Stats()
	default:
		c.give("Write", w.Write)
	}
}

func (c *liver) enqueue() {
	done := c.give("Enqueue", func(p []byte) (int, error) {
		end, err := c.l.w.Enqueue(p)
		switch {
		case err == nil:
			c.ends = end
			return len(p), nil
		case len(p) <= int(c.l.policy.Buffer):
			return 0, err
		}
		return unknown, err // of a large one a part may be in the file
	})
	if done.err == nil {
		done.offset = c.ends
		if !c.bare && c.r.IntN(2) == 0 {
			c.wait()
		}
	}
}

func (c *liver) wait() {
	ctx := context.Background()
	if !c.endless && c.r.IntN(2) == 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(c.r.IntN(4000))*time.Microsecond)
		defer cancel()
	}
	c.plain("WaitDurable", c.ends, func() error { return c.l.w.WaitDurable(ctx, c.ends) })
}

// readFrom notes each piece that the source gives as a record.
func (c *liver) readFrom() {
	source := &pieces{liver: c, left: c.r.IntN(4)}
	c.plain("ReadFrom", 0, func() error {
		n, err := c.l.w.ReadFrom(source)
		for _, piece := range source.given {
			piece.n = min(len(piece.record), int(n))
			if n -= int64(piece.n); piece.n < len(piece.record) || c.l.policy.Sync.Waits() {
				piece.err = err
			}
			c.l.done(piece)
		}
		return err
	})
	for _, piece := range source.given {
		if piece.end == 0 { // it panicked
			piece.n, piece.err = unknown, errPanicked
			c.l.done(piece)
		}
	}
}

const piece = "ReadFrom's piece"

type pieces struct {
	*liver
	left  int
	given []*call
}

func (s *pieces) Read(p []byte) (int, error) {
	if s.left == 0 {
		return 0, io.EOF
	}
	s.left--
	record := s.l.record(s.stream, s.size())
	s.given = append(s.given, s.l.begin(piece, s.stream, record))
	return copy(p, record), nil
}

// give and plain note a call and catch a panic of the file. The call may have written then.
func (c *liver) give(method string, take func(p []byte) (int, error)) *call {
	return c.l.give(method, c.stream, c.size(), func(p []byte) (n int, err error) {
		defer func() {
			if caught(recover()) {
				n, err = unknown, errPanicked
			}
		}()
		return take(p)
	})
}

func (c *liver) plain(method string, offset int64, do func() error) *call {
	return c.l.plain(method, offset, func() (err error) {
		defer func() {
			if caught(recover()) {
				err = errPanicked
			}
		}()
		return do()
	})
}

func caught(cause any) bool {
	if cause != nil && cause != errPanicked {
		panic(cause)
	}
	return cause != nil
}

func (c *liver) size() int {
	buffer := int(c.l.policy.Buffer)
	small, large := 1+c.r.IntN(max(16, buffer/8)), 1+buffer+c.r.IntN(max(100, buffer/2))
	if c.r.IntN(16) == 0 {
		small = max(1, buffer-c.r.IntN(2)) // just fits
	}
	if c.shape == policies.Large || c.shape == policies.Mixed && c.r.IntN(3) == 0 {
		return large
	}
	return small
}

// TestEveryByteArrivesInAFile is the same on real files, which have no trouble.
func TestEveryByteArrivesInAFile(t *testing.T) {
	const streams, records = 4, 30
	for _, c := range pairs {
		t.Run(c.String(), func(t *testing.T) {
			watch(t)
			s := &stage{T: t, path: filepath.Join(t.TempDir(), "file")}
			s.open(c.Policy.String(), func(p holdfast.Policy) (*holdfast.Writer, error) { return holdfast.Create(s.path, p) })
			var group sync.WaitGroup
			for stream := range byte(streams) {
				r := rand.New(rand.NewPCG(uint64(stream), 12))
				group.Go(func() {
					for number := range records {
						size := 2 + r.IntN(30)
						if c.Shape == policies.Large || c.Shape == policies.Mixed && number%3 == 0 {
							size += int(c.Policy.Buffer)
						}
						end, err := int64(0), error(nil)
						if record := pattern(stream, number, size); c.Shape != policies.Enqueue {
							_, err = s.w.Write(record)
						} else if end, err = s.w.Enqueue(record); err == nil && number%8 == 0 {
							err = s.w.WaitDurable(t.Context(), end)
						}
						if err != nil {
							t.Error(err)
						}
					}
				})
			}
			group.Wait()
			for range time.Tick(ms) { // no call is made any more
				p := c.Policy
				if (p.Sync.Every == 0 || s.w.Durable() == s.w.Written()) &&
					(p.FlushEvery == 0 || s.w.Flushed() == s.w.Written()) &&
					(p.Sync.Bytes == 0 || s.w.Flushed()-s.w.Durable() < int64(p.Sync.Bytes)) {
					break
				}
			}
			if err := s.w.Close(); err != nil {
				t.Error(err)
			}
			s.inOrder(s.content(), records, records, records, records)
		})
	}
}
