package crash

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
	"github.com/holdfast-go/holdfast/internal/policies"
)

// A Level is a way to crash a workload. Memory fills a log, and explores its states.
// Kill crashes processes, so that each state is real. Power fills a log with a real file system's
// writes to its disk, and mounts the states.
type Level string

// The levels. To add one, see docs/design/proof.md.
const (
	Memory   Level = "memory"
	Kill     Level = "kill"
	Fault    Level = "fault"
	Hostile  Level = "hostile"
	PowerCut Level = "power"
)

// Levels are all.
var Levels = []Level{Memory, Kill, Fault, Hostile, PowerCut}

// Options say what Prove does.
type Options struct {
	Policies  []holdfast.Policy // nil: generated ones, as many as the run's time allows
	All       bool              // a run has all that are generated
	Workloads []*Workload       // controls too; each level runs the ones that it can crash
	Levels    []Level
	States    int           // of each workload under each policy, at levels memory and power
	Time      time.Duration // of everything, about; 0 is no longer than it must
	Least     int           // how many kills, faults or attacks each workload meets under each policy, however little time there is
	Seed      uint64
	Dir       string // where level kill makes its directory; "" is the system's for temporary files
	// Child starts this program so that it calls [Child] with these arguments and the workloads.
	Child func(ctx context.Context, args ...string) *exec.Cmd
	// Commands are run at level fault too, each as a child that Self starts.
	Commands []*Command
	Self     func(ctx context.Context, args ...string) *exec.Cmd
	// Program is judged at level power, beside the controls.
	Program *Program
	// Power makes the verdicts of level power, on each file system the controls first.
	Power func(context.Context, Options, time.Duration) ([]*Verdict, error)
	// Room, if there is one, does what level power orders in another kernel. That runs [Child] with
	// these arguments and the order as its input, and Room hands over its output. Without Room it is
	// done here.
	Room func(ctx context.Context, args []string, order []byte, answers func(io.Reader) error) error
	// InFakeTime, if there is one, calls a function in a bubble of fake time, and returns when all that it has started is over. An
	// error says that it waits for ever. With it level memory judges periods by an exact clock.
	InFakeTime func(func()) error
	// Each is called with each verdict.
	Each func(*Verdict)
}

// A Command is a command line that ends by itself. Level fault judges its exit code and its words by
// the files that it leaves.
type Command struct {
	Name   string
	Args   func(dir string) []string
	Input  string
	Before map[string]string // the files at the start, by their paths in the directory
	After  map[string]string // the required end of some of them, where no call fails
	Whole  bool              // each file is the old one or the new one, whatever fails
	Acks   bool              // it prints how many lines of its input are durable
}

// Known says whether a verdict is one.
type Known string

// The values of a verdict.
const (
	Held     Known = "held"
	Broken   Known = "broken"
	NotKnown Known = "not known" // a liar was not caught, or the correct program lost something
	NoTime   Known = "no time"   // Options.Time was over before
)

// A Verdict is the result for a workload under a policy at a level.
type Verdict struct {
	Level    Level
	FS       string `json:",omitempty"` // level power: the file system
	Workload string
	Policy   holdfast.Policy
	Loss     holdfast.Loss `json:"-"`
	Allowed  string        // of it, in words, what this level's crashes may take
	Seed     uint64
	Tally    Tally
	Kills    int `json:",omitempty"`
	Faults   int `json:",omitempty"` // how many were injected; level hostile: attacks
	FaultsOf int `json:",omitempty"` // of how many that there are
	Elapsed  time.Duration
	Control  string `json:",omitempty"` // of a control: what it must show
	Verdict  Known
	Unknown  string   `json:",omitempty"` // why nothing was judged
	Failure  *Failure `json:",omitempty"`
	Caught   *Failure `json:"-"` // what a liar did
}

// Prove runs workloads under policies at levels, and the controls of each level before them.
func Prove(ctx context.Context, o Options) ([]*Verdict, error) {
	var verdicts []*Verdict
	finish, parts := time.Now().Add(o.Time), o.parts()
	for n, level := range o.Levels {
		left := 0.0
		for _, next := range o.Levels[n:] {
			left += parts[next]
		}
		end := time.Now().Add(time.Duration(float64(time.Until(finish)) * parts[level] / left))
		doubted := map[string]bool{}
		judged := func(v *Verdict) {
			v.judge(doubted)
			if o.Each != nil {
				o.Each(v)
			}
		}
		if level == PowerCut {
			found, err := o.Power(ctx, o, time.Until(end))
			if err != nil {
				return verdicts, fmt.Errorf("level %s: %w", level, err)
			}
			for _, v := range found {
				judged(v)
			}
			verdicts = append(verdicts, found...)
			continue
		}
		found, err := o.judgeCells(ctx, level, end, judged)
		if verdicts = append(verdicts, found...); err != nil {
			return verdicts, err
		}
	}
	return verdicts, nil
}

