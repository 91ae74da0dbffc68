package powercut

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash"
	"github.com/holdfast-go/holdfast/internal/volume"
)

// workers is how many file systems are worked on at a time: a mount waits more than it computes.
const workers = 16

// mountsFD is the descriptor, in the room, of the mounts that the program has.
const mountsFD = 5

// A room is the process that makes and mounts everything.
type room struct {
	child     func(ctx context.Context, args ...string) *exec.Cmd
	workloads []*crash.Workload // that an order may name
	top       string            // a tmpfs that only this process and its children see
	order     order
	end       time.Time
	mu        sync.Mutex // of out
	out       *json.Encoder
}

// Process is one of the processes that it starts, by the arguments, or that package crash starts. An
// order may name any of the options' workloads.
func Process(args []string, o crash.Options) error {
	if len(args) == 0 || !slices.Contains([]string{diskArgument, treeArgument, roomArgument, awayArgument}, args[0]) {
		return crash.Child(args, o.Workloads)
	}
	switch {
	case args[0] == diskArgument && len(args) == 3:
		return serveDisk(args[1], args[2])
	case args[0] == treeArgument && len(args) == 2:
		return serveTreeHere(args[1])
	case args[0] == awayArgument && len(args) == 1:
		return obey(o, os.Stdin, os.Stdout)
	}
	if args[0] != roomArgument || len(args) != 1 || os.Getpid() != 1 {
		return errors.New("a room has no arguments, and is the first process of its namespace")
	}
	// The first thread keeps the room's mounts, by which the process is known: see outside.
	runtime.LockOSThread()
	r := &room{child: o.Child, workloads: o.Workloads, top: topOfRoom(), out: json.NewEncoder(os.NewFile(4, "answers"))}
	text, err := bufio.NewReader(os.NewFile(3, "orders")).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(text, &r.order)
	}
	if err != nil {
		return err
	}
	if r.order.Model {
		r.top = modelTop
	}
	patience = max(patience, r.order.Patience)
	for _, fd := range []int{3, 4, mountsFD} {
		unix.CloseOnExec(fd)
	}
	go func() { // ends with the process
		for range time.Tick(time.Second) {
			_ = r.say(&answer{})
		}
	}()
	if err := r.run(); err != nil {
		return r.say(&answer{Err: err.Error()})
	}
	return nil
}

// topOfRoom is a directory that exists for mounts and in which no program looks for its files, or the
// directory of temporary files.
func topOfRoom() string {
	for _, dir := range []string{"/sys/kernel/debug", "/sys/kernel/tracing", "/sys/kernel/security"} {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir
		}
	}
	return os.TempDir()
}

func (r *room) say(a *answer) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.out.Encode(a)
}

// private makes the mounts this process's alone, and an empty directory to work in. The kernel
// ends them with its last process.
func (r *room) private() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("mounts of its own: %w", err)
	}
	if err := unix.Mount("holdfast-power", r.top, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=700"); err != nil {
		return fmt.Errorf("mount -t tmpfs: %w", err)
	}
	return nil
}

func (r *room) run() error {
	if err := r.private(); err != nil {
		return err
	}
	if f := r.order.Replay; f != nil {
		v, err := r.replay(f)
		return errors.Join(err, r.say(&answer{Violation: v}))
	}
	if r.order.Model && r.order.Kinds == nil { // a tree that nobody uses
		c := &cell{dir: filepath.Join(r.top, "try")}
		if err := os.Mkdir(c.dir, 0o700); err != nil {
			return err
		}
		d, err := r.serveTree(context.Background(), c, countsNotes)
		if err != nil {
			return err
		}
		return d.detach()
	}
	cells, err := r.cells()
	if err != nil {
		return err
	}
	r.end = time.Now().Add(time.Duration(r.order.Seconds * float64(time.Second)))
	said := make([]error, len(cells))
	crash.Share(slices.Repeat([]int{1}, len(cells)), workers, r.end, func(n int, long time.Duration) bool {
		said[n] = r.say(r.answer(cells[n], time.Now().Add(long)))
		return said[n] == nil
	})
	return errors.Join(said...)
}

