//go:build go1.25

package holdfast_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

var (
	exploreCase  = flag.String("explore.case", "", "run just this `execution` of the explorer, as a failure prints it")
	exploreSeed  = flag.Uint64("explore.seed", 0, "base `seed` of the explorer's random executions; 0 takes a new one")
	exploreLimit = flag.Int("explore.limit", 0, "at most how many executions the explorer makes of each configuration; 0 takes the default")
)

// A configuration is one input of the explorer: the calls of some goroutines on a Writer.
//
// A script has one word for each call. A letter says which: w is a Write and e an Enqueue, each of
// the number of bytes behind it; d is an Enqueue and a WaitDurable, and c the same with a context
// that may end any time; f is Flush, s Sync, x Close.
type configuration struct {
	policy  string
	scripts []string
}

// limits of one execution: short Writes, Writes that fail with ENOSPC, Syncs that fail, and ticks of the clock.
const mostShorts, mostFull, mostSyncFailures, mostTicks = 1, 2, 1, 4

const tick = ms

var (
	explorePolicies = []string{
		"buffer=16B,sync=never",
		"buffer=16B,flush=4B,sync=close",
		"buffer=16B,flush=1ms,sync=never",
		"buffer=0,sync=group",
		"buffer=16B,sync=group",
		"buffer=16B,sync=each",
		"buffer=16B,sync=2ms",
		"buffer=16B,sync=24B",
		"buffer=16B,sync=2ms/12B",
		"buffer=0,sync=2ms/12B",
		"buffer=16B,flush=1ms,sync=2ms/12B",
		"buffer=16B,flush=1ms/4B,sync=2ms",
	}
	exploreScripts = [][]string{
		{"w20", "f"},
		{"d6", "s"},
		{"w6", "x"},
		{"w6 w6 w6 w6", "w10 w10 w10"},
		{"w6 w6", "w24 w4", "f s"},
		{"d6 d6", "c6", "s w6"},
		{"e6 w24", "w24 e6", "w10"},
		{"w12 w12 w12", "w20", "w12 w12", "x"},
		{"w12 s", "c20 w4", "d6"},
	}
)

// TestExplore runs small configurations of calls in every order that the scheduler, the file and the
// clock can give them: it alone says when a goroutine makes its next call, when a call of the file
// ends and how, and when time passes. Whatever it chooses, no call waits while no call of the file is
// on its way, and the file has the bytes it must have.
//
// It makes an execution again and again, each time with other choices: first all executions that
// differ in one choice from the ordinary order, in two, and so on, then random ones. In the ordinary
// order goroutines go on as far as they can before a call of the file ends.
func TestExplore(t *testing.T) {
	isolate.Once(t, isolate.Ordinary)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // so that an execution can be repeated
	if *exploreCase != "" {
		replay(t, *exploreCase)
		return
	}
	limit, seed := 500, *exploreSeed
	switch {
	case *exploreLimit > 0:
		limit = *exploreLimit
	case isolate.RaceEnabled: // one goroutine at a time runs
		limit = 30
	case testing.Short():
		limit = 100
	}
	if seed == 0 {
		seed = 1 + rand.Uint64N(1e9)
	}
	executions, exhausted, all := 0, 0, 0
	for _, policy := range explorePolicies {
		for i, scripts := range exploreScripts {
			all++
			x := &exploration{t: t, configuration: configuration{policy, scripts}}
			if x.systematically(limit / 2) {
				exhausted++
			} else {
				x.randomly(rand.New(rand.NewPCG(seed, uint64(i))), limit)
			}
			executions += x.made
		}
	}
	t.Logf("%d executions of %d configurations, %d of these exhausted, -explore.seed=%d", executions, all, exhausted, seed)
}

// An exploration makes executions of one configuration, until one is bad.
type exploration struct {
	t *testing.T
	configuration
	made int
	bad  bool
}