// longCell is how much longer a cell of level fault takes than one of level kill, about.
const longCell = 3

// parts are the parts of the time that levels get. Level memory gets two: it finds most in the same time. The levels of processes share
// theirs by what their cells take, however little time there is.
func (o Options) parts() map[Level]float64 {
	parts, weights, levels, sum := map[Level]float64{}, map[Level]int{}, 0, 0
	takes := map[Level]int{Kill: 1, Fault: longCell, Hostile: 2}
	for _, level := range o.Levels {
		parts[level] = 1
		if level == Memory {
			parts[level] = 2
		} else if takes[level] > 0 {
			weights[level] = takes[level] * (1 + len(o.Cells(level)))
			levels, sum = levels+1, sum+weights[level]
		}
	}
	for level, weight := range weights {
		parts[level] = float64(levels*weight) / float64(sum)
	}
	return parts
}

// atOnce is how many cells are worked on at a time. They wait for processes to start, and for periods.
const atOnce = 4

// judgeCells returns the verdicts of a level, and hands each over when it is made and all controls are. The controls and
// atOnce cells more are judged however little time there is.
func (o Options) judgeCells(ctx context.Context, level Level, end time.Time, judged func(*Verdict)) ([]*Verdict, error) {
	grace := min(2*time.Second, time.Until(end)/4) // a level exceeds its time by this before cells are left out
	cells := o.Cells(level)
	must := slices.IndexFunc(cells, func(c Cell) bool { return c.Workload.Control == "" })
	if must < 0 {
		must = len(cells) - 1
	}
	order := rand.New(rand.NewPCG(o.Seed, 7)).Perm(len(cells))                                          // so that it is not always the same that is left out
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(min(a, must), min(b, must)) }) // controls first
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var mu sync.Mutex // of these
	verdicts, waiting, controls := make([]*Verdict, len(cells)), []*Verdict(nil), 0
	for _, c := range cells {
		controls += min(1, len(c.Workload.Control))
	}
	weights := make([]int, len(cells))
	for n, i := range order {
		weights[n] = cells[i].weight(level)
	}
	together := atOnce
	if level == Memory { // a goroutine that lets those of its run go on must not wait for another cell
		together = min(together, runtime.GOMAXPROCS(0))
	}
	Share(weights, together, end, func(n int, long time.Duration) bool {
		i := order[n]
		c := cells[i]
		v := c.Verdict(level, o.Seed+uint64(i))
		if o.Time > 0 && n >= must+atOnce && time.Now().After(end.Add(grace)) {
			v.Verdict = NoTime
		} else if err := v.make(ctx, c, o, long); err != nil {
			stop(fmt.Errorf("level %s, workload %s under %v: %w", level, v.Workload, c.Policy, err))
		}
		mu.Lock()
		defer mu.Unlock()
		if ctx.Err() != nil {
			return false
		}
		verdicts[i] = v
		if v.Control != "" {
			controls--
			judged(v)
		} else {
			waiting = append(waiting, v)
		}
		for ; controls == 0 && len(waiting) > 0; waiting = waiting[1:] {
			judged(waiting[0])
		}
		return true
	})
	return slices.DeleteFunc(verdicts, func(v *Verdict) bool { return v == nil }), context.Cause(ctx)
}

// Share calls do with each number below len(weights), in parallel, at most together calls at once, until one call returns false. It
// shares out the time until end by the weights: a call is told how long it may take.
func Share(weights []int, together int, end time.Time, do func(n int, long time.Duration) bool) {
	left := 0
	for _, weight := range weights {
		left += weight
	}
	var mu sync.Mutex // of these
	next, stopped := 0, false
	var group sync.WaitGroup
	for range together {
		group.Add(1)
		go func() {
			defer group.Done()
			for {
				mu.Lock()
				n, turns := next, (left+together-1)/together
				if stopped || n == len(weights) {
					mu.Unlock()
					return
				}
				next, left = n+1, left-weights[n]
				mu.Unlock()
				if !do(n, time.Until(end)*time.Duration(min(turns, weights[n]))/time.Duration(turns)) {
					mu.Lock()
					stopped = true
					mu.Unlock()
				}
			}
		}()
	}
	group.Wait()
}