// answer does what is to be done with a cell. Its failure is this cell's error, or the error of the
// file system to be shown.
func (r *room) answer(c *cell, end time.Time) *answer {
	type result struct {
		answer *answer
		err    error
	}
	ended := make(chan result, 1) // nobody may wait for it any more
	c.step("start")
	go func() {
		a, err := &answer{}, error(nil)
		switch r.order.Show {
		case showRefusals:
			a.Refusals, err = r.refusals(c)
		case showSyncs:
			a.Syncs, err = r.syncs(c)
		default:
			a.Verdict, err = r.judge(c, end)
		}
		ended <- result{a, err}
	}()
	late := ""
	for tick := time.Tick(time.Second / 4); ; {
		select {
		case x := <-ended:
			switch {
			case x.err != nil && late != "":
				return r.cannot(c, fmt.Errorf("%s took more than %v, and its disk was aborted: %w", late, r.order.Patience, x.err))
			case x.err != nil:
				return r.cannot(c, x.err)
			}
			return x.answer
		case <-tick:
		}
		what := c.doing.Load()
		if time.Since(what.since) < r.order.Patience {
			continue
		}
		if late != "" {
			// A process that not even this frees waits for something else in the kernel.
			return r.cannot(c, fmt.Errorf("%s has not ended for %v, also without its disk", what.name, 2*r.order.Patience))
		}
		late = what.name
		c.step(what.name)
		_ = abortOwner(c.owner) // the next call shows whether it helped
		if d := c.disk.Load(); d != nil {
			d.kill()
		}
	}
}

func (r *room) cannot(c *cell, err error) *answer {
	if r.order.Show != "" {
		return &answer{Err: fmt.Sprintf("%s: %v", c.kind.Name, err)}
	}
	v := c.verdict()
	if broken := (*crash.Violation)(nil); errors.As(err, &broken) && v.Control == "" { // see until
		v.Failure = &crash.Failure{Violation: broken, State: crash.State{Crash: crash.Process}, Words: broken.Words}
	} else {
		v.Unknown = err.Error()
	}
	return &answer{Verdict: v}
}

// A cell is the subject of one verdict.
type cell struct {
	crash.Cell
	kind  volume.Kind
	seed  uint64
	dir   string
	owner string // of its disk's mount
	liar  string // of a control: what the disk does
	// Refuses is the number of the write of a record that the disk refuses, from 1 on; 0 is none.
	refuses int
	doing   atomic.Pointer[step]
	disk    atomic.Pointer[disk] // the last
}

// A step of a cell may not take longer than patience.
type step struct {
	name  string
	since time.Time
}

func (c *cell) step(name string) { c.doing.Store(&step{name, time.Now()}) }

// in returns the path of a file of the cell.
func (c *cell) in(name string) string { return filepath.Join(c.dir, name) }

// verdict is the cell's verdict before anything was judged.
func (c *cell) verdict() *crash.Verdict {
	v := c.Verdict(crash.PowerCut, c.seed)
	v.FS = c.kind.Name
	if c.liar != "" {
		v.Workload, v.Control = c.liar, liarControl
	}
	return v
}

// The disks that must be caught, below a correct program.
const (
	noBarrier   = "disk-no-barrier"
	noFlush     = "disk-ignores-flushes"
	keepsFlush  = 3 // one flush in this number is not ignored
	liarControl = "lost"
)

// journalsData reports whether a commit of the journal also brings what was written before it to the disk. There
// the sync of the directory syncs the file. An ext4 with data=ordered does not, since it allocates late.
// f2fs keeps the bytes of such small files in their inodes, which a checkpoint writes. On nilfs2
// each sync writes all that is dirty.
func journalsData(k volume.Kind) bool {
	return k.Type == "ext3" || k.Name == "ext4-journal" || k.Type == "f2fs" || k.Type == "nilfs2" || k.Type == "reiserfs"
}

