package powercut

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash"
	"github.com/holdfast-go/holdfast/internal/volume"
)

// A cursor is the disk of a log before an entry. It only goes forward.
type cursor struct {
	log      *crash.Log
	checker  *crash.Checker
	position int
	kills    int // of processes, before the position
	pending  []int
	pages    map[int64][]byte // the disk's bytes, where they are not zero
	run      []byte
}

func (m *mounter) cursor(l *crash.Log) *cursor {
	c := &cursor{log: l, pages: map[int64][]byte{}}
	if m.program != nil {
		c.checker = m.program.Checker()
	} else {
		c.checker = crash.NewChecker(m.targets, m.loss)
	}
	return c
}

// to applies the entries below a position.
func (c *cursor) to(position int) {
	for ; c.position < position; c.position++ {
		switch e := &c.log.Entries[c.position]; e.Op {
		case crash.Noted:
			c.checker.Note(*e.Note)
		case crash.Killed:
			if c.kills++; e.Left != nil {
				c.checker.Restart(e.Left)
			}
		case crash.Write:
			c.pending = append(c.pending, c.position)
		case crash.Flush:
			done := 0
			for ; done < len(c.pending) && c.pending[done] < e.UpTo; done++ {
				x := &c.log.Entries[c.pending[done]]
				for data, at := x.Data, x.Offset; len(data) > 0; {
					page := c.pages[at/pageSize]
					if page == nil {
						page = make([]byte, pageSize)
						c.pages[at/pageSize] = page
					}
					n := copy(page[at%pageSize:], data)
					data, at = data[n:], at+int64(n)
				}
			}
			c.pending = c.pending[done:]
		}
	}
}

// image makes the image of a state at the cursor.
func (c *cursor) image(s *crash.State, path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	err = f.Truncate(c.log.Size)
	all := slices.Sorted(maps.Keys(c.pages))
	for len(all) > 0 && err == nil { // neighbours by one call
		n := 1
		run := append(c.run[:0], c.pages[all[0]]...)
		for ; n < len(all) && n < 256 && all[n] == all[0]+int64(n); n++ {
			run = append(run, c.pages[all[n]]...)
		}
		_, err = f.WriteAt(run, all[0]*pageSize)
		c.run, all = run, all[n:]
	}
	c.log.Pieces(c.pending, s, func(at int64, data []byte) {
		if err == nil {
			_, err = f.WriteAt(data, at)
		}
	})
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// A mounter mounts states and judges them.
type mounter struct {
	dir      string // of its own
	kind     volume.Kind
	workload *crash.Workload
	policy   holdfast.Policy
	loss     holdfast.Loss
	targets  []crash.Target
	seed     uint64
	number   int
	program  *crash.Program    // in place of the workload
	step     func(what string) // says what comes next, and that it goes on
}

// mounterOf returns one for a log that was kept, of one of these workloads or of a program.
func mounterOf(l *crash.Log, workloads []*crash.Workload, dir string, step func(string)) (*mounter, error) {
	k, err := kindOf(l.FS)
	p, policyErr := holdfast.ParsePolicy(l.Policy)
	w := crash.Find(workloads, l.Workload)
	if l.Program != nil {
		w = l.Program.Workload()
	}
	if err = errors.Join(err, policyErr); err != nil || w == nil {
		return nil, errors.Join(err, fmt.Errorf("workload %q", l.Workload))
	}
	loss := crash.Cell{Workload: w, Policy: p}.Verdict(crash.PowerCut, 0).Loss
	refused := slices.ContainsFunc(l.Entries, func(e crash.Entry) bool { return e.Op == crash.Lose })
	if refused && !loss.Power.None() { // no policy bounds what waits for a sync that has failed
		loss.Power.Bytes, loss.Power.Time = holdfast.Unlimited, holdfast.Unlimited
	}
	return &mounter{dir: dir, kind: k, workload: w, policy: p, targets: w.Targets(p), seed: l.Seed, loss: loss, program: l.Program, step: step}, nil
}

// judge mounts a state and judges it. The next run's files are judged too, if again says so. The
// tally gets what the next run adds.
func (m *mounter) judge(c *cursor, s *crash.State, again bool, t *crash.Tally) (v *crash.Violation, err error) {
	now := int64(0)
	if len(c.log.Entries) > 0 {
		now = c.log.Entries[min(c.position, len(c.log.Entries)-1)].At
	}
	v, err = m.mounted(c, s, func(dir string) (*crash.Violation, error) {
		if m.program != nil {
			return m.judgeProgram(c, dir, now, again, t)
		}
		m.step("survey of a state")
		found, err := m.workload.Look(dir, m.targets)
		if err != nil {
			return unreadable(err), nil
		}
		v := c.checker.Judge(crash.Power, found, now, -1)
		if v != nil || !again {
			return v, nil
		}
		m.step("second run on a state")
		return m.again(dir, found, 1+c.kills, t)
	})
	if v != nil && (v.Rule == "unmountable" || v.Rule == "unreadable") {
		c.checker.Tally.States++
		c.checker.Tally.Violations++
		if v.Rule == "unmountable" {
			t.Unmountable++
		}
	}
	return v, err
}

// judgeProgram lets the program's reader say what is in a state. Then, if again says so, the program
// is run there and killed: it must go on with its files.
func (m *mounter) judgeProgram(c *cursor, dir string, now int64, again bool, t *crash.Tally) (*crash.Violation, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience*3/2)
	defer cancel()
	m.step("--read of a state")
	found, unread := m.program.Survey(ctx, dir)
	v := c.checker.Judge(crash.Power, found, now, -1)
	if v != nil {
		if v.Words = m.program.Words(v, c.checker); unread != nil {
			v.Words += fmt.Sprintf(" (%v)", unread)
		}
		return v, nil
	}
	if !again || unread != nil {
		return nil, nil
	}
	m.step("second run on a state")
	tally, v, err := m.program.RunAgain(ctx, dir, found)
	t.Acknowledged += tally.Acknowledged
	t.Lost += tally.Lost
	if v != nil && v.Rule != "again" {
		v.Words = "after the second run: " + v.Words
	}
	return v, err
}