// make makes the verdict of a cell in about a time.
func (v *Verdict) make(ctx context.Context, c Cell, o Options, share time.Duration) (err error) {
	began := time.Now()
	defer func() {
		v.Elapsed = time.Since(began)
		if errors.Is(err, os.ErrDeadlineExceeded) { // the others may be made
			v.Unknown, err = err.Error(), nil
		}
	}()
	switch v.Level {
	case Memory:
		return v.byMemory(c.Workload, o.States, share, o.InFakeTime)
	case Kill:
		return v.byKill(ctx, c.Workload, o, share)
	case Hostile:
		return v.byHostile(ctx, c.Workload, o, share)
	default:
		return v.byFault(ctx, c, o, share)
	}
}

// A Cell is the subject of one verdict.
type Cell struct {
	Workload *Workload
	Policy   holdfast.Policy
	command  *Command
}

// weight is a cell's share of its level's time. A log's own reader takes long for a state, and has most to do behind a crash.
func (c Cell) weight(level Level) int {
	const slow = 8
	if w := c.Workload; level == Memory && (w.Scan != nil || slices.ContainsFunc(w.Targets(c.Policy), func(t Target) bool { return t.Gather != nil })) {
		return slow
	}
	return 1
}

// Cells are a level's cells, the controls first.
func (o Options) Cells(level Level) (cells []Cell) {
	var judged []*Workload
	controls := 0
	for _, w := range o.Workloads {
		if w.shows(level) && (level != Memory || !w.Files) {
			judged = append(judged, w)
			controls += min(1, len(w.Control))
		}
	}
	count := o.generatedOf(level, len(judged)-controls)
	var cases []policies.Case
	if o.Policies == nil {
		cases = policies.Pairs()
	}
	for i, w := range judged {
		chosen := w.Policies
		switch {
		case w.Control != "":
		case o.Policies == nil:
			chosen = w.generated(cases, o.Seed+uint64(i), count)
			if level == Memory && o.InFakeTime != nil {
				chosen = append(chosen, w.Periods...)
			}
		default:
			chosen = slices.DeleteFunc(slices.Clone(o.Policies), func(p holdfast.Policy) bool { return w.Policies != nil && !slices.Contains(w.Policies, p) })
		}
		for _, p := range chosen {
			cells = append(cells, Cell{Workload: w, Policy: p})
		}
	}
	for _, c := range o.Commands {
		if level == Fault {
			cells = append(cells, Cell{Workload: &Workload{Name: c.Name}, command: c})
		}
	}
	slices.SortStableFunc(cells, func(a, b Cell) int {
		return cmp.Compare(len(b.Workload.Control), 0) - cmp.Compare(len(a.Workload.Control), 0)
	})
	return cells
}

// generatedOf returns how many generated policies each of some workloads meets in one run, about. Level memory shows most of what a policy
// changes. At level fault a cell takes longest: it starts five processes before it has met two faults.
func (o Options) generatedOf(level Level, workloads int) int {
	least, each := 4, time.Second
	switch level {
	case Kill, Hostile:
		least = 3
	case Fault:
		least, each = 2, longCell*time.Second
	}
	if o.All {
		return math.MaxInt32
	}
	return max(least, int(o.Time/time.Duration(max(1, len(o.Levels)*workloads))*atOnce/each))
}

// shows reports whether a level can show what a control must show.
func (w *Workload) shows(level Level) bool {
	if w.InMemory {
		return level == Memory
	}
	if w.Processes > 1 {
		return level == Kill
	}
	if level == Hostile || w.Attacked {
		return level == Hostile && (w.Attacked || w.Control == "" && w.Dirs == nil && !w.Reopens && w.replaces()) // one directory is exchanged
	}
	switch level {
	case Kill:
		return !w.Cut && !w.Failing
	case Fault:
		return (!w.IsLiar() || w.Failing) && !w.Cut
	default:
		return !w.Failing
	}
}

// replaces reports whether all that a workload does is to replace whole files, or to go on in new ones
// like them.
func (w *Workload) replaces() bool {
	return !slices.ContainsFunc(w.Targets(holdfast.Durable()), func(t Target) bool { return t.Gather == nil && (!t.Object || !t.Whole || t.Part) })
}

// Verdict returns a cell's verdict before anything was judged.
func (c Cell) Verdict(level Level, seed uint64) *Verdict {
	w := c.Workload
	v := &Verdict{Level: level, Workload: w.Name, Policy: c.Policy, Loss: w.lossOf(c.Policy), Seed: seed, Control: w.Control, Verdict: Held}
	v.Allowed = level.bound(v.Loss).String()
	return v
}

// bound is the loss that a level's crashes may cause.
func (l Level) bound(loss holdfast.Loss) holdfast.Bound {
	if l == Memory || l == PowerCut {
		return loss.Power
	}
	return loss.Process
}

