//go:build go1.25

package holdfast_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
	"github.com/holdfast-go/holdfast/internal/crash/syscallfault"
	"github.com/holdfast-go/holdfast/internal/isolate"
	"github.com/holdfast-go/holdfast/internal/policies"
)

var (
	faultSeed   = flag.Uint64("fault.seed", 0, "base `seed` of the fault matrix; 0 takes a new one")
	faultCase   = flag.String("fault.case", "", "run just this `case` of the fault matrix, as a failure prints it")
	faultRounds = flag.Int("fault.rounds", 0, "how many workloads the fault matrix runs for each policy; 0 takes the default")

	faultCases   atomic.Int64 // how many cases were run
	faultElapsed atomic.Int64
)

func TestMain(m *testing.M) {
	syscallfault.Launch()
	flag.Parse()
	if *faultSeed == 0 {
		*faultSeed = rand.Uint64N(1e9) + 1
	}
	code := isolate.Tests{M: m}.Run()
	if n := faultCases.Load(); n > 0 {
		fmt.Printf("fault matrix: %d cases in %v, -fault.seed=%d\n", n,
			time.Duration(faultElapsed.Load()).Round(time.Millisecond), *faultSeed)
	}
	os.Exit(code)
}

// faultPolicies are small, so that a short workload meets every way through a Writer:
//   - records smaller than the buffer, as large, and larger
//   - a sync that is due before the flush
//   - a buffer large enough to be flushed by another goroutine
var faultPolicies = append(pairTexts(), "buffer=1KiB,flush=10ms,sync=3ms", "buffer=32KiB,flush=2ms,sync=5ms")

// pairTexts returns the policies in which every two choices meet. A workload has all shapes of calls.
func pairTexts() (texts []string) {
	for _, c := range policies.Pairs() {
		if text := c.Policy.String(); !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return texts
}

// A faultKind makes what goes wrong at the nth call of one kind.
type faultKind struct {
	name   string
	op     fault.Op
	faults func(n int, r *rand.Rand) []fault.Fault
}

const slow = 700 * time.Microsecond

var faultKinds = []faultKind{
	{name: "write-error", op: fault.Write, faults: func(n int, r *rand.Rand) []fault.Fault {
		return []fault.Fault{{Op: fault.Write, First: n, Times: 1, Err: syscall.EIO}}
	}},
	{name: "write-torn", op: fault.Write, faults: func(n int, r *rand.Rand) []fault.Fault {
		return []fault.Fault{{Op: fault.Write, First: n, Times: 1, Err: syscall.EIO, Take: 1 + r.IntN(16)}}
	}},
	{name: "write-whole-and-error", op: fault.Write, faults: func(n int, r *rand.Rand) []fault.Fault {
		return []fault.Fault{{Op: fault.Write, First: n, Times: 1, Err: syscall.EIO, Take: fault.All}}
	}},
	{name: "write-errors", op: fault.Write, faults: func(n int, r *rand.Rand) []fault.Fault {
		return []fault.Fault{{Op: fault.Write, First: n, Times: 2 + r.IntN(4), Err: syscall.EIO, Take: r.IntN(4)}}
	}},
	{name: "write-dead", op: fault.Write, faults: func(n int, r *rand.Rand) []fault.Fault {
		return []fault.Fault{{Op: fault.Write, First: n, Err: syscall.EROFS}}
	}},
	{name: "write-short", op: fault.Write, faults: func(n int, r *rand.Rand) []fault.Fault {
		return []fault.Fault{{Op: fault.Write, First: n, Times: 1, Take: 1 + r.IntN(16)}}
	}},
	{name: "writes-short", op: fault.Write, faults: func(n int, r *rand.Rand) []fault.Fault {
		return []fault.Fault{{Op: fault.Write, First: n, Times: 1 + r.IntN(60), Take: 1 + r.IntN(8)}}
	}},
	{name: "write-nothing", op: fault.Write, faults: func(n int, r *rand.Rand) []fault.Fault {
		return []fault.Fault{{Op: fault.Write, First: n, Times: 1}}
	}},
	{name: "write-interrupted", op: fault.Write, faults: func(n int, r *rand.Rand) []fault.Fault {
		return []fault.Fault{{Op: fault.Write, First: n, Times: 1 + r.IntN(3), Err: syscall.EINTR, Take: r.IntN(3)}}
	}},
	{name: "disk-full", op: fault.Write, faults: func(n int, r *rand.Rand) []fault.Fault {
		return []fault.Fault{{Op: fault.Write, First: n, Times: 1, Take: r.IntN(16), Full: true}}
	}},
	{name: "write-slow", op: fault.Write, faults: func(n int, r *rand.Rand) []fault.Fault {
		return []fault.Fault{{Op: fault.Write, First: n, Take: fault.All, Delay: slow + time.Duration(r.IntN(1e7))}}
	}},
	{name: "write-slow-error", op: fault.Write, faults: func(n int, r *rand.Rand) []fault.Fault {
		return []fault.Fault{
			{Op: fault.Write, Take: fault.All, Delay: slow},
			{Op: fault.Write, First: n, Times: 1 + r.IntN(3), Err: syscall.EIO, Take: r.IntN(8)}}
	}},
	{name: "write-error-sync-error", op: fault.Write, faults: func(n int, r *rand.Rand) []fault.Fault {
		return []fault.Fault{
			{Op: fault.Write, First: n, Times: 1 + r.IntN(3), Err: syscall.EIO, Take: r.IntN(8)},
			{Op: fault.Sync, First: 1 + r.IntN(4), Times: 1, Err: syscall.EIO}}
	}},
	{name: "write-error-close-error", op: fault.Write, faults: func(n int, r *rand.Rand) []fault.Fault {
		return []fault.Fault{
			{Op: fault.Write, First: n, Err: syscall.EIO, Take: r.IntN(8)},
			{Op: fault.Close, Err: syscall.EIO}}
	}},
	{name: "sync-error", op: fault.Sync, faults: func(n int, r *rand.Rand) []fault.Fault {
		return []fault.Fault{{Op: fault.Sync, First: n, Times: 1, Err: syscall.EIO}}
	}},
	{name: "sync-slow", op: fault.Sync, faults: func(n int, r *rand.Rand) []fault.Fault {
		return []fault.Fault{{Op: fault.Sync, First: n, Delay: slow + time.Duration(r.IntN(1e7))}}
	}},
	{name: "sync-slow-error", op: fault.Sync, faults: func(n int, r *rand.Rand) []fault.Fault {
		return []fault.Fault{{Op: fault.Sync, Delay: slow}, {Op: fault.Sync, First: n, Times: 1, Err: syscall.ENOSPC}}
	}},
	{name: "all-slow", op: fault.Sync, faults: func(n int, r *rand.Rand) []fault.Fault {
		return []fault.Fault{
			{Op: fault.Write, Take: fault.All, Delay: time.Duration(r.IntN(1e7))},
			{Op: fault.Sync, First: n, Delay: time.Duration(r.IntN(1e7))}}
	}},
	{name: "close-error", op: fault.Close, faults: func(n int, r *rand.Rand) []fault.Fault {
		return []fault.Fault{{Op: fault.Close, Err: syscall.EIO, Delay: slow}}
	}},
	{name: "none", op: fault.Close},
}

// A faultRun is one case: a workload under a policy with one kind of fault at
// the nth call. Its text names it. Seed and case decide the calls and the faults;
// where goroutines run at the very same time, the scheduler decides their order.
type faultRun struct {
	round  int
	kind   string
	n      int
	policy string
}

func (c faultRun) String() string { return fmt.Sprintf("%d/%s/%d/%s", c.round, c.kind, c.n, c.policy) }

func parseFaultRun(text string) (c faultRun, err error) {
	parts := strings.SplitN(text, "/", 4)
	if len(parts) != 4 {
		return c, fmt.Errorf("case %q is not round/kind/n/policy", text)
	}
	c.kind, c.policy = parts[1], parts[3]
	if c.round, err = strconv.Atoi(parts[0]); err == nil {
		c.n, err = strconv.Atoi(parts[2])
	}
	return c, err
}

// source returns the case's source of randomness for one purpose. The goroutines' calls are the
// same for all kinds and positions of one round, their outcomes are not.
func (c faultRun) source(purpose string) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s/%d/%s", purpose, c.round, c.policy)
	return rand.New(rand.NewPCG(*faultSeed, h.Sum64()))
}