func (x *exploration) randomly(r *rand.Rand, limit int) {
	for x.made < limit && !x.bad {
		x.execute(func(options int) int { return r.IntN(options) })
	}
}

// systematically reports whether it has made all executions.
func (x *exploration) systematically(limit int) bool {
	for most, cut := 0, true; cut; most++ {
		cut = false
		for plan := []int{}; plan != nil; {
			if x.made >= limit || x.bad {
				return false
			}
			var taken, counts []int
			others := 0
			x.execute(func(options int) (choice int) {
				if options > 1 && others == most {
					options, cut = 1, true
				}
				if at := len(taken); at < len(plan) && plan[at] < options {
					choice = plan[at]
				}
				if choice > 0 {
					others++
				}
				taken, counts = append(taken, choice), append(counts, options)
				return choice
			})
			last := len(taken) - 1
			for last >= 0 && taken[last]+1 >= counts[last] {
				last--
			}
			if plan = nil; last >= 0 {
				plan = append(taken[:last], taken[last]+1)
			}
		}
	}
	return !x.bad
}

// replay makes one execution: policy;script;…;choices.
func replay(t *testing.T, text string) {
	parts := strings.Split(text, ";")
	if len(parts) < 3 {
		t.Fatalf("%q is not policy;script;…;choices", text)
	}
	choices := strings.Fields(parts[len(parts)-1])
	x := &exploration{t: t, configuration: configuration{parts[0], parts[1 : len(parts)-1]}}
	x.execute(func(options int) (choice int) {
		if len(choices) > 0 {
			choice, _ = strconv.Atoi(choices[0])
			choices = choices[1:]
		}
		return min(choice, options-1)
	})
}

func (x *exploration) execute(choose func(options int) int) {
	x.made++
	var choices []string
	e := &execution{}
	hang := time.AfterFunc(time.Minute, func() { panic(fmt.Sprintf("hangs: %v, %v", x.configuration, e.trace)) })
	defer hang.Stop()
	e.choose = func(options int) int {
		choice := choose(options)
		choices = append(choices, strconv.Itoa(choice))
		return choice
	}
	problem := e.inBubble(x.t, x.configuration)
	if problem != "" {
		x.bad = true
		words := append(append([]string{x.policy}, x.scripts...), strings.Join(choices, " "))
		x.t.Errorf("go test . -run '^TestExplore$' -explore.case='%s'\n%s\n%s", strings.Join(words, ";"), strings.Join(e.trace, "\n"), problem)
	}
}

// An execution is one order of all that may happen.
type execution struct {
	choose  func(options int) int
	trace   []string
	policy  holdfast.Policy
	w       *holdfast.Writer
	f       *gate
	clients []*client

	shorts, full, syncFailures, ticks int
	failures                          [mostFull]struct{ at, told int } // when a Write failed, and when a call returned that
	longest                           time.Duration                    // that a sync took
	moved                             time.Time                        // when something other than time has happened

	mu       sync.Mutex
	problems []string
	closed   bool // a Close has begun
	lost     bool // Close has said that bytes are lost
	marks    [3]int64
}

func (e *execution) wrong(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.problems = append(e.problems, fmt.Sprintf(format, args...))
}

func (e *execution) inBubble(t *testing.T, c configuration) (problem string) {
	defer func() {
		cause := recover() // a bubble that can't end
		if cause != nil {
			e.problems = append(e.problems, fmt.Sprint(cause))
		}
		problem = strings.Join(e.problems, "\n")
	}()
	synctest.Test(t, func(t *testing.T) {
		before := runtime.NumGoroutine()
		e.f = &gate{e: e}
		var err error
		e.policy = mustParse(t, c.policy)
		if e.w, err = holdfast.New(e.f, e.policy); err != nil {
			t.Fatal(err)
		}
		for i, script := range c.scripts {
			e.clients = append(e.clients, &client{execution: e, number: i, calls: strings.Fields(script), start: make(chan string)})
			go e.clients[i].run()
		}
		e.run()
		e.f.release()
		for _, c := range e.clients {
			close(c.start)
		}
		synctest.Wait()
		if runtime.NumGoroutine() != before && len(e.problems) == 0 { // or one of an earlier test has ended
			if left := bubble(); left != "" {
				e.wrong("after Close goroutines are left:\n%s", left)
			}
		}
	})
	return ""
}