// IsLiar reports whether the verdict is about a program or a disk that must be caught.
func (v *Verdict) IsLiar() bool { return v.Control != "" && v.Control != "correct" }

// judge says what the failure means, or that there is none. In doubted are the file systems of this
// level where a control did not show what it must.
func (v *Verdict) judge(doubted map[string]bool) {
	caught := v.Failure != nil
	// These lose what was synced, from any program: names on ext2, files that grow on f2fs, what
	// several sync at once on nilfs2. A control shows it in most runs, not in all. In another kernel they have a prefix.
	loses := slices.ContainsFunc([]string{"ext2", "ext4-nojournal", "f2fs", "nilfs2"}, func(kind string) bool { return strings.HasSuffix(v.FS, kind) })
	switch {
	case v.Verdict == NoTime:
	case v.Unknown != "":
		doubted[v.FS] = doubted[v.FS] || v.Control != ""
		v.Verdict = NotKnown
	case v.Control == "correct" && caught, v.IsLiar() && !caught:
		doubted[v.FS] = true
		v.Verdict = NotKnown
	case v.Control != "":
		v.Caught, v.Failure = v.Failure, nil
	case doubted[v.FS], caught && loses:
		v.Verdict = NotKnown
	case caught:
		v.Verdict = Broken
	}
	for _, f := range []*Failure{v.Failure, v.Caught} {
		if f != nil && v.Level != PowerCut { // there it was done before
			f.Shrink()
		}
	}
}

// A Recording says how a workload is run in memory. The first four are as in [Run].
type Recording struct {
	Records int
	Until   func() bool
	Pause   func(*rand.Rand)
	Wrap    func(holdfast.File) holdfast.File
	Delay   time.Duration // of a write and of a sync
	Fake    bool          // in fake time
	Slack   time.Duration // in fake time: the allowed excess of a bound by time
	Timed   bool          // bounds by time are judged by the real clock, plus the machine's observed delay
	Disk    func(*Recorder)
	Fails   bool // the disk fails on purpose: a workload that reports it and ends is no error

	there  Tree // a crash's files: it is a second run
	number int
	first  *Log // of the run before, which was killed before entry at: the log goes on
	at     int
	bubble func(func()) error // fake time that it is to be run in
}

// A hangError says that a run waited for ever.
type hangError struct{ err error }

func (e *hangError) Error() string { return e.err.Error() }

// recordPatience is how long a run in memory may take; the longest writes for two seconds.
const recordPatience = time.Minute

// record is recorded, in fake time if that is wanted. A run that does not end is left behind.
func (w *Workload) record(p holdfast.Policy, seed uint64, how Recording) (*Log, error) {
	if how.Fake && how.bubble == nil { // the caller's
		return w.recorded(p, seed, how)
	}
	type result struct {
		l   *Log
		err error
	}
	ended := make(chan result, 1)
	go func() {
		var x result
		run := func() { x.l, x.err = w.recorded(p, seed, how) }
		if !how.Fake {
			run()
		} else if hangs := how.bubble(run); hangs != nil {
			x = result{nil, &hangError{hangs}}
		}
		ended <- x
	}()
	select {
	case x := <-ended:
		return x.l, x.err
	case <-time.After(recordPatience):
		return nil, &hangError{fmt.Errorf("it had not ended after %v", recordPatience)}
	}
}

// recorded runs a workload in memory and returns its log. The workload's own error is the log's
// end, and no failure: it has told what it knows.
func (w *Workload) recorded(p holdfast.Policy, seed uint64, how Recording) (*Log, error) {
	l := &Log{Workload: w.Name, Policy: p.String(), Seed: seed, Sector: 512, Fake: how.Fake, Again: how.number > 0}
	paths, _ := byPath(w.Targets(p))
	l.Slack = how.Slack + 4*how.Delay*time.Duration(len(paths)) // they are written and synced one after the other
	var m memory
	var err error
	if how.first == nil {
		m, err = newMemory(l, how.Delay, w.Dirs, how.there, w.Mounted...)
	} else {
		l.Again = false // it is no log of its own
		m, err = nextMemory(l, how.Delay, how.first, how.at)
	}
	if err != nil {
		return nil, err
	}
	m.d.short = w.Control == "" && how.Wrap == nil // a plain program leaves that to os.File, which writes the rest
	if how.Disk != nil {
		how.Disk(m.d)
	} else if seed%2 == 1 { // then each file and directory is synced by itself; a second run has the other way
		m.d.Faults.SetDirty(-1)
	}
	r := &Run{System: m, Policy: p, Number: how.number, Fake: how.Fake, Seed: seed, Records: how.Records, Until: how.Until, Pause: how.Pause, Wrap: how.Wrap,
		Tell: func(n Note) { l.Add(Entry{Op: Noted, Note: &n}) }}
	if !how.Timed {
		return l, w.Run(r)
	}
	late := lateness()
	err = w.Run(r)
	l.Fake, l.Slack = true, l.Slack+late()
	return l, err
}