// TestFaultMatrix runs every policy with every kind of fault at every call that
// a workload of concurrent goroutines makes, and judges each by the ledger.
func TestFaultMatrix(t *testing.T) {
	isolate.Once(t, isolate.Ordinary)
	start := time.Now()
	defer func() { faultElapsed.Store(int64(time.Since(start))) }()
	if *faultCase != "" {
		c, err := parseFaultRun(*faultCase)
		if err != nil {
			t.Fatal(err)
		}
		c.check(t)
		return
	}
	t.Run("policies", func(t *testing.T) {
		for i, policy := range faultPolicies {
			t.Run(policy, func(t *testing.T) {
				t.Parallel()
				runFaultRounds(t, policy, i)
			})
		}
	})
	t.Logf("%d cases, -fault.seed=%d", faultCases.Load(), *faultSeed)
}

// runFaultRounds runs each workload without a fault, to learn how many calls
// the file gets. Then it runs it with each fault at each call. Under the race detector goroutines meet in the same
// places at each call, so a few will do, and the kinds of faults take turns, from one policy to the next.
func runFaultRounds(t *testing.T, policy string, number int) {
	rounds := 2
	if testing.Short() {
		rounds = 1
	}
	if *faultRounds > 0 {
		rounds = *faultRounds
	}
	for round := range rounds {
		plain := faultRun{round: round, kind: "none", n: 1, policy: policy}
		f := plain.check(t)
		for i, kind := range faultKinds[:len(faultKinds)-1] {
			every := 1
			if isolate.RaceEnabled {
				if (i+number)%3 != 0 {
					continue
				}
				every += f.Count(kind.op) / 3
			}
			for n := 1; n <= f.Count(kind.op); n += every {
				faultRun{round: round, kind: kind.name, n: n, policy: policy}.check(t)
			}
		}
	}
}

// check runs the case and prints how to run just it again if something is wrong.
func (c faultRun) check(t *testing.T) *fault.File {
	t.Helper()
	faultCases.Add(1)
	replay := fmt.Sprintf("go test . -run '^TestFaultMatrix$' -fault.seed=%d -fault.case='%s'", *faultSeed, c)
	// A Writer that spins stops the clock of its bubble: only a real one helps.
	hang := time.AfterFunc(2*time.Minute, func() { panic("hangs: " + replay) })
	defer hang.Stop()
	f, l, stopped := c.run(t)
	problems := []string{stopped}
	if stopped == "" {
		problems = l.judge()
	}
	if len(problems) > 0 {
		t.Errorf("%s\n%s\n%s\n", replay, strings.Join(problems[:min(len(problems), 8)], "\n"), l.story())
	}
	return f
}