// run takes one step after the other until no more can be taken.
func (e *execution) run() {
	e.moved = time.Now()
	for {
		synctest.Wait()
		e.check()
		if len(e.problems) > 0 {
			return
		}
		steps := e.steps()
		if len(steps) == 0 {
			break
		}
		e.take(steps[e.choose(len(steps))])
	}
	e.settle()
	if len(e.problems) == 0 {
		e.judge()
	}
}

func (e *execution) take(s step) {
	e.trace = append(e.trace, s.name)
	if s.name != "tick" {
		e.moved = time.Now()
	}
	s.do()
}

// A step is one of the events that may happen next.
type step struct {
	name string
	do   func()
}

// steps returns what may happen next, the ordinary first.
func (e *execution) steps() (steps []step) {
	add := func(name string, do func()) { steps = append(steps, step{name, do}) }
	for _, c := range e.clients {
		if call, idle := c.idle(); idle && call != "" {
			add(fmt.Sprintf("%d: %s", c.number, call), func() { c.next(call) })
		}
	}
	write, sync, closing := e.f.inFlight()
	if write != nil {
		add("write", func() { write.end <- outcome{take: len(write.p)} })
	}
	if sync != nil {
		add("sync", func() { e.synced(sync, nil) })
	}
	if closing != nil {
		add("close", func() { closing.end <- outcome{} })
	}
	for _, c := range e.clients {
		if c.mayEnd() {
			add(fmt.Sprintf("%d: context ends", c.number), c.cancelled)
		}
	}
	if write != nil && len(write.p) > 1 && e.shorts < mostShorts {
		add("short write", func() { e.shorts++; write.end <- outcome{take: len(write.p) / 2} })
	}
	if write != nil && e.full < mostFull {
		add("disk full", func() {
			e.failures[e.full].at = len(e.trace)
			e.full++
			write.end <- outcome{take: len(write.p) / 2, err: &fault.Error{Op: fault.Write, N: e.full, Err: syscall.ENOSPC}}
		})
	}
	if sync != nil && e.syncFailures < mostSyncFailures {
		add("sync fails", func() { e.syncFailures++; e.synced(sync, syscall.EIO) })
	}
	timed := e.policy.FlushEvery > 0 || e.policy.Sync.Every > 0 || sync != nil
	if timed && e.ticks < mostTicks || e.idles() {
		add("tick", func() { e.ticks++; time.Sleep(tick) })
	}
	return steps
}

func (e *execution) synced(s *gated, err error) {
	e.longest = max(e.longest, time.Since(s.begin))
	s.end <- outcome{err: err}
}

// idles reports whether calls wait while the file does nothing.
func (e *execution) idles() bool {
	write, sync, closing := e.f.inFlight()
	return write == nil && sync == nil && closing == nil && e.waiting() != ""
}

func (e *execution) waiting() string {
	var waiting []string
	for _, c := range e.clients {
		if call := c.waits(); call != "" {
			waiting = append(waiting, fmt.Sprintf("%d: %s", c.number, call))
		}
	}
	return strings.Join(waiting, ", ")
}

// check checks what holds whenever all goroutines wait. A call that waits does so for a call of the
// file. Only the leader of a group commit may wait for others, for some syncs' time.
func (e *execution) check() {
	if e.idles() && time.Since(e.moved) >= 3*e.longest {
		e.wrong("hangs: these wait while the file does nothing: %s\n%s", e.waiting(), bubble())
	}
	// Calls that wait for a sync, since too many bytes are not durable, wait for its end.
	if e.closed && !e.policy.Sync.Waits() && e.policy.Due().Dirty == 0 {
		writes := 0
		for _, c := range e.clients {
			if call := c.waits(); call != "" && (call[0] == 'w' || call[0] == 'e') {
				writes++
			}
		}
		if writes > 1 {
			e.wrong("Close has begun, and more than the one that may be writing wait on: %s", e.waiting())
		}
	}
	e.watermarks()
}