func unreadable(err error) *crash.Violation {
	return &crash.Violation{Rule: "unreadable", Words: fmt.Sprintf("what is left can't be read: %v", err)}
}

// mounted calls fn with the workload's directory in a state. If that can't be mounted, it says so.
func (m *mounter) mounted(c *cursor, s *crash.State, fn func(dir string) (*crash.Violation, error)) (v *crash.Violation, err error) {
	m.number++
	image := filepath.Join(m.dir, fmt.Sprint("state", m.number))
	f, err := c.image(s, image)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(image)) }()
	unmountable := func(err error) *crash.Violation {
		return &crash.Violation{Rule: "unmountable", Words: fmt.Sprintf("the file system can't be mounted any more: %v", err)}
	}
	repair := map[string][]string{"ext2": {"e2fsck", "-f", "-y"}, "ext4-nojournal": {"e2fsck", "-f", "-y"}, // they have no journal
		"jfs": {"fsck.jfs", "-a"}, // which replays its journal: the kernel mounts none that was not
	}
	if repair := repair[m.kind.Name]; repair != nil {
		m.step(repair[0] + " of a state")
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		out, err := exec.CommandContext(ctx, repair[0], append(repair[1:], image)...).CombinedOutput()
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() >= 4 {
			return unmountable(fmt.Errorf("%s: %w: %s", repair[0], err, lastLine(out))), nil
		} else if err != nil && exit == nil {
			return nil, err
		}
	}
	point := filepath.Join(m.dir, "mount")
	if err := os.Mkdir(point, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	m.step("mount of a state")
	unmount, err := mount(f, point, m.kind, m.kind.Options)
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.ENOMEM) || errors.Is(err, errMachine) {
		return nil, err // of this machine
	}
	if err != nil {
		return unmountable(err), nil
	}
	v, err = fn(filepath.Join(point, workName))
	m.step("unmount of a state")
	return v, errors.Join(err, unmount())
}

func lastLine(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}

// again runs the workload on the crash's files, behind a number of runs, and judges both. A disk that is full then is no
// broken promise, and no second run.
func (m *mounter) again(dir string, before *crash.Survivors, number int, t *crash.Tally) (*crash.Violation, error) {
	c := crash.NewChecker(m.targets, m.loss)
	c.Inherit(before)
	notes := make(chan crash.Note, 1<<14)
	const records = 8
	err := m.workload.Run(&crash.Run{System: crash.Real(dir), Policy: m.policy, Number: number, Seed: m.seed + 1, Records: records,
		Tell: func(n crash.Note) {
			n.At = time.Now().UnixNano()
			notes <- n
		}})
	close(notes)
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return nil, fmt.Errorf("the second run, on what a crash left: %w", err)
	} else if err != nil {
		return &crash.Violation{Rule: "again", Words: fmt.Sprintf("the second run, on what a crash left, failed: %v", err)}, nil
	}
	for n := range notes {
		c.Note(n)
	}
	found, err := m.workload.Look(dir, m.targets)
	if err != nil {
		return unreadable(err), nil
	}
	v := c.Judge(crash.Process, found, time.Now().UnixNano(), -1)
	t.TemporaryEnd = max(t.TemporaryEnd, found.Temporaries)
	t.Acknowledged += c.Tally.Acknowledged
	if v == nil {
		v = m.workload.Leaves(found, true)
	}
	if v != nil {
		v = &crash.Violation{Rule: v.Rule, ID: v.ID, N: v.N, Words: "after the second run: " + v.Words}
		t.Lost += c.Tally.Lost
	}
	return v, nil
}

// shrinkTries bounds the states that are mounted to make a failure small.
const shrinkTries = 60