// lateness watches how late this machine wakes a goroutine up. The function it returns ends that, and returns the delay allowed to a
// correct program: much more than the observed one.
func lateness() func() time.Duration {
	const nap, least, times = time.Millisecond, 5 * time.Millisecond, 4
	stop, most := make(chan bool), make(chan time.Duration)
	go func() {
		worst, last := time.Duration(0), time.Now()
		for tick := time.NewTicker(nap); ; {
			select {
			case <-tick.C:
				now := time.Now()
				worst, last = max(worst, now.Sub(last)-nap), now
			case <-stop:
				tick.Stop()
				most <- worst
				return
			}
		}
	}()
	return func() time.Duration {
		close(stop)
		return least + times*<-most
	}
}

// Leaves judges what a run left that was not killed. Another may have been before it.
func (w *Workload) Leaves(s *Survivors, killed bool) *Violation {
	if s.Temporaries == 0 || !w.Cleans && (killed || !w.Tidy) {
		return nil
	}
	return &Violation{Rule: "temporaries", Words: fmt.Sprintf("%d temporary files are left after the last run has ended", s.Temporaries)}
}

// byMemory makes the verdict of level memory: a first run, states of it, and second runs on some.
func (v *Verdict) byMemory(w *Workload, states int, most time.Duration, bubble func(func()) error) error {
	end := time.Now().Add(most)
	how := Recording{Records: 300, bubble: bubble}
	period := max(v.Policy.FlushEvery, v.Policy.Sync.Every)
	switch {
	case period > 0 && bubble != nil: // it falls due some times
		const periods = 16
		var began time.Time
		how = Recording{Fake: true, Slack: period / 4, bubble: func(run func()) error {
			return bubble(func() {
				began = time.Now()
				run()
			})
		}}
		how.Until = func() bool { return time.Since(began) > periods*period }
		how.Pause = func(r *rand.Rand) { time.Sleep(time.Duration(r.Int64N(int64(period) / 2))) }
	case period > 0: // by the real clock
		finish := time.Now().Add(min(2*time.Second, max(50*time.Millisecond, period*5/4)))
		how = Recording{Timed: true, Until: func() bool { return time.Now().After(finish) }, Pause: func(*rand.Rand) { time.Sleep(200 * time.Microsecond) }}
	}
	err := v.InMemory(w, states, how, end)
	if hangs := (*hangError)(nil); errors.As(err, &hangs) {
		v.Failure, err = &Failure{Violation: &Violation{Rule: "hang", Words: hangs.Error()}, Words: hangs.Error()}, nil
	} else if run := (*RunError)(nil); errors.As(err, &run) {
		words := fmt.Sprintf("it failed, and no call of the disk had: %v", run)
		v.Failure, err = &Failure{Violation: &Violation{Rule: "again", Words: words}, Words: words}, nil
	}
	if how.Fake {
		return err
	}
	// A machine may be late once. Who breaks a bound by time breaks it again.
	for again := uint64(1); again < 4 && err == nil && v.Failure != nil && v.Failure.Violation.Rule == "age"; again++ {
		finish := time.Now().Add(period * 5 / 2)
		how.Until = func() bool { return time.Now().After(finish) }
		l, runErr := w.record(v.Policy, v.Seed+again, how)
		if runErr != nil {
			return nil
		}
		x := &explorer{targets: w.Targets(v.Policy), loss: v.Loss}
		if _, failure := x.explore(l, 2000, v.Seed+again); failure == nil || failure.Violation.Rule != "age" {
			v.Failure = nil
		}
	}
	return err
}