func (e *execution) watermarks() {
	durable, flushed, written := e.w.Durable(), e.w.Flushed(), e.w.Written()
	kernel, disk := e.f.has()
	if durable > flushed || flushed > written || durable < e.marks[0] || flushed < e.marks[1] || written < e.marks[2] {
		e.wrong("watermarks %v come after %v", []int64{durable, flushed, written}, e.marks)
	}
	if flushed > int64(kernel) || durable > int64(disk) {
		e.wrong("Flushed is %d and Durable %d; the kernel has %d bytes and the disk %d", flushed, durable, kernel, disk)
	}
	e.marks = [3]int64{durable, flushed, written}
}

// settle lets the file end its calls, and then time pass. No call is made, and still all that is due
// arrives.
func (e *execution) settle() {
	e.drain()
	p, w := e.policy, e.w
	if e.closed || e.syncFailures > 0 {
		return
	}
	arrives := func(after time.Duration, what string, position func() int64) {
		if after == 0 {
			return
		}
		for range after / tick {
			time.Sleep(tick)
			e.drain()
		}
		if position() < w.Written() {
			e.wrong("no call is made and nothing fails any more, and in %v not every byte is %s: written %d, flushed %d, durable %d, Err %v", after, what, w.Written(), w.Flushed(), w.Durable(), w.Err())
		}
	}
	if limit := int64(p.Sync.Bytes); limit > 0 && w.Flushed()-w.Durable() >= limit {
		e.wrong("the kernel has %d bytes that are not durable, and no sync starts", w.Flushed()-w.Durable())
	}
	if strip := int64(p.FlushBytes); e.full == 0 && (strip > 0 && w.Written()-w.Flushed() >= strip || w.Written()-w.Flushed() > int64(p.Buffer)) {
		e.wrong("memory has %d bytes, and no flush starts", w.Written()-w.Flushed())
	}
	arrives(p.FlushEvery, "flushed", w.Flushed)
	arrives(p.Sync.Every, "durable", w.Durable)
}

// drain ends calls of the file as long as there are any, with success.
func (e *execution) drain() {
	for {
		synctest.Wait()
		write, sync, closing := e.f.inFlight()
		switch {
		case write != nil:
			write.end <- outcome{take: len(write.p)}
		case sync != nil:
			sync.end <- outcome{}
		case closing != nil:
			closing.end <- outcome{}
		default:
			e.watermarks()
			return
		}
	}
}

// judge closes the Writer and checks what the file has then.
func (e *execution) judge() {
	last := &client{execution: e, number: len(e.clients), calls: []string{"x"}, start: make(chan string, 1)}
	e.clients = append(e.clients, last)
	last.busy = true
	last.start <- "x"
	go last.run()
	if e.drain(); e.idles() {
		e.wrong("Close hangs:\n%s", bubble())
		return
	}
	kernel, disk := e.f.has()
	if e.policy.Sync.Mode != holdfast.SyncNever && e.syncFailures == 0 && disk < kernel {
		e.wrong("after Close the disk has %d of %d bytes", disk, kernel)
	}
	if len(e.f.wrong) > 0 {
		e.wrong("%s", strings.Join(e.f.wrong, "\n"))
	}
	// Each byte of a record names it.
	place := map[byte]int{} // which record it is in the file, from 1
	for data := e.f.data; len(data) > 0; {
		name := data[0]
		size := len(data) - len(bytes.TrimLeft(data, string(rune(name))))
		data = data[size:]
		r := e.record(name)
		switch {
		case r == nil || place[name] > 0:
			e.wrong("record %d is there twice, or was never written", name)
		case r.taken != size && r.taken != unknown && !(e.lost && len(data) == 0 && size < r.taken):
			e.wrong("the file has %d bytes of record %d, of which the Writer has accepted %d", size, name, r.taken)
		}
		place[name] = len(place) + 1
	}
	for _, c := range e.clients {
		last := 0
		for _, r := range c.records {
			at := place[r.name]
			if r.taken > 0 && at == 0 && !e.lost {
				e.wrong("record %d was accepted and is not in the file", r.name)
			}
			if at > 0 && at < last {
				e.wrong("record %d stands before the one that the same goroutine wrote before", r.name)
			}
			last = max(last, at)
		}
	}
}