// run returns what was written down, and why the bubble could not end, if so.
func (c faultRun) run(t *testing.T) (f *fault.File, l *ledger, stopped string) {
	f = c.file(t)
	defer func() {
		if r := recover(); r != nil {
			stopped = fmt.Sprint(r)
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		p, err := holdfast.ParsePolicy(c.policy)
		if err != nil {
			t.Fatal(err)
		}
		if l, err = newLedger(p, f, *faultSeed); err != nil {
			t.Fatal(err)
		}
		c.workload(l)
	})
	return f, l, ""
}

func (c faultRun) file(t *testing.T) *fault.File {
	f := fault.New()
	f.SetSector(16)
	for _, kind := range faultKinds {
		if kind.name != c.kind {
			continue
		}
		if kind.faults != nil {
			for _, x := range kind.faults(c.n, c.source("fault")) {
				f.Add(x)
			}
		}
		return f
	}
	t.Fatalf("no kind of fault is called %q", c.kind)
	return nil
}

// workload lets goroutines use a Writer, each with its own calls. It ends with
// sequential calls and Close, or Close comes while the goroutines run.
func (c faultRun) workload(l *ledger) {
	r := c.source("workload")
	var group sync.WaitGroup
	if lift := time.Duration(r.IntN(3e7)); r.IntN(2) == 0 {
		group.Go(func() { time.Sleep(lift); l.file.SetRoom(fault.Unlimited) })
	}
	timed := r.IntN(4) > 0
	for i := range 1 + r.IntN(4) {
		a := newActor(l, byte(1+i), r, timed)
		group.Go(func() { a.run() })
	}
	if r.IntN(4) == 0 {
		after := time.Duration(r.IntN(2e7))
		group.Go(func() { time.Sleep(after); l.Close() })
	}
	group.Wait()
	c.finale(l, c.source("finale/"+c.kind+"/"+strconv.Itoa(c.n)))
}

// finale makes one call after the other: what failed before is reported, what can be
// written is written, and after Close nothing is.
func (c faultRun) finale(l *ledger, r *rand.Rand) {
	pause := func() { time.Sleep(time.Nanosecond) }
	if r.IntN(2) == 0 {
		time.Sleep(50 * time.Millisecond)
	}
	pause()
	if r.IntN(2) == 0 {
		l.Write(7, 5)
		pause()
	}
	if r.IntN(3) > 0 {
		l.file.Mend()
		l.file.SetRoom(fault.Unlimited)
	}
	for range r.IntN(3) {
		l.Flush()
		pause()
	}
	if r.IntN(2) == 0 {
		l.Sync()
		pause()
	}
	if r.IntN(2) == 0 {
		l.Write(7, 5)
		pause()
	}
	l.Close()
	time.Sleep(time.Minute)
	l.Write(7, 3)
	l.Enqueue(7, 3)
	l.Flush()
	l.Sync()
	l.WaitDurable(context.Background(), l.w.Durable())
	l.Close()
}

// An actor is one goroutine's calls.
type actor struct {
	l      *ledger
	stream byte
	r      *rand.Rand
	timed  bool // pauses between its calls, so that few goroutines run at once
	large  bool // most of its records are as large as lines get
	ends   int64
}

func newActor(l *ledger, stream byte, r *rand.Rand, timed bool) *actor {
	return &actor{l: l, stream: stream, r: rand.New(rand.NewPCG(r.Uint64(), r.Uint64())), timed: timed, large: r.IntN(4) == 0}
}

func (a *actor) run() {
	for range 2 + a.r.IntN(9) {
		if a.timed {
			time.Sleep(time.Duration(a.r.IntN(4000))*time.Microsecond + time.Duration(a.stream))
		}
		a.act()
	}
}

func (a *actor) act() {
	switch a.r.IntN(16) {
	case 0:
		a.l.Flush()
	case 1:
		a.l.Sync()
	case 2:
		a.l.WriteString(a.stream, a.size())
	case 3:
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(a.r.IntN(3000))*time.Microsecond)
		defer cancel()
		a.l.WaitDurable(ctx, a.ends)
	case 4:
		a.l.WaitDurable(context.Background(), a.ends)
	case 5, 6, 7:
		if c := a.l.Enqueue(a.stream, a.size()); c.err == nil {
			a.ends = c.offset
		}
	default:
		a.l.Write(a.stream, a.size())
	}
}

// size returns how large a record is. Most are small beside the buffer, some just
// fit or just don't, a few are larger or empty. Some are of 3 to 16 KiB: they go
// past a small buffer, or spill over the end of a large one.
func (a *actor) size() int {
	buffer := int(a.l.policy.Buffer)
	if n := a.r.IntN(16); n == 0 || a.large && n < 12 {
		return 3<<10 + a.r.IntN(13<<10)
	}
	switch a.r.IntN(16) {
	case 0:
		return 0
	case 1, 2:
		return max(1, buffer-1+a.r.IntN(3))
	case 3:
		return 1 + a.r.IntN(3*buffer+8)
	case 4, 5, 6:
		return 1 + a.r.IntN(buffer/2+8)
	default:
		return 1 + a.r.IntN(min(64, buffer/3+8))
	}
}