// InMemory is Explore of runs in memory, and of runs in which a call of the disk fails.
func (v *Verdict) InMemory(w *Workload, states int, how Recording, end time.Time) error {
	second := Recording{Records: 12, Fake: how.Fake, Slack: how.Slack, Wrap: how.Wrap, Disk: how.Disk, number: 1, bubble: how.bubble}
	run := func(how Recording, seed uint64) (*Log, error) {
		l, err := w.record(v.Policy, seed, how)
		if hangs := (*hangError)(nil); err != nil && (l != nil || errors.As(err, &hangs)) { // else it was not even begun
			err = &RunError{err}
		}
		return l, err
	}
	var first *Log
	e := Exploration{States: states, End: end, Read: w.Scan, fails: how.Fails, fresh: !how.Timed && !end.IsZero()}
	e.Record = func(number int, seed uint64, there Tree) (l *Log, err error) {
		if number == 0 {
			first, err = run(how, seed)
			return first, err
		}
		again := second
		again.there = there
		return run(again, seed)
	}
	if len(w.Mounted) == 0 && !w.Outlived {
		e.goesOn = func(first *Log, at int, seed uint64) (*Log, error) {
			again := second
			again.first, again.at = first, at
			return run(again, seed)
		}
	}
	failing := !how.Fails && (!how.Fake || how.bubble != nil) && w.Control == ""
	if failing && !end.IsZero() { // the rest is for runs in which a call fails
		e.End = end.Add(-time.Until(end) / 3)
	}
	if err := v.Explore(w, e); err != nil || !failing {
		return err
	}
	if e.goesOn == nil {
		first = nil
	}
	return v.failingRuns(w, states, how, first, end)
}

// failingRuns explores runs in each of which one call of the disk fails, once, or the disk is full for a while. Every second one goes
// on behind a first, if there is one, whose process was killed. Acknowledged records must be there all
// the same. Other losses are not judged: bytes that a full disk refuses wait in memory. Behind a failed sync only power is cut, as Flush promises nothing
// about bytes that the system has dropped.
func (v *Verdict) failingRuns(w *Workload, states int, how Recording, first *Log, end time.Time) error {
	// A write may be a sync too. Most logs are synced by one of the first two, so that they come first where there is little time.
	ops := []fault.DiskOp{fault.DiskDatasync, fault.DiskWrite, fault.DiskSync, fault.DiskSyncAll, fault.DiskRename}
	switch {
	case w.Scan != nil: // it syncs no file system, and lives by the syncs of its bytes
		ops = []fault.DiskOp{fault.DiskDatasync, fault.DiskWrite, fault.DiskSync, fault.DiskRename, fault.DiskDatasync}
	case slices.ContainsFunc(w.Targets(v.Policy), func(t Target) bool { return t.Gather != nil }):
		// A log of several files lives by its names: a failed sync of them comes first, and twice, behind a killed first run too.
		ops = []fault.DiskOp{fault.DiskSync, fault.DiskDatasync, fault.DiskWrite, fault.DiskSync, fault.DiskRename}
	}
	if w.Outlived { // no process knows which names another one's failed sync of a directory has lost
		ops = slices.DeleteFunc(ops, func(op fault.DiskOp) bool { return op == fault.DiskSync })
	}
	r := rand.New(rand.NewPCG(v.Seed, 6))
	loss := v.Loss
	for _, b := range []*holdfast.Bound{&loss.Process, &loss.Power} {
		if !b.None() {
			b.Bytes, b.Time = holdfast.Unlimited, holdfast.Unlimited
		}
	}
	late := func() bool { return !end.IsZero() && time.Now().After(end) }
	most := 8 * len(ops)
	if !end.IsZero() {
		most *= 8 // while there is time
	}
	uncalled := map[fault.DiskOp]int{}
	for n := 0; n < most && v.Failure == nil && (n == 0 || !late()); n++ {
		run, op, round := how, ops[n%len(ops)], n/len(ops)
		run.Records, run.Until, run.Pause, run.Timed = 240, nil, nil, false
		if w.Scan != nil {
			run.Records = 120
		}
		run.Fake = how.bubble != nil // the pauses before tries cost nothing
		failing := fault.DiskFault{Op: op, First: 1 + r.IntN(1<<(1+n%8)), Times: 1, Err: syscall.EIO}
		if (round+n%len(ops))%2 == 1 && first != nil { // each of them, in every second round
			run.Records, run.number, run.first, run.at = 60, 1, first, first.busy(r)
			if failing.First = 1; r.IntN(2) == 0 { // the first calls of a second life mend what the first has left
				failing.First += r.IntN(8)
			}
		}
		full := op == fault.DiskWrite && round%2 == 1
		if full {
			failing.Times, failing.Err = 0, syscall.ENOSPC
		}
		x := &explorer{targets: w.Targets(v.Policy), loss: loss, read: w.Scan, late: late}
		if op != fault.DiskWrite && op != fault.DiskRename {
			x.only = Power
		}
		var hit sync.Once
		var called atomic.Bool
		run.Disk = func(d *Recorder) {
			d.short = false // a part before the failure is returned, and others may write behind it
			d.Faults.Add(failing)
			mended := d.mending(failing)
			d.Faults.Watch(func(c fault.DiskCall) {
				if c.Op == op {
					called.Store(true)
				}
				if errors.Is(c.Err, failing.Err) {
					hit.Do(func() { x.from = d.log.Len() })
					if full { // for a while: then what memory holds must get there by itself
						mended()
					}
				}
			})
		}
		l, err := w.record(v.Policy, v.Seed+uint64(n), run)
		if l == nil {
			return err
		}
		if !called.Load() {
			if uncalled[op]++; uncalled[op] == 2 && len(ops) > 1 { // the workload has other calls
				ops = slices.DeleteFunc(slices.Clone(ops), func(other fault.DiskOp) bool { return other == op })
			}
		}
		if x.from == 0 { // no call was that far
			continue
		}
		var t Tally
		explored := max(1, min(states/8, 500, few(x.targets)))
		if x.slow() {
			explored = min(explored, 60)
		}
		t, v.Failure = x.explore(l, explored, v.Seed)
		v.Tally.Add(t)
	}
	return nil
}