func (e *execution) record(name byte) *record {
	for _, c := range e.clients {
		for _, r := range c.records {
			if r.name == name {
				return r
			}
		}
	}
	return nil
}

type record struct {
	name  byte
	taken int // how many bytes the Writer has accepted, or unknown
}

// A client is a goroutine that makes one call after the other, when it is told to.
type client struct {
	*execution
	number  int
	calls   []string // the one in flight among them
	start   chan string
	busy    bool
	cancel  context.CancelFunc // ends the context of the call in flight
	records []*record
}

func (c *client) idle() (call string, idle bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.busy && len(c.calls) > 0 {
		call = c.calls[0]
	}
	return call, !c.busy
}

// mayEnd reports whether a call is under way whose context may end.
func (c *client) mayEnd() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cancel != nil
}

// waits returns the call that is under way, or "".
func (c *client) waits() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.busy {
		return ""
	}
	return c.calls[0]
}

func (c *client) next(call string) {
	c.mu.Lock()
	c.busy = true
	c.mu.Unlock()
	if call == "x" {
		c.closed = true
	}
	c.start <- call
}

// cancelled ends the context of a call, which must return then.
func (c *client) cancelled() {
	c.cancel()
	synctest.Wait()
	if call := c.waits(); call != "" {
		c.wrong("%d: %s goes on though its context has ended", c.number, call)
	}
}

func (c *client) run() {
	for call := range c.start {
		c.call(call)
		c.mu.Lock()
		c.busy, c.cancel, c.calls = false, nil, c.calls[1:]
		c.moved = time.Now()
		c.mu.Unlock()
	}
}

func (c *client) call(call string) (err error) {
	w := c.w
	size, _ := strconv.Atoi(call[1:])
	claim := func(kernel, disk int64) {
		if hasKernel, hasDisk := c.f.has(); err == nil && (int64(hasKernel) < kernel || int64(hasDisk) < disk) {
			c.wrong("%d: %s returned nil; the kernel has %d bytes and the disk %d, and the call says %d and %d", c.number, call, hasKernel, hasDisk, kernel, disk)
		}
	}
	written, began := w.Written(), len(c.trace)
	defer func() { c.told(call, err, began) }()
	switch call[0] {
	case 'w':
		r, p := c.make(size)
		var n int
		n, err = w.Write(p)
		r.taken = n
		if n < size && err == nil || n > 0 && err != nil && size <= int(c.policy.Buffer) && !c.policy.Sync.Waits() {
			c.wrong("%d: %s returned %d, %v", c.number, call, n, err)
		}
		if c.policy.Sync.Waits() && err == nil && !c.f.onDisk(p) {
			c.wrong("%d: %s returned nil, and its bytes are not on the disk", c.number, call)
		}
	case 'e', 'd', 'c':
		r, p := c.make(size)
		var end int64
		end, err = w.Enqueue(p)
		switch {
		case err == nil:
			r.taken = size
		case size > int(c.policy.Buffer):
			r.taken = unknown
		}
		if err != nil || call[0] == 'e' {
			return err
		}
		ctx := context.Background()
		if call[0] == 'c' {
			var cancel context.CancelFunc
			ctx, cancel = context.WithCancel(ctx)
			defer cancel()
			c.mu.Lock()
			c.cancel = cancel
			c.mu.Unlock()
		}
		err = w.WaitDurable(ctx, end)
		claim(end, end)
	case 'f':
		err = w.Flush()
		claim(written, 0)
	case 's':
		err = w.Sync()
		claim(written, written)
	case 'x':
		err = w.Close()
		var failed *holdfast.WriteError
		if errors.As(err, &failed) {
			c.lost = true
		} else if err == nil && w.Flushed() < w.Written() {
			c.wrong("Close returned nil, and not every byte was flushed")
		}
	}
	return err
}

