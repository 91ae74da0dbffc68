package holdfast_test

import (
	"context"
	"flag"
	"fmt"
	"hash/fnv"
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
	"github.com/holdfast-go/holdfast/internal/isolate"
	"github.com/holdfast-go/holdfast/internal/policies"
	"github.com/holdfast-go/holdfast/internal/racetest"
)

var (
	faultSeed   = flag.Uint64("fault.seed", 0, "base `seed` of the fault matrix; 0 takes a new one")
	faultCase   = flag.String("fault.case", "", "run just this `case` of the fault matrix, as a failure prints it")
	faultRounds = flag.Int("fault.rounds", 0, "how many workloads the fault matrix runs for each policy; 0 takes the default")

	faultCases   atomic.Int64 // how many cases were run
	faultElapsed atomic.Int64
)

func TestMain(m *testing.M) {
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

// source returns the case's source of randomness for one purpose. What goroutines
// do is the same for all kinds and positions of one round, how it ends is not.
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
		for _, policy := range faultPolicies {
			t.Run(policy, func(t *testing.T) {
				t.Parallel()
				runFaultRounds(t, policy)
			})
		}
	})
	t.Logf("%d cases, -fault.seed=%d", faultCases.Load(), *faultSeed)
}

// runFaultRounds runs each workload without a fault, to learn how many calls
// the file gets. Then it runs it with each fault at each call.
func runFaultRounds(t *testing.T, policy string) {
	rounds := 3
	if testing.Short() {
		rounds = 1
	}
	if *faultRounds > 0 {
		rounds = *faultRounds
	}
	for round := range rounds {
		plain := faultRun{round: round, kind: "none", n: 1, policy: policy}
		f := plain.check(t)
		for _, kind := range faultKinds[:len(faultKinds)-1] {
			every := 1
			if racetest.Enabled { // goroutines meet in the same places at each
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