// An Exploration says how a verdict is made of runs that fill logs of files.
type Exploration struct {
	States int
	// Record runs a workload or a program on the present files, and returns its log. Number 0 is the
	// first run, on nothing. A run that fails by itself is a RunError.
	Record func(number int, seed uint64, there Tree) (*Log, error)
	// goesOn is Record of a second run in the log of the first, whose process was killed before an entry. Without it, what a kill
	// leaves is on the disk when the second run begins.
	goesOn func(first *Log, at int, seed uint64) (*Log, error)
	End    time.Time // by when it is to be over; zero: any time
	// Read says what is in a state. It is nil where the paths of the targets do.
	Read  func(Tree) (*Survivors, error)
	fails bool // the disk fails on purpose: a run that reports it and ends is no error
	fresh bool // while there is time it records further first runs: another schedule shows more than further states of one
}

// A RunError says that a run has failed by itself. One that follows a crash must not.
type RunError struct{ Err error }

func (e *RunError) Error() string { return e.Err.Error() }

// Unwrap returns the run's own error.
func (e *RunError) Unwrap() error { return e.Err }

// A Tree is files by their paths, and the directories.
type Tree struct {
	Files map[string][]byte
	Links map[string]string // symbolic links
	Dirs  []string          // each behind the one that it is in
}

// Write makes the files of a tree in a directory.
func (t Tree) Write(dir string) error {
	for _, name := range t.Dirs {
		if err := os.Mkdir(filepath.Join(dir, filepath.FromSlash(name)), 0o777); err != nil {
			return err
		}
	}
	for name, data := range t.Files {
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), data, 0o666); err != nil {
			return err
		}
	}
	for name, target := range t.Links {
		if err := os.Symlink(target, filepath.Join(dir, filepath.FromSlash(name))); err != nil {
			return err
		}
	}
	return nil
}

// linkAt is the target of a symbolic link below a directory. It is relative where it leads into that directory, so that it does so in
// a copy of it too.
func linkAt(dir, name string) (string, error) {
	target, err := os.Readlink(name)
	if err != nil || !filepath.IsAbs(target) {
		return target, err
	}
	if inside, err := filepath.Rel(dir, target); err != nil || !filepath.IsLocal(inside) {
		return target, nil
	}
	return filepath.Rel(filepath.Dir(name), target)
}

// few is a number of states that are judged however little time there is. Each takes longer the more targets there are.
func few(targets []Target) int { return max(50, min(1000, 1<<18/len(targets))) }