// A ledger records the calls of a Writer's callers, their results, and the file's content
// meanwhile. Its judge knows the contract, Policy.Loss and these notes, and nothing of how a Writer
// works.
//
// Order is known by ticks: a call whose end has a smaller tick than another's
// begin has returned before that one was made.
type ledger struct {
	policy holdfast.Policy
	file   *fault.File
	w      *holdfast.Writer
	birth  time.Time
	images *rand.Rand // guarded by mu, as all below

	mu     sync.Mutex
	tick   int64
	seqs   map[byte]int
	calls  []*call
	marks  []mark
	events []event
	cuts   []cut
}

// A call is one call of a Writer's method.
type call struct {
	method     string
	stream     byte   // whose records keep their order among themselves
	record     []byte // the bytes to write, if any
	begin, end int64
	at, until  time.Duration
	n          int
	err        error
	offset     int64 // Enqueue: the end it returned; WaitDurable: what it waits for
}

// A mark has the watermarks and the file's state at one tick.
type mark struct {
	tick                      int64
	at                        time.Duration
	written, flushed, durable int64
	kernel, stable            int64
}

// An event is the start or the end of a call that the file got.
type event struct {
	tick int64
	at   time.Duration
	done bool
	fault.Call
}

// A cut is a file's image after a power cut at a tick.
type cut struct {
	tick   int64
	stable int64
	image  []byte
}

func newLedger(p holdfast.Policy, f *fault.File, seed uint64) (*ledger, error) {
	w, err := holdfast.New(f, p)
	l := &ledger{policy: p, file: f, w: w, birth: time.Now(), images: rand.New(rand.NewPCG(seed, 7)), seqs: map[byte]int{}}
	f.Watch(l.watch)
	return l, err
}

// watch notes an event and the file's content then: crash points lie before and
// after every call that the file gets.
func (l *ledger) watch(c fault.Call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tick++
	l.events = append(l.events, event{l.tick, time.Since(l.birth), !c.End.IsZero(), c})
	l.markLocked()
}

// markLocked reads the least watermark first: it may only grow while the others
// are read.
func (l *ledger) markLocked() {
	l.tick++
	m := mark{tick: l.tick, at: time.Since(l.birth)}
	m.durable = l.w.Durable()
	m.flushed = l.w.Flushed()
	m.written = l.w.Written()
	m.stable = l.file.Stable()
	m.kernel = l.file.Size()
	l.marks = append(l.marks, m)
	if l.images.IntN(8) == 0 {
		l.cuts = append(l.cuts, cut{l.tick, m.stable, l.file.PowerCut(l.images)})
	}
}

func (l *ledger) begin(method string, stream byte, record []byte) *call {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tick++
	c := &call{method: method, stream: stream, record: record, begin: l.tick, at: time.Since(l.birth)}
	l.calls = append(l.calls, c)
	return c
}

func (l *ledger) done(c *call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tick++
	c.end, c.until = l.tick, time.Since(l.birth)
	l.markLocked()
}

// record returns the next record of a stream.
func (l *ledger) record(stream byte, size int) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	if size == 0 {
		return nil
	}
	l.seqs[stream]++
	return pattern(stream, l.seqs[stream]-1, size)
}

// give hands a record to one of the methods that take bytes, from memory that is
// scribbled over as soon as the call returns.
func (l *ledger) give(method string, stream byte, size int, take func(p []byte) (int, error)) *call {
	record := l.record(stream, size)
	mine := bytes.Clone(record)
	c := l.begin(method, stream, record)
	c.n, c.err = take(mine)
	l.done(c)
	for i := range mine {
		mine[i] = 0xff
	}
	return c
}

func (l *ledger) Write(stream byte, size int) *call {
	return l.give("Write", stream, size, l.w.Write)
}

func (l *ledger) WriteString(stream byte, size int) *call {
	return l.give("WriteString", stream, size, func(p []byte) (int, error) { return l.w.WriteString(string(p)) })
}

// unknown is the n of an Enqueue that failed. It does not say how much of a record
// larger than the buffer got into the file.
const unknown = -1

func (l *ledger) Enqueue(stream byte, size int) *call {
	var offset int64
	c := l.give("Enqueue", stream, size, func(p []byte) (int, error) {
		end, err := l.w.Enqueue(p)
		offset = end
		switch {
		case err == nil:
			return len(p), nil
		case len(p) <= min(int(l.policy.Buffer), 64<<10-1):
			return 0, err
		}
		return unknown, err
	})
	c.offset = offset
	return c
}

func (l *ledger) WaitDurable(ctx context.Context, end int64) *call {
	return l.plain("WaitDurable", end, func() error { return l.w.WaitDurable(ctx, end) })
}

func (l *ledger) Flush() *call { return l.plain("Flush", 0, l.w.Flush) }
func (l *ledger) Sync() *call  { return l.plain("Sync", 0, l.w.Sync) }
func (l *ledger) Close() *call { return l.plain("Close", 0, l.w.Close) }

func (l *ledger) plain(method string, offset int64, do func() error) *call {
	c := l.begin(method, 0, nil)
	c.offset = offset
	c.err = do()
	l.done(c)
	return c
}

func (c *call) String() string {
	s := fmt.Sprintf("[%d..%d %v..%v] %s", c.begin, c.end, c.at, c.until, c.method)
	if c.record != nil {
		s += fmt.Sprintf(" of %d/%d, %d bytes, n=%d", c.stream, c.record[min(1, len(c.record)-1)]&0x7f, len(c.record), c.n)
	}
	if c.offset != 0 {
		s += fmt.Sprintf(" offset %d", c.offset)
	}
	return s + fmt.Sprintf(" = %v", c.err)
}