// shrink looks for an earlier crash with nothing pending on the disk, and else for fewer pending
// writes, that break the same promise. It keeps the log up to there.
func (m *mounter) shrink(f *crash.Failure) error {
	tries := 0
	var failed error
	try := func(s crash.State) bool {
		if tries++; tries > shrinkTries || failed != nil || s == f.State {
			return false
		}
		v, err := m.one(f.Log, s)
		failed = errors.Join(failed, err)
		if v == nil || v.Rule != f.Violation.Rule || strings.HasPrefix(v.Words, "after") != strings.HasPrefix(f.Violation.Words, "after") {
			return false
		}
		f.State, f.Violation = s, v
		return true
	}
	try(crash.State{Crash: crash.Power, Position: f.State.Position})
	if s := f.State; s.Tear != 0 {
		s.Tear, s.Mask = 0, s.Mask&^1
		try(s)
	}
	if s := f.State; s.Mask != 0 || s.Rest {
		s.Mask, s.Rest = 0, false
		if !try(s) {
			s = f.State
			s.Rest = false
			try(s)
			for bit := range 64 {
				if s := f.State; s.Mask>>bit&1 != 0 && (s.Tear == 0 || bit > 0) {
					s.Mask &^= 1 << bit
					try(s)
				}
			}
		}
	}
	if s := f.State; s.Mask == 0 && !s.Rest { // all that is kept is the oldest
		for step := s.Keep; step > 0; step /= 2 {
			for s := f.State; s.Keep >= step; s = f.State {
				if s.Keep -= step; !try(s) {
					break
				}
			}
		}
	}
	// The first moment: right behind the acknowledgement. Later entries are not pending yet, so
	// that only states with nothing more than the oldest stay what they are.
	if s := f.State; s.Keep == 0 && s.Mask == 0 && !s.Rest && s.Tear == 0 {
		for step := (s.Position - f.Log.Start) / 2; step > 0; step /= 2 {
			for s := f.State; s.Position-step >= f.Log.Start; s = f.State {
				if s.Position -= step; !try(s) {
					break
				}
			}
		}
	}
	l := f.Log
	f.Log = &crash.Log{Workload: l.Workload, Policy: l.Policy, Seed: l.Seed, Sector: l.Sector, Whole: l.Whole, Start: l.Start, FS: l.FS, Size: l.Size, Program: l.Program,
		Entries: slices.Clone(l.Entries[:min(len(l.Entries), f.State.Position+1)])}
	f.Words = m.explain(f)
	forgetOverwritten(f.Log, f.State.Position)
	return failed
}

// forgetOverwritten empties the writes below a position that later ones have replaced on the disk.
// No state at that position has their bytes. It keeps the log's file small.
func forgetOverwritten(l *crash.Log, position int) {
	stable := 0 // the entries below are on the disk, if they are writes
	replaced := map[int64]bool{}
	for i := position - 1; i >= 0; i-- {
		switch e := &l.Entries[i]; {
		case e.Op == crash.Flush:
			stable = max(stable, e.UpTo)
		case e.Op == crash.Write && i < stable && e.Offset%pageSize == 0 && len(e.Data)%pageSize == 0:
			first, end := e.Offset/pageSize, (e.Offset+int64(len(e.Data)))/pageSize
			whole := true
			for n := first; n < end; n++ {
				whole, replaced[n] = whole && replaced[n], true
			}
			if whole {
				e.Data = nil
			}
		}
	}
}

// one judges a state of a log, and the next run's files.
func (m *mounter) one(l *crash.Log, s crash.State) (*crash.Violation, error) {
	c := m.cursor(l)
	c.to(s.Position)
	return m.judge(c, &s, true, &crash.Tally{})
}

// explain says what was pending when an acknowledgement was given.
func (m *mounter) explain(f *crash.Failure) string {
	words := f.Violation.Words
	if f.Violation.Rule != "lost" && f.Violation.Rule != "half" {
		return fmt.Sprintf("%s; the crash came before entry %d", words, f.State.Position)
	}
	c := m.cursor(f.Log)
	c.to(f.State.Position)
	noted, flush, before := -1, -1, ""
	for i, e := range f.Log.Entries[:f.State.Position] {
		switch {
		case e.Op == crash.Flush:
			flush = i
		case e.Op == crash.Killed:
			before += fmt.Sprintf("; it was killed and started again at entry %d", i)
		case e.Op == crash.Lose:
			before += fmt.Sprintf("; the disk refused a write at entry %d", i)
		case e.Op == crash.Noted && e.Note.ID == f.Violation.ID && e.Note.Kind == crash.Durable && (e.Note.N > f.Violation.N && noted < 0 || m.targets[e.Note.ID].Object):
			noted = i
		}
	}
	there := 0
	f.Log.Pieces(c.pending, &f.State, func(int64, []byte) { there++ })
	if noted >= 0 {
		words += fmt.Sprintf(". It was acknowledged at log entry %d", noted)
	}
	return fmt.Sprintf("%s; the last flush was at %d; %d writes of blocks were pending, and %d of them are there%s; the crash came before entry %d",
		words, flush, len(c.pending), there, before, f.State.Position)
}