// Explore records a run, explores its log, records runs on some of the states, and explores these logs.
func (v *Verdict) Explore(w *Workload, e Exploration) error {
	part := time.Duration(3) // of the time is for the second runs
	if e.goesOn != nil {
		part = 2
	}
	end := e.End.Add(-time.Until(e.End) / part)
	late := func() bool { return !e.End.IsZero() && !w.IsLiar() && time.Now().After(end) } // a liar is caught however little time there is
	x := &explorer{targets: w.Targets(v.Policy), loss: v.Loss, read: e.Read, late: late}
	first, err := e.Record(0, v.Seed, Tree{})
	if err != nil && !e.fails {
		return err
	}
	secondRuns := 6        // on this number of crash states
	some := few(x.targets) // of the states, doubled while there is time
	again := min(min(e.States, 40_000)/4/secondRuns, 2*some)
	if e.goesOn != nil && !e.End.IsZero() {
		secondRuns *= 8 // while there is time
		if x.slow() {
			again = min(again, 200)
		}
	}
	if e.fresh && x.slow() {
		some = 100 // or a short time is over in the first part of the first log
	}
	for pass := uint64(0); v.Tally.States < int64(e.States)*3/4 && v.Failure == nil && (pass == 0 || !late()); pass++ {
		before := v.Tally.States
		if pass == 0 || !e.fresh {
			some *= 2
		} else if first, err = e.Record(0, v.Seed+pass, Tree{}); err != nil && !e.fails {
			return err
		}
		some = min(some, e.States*3/4-int(before))
		t, failure := x.explore(first, some, v.Seed+pass)
		if pass > 0 && !e.fresh {
			t.Acknowledged = 0
		}
		v.Tally.Add(t)
		if v.Failure = failure; v.Tally.States-before < int64(some)/50 {
			break
		}
	}
	r := rand.New(rand.NewPCG(v.Seed, 2))
	end = e.End
	torn := slices.Clone(x.torn)
	for n := range secondRuns {
		if v.Failure != nil || n > 0 && late() {
			break
		}
		s, found := State{Position: first.Start + r.IntN(len(first.Entries)-first.Start+1)}, NewSurvivors(len(x.targets))
		kills := n%2 == 1 && e.goesOn != nil
		switch {
		case kills:
			s.Position = first.busy(r)
		case len(torn) > 0: // a next run may stumble over it
			s = torn[r.IntN(len(torn))]
		}
		_, d := x.begin(first)
		for d.position < s.Position {
			d.advance()
		}
		if kills {
			s.Crash, s.Keep = Process, len(d.pending)
		}
		if s.Crash == "" {
			var seen []State
			d.states(r, 8, &seen, func(*State) {})
			s = seen[r.IntN(len(seen))]
		}
		var l *Log
		if s.Crash == Process && e.goesOn != nil {
			l, err = e.goesOn(first, s.Position, v.Seed+1+uint64(n))
		} else {
			l, err = e.Record(1, v.Seed+1+uint64(n), d.tree(&s))
		}
		if run := (*RunError)(nil); err != nil && !errors.As(err, &run) {
			return err
		}
		if err != nil && !e.fails {
			v.Failure = x.failure(first, s, &Violation{Rule: "again", Words: fmt.Sprintf("the second run, on what a crash left, failed: %v", err)})
			break
		}
		t, failure := x.explore(l, again, v.Seed)
		v.Tally.Add(t)
		v.Failure = failure
		last := newDisk(l, x.targets)
		for last.position < len(l.Entries) {
			last.advance()
		}
		end := State{Crash: Process, Keep: len(last.pending)}
		if last.survivors(&end, found); x.read != nil {
			found, _ = x.read(last.tree(&end)) // an unreadable file was a violation before
		}
		v.Tally.TemporaryEnd = max(v.Tally.TemporaryEnd, found.Temporaries)
		if left := w.Leaves(found, true); left != nil && v.Failure == nil {
			v.Failure = x.failure(first, s, left)
		}
	}
	return nil
}

// busy returns a position of a log: of some by chance the one at which most is not on the disk. Half of the time these are behind
// changes of names, and half of those behind files that have moved: then a path may have none.
func (l *Log) busy(r *rand.Rand) (position int) {
	var some, named []int
	if r.IntN(2) == 0 {
		least := 1 + r.IntN(2)
		for at := l.Start; at <= len(l.Entries); at++ {
			if e := l.change(at); e != nil && len(e.Edits) >= least {
				named = append(named, at)
			}
		}
	}
	for range 4 {
		if len(named) > 0 {
			some = append(some, named[r.IntN(len(named))])
		} else {
			some = append(some, l.Start+r.IntN(len(l.Entries)-l.Start+1))
		}
	}
	slices.Sort(some)
	most, d := -1, newDisk(l, nil)
	for _, at := range some {
		for d.position < at {
			d.advance()
		}
		if len(d.pending) > most {
			position, most = at, len(d.pending)
		}
	}
	return position
}

// tree returns what is there in a state.
func (d *disk) tree(s *State) Tree {
	t, _ := d.numbered(s)
	return t
}

// numbered returns the numbers of the files and directories of a tree too.
func (d *disk) numbered(s *State) (t Tree, numbers map[string]uint64) {
	d.nameState(s)
	t.Files, t.Links, numbers = map[string][]byte{}, map[string]string{}, map[string]uint64{}
	var walk func(dir uint64, prefix string)
	walk = func(dir uint64, prefix string) {
		for x, n := range d.scratch {
			target, isLink := d.log.Links[n]
			if x.Dir != dir {
				continue
			}
			numbers[prefix+x.Name] = n
			switch {
			case isLink:
				t.Links[prefix+x.Name] = target
			case d.files[n] != nil || n&DirBit == 0:
				t.Files[prefix+x.Name] = slices.Clone(d.content(d.file(n), s))
			default:
				t.Dirs = append(t.Dirs, prefix+x.Name)
				walk(n, prefix+x.Name+"/")
			}
		}
	}
	walk(Root, "")
	slices.Sort(t.Dirs)
	return t, numbers
}