// cells are the order's cells, the controls of all file systems first.
func (r *room) cells() (cells []*cell, err error) {
	var o crash.Options
	for _, text := range r.order.Policies {
		p, err := holdfast.ParsePolicy(text)
		if err != nil {
			return nil, err
		}
		o.Policies = append(o.Policies, p)
	}
	for _, name := range r.order.Workloads {
		w := crash.Find(r.workloads, name)
		if w == nil {
			return nil, fmt.Errorf("there is no workload %q", name)
		}
		o.Workloads = append(o.Workloads, w)
	}
	for _, name := range r.order.Kinds {
		k, err := kindOf(name)
		if err != nil {
			return nil, err
		}
		if r.order.Show != "" {
			cells = append(cells, &cell{kind: k})
			continue
		}
		if p := r.order.Program; p != nil {
			cells = append(cells, &cell{Cell: crash.Cell{Workload: p.Workload(), Policy: holdfast.EachDurable()}, kind: k})
		}
		for _, w := range o.Workloads {
			if w.Failing && refusesData(k) {
				cells = append(cells, &cell{Cell: crash.Cell{Workload: w, Policy: w.Policies[0]}, kind: k})
			}
		}
		for _, c := range o.Cells(crash.PowerCut) {
			if c.Workload.Journal && journalsData(k) {
				continue
			}
			cells = append(cells, &cell{Cell: c, kind: k})
			if !c.Workload.Below {
				continue
			}
			liars := []string{noFlush}
			if k.Type == "ext4" || k.Type == "ext3" || k.Type == "btrfs" {
				liars = append(liars, noBarrier)
			}
			for _, liar := range liars {
				cells = append(cells, &cell{Cell: c, kind: k, liar: liar})
			}
		}
	}
	if r.order.Show == "" {
		slices.SortStableFunc(cells, func(a, b *cell) int { return min(1, len(b.Workload.Control)) - min(1, len(a.Workload.Control)) })
	}
	for i, c := range cells {
		c.seed = r.order.Seed + uint64(i)
		c.dir = filepath.Join(r.top, fmt.Sprint("cell", c.seed))
		c.owner = fmt.Sprintf("%s:%d", r.order.Owner, i)
		if r.order.Show == "" && r.order.programOf(c) == nil {
			c.refuses = c.refused()
		}
	}
	return cells, nil
}

// secondEvery is of how many states one is run on again.
const secondEvery = 4

// leastStates are judged even when the time is over, and of a liar all, in so many runs until it is caught: one on a busy machine
// may be too short to show it.
const (
	leastStates = 4
	liarRuns    = 5
)

// lasts is how long the first run of a cell writes, if its states are to be judged until end.
func (c *cell) lasts(end time.Time) time.Duration {
	long := max(60*time.Millisecond, min(time.Until(end)/4, 400*time.Millisecond))
	if c.Policy.Sync.Every > 0 {
		long = max(long, min(2*time.Second, c.Policy.Sync.Every*5/4)) // its period must fall due
	}
	return long
}

// judge makes the verdict of a cell.
func (r *room) judge(c *cell, end time.Time) (*crash.Verdict, error) {
	if c.kind.Name == Model {
		return r.judgeModel(c, end)
	}
	began, runs := time.Now(), 1
	v := c.verdict()
	if v.IsLiar() {
		runs = liarRuns
	}
	for ; runs > 0 && v.Failure == nil; runs-- {
		if err := r.judgeRun(c, v, end); err != nil {
			return nil, err
		}
		c.seed += 1 << 32 // below it are other cells'
	}
	v.Elapsed = time.Since(began)
	return v, nil
}