func (e event) String() string {
	state := "starts"
	if e.done {
		state = fmt.Sprintf("took %d..%d = %v", e.From, e.To, e.Err)
	}
	return fmt.Sprintf("[%d %v] file %v %d (%d bytes) %s", e.tick, e.at, e.Op, e.N, e.Len, state)
}

// story says what happened in order, for the reader of a failure.
func (l *ledger) story() string {
	type line struct {
		tick int64
		text string
	}
	var lines []line
	for _, c := range l.calls {
		lines = append(lines, line{c.begin, c.String()})
	}
	for _, e := range l.events {
		lines = append(lines, line{e.tick, "    " + e.String()})
	}
	slices.SortFunc(lines, func(a, b line) int { return int(a.tick - b.tick) })
	var text bytes.Buffer
	for i, line := range lines {
		if i == 400 {
			fmt.Fprintf(&text, "  … %d more\n", len(lines)-i)
			break
		}
		fmt.Fprintf(&text, "  %s\n", line.text)
	}
	return text.String()
}

// A verdict is a judge at work: the ledger, each record's place in the file, and the errors found.
type verdict struct {
	*ledger
	data     []byte
	place    map[*call]span
	problems []string
}

// span is where a record stands. It may end behind the end of the file: then the
// file holds the first part only.
type span struct{ from, to int64 }

// judge returns what is wrong, or nothing. The Writer is closed and no call is
// on its way.
func (l *ledger) judge() []string {
	v := &verdict{ledger: l, data: l.file.ProcessCrash(), place: map[*call]span{}}
	v.problems = append(v.problems, l.file.Violations()...)
	if v.takeApart() {
		v.judgeResults()
		v.judgePlaces()
		v.judgeMarks()
		v.judgeLoss()
		v.judgeClaims()
		v.judgeCuts()
		v.judgeErrors()
		v.judgeFinalSyncError()
		v.judgeDeadlines()
		v.judgeSyncBytes()
		v.judgeEnd()
	}
	return v.problems
}

func (v *verdict) wrong(format string, args ...any) {
	v.problems = append(v.problems, fmt.Sprintf(format, args...))
}

// takeApart finds each record's place. Every byte belongs to an accepted
// record, whole where it must be, in the order of its stream. No record appears
// twice.
func (v *verdict) takeApart() bool {
	queues := map[byte][]*call{}
	for _, c := range v.calls {
		if c.record != nil && c.n != 0 {
			queues[c.stream] = append(queues[c.stream], c)
		}
	}
	for at := 0; at < len(v.data); {
		stream, piece := v.data[at]>>4&7, v.pieceAt(at)
		c, rest := next(queues[stream], piece, at+len(piece) == len(v.data))
		if v.data[at] < 0x80 || c == nil {
			v.wrong("offset %d: a piece of %d bytes % x… is no record that stream %d has next", at, len(piece), piece[:min(8, len(piece))], stream)
			return false
		}
		queues[stream] = rest
		v.place[c] = span{int64(at), int64(at + max(len(piece), c.n))}
		at += len(piece)
	}
	return true
}

// pieceAt returns the bytes up to the next record's first byte.
func (v *verdict) pieceAt(at int) []byte {
	end := at + 1
	for end < len(v.data) && v.data[end] < 0x80 {
		end++
	}
	return v.data[at:end]
}

// next returns the call that a piece belongs to, and the calls after it. A
// failed Enqueue may have left any piece, or none. The last piece of the file may
// be cut short.
func next(queue []*call, piece []byte, last bool) (*call, []*call) {
	for i, c := range queue {
		fits := len(piece) == c.n || (last && len(piece) < c.n) || c.n == unknown
		if fits && bytes.HasPrefix(c.record, piece) {
			return c, queue[i+1:]
		}
		if c.n != unknown {
			break
		}
	}
	return nil, nil
}

// judgeResults checks what each call may return at all.
func (v *verdict) judgeResults() {
	buffer, waits := int(v.policy.Buffer), v.policy.Loss().Power.None()
	for _, c := range v.calls {
		size, through := len(c.record), len(c.record) > min(buffer, 64<<10-1)
		switch {
		case c.end == 0:
			v.wrong("never returned: %v", c)
		case c.record == nil || c.method == "Enqueue" || c.n == unknown:
		case c.n < 0 || c.n > size || (c.n < size && c.err == nil):
			v.wrong("n and error do not belong together: %v", c)
		case !through && c.n != 0 && c.n != size && v.policy.Sync.Mode != holdfast.SyncEach:
			v.wrong("a record that fits the buffer was accepted in part: %v", c)
		case !through && !waits && c.n == size && c.err != nil:
			v.wrong("accepted and refused: %v", c)
		}
	}
}

// judgePlaces checks that what was accepted is in the file unless Close said
// that it could not be written, and that offsets are places.
func (v *verdict) judgePlaces() {
	missing, torn := 0, int64(0)
	for _, c := range v.calls {
		place, ok := v.place[c]
		switch {
		case c.record == nil || c.n == 0:
		case !ok && c.n > 0:
			missing += c.n
		case ok && place.to > int64(len(v.data)):
			torn = place.to - int64(len(v.data))
		}
		if ok && c.method == "Enqueue" && c.err == nil && c.offset != place.to {
			v.wrong("stands at %v: %v", place, c)
		}
	}
	lost := int64(missing) + torn
	if lost > 0 && !v.closeFailedToWrite() {
		v.wrong("%d accepted bytes are not in the file, and Close did not say so", lost)
	}
	if lost > 2*int64(v.policy.Buffer) {
		v.wrong("%d accepted bytes are not in the file: more than two buffers", lost)
	}
}