// told checks that a call returns no failure that was over when it was made, and that a call had
// returned then already. Where a Write waits, no such failure comes from the background.
func (c *client) told(call string, err error, began int) {
	var failed *fault.Error
	if !errors.As(err, &failed) || call == "x" || !c.policy.Sync.Waits() {
		return
	}
	c.mu.Lock()
	x := &c.failures[failed.N-1]
	again := x.told > 0 && x.told < began && x.at < began
	if x.told == 0 {
		x.told = len(c.trace)
	}
	c.mu.Unlock()
	if again {
		c.wrong("%d: %s returns a failure that is over, and that an earlier call has returned: %v", c.number, call, err)
	}
}

// make returns a record of which each byte is its name.
func (c *client) make(size int) (*record, []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := &record{name: byte(1 + 16*c.number + len(c.records))}
	c.records = append(c.records, r)
	return r, bytes.Repeat([]byte{r.name}, size)
}

// A gate is a file whose calls end when and how the explorer says. It notes what its user must not do.
type gate struct {
	e      *execution
	mu     sync.Mutex
	open   bool // calls end at once
	data   []byte
	disk   int
	failed bool // a sync
	closed bool
	calls  [3]*gated // the Write, Sync and Close in flight
	wrong  []string
}

// A gated is a call in flight.
type gated struct {
	p      []byte
	covers int
	begin  time.Time
	end    chan outcome
}

type outcome struct {
	take int
	err  error
}

func (f *gate) call(kind int, p []byte) (covers int, o outcome) {
	f.mu.Lock()
	g := &gated{p: p, covers: len(f.data), begin: time.Now(), end: make(chan outcome)}
	if f.calls[kind] != nil || f.closed || kind == 1 && f.failed || kind == 2 && (f.calls[0] != nil || f.calls[1] != nil) {
		f.wrong = append(f.wrong, fmt.Sprintf("call of kind %d comes beside another, after Close or after a Sync that failed", kind))
	}
	f.calls[kind] = g
	f.closed = f.closed || kind == 2
	open := f.open
	f.mu.Unlock()
	if o = (outcome{take: len(p)}); !open {
		o = <-g.end
	}
	f.mu.Lock()
	f.calls[kind] = nil
	f.data = append(f.data, p[:o.take]...)
	f.failed = f.failed || kind == 1 && o.err != nil
	f.mu.Unlock()
	return g.covers, o
}

func (f *gate) Write(p []byte) (int, error) {
	_, o := f.call(0, p)
	return o.take, o.err
}

func (f *gate) Sync() error {
	covers, o := f.call(1, nil)
	if o.err == nil {
		f.mu.Lock()
		f.disk = max(f.disk, covers)
		f.mu.Unlock()
	}
	return o.err
}

func (f *gate) Close() error {
	_, o := f.call(2, nil)
	return o.err
}

func (f *gate) inFlight() (write, sync, closing *gated) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[0], f.calls[1], f.calls[2]
}

func (f *gate) has() (kernel, disk int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.data), f.disk
}

func (f *gate) onDisk(p []byte) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return bytes.Contains(f.data[:f.disk], p)
}

// release lets all calls end, so that the bubble can.
func (f *gate) release() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open = true
	for _, g := range f.calls {
		if g != nil {
			select {
			case g.end <- outcome{take: len(g.p)}:
			default:
			}
		}
	}
}