// judgeRun adds a run of a cell, and its states, to the verdict.
func (r *room) judgeRun(c *cell, v *crash.Verdict, end time.Time) error {
	l, err := r.record(c, c.lasts(end))
	if run := (*crash.RunError)(nil); errors.As(err, &run) { // its moment does not come again: there is nothing to keep
		violation := &crash.Violation{Rule: "again", Words: run.Error()}
		v.Failure = &crash.Failure{Violation: violation, State: crash.State{Crash: crash.Process}, Words: violation.Words, Kill: 1}
		v.Tally.Violations = 1
		return nil
	}
	if err != nil {
		return err
	}
	if err := os.Mkdir(c.dir, 0o700); err != nil {
		return err
	}
	defer os.RemoveAll(c.dir)
	m, err := mounterOf(l, r.workloads, c.dir, c.step)
	if err != nil {
		return err
	}
	for _, e := range l.Entries {
		if e.Op == crash.Lose {
			v.Faults++
		}
	}
	random := rand.New(rand.NewPCG(c.seed, 5))
	acknowledged := int64(0)
	c.step("states")
	// Each round goes through the whole log, so that the end of the time takes no part of it away.
	for round, done := leastStates, 0; done < r.order.States; round *= 2 {
		round = min(round, r.order.States-done)
		cursor := m.cursor(l)
		for _, at := range positions(l, round, random) {
			if v.Failure != nil || !v.IsLiar() && done >= leastStates && time.Now().After(end) {
				done = r.order.States
				break
			}
			done++
			cursor.to(at)
			s := cursor.someState(random)
			violation, err := m.judge(cursor, &s, random.IntN(secondEvery) == 0, &v.Tally)
			if err != nil {
				return err
			}
			if violation != nil {
				v.Failure = &crash.Failure{Violation: violation, State: s, Log: l, Words: violation.Words}
			}
		}
		t := cursor.checker.Tally
		acknowledged, t.Acknowledged = max(acknowledged, t.Acknowledged), 0 // each round is of the same run
		v.Tally.Add(t)
	}
	v.Tally.Acknowledged += acknowledged
	switch f := v.Failure; {
	case f == nil:
	case v.IsLiar():
		f.Log = nil // a liar's files are not kept
	default:
		if err := m.shrink(f); err != nil {
			return err
		}
	}
	return nil
}

// someState chooses one of a few power cuts at the cursor.
func (c *cursor) someState(random *rand.Rand) crash.State {
	var seen, states []crash.State
	c.log.States(c.position, c.pending, random, 8, &seen, func(s *crash.State) {
		if s.Crash == crash.Power {
			states = append(states, *s)
		}
	})
	return states[random.IntN(len(states))]
}

// positions chooses where the power is cut, in order: half right before a flush, half anywhere, or half of these where a
// process was started again, or the disk has refused a write: what is found and promised there waits for the next flush, or not.
// Most of these are behind a promise.
// Flushes that cover more writes are chosen more often: one write alone is there or not.
func positions(l *crash.Log, count int, random *rand.Rand) (all []int) {
	const near = 16 // entries
	var flushes, starts []int
	writes := 0
	for i := l.Start; i < len(l.Entries); i++ {
		switch l.Entries[i].Op {
		case crash.Write:
			writes++
		case crash.Flush:
			flushes = append(flushes, slices.Repeat([]int{i}, max(0, writes-1))...)
			writes = 0
		case crash.Killed, crash.Lose:
			for at := i + 1; at <= min(i+near, len(l.Entries)); at++ {
				starts = append(starts, at)
				if l.Entries[at-1].Op == crash.Noted {
					starts = append(starts, at, at, at)
				}
			}
		}
	}
	for n := range count {
		if n%2 == 0 && len(flushes) > 0 {
			all = append(all, flushes[random.IntN(len(flushes))])
		} else if n%4 == 1 && len(starts) > 0 {
			all = append(all, starts[random.IntN(len(starts))])
		} else {
			all = append(all, l.Start+random.IntN(len(l.Entries)-l.Start+1))
		}
	}
	slices.Sort(all)
	return all
}

// replay judges the state of a failure that was kept, and runs a command where it is mounted.
func (r *room) replay(f *crash.Failure) (*crash.Violation, error) {
	m, err := mounterOf(f.Log, r.workloads, r.top, func(string) {})
	if err != nil {
		return nil, err
	}
	if r.order.Look != "" {
		c := m.cursor(f.Log)
		c.to(f.State.Position)
		v, err := m.mounted(c, &f.State, func(dir string) (*crash.Violation, error) {
			cmd := exec.CommandContext(context.Background(), "sh", "-c", r.order.Look)
			cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = dir, os.Stdin, os.Stdout, os.Stderr
			if _, err := os.Stat(dir); err != nil {
				cmd.Dir = filepath.Dir(dir)
			}
			if err := cmd.Run(); err != nil {
				return nil, fmt.Errorf("%s: %w", r.order.Look, err)
			}
			return nil, nil
		})
		if v != nil || err != nil {
			return v, err
		}
	}
	return m.one(f.Log, f.State)
}