func (v *verdict) closeFailedToWrite() bool {
	return slices.ContainsFunc(v.calls, func(c *call) bool {
		var failed *holdfast.WriteError
		return c.method == "Close" && errors.As(c.err, &failed)
	})
}

// judgeMarks checks that watermarks only grow, keep their order and tell no lie
// about the file.
func (v *verdict) judgeMarks() {
	var before mark
	for _, m := range v.marks {
		if m.durable < before.durable || m.flushed < before.flushed || m.written < before.written {
			v.wrong("watermarks shrink: %+v, then %+v", before, m)
		}
		if m.durable > m.flushed || m.flushed > m.written {
			v.wrong("watermarks out of order: %+v", m)
		}
		if m.flushed > m.kernel || m.durable > m.stable {
			v.wrong("watermarks say more than the file holds: %+v", m)
		}
		before = m
	}
}

// counts reports whether a call is one whose success the Policy's Loss speaks of.
func (c *call) counts() bool {
	return c.record != nil && c.err == nil && c.n == len(c.record) && c.method != "Enqueue"
}

// judgeLoss crashes at every mark: what calls had acknowledged by then and the
// file does not hold is within the loss that the policy promises.
func (v *verdict) judgeLoss() {
	loss := v.policy.Loss()
	for _, m := range v.marks {
		v.judgeLossAt(m, "process crash", m.kernel, loss.Process)
		v.judgeLossAt(m, "power cut", m.stable, loss.Power)
		if len(v.problems) > 5 {
			return
		}
	}
}

func (v *verdict) judgeLossAt(m mark, what string, kept int64, bound holdfast.Bound) {
	lost := int64(0)
	for _, c := range v.calls {
		place, ok := v.place[c]
		if !c.counts() || c.end > m.tick || (ok && place.to <= kept) {
			continue
		}
		if !ok {
			place = span{0, int64(len(c.record))}
			lost += place.to
		} else {
			lost += place.to - max(place.from, kept)
		}
		age := m.at - c.until
		if bound.Time != holdfast.Unlimited && !bound.None() && age > bound.Time && age > bound.Time+v.stall() && !v.failedBefore(m.tick) {
			v.wrong("%s at tick %d, %v: takes what is %v old, more than %v: %v", what, m.tick, m.at, age, bound, c)
		}
	}
	// Bytes in flight come on top where the bound says so: judgeSyncBytes.
	if bound.Bytes != holdfast.Unlimited && !bound.InFlight && lost > int64(bound.Bytes) {
		v.wrong("%s at tick %d, %v: takes %d bytes that were acknowledged; the policy says %v", what, m.tick, m.at, lost, bound)
	}
}

// stall returns how long the flushes and the syncs in flight may hold up others.
// These are the flush in flight, a bypass that came first, and the two writes of
// a flush across the end of memory. A sync beside each comes on top.
func (v *verdict) stall() time.Duration {
	var longest [3]time.Duration
	for _, e := range v.work() {
		longest[e.Op] = max(longest[e.Op], e.End.Sub(e.Start))
	}
	return 4 * (longest[fault.Write] + longest[fault.Sync])
}

// work returns what the file did, with a write that goes on where a short one
// ended as one.
func (v *verdict) work() (done []event) {
	lastWrite := -1
	for _, e := range v.events {
		if !e.done {
			continue
		}
		if e.Op == fault.Write && lastWrite >= 0 {
			if last := &done[lastWrite]; last.To-last.From < int64(last.Len) && last.End.Equal(e.Start) {
				last.To, last.End = e.To, e.End
				continue
			}
		}
		if done = append(done, e); e.Op == fault.Write {
			lastWrite = len(done) - 1
		}
	}
	return done
}

// failed reports whether the event is a failure that someone must hear of.
func (e event) failed() bool {
	if !e.done || errors.Is(e.Err, syscall.EINTR) {
		return false
	}
	return e.Err != nil || (e.Op == fault.Write && e.From == e.To)
}

func (v *verdict) failedBefore(tick int64) bool {
	return slices.ContainsFunc(v.events, func(e event) bool { return e.failed() && e.tick < tick })
}

// judgeClaims checks what Flush, Sync, WaitDurable, Close and errors said.
func (v *verdict) judgeClaims() {
	for _, c := range v.calls {
		kernel, stable := v.claim(c)
		for _, m := range v.marks {
			if m.tick > c.end && (m.kernel < kernel || m.stable < stable) {
				v.wrong("says that %d bytes are in the kernel and %d are stable; tick %d: %d and %d are: %v",
					kernel, stable, m.tick, m.kernel, m.stable, c)
				break
			}
		}
	}
}

// claim returns how many bytes a call's return says are in the kernel and on
// stable storage.
func (v *verdict) claim(c *call) (kernel, stable int64) {
	var failedWrite *holdfast.WriteError
	var failedSync *holdfast.SyncError
	if errors.As(c.err, &failedWrite) {
		kernel, stable = failedWrite.Flushed, failedWrite.Durable
	}
	if errors.As(c.err, &failedSync) {
		stable = max(stable, failedSync.Durable)
	}
	switch {
	case c.record != nil && c.n > 0 && c.n < len(c.record):
		kernel = max(kernel, v.place[c].to)
	case c.err != nil:
	case c.method == "Flush":
		kernel = v.acceptedBefore(c)
	case c.method == "Sync", c.method == "Close" && v.policy.Sync.Mode != holdfast.SyncNever:
		kernel = v.acceptedBefore(c)
		stable = kernel
	case c.method == "Close":
		kernel = v.acceptedBefore(c)
	case c.method == "WaitDurable":
		kernel, stable = c.offset, c.offset
	}
	return kernel, stable
}

// acceptedBefore returns the end of all that calls had accepted when c was made.
func (v *verdict) acceptedBefore(c *call) (end int64) {
	for _, a := range v.calls {
		if a.end < c.begin && a.n > 0 {
			end = max(end, v.place[a].to)
		}
	}
	for _, m := range v.marks {
		if m.tick < c.begin {
			end = max(end, m.written)
		}
	}
	return end
}

// judgeCuts checks that power cuts leave every byte that was called stable.
func (v *verdict) judgeCuts() {
	for _, x := range v.cuts {
		if !bytes.HasPrefix(x.image, v.data[:x.stable]) {
			v.wrong("tick %d: a power cut spoils the first %d bytes", x.tick, x.stable)
		}
	}
}

// reports reports whether a call is one that must tell of an earlier failure.
func (c *call) reports() bool {
	switch c.method {
	case "Flush", "Sync", "Close":
		return true
	}
	return len(c.record) > 0
}

// judgeErrors checks that every failure is reported, that no error is invented and
// that each is of the right kind.
func (v *verdict) judgeErrors() {
	for _, c := range v.calls {
		v.judgeKind(c)
	}
	for _, e := range v.events {
		if e.failed() && !v.reported(e) {
			v.wrong("was reported by no call: %v", e)
		}
	}
	v.judgeOnce()
}

// judgeKind checks that an error has a cause, and says it.
func (v *verdict) judgeKind(c *call) {
	var failedWrite *holdfast.WriteError
	var failedSync *holdfast.SyncError
	switch {
	case c.err == nil:
	case errors.As(c.err, &failedWrite) && !v.caused(fault.Write, c, failedWrite):
		v.wrong("no write failed so: %v", c)
	case errors.As(c.err, &failedSync) && !v.caused(fault.Sync, c, failedSync):
		v.wrong("no sync failed so: %v", c)
	case failedWrite != nil || failedSync != nil:
	case errors.Is(c.err, holdfast.ErrClosed):
		if !slices.ContainsFunc(v.calls, func(x *call) bool { return x.method == "Close" && x.begin < c.end }) {
			v.wrong("no one closed it: %v", c)
		}
	case c.method == "WaitDurable" && errors.Is(c.err, context.DeadlineExceeded):
	case c.method == "Close" && v.caused(fault.Close, c, c.err):
	default:
		v.wrong("an error of no known kind: %v", c)
	}
}

// caused reports whether a call of the file failed, before c returned, with an error that err
// wraps.
func (v *verdict) caused(op fault.Op, c *call, err error) bool {
	return slices.ContainsFunc(v.events, func(e event) bool {
		short := e.Err == nil && errors.Is(err, io.ErrShortWrite)
		return e.Op == op && e.failed() && e.tick < c.end && (short || (e.Err != nil && errors.Is(err, e.Err)))
	})
}

// reported says whether a failure was returned by a call that was on its way, or
// by the next one. Where several calls are made at the same time, any may be it.
// A write that fails again where the one before failed adds nothing to report.
func (v *verdict) reported(e event) bool {
	next := (*call)(nil)
	for _, c := range v.calls {
		if c.begin < e.tick && e.tick < c.end && v.speaksOf(c, e) {
			return true
		}
		if c.at > e.at && c.reports() && (next == nil || c.begin < next.begin) {
			next = c
		}
	}
	if next != nil && slices.ContainsFunc(v.calls, func(c *call) bool {
		return c.begin > e.tick && c.begin < next.end && v.speaksOf(c, e)
	}) {
		return true
	}
	before, ok := v.writeBefore(e)
	return ok && before.failed() && e.From == before.To && e.From == e.To && v.reported(before)
}

// writeBefore returns the write that ended last before e did.
func (v *verdict) writeBefore(e event) (before event, ok bool) {
	for _, x := range v.events {
		if x.done && x.Op == fault.Write && e.Op == fault.Write && x.tick < e.tick {
			before, ok = x, true
		}
	}
	return before, ok
}

// speaksOf reports whether a call's error speaks of the failure. A call that finds
// the Writer closed leaves that to Close.
func (v *verdict) speaksOf(c *call, e event) bool {
	var failedWrite *holdfast.WriteError
	var failedSync *holdfast.SyncError
	switch {
	case errors.As(c.err, &failedWrite), errors.As(c.err, &failedSync):
		return true
	case errors.Is(c.err, holdfast.ErrClosed):
		return slices.ContainsFunc(v.calls, func(x *call) bool { return x.method == "Close" && x.begin < c.end && x.err != nil })
	}
	return c.err != nil && c.method == "Close" && e.Op == fault.Close
}

// judgeOnce checks, where one goroutine made all calls and none of them waits for
// a sync, that no failed write is reported twice.
func (v *verdict) judgeOnce() {
	if v.policy.Loss().Power.None() || v.overlap() {
		return
	}
	for _, e := range v.events {
		var reporters []*call
		for _, c := range v.calls {
			if e.failed() && e.Op == fault.Write && e.Err != nil && errors.Is(c.err, e.Err) {
				reporters = append(reporters, c)
			}
		}
		if len(reporters) > 1 && reporters[0].method != "Close" {
			v.wrong("was reported %d times, by %v and %v: %v", len(reporters), reporters[0], reporters[1], e)
		}
	}
}

func (v *verdict) overlap() bool {
	var end int64
	for _, c := range v.calls {
		if c.begin < end {
			return true
		}
		end = max(end, c.end)
	}
	return false
}

// judgeFinalSyncError checks that after a failed sync every call says so.
func (v *verdict) judgeFinalSyncError() {
	i := slices.IndexFunc(v.events, func(e event) bool { return e.Op == fault.Sync && e.failed() })
	if i < 0 {
		return
	}
	for _, c := range v.calls {
		var failed *holdfast.SyncError
		says := errors.As(c.err, &failed) || errors.Is(c.err, holdfast.ErrClosed)
		if c.at <= v.events[i].at || !c.reports() {
			continue
		}
		if !says || (c.method == "Write" && c.n != 0) {
			v.wrong("does not say that a sync failed at %v: %v", v.events[i].at, c)
		}
	}
}

// judgeDeadlines checks that each byte started on its way when the policy
// says, or as soon as the call in flight had ended. It judges where no call of
// the file failed and none took longer than a period. A slower file is judged
// by its losses.
func (v *verdict) judgeDeadlines() {
	if v.failedBefore(v.tick+1) || v.slow() {
		return
	}
	for _, c := range v.calls {
		place, ok := v.place[c]
		if !ok || c.err != nil {
			continue
		}
		if d := v.policy.FlushEvery; d > 0 {
			v.judgeDeadline(c, place.to, fault.Write, c.until+d)
		}
		if d := v.policy.Sync.Every; d > 0 {
			v.judgeDeadline(c, place.to, fault.Sync, c.until+d)
		}
	}
}

// judgeSyncBytes checks when a sync by bytes starts. It starts when the kernel has as many
// bytes not yet durable as the policy says, or when the sync in flight then ends.
func (v *verdict) judgeSyncBytes() {
	limit := int64(v.policy.Sync.Bytes)
	if limit == 0 || v.failedBefore(v.tick+1) {
		return
	}
	closed := slices.IndexFunc(v.calls, func(c *call) bool { return c.method == "Close" })
	var kernel, stable, covers int64
	var due time.Duration = -1
	syncing := false
	for _, e := range v.events {
		if due >= 0 && e.at > due {
			v.wrong("%d bytes are not durable at %v, and no sync starts: the next is %v", kernel-stable, due, e)
			return
		}
		switch {
		case e.Op == fault.Write && e.done:
			kernel = max(kernel, e.To)
		case e.Op == fault.Sync && !e.done:
			syncing, covers = true, kernel
		case e.Op == fault.Sync:
			syncing, stable = false, covers
		}
		if due = -1; !syncing && kernel-stable >= limit && (closed < 0 || e.tick < v.calls[closed].begin) {
			due = e.at
		}
	}
}

// slow reports whether a flush or a sync took longer than a period of the policy.
func (v *verdict) slow() bool {
	for _, period := range []time.Duration{v.policy.FlushEvery, v.policy.Sync.Every} {
		if period > 0 && slices.ContainsFunc(v.work(), func(e event) bool { return e.End.Sub(e.Start) > period }) {
			return true
		}
	}
	return false
}

func (v *verdict) judgeDeadline(c *call, end int64, op fault.Op, deadline time.Duration) {
	i := slices.IndexFunc(v.events, func(e event) bool { return e.done && e.Op == op && e.To >= end })
	if i < 0 {
		v.wrong("no %v ever covered it: %v", op, c)
		return
	}
	start := v.events[i].Start.Sub(v.birth)
	if free := v.freeFrom(deadline, op); start > free {
		v.wrong("the %v that covers it started at %v, not by %v: %v", op, start, free, c)
	}
}

// freeFrom returns when the flush (for a sync: and the sync) has ended that is in
// flight at a time. A flush may take two writes, and a sync goes behind a flush.
func (v *verdict) freeFrom(at time.Duration, op fault.Op) time.Duration {
	work, steps := v.work(), 2
	if op == fault.Sync {
		steps = 4
	}
	for range steps {
		free := at
		for _, e := range work {
			start, end := e.Start.Sub(v.birth), e.End.Sub(v.birth)
			if (e.Op == fault.Write || op == fault.Sync) && start <= at {
				free = max(free, end)
			}
		}
		at = free
	}
	return at
}

// judgeEnd checks the state that Close leaves.
func (v *verdict) judgeEnd() {
	if n := v.file.Count(fault.Close); n != 1 {
		v.wrong("the file was closed %d times", n)
	}
	last := v.marks[len(v.marks)-1]
	if last.flushed != int64(len(v.data)) {
		v.wrong("Flushed is %d in the end; the file holds %d bytes", last.flushed, len(v.data))
	}
	if !v.closeFailedToWrite() && last.written != last.flushed {
		v.wrong("Written is %d and Flushed %d after Close", last.written, last.flushed)
	}
	if v.policy.Sync.Mode != holdfast.SyncNever && !v.failedBefore(v.tick+1) && last.durable != last.written {
		v.wrong("Written is %d and Durable %d after Close", last.written, last.durable)
	}
	v.judgeCloses()
}

// judgeCloses checks that every Close returns what the first did.
func (v *verdict) judgeCloses() {
	var first *call
	for _, c := range v.calls {
		switch {
		case c.method != "Close":
		case first == nil:
			first = c
		case fmt.Sprint(c.err) != fmt.Sprint(first.err):
			v.wrong("does not say what the first Close said, %v: %v", first.err, c)
		}
	}
	if first != nil && first.err != nil && !v.failedBefore(first.end) {
		v.wrong("nothing had failed: %v", first)
	}
}
