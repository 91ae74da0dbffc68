//go:build unix

package crash

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash/syscallfault"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/workdir"
)

// A proving is one proof of a program.
type proving struct {
	Program
	v       *Verdict
	r       *rand.Rand
	end     time.Time
	slowest time.Duration // from a start to the first acknowledgement
	again   int           // lives behind a crash in which something was acknowledged
	ended   int           // lives that ended by themselves
	read    bool          // a crash's files were read once
}

// Prove crashes the program again and again, and judges its files after each crash by its acknowledgements. At level power the disk
// is a model of POSIX, made from the program's calls.
func (p Program) Prove(ctx context.Context) (*Verdict, error) {
	v := Cell{Workload: p.Workload()}.Verdict(cmp.Or(p.Level, Kill), p.Seed)
	began := time.Now()
	defer func() { v.Elapsed = time.Since(began) }()
	x := &proving{Program: p, v: v, r: rand.New(rand.NewPCG(p.Seed, 3)), end: began.Add(p.Time)}
	var err error
	if v.Level == Fault {
		err = x.byFault(ctx)
	}
	for runs := 0; v.Level != Fault && v.Failure == nil && v.Unknown == "" && err == nil && (runs == 0 || time.Now().Before(x.end)); runs++ {
		if v.Level == PowerCut {
			err = x.byPower(ctx)
		} else {
			if runs%endsEach == 0 && x.Time >= leastForEnds && CanSupervise(exec.Command("true")) == "" {
				_ = x.byEnds(ctx) // a program that can't run under a supervisor is killed all the same
			}
			if x.v.Failure != nil || x.v.Unknown != "" {
				break
			}
			err = x.inDirectory(func(dir string) error { return x.chain(ctx, dir) })
		}
	}
	switch {
	case err != nil || v.Failure != nil:
	case v.Unknown != "":
		v.Verdict = NotKnown
	case v.Tally.Acknowledged == 0:
		err = fmt.Errorf("the program acknowledged nothing in %d runs", v.Kills+v.Faults+x.ended)
	case v.Level != Fault && v.Kills == 0:
		v.Verdict, v.Unknown = NotKnown, fmt.Sprintf("it ended by itself in each of %d runs, before it was killed", x.ended)
	case v.Level == Kill && x.again == 0:
		v.Verdict, v.Unknown = NotKnown, "it acknowledged nothing after a crash, so that no going on was judged"
	}
	return v, err
}

// inDirectory calls do with a new directory, and removes it.
func (x *proving) inDirectory(do func(dir string) error) error {
	dir, remove, err := Options{Dir: x.Dir}.Directory()
	if err != nil {
		return err
	}
	return errors.Join(do(dir), remove())
}

// endsEach is how often the ends of a program are looked for by its calls, among chains of kills, and leastForEnds the time that this takes.
const (
	endsEach     = 4
	leastForEnds = 500 * time.Millisecond
)

const (
	// mostLives is how often a program is killed in one directory, and longestLife how long it lives behind its first acknowledgement.
	mostLives   = 50
	longestLife = 10 * time.Second
)

// byChance is a number between two, so that each order of magnitude is as frequent.
func (x *proving) byChance(least, most float64) float64 {
	return least * math.Pow(max(1, most/least), x.r.Float64())
}

// moment is when a life ends: so it meets timers, further segments, checkpoints.
func (x *proving) moment() time.Duration {
	most := min(longestLife, max(20*time.Millisecond, time.Until(x.end)))
	return time.Duration(x.byChance(float64(time.Millisecond), float64(most)))
}

// chain kills a program again and again in one directory.
func (x *proving) chain(ctx context.Context, dir string) error {
	judge := x.judgeOf(ctx)
	lives := int(x.byChance(2, mostLives+1))
	for number := 0; number < lives && (number < 2 || time.Now().Before(x.end)); number++ {
		out, err := sys.MemoryFile("holdfast-acks")
		if err != nil {
			return err
		}
		l, err := x.live(ctx, dir, out, life{behind: number > 0, until: until(x.moment())})
		printed, readErr := printedIn(out)
		if err = errors.Join(err, readErr, out.Close()); err != nil {
			return err
		}
		when := fmt.Sprintf("after crash %d of a directory", number+1)
		if judge, err = x.crashed(judge, dir, printed, when); err != nil || x.v.Failure != nil {
			return err
		}
		if x.dead(l, dir, printed, number, fmt.Sprintf("run %d in a directory", number+1)); x.v.Failure != nil || x.v.Unknown != "" || l.ended && !l.acked {
			return nil // a program that has no more to do
		}
	}
	return nil
}

// dead makes a failure of a life behind a crash that hangs, or that fails. The first life must not do that either, but no crash has
// to do with it.
func (x *proving) dead(l lived, dir string, printed []byte, number int, when string) {
	words := ""
	switch {
	case l.stray != nil:
		x.v.Unknown = l.stray.Error()
	case number == 0:
	case l.hung:
		words = fmt.Sprintf("behind a crash it acknowledged nothing for %v, and did not end", l.waited.Round(time.Second/10))
	case l.exit != nil && !l.acked:
		words = fmt.Sprintf("behind a crash it failed: %v", l.exit)
	case l.exit != nil:
		words = fmt.Sprintf("behind a crash it went on, and failed: %v", l.exit)
	}
	if words == "" {
		return
	}
	if words += "; it printed nothing"; l.said != "" {
		words = fmt.Sprintf("%s; it said %q", strings.TrimSuffix(words, "; it printed nothing"), l.said)
	}
	rule := "again"
	if l.hung {
		rule = "hang"
	}
	x.fails(&Violation{Rule: rule, Words: words}, treeOf(dir), printed, when)
}

// fails makes a verdict of a violation, and keeps the files.
func (x *proving) fails(violation *Violation, t Tree, printed []byte, when string) {
	x.v.Verdict, x.v.Failure = Broken, &Failure{Violation: violation, State: State{Crash: Process}, Words: when + ": " + violation.Words, Kill: max(1, x.v.Kills)}
	x.v.Tally.Violations++
	x.v.Failure.Log = x.logOf(t, printed)
	x.v.Failure.State.Position = len(x.v.Failure.Log.Entries)
}

// crashed judges a crash's files, and returns the judge of the next life.
func (x *proving) crashed(judge Judge, dir string, printed []byte, when string) (Judge, error) {
	there := treeOf(dir) // before it is read, which may change it
	t, violation, next, err := judge(dir, printed)
	x.v.Tally.Add(t)
	if err == nil && violation != nil {
		x.v.Tally.Violations -= t.Violations
		x.fails(violation, there, printed, when)
	}
	return next, err
}

// logOf is a directory's content, as a log of which only the end is a state.
func (x *proving) logOf(t Tree, printed []byte) *Log {
	l := &Log{Workload: "program", Policy: holdfast.Unbuffered().String(), Sector: 512, FS: "posix", Program: &x.Program, Links: map[uint64]string{}}
	number := map[string]uint64{".": Root}
	for i, dir := range t.Dirs {
		number[dir] = DirBit | uint64(i+1)
		l.Add(Entry{Op: Name, Edits: []Edit{{number[path.Dir(dir)], path.Base(dir), number[dir]}}})
	}
	for i, name := range slices.Sorted(maps.Keys(t.Files)) {
		n := uint64(i + 2)
		l.Add(Entry{Op: Write, File: n, Data: t.Files[name]})
		l.Add(Entry{Op: Name, Edits: []Edit{{number[path.Dir(name)], path.Base(name), n}}})
	}
	for i, name := range slices.Sorted(maps.Keys(t.Links)) {
		n := uint64(len(t.Files) + i + 2)
		l.Links[n] = t.Links[name]
		l.Add(Entry{Op: Name, Edits: []Edit{{number[path.Dir(name)], path.Base(name), n}}})
	}
	l.Start = l.Add(Entry{Op: Flush, UpTo: len(l.Entries)})
	notes := Acknowledged(printed, Durable)
	for _, n := range notes[max(0, len(notes)-1):] {
		l.Add(Entry{Op: Noted, Note: &n})
	}
	return l
}

// mostKept is how many bytes of files are kept of a failure.
const mostKept = 64 << 20

// treeOf is a directory's content, or a part of it, where that is too much or can't be read.
func treeOf(dir string) Tree {
	t := Tree{Files: map[string][]byte{}, Links: map[string]string{}}
	kept := int64(0)
	_ = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		inside, relErr := filepath.Rel(dir, name)
		if err != nil || relErr != nil || inside == "." {
			return nil
		}
		inside = filepath.ToSlash(inside)
		if d.IsDir() {
			t.Dirs = append(t.Dirs, inside)
			return nil
		}
		if target, err := linkAt(dir, name); err == nil {
			t.Links[inside] = target
		}
		info, err := d.Info()
		if err != nil || !d.Type().IsRegular() || kept+info.Size() > mostKept {
			return nil
		}
		if data, err := os.ReadFile(name); err == nil {
			t.Files[inside] = data
			kept += int64(len(data))
		}
		return nil
	})
	return t
}

// judgeOf returns the judge of a new directory.
func (x *proving) judgeOf(ctx context.Context) Judge {
	if x.Judge != nil {
		return x.Judge
	}
	return x.judgeBy(ctx, NewChecker(programTarget, x.v.Loss))
}

func (x *proving) judgeBy(ctx context.Context, before *Checker) Judge {
	return func(dir string, printed []byte) (t Tally, violation *Violation, next Judge, err error) {
		c := before.clone()
		for _, n := range Acknowledged(printed, Flushed) {
			c.Note(n)
		}
		c.Note(anyBegun)
		found, err := x.Survey(ctx, dir)
		if failed := (*exec.ExitError)(nil); errors.As(err, &failed) && x.read && ctx.Err() == nil {
			violation, err = &Violation{Rule: "unread", Words: err.Error()}, nil // it could be read before
		}
		if err != nil {
			return t, nil, nil, err
		}
		x.read = true
		if lost := c.Judge(Process, found, time.Now().UnixNano(), -1); lost != nil {
			if lost.Words = x.Words(lost, c); violation != nil {
				lost.Words += fmt.Sprintf(" (%s)", violation.Words)
			}
			violation = lost
		}
		t, c.Tally = c.Tally, Tally{}
		return t, violation, x.judgeBy(ctx, c), nil
	}
}

// readPatience is how long a reader may take.
const readPatience = time.Minute

// Survey lets the reader of the program say what a directory has. With an error it is the reader's
// earlier output, or nothing. Processes that the reader has started end with it.
func (p Program) Survey(ctx context.Context, dir string) (*Survivors, error) {
	ctx, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	read := exec.CommandContext(ctx, "sh", "-c", p.Read)
	read.Dir = dir
	g, err := newGroup()
	if err != nil {
		return nil, err
	}
	defer g.end()
	g.take(read)
	read.WaitDelay = readPatience / 6 // for its children, which are killed with it
	var text, told bytes.Buffer
	read.Stdout, read.Stderr = &text, &told
	keeper, err := keep(g, read)
	if err == nil {
		err = keeper.Start(read)
	}
	if err == nil {
		err = read.Wait()
	}
	_ = keeper.End() // all has ended, or could not be started
	if late := context.Cause(ctx); late == context.DeadlineExceeded && err != nil {
		err = fmt.Errorf("it had not ended after %v: %w", readPatience, err)
	}
	if err != nil {
		return NewSurvivors(1), fmt.Errorf("--read: %w: %s", err, strings.TrimSpace(told.String()))
	}
	return readBack(text.String())
}

// Workload stands for the program in a [Cell].
func (p Program) Workload() *Workload {
	return &Workload{Name: "program", Targets: func(holdfast.Policy) []Target { return programTarget }, Loss: func(holdfast.Policy) holdfast.Loss { return lossOfAck }}
}

// Checker returns one that knows of no acknowledgement yet.
func (p Program) Checker() *Checker {
	c := NewChecker(programTarget, lossOfAck)
	c.Note(anyBegun)
	return c
}

// RunAgain runs the program on a crash's files, kills it when it has acknowledged something, and
// judges its files then. The second result is the first broken promise.
func (p Program) RunAgain(ctx context.Context, dir string, before *Survivors) (Tally, *Violation, error) {
	c := NewChecker(programTarget, lossOfAck)
	c.Inherit(before)
	c.Note(anyBegun)
	out, err := sys.MemoryFile("holdfast-acks")
	if err != nil {
		return c.Tally, nil, err
	}
	defer out.Close()
	x := &proving{Program: p, v: &Verdict{}}
	l, err := x.live(ctx, dir, out, life{behind: true, until: until(5 * time.Millisecond)})
	printed, readErr := printedIn(out)
	if err = errors.Join(err, readErr); err != nil {
		return c.Tally, nil, err
	}
	if x.dead(l, dir, nil, 1, ""); x.v.Failure != nil {
		v := x.v.Failure.Violation
		return c.Tally, &Violation{Rule: v.Rule, Words: "the second run, on what a crash left: " + v.Words}, nil
	}
	for _, n := range Acknowledged(printed, Flushed) {
		c.Note(n)
	}
	found, err := p.Survey(ctx, dir)
	if err != nil && ctx.Err() != nil {
		return c.Tally, nil, err
	}
	v := c.Judge(Process, found, time.Now().UnixNano(), -1)
	if v != nil {
		v.Words = p.Words(v, c)
	}
	return c.Tally, v, nil
}

// fullDisk returns an error if a program says that the disk was full or its quota used up. It is none if
// that was injected. The words are of Go or of C. Nothing is judged then: the disk breaks no promise.
func fullDisk(said string, injected syscall.Errno) error {
	for _, full := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT} {
		if strings.Contains(strings.ToLower(said), full.Error()) && injected != full {
			return fmt.Errorf("%w: a program has said %q", full, strings.TrimSpace(said))
		}
	}
	return nil
}

// A lived is a record of one life of a program.
type lived struct {
	acked  bool          // it has acknowledged something
	ended  bool          // by itself
	exit   error         // then: how
	hung   bool          // it has acknowledged nothing for long, and was killed
	said   string        // on standard error
	waited time.Duration // until then, or until that was given up
	stray  error         // a process of it that could not be ended
}

const (
	// startPatience is how long a program may take on an empty directory until it acknowledges something. Behind a crash it is as long
	// as hangPatience, or much longer than each start before: then the program hangs.
	startPatience = time.Minute
	hangPatience  = 30 * time.Second
	longer        = 10
	sayAfter      = 5 * time.Second
)

// A life says how a program is run once.
type life struct {
	behind  bool                     // a crash
	faulted bool                     // it may fail and acknowledge nothing: a call of it fails
	until   func(printed int64) bool // it is killed then; called again and again from its first acknowledgement on
	start   func(*exec.Cmd) error    // nil is as usual
}

// until returns what ends a life some time behind its first acknowledgement.
func until(after time.Duration) func(int64) bool {
	var end time.Time
	return func(int64) bool {
		if end.IsZero() {
			end = time.Now().Add(after)
		}
		return !time.Now().Before(end)
	}
}

// live starts the program, waits until it has acknowledged something in out, and kills it some time later with all that it
// has started. A life behind a crash that hangs is no error. Its output is kept in memory: a file takes bytes for
// which a pipe would make the program wait.
func (x *proving) live(ctx context.Context, dir string, out *os.File, how life) (l lived, err error) {
	before, err := out.Stat()
	if err != nil {
		return l, err
	}
	var stderr lastWords
	cmd := exec.CommandContext(ctx, "sh", "-c", x.Command)
	if cmd.Dir = dir; x.Start != nil {
		cmd = x.Start(ctx, dir)
	}
	cmd.Stdout, cmd.Stderr = out, &stderr
	cmd.WaitDelay = time.Second // a process that left it may hold its output
	g, err := newGroup()
	if err != nil {
		return l, err
	}
	defer g.end()
	g.take(cmd)
	keeper, err := keep(g, cmd)
	if err != nil {
		return l, err
	}
	if how.start == nil {
		how.start = keeper.Start
	}
	if err := how.start(cmd); err != nil {
		return l, errors.Join(err, keeper.End())
	}
	began := time.Now()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	patience := startPatience
	if how.behind {
		patience = max(cmp.Or(x.patience, hangPatience), longer*x.slowest)
	}
	told := false
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !l.acked && !l.ended && !l.hung {
		select {
		case l.exit = <-ended:
			l.ended = true
		case <-tick.C:
			l.acked = acknowledges(out, before.Size())
			l.waited = time.Since(began)
			l.hung = !l.acked && l.waited > patience
			if !told && l.waited > sayAfter && x.Say != nil {
				told = true
				x.Say(fmt.Sprintf("the program has acknowledged nothing yet; it is waited for up to %v", patience))
			}
		}
	}
	if l.acked {
		x.slowest = max(x.slowest, l.waited)
	}
	for over := !l.acked; !l.ended && !over; {
		info, err := out.Stat()
		if over = err != nil || ctx.Err() != nil || how.until(info.Size()-before.Size()); over {
			break
		}
		select {
		case l.exit = <-ended:
			l.ended = true
		case <-tick.C:
		}
	}
	if keeper == nil {
		l.stray = g.killAll(cmd.Process.Pid)
	} else {
		l.stray = errors.Join(g.kill(), keeper.End())
	}
	if !l.ended {
		select {
		case <-ended:
		case <-time.After(10 * time.Second): // it waits in the kernel
			l.stray = errors.Join(l.stray, fmt.Errorf("process %d, the program, can't be ended", cmd.Process.Pid))
		}
	}
	if ctx.Err() != nil {
		return l, context.Cause(ctx)
	}
	l.acked = l.acked || acknowledges(out, before.Size())
	if errors.Is(l.exit, exec.ErrWaitDelay) {
		l.exit = nil
	}
	l.said = stderr.String()
	switch {
	case l.ended:
		x.ended++
	case !l.hung:
		x.v.Kills++
	}
	if how.behind && l.acked {
		x.again++
	}
	if full := fullDisk(l.said, 0); full != nil && l.exit != nil && !how.faulted {
		return l, full
	}
	if l.hung && !how.behind && !how.faulted {
		return l, fmt.Errorf("the program acknowledged nothing in %v, and was ended: %s", patience, l.said)
	}
	if l.ended && l.exit != nil && !how.behind && !how.faulted {
		return l, fmt.Errorf("the program failed by itself, in a directory that no crash had met: %w: %s", l.exit, l.said)
	}
	return l, nil
}

// keep puts a keeper before a command of a group. The end of its context ends what has left the group too.
func keep(g *group, cmd *exec.Cmd) (*syscallfault.Keeper, error) {
	keeper, err := syscallfault.Keep(cmd)
	cmd.Cancel = func() error { return errors.Join(g.kill(), keeper.End()) }
	return keeper, err
}

// acknowledges reports whether a line from an offset on is an acknowledgement.
func acknowledges(out *os.File, from int64) bool {
	text, err := io.ReadAll(io.NewSectionReader(out, from, 1<<16))
	return err != nil || bytes.Contains(append([]byte("\n"), text...), []byte("\nack "))
}

// printedIn is a program's output.
func printedIn(out *os.File) ([]byte, error) {
	return io.ReadAll(io.NewSectionReader(out, 0, math.MaxInt64))
}

// A lastWords keeps the end of its input.
type lastWords struct {
	mu sync.Mutex
	b  []byte
}

func (w *lastWords) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.b = append(w.b, p...)
	w.b = w.b[max(0, len(w.b)-2000):]
	return len(p), nil
}

func (w *lastWords) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.TrimSpace(string(w.b))
}

// provingPrefix begins the names of the directories in which programs work or look.
const provingPrefix = "holdfast-prove-"

// Directory makes a directory for a program, below one for the records about it. Its path has no
// links, as a supervisor needs it. remove removes both. After a kill -9, [Options.RemoveStale] does.
func (o Options) Directory() (dir string, remove func() error, err error) {
	top, err := workdir.Claim(cmp.Or(o.Dir, os.TempDir()), provingPrefix)
	if err != nil {
		return "", nil, err
	}
	if dir, err = filepath.EvalSymlinks(top.Path()); err == nil {
		dir, err = filepath.Abs(filepath.Join(dir, "d"))
	}
	if err == nil {
		err = os.Mkdir(dir, 0o777)
	}
	if err != nil {
		return "", nil, errors.Join(err, top.Discard())
	}
	return dir, top.Discard, nil
}

// RemoveStale removes what killed runs have left where these levels write, as [workdir.RemoveStale] does.
func (o Options) RemoveStale() error {
	return workdir.RemoveStale(cmp.Or(o.Dir, os.TempDir()), provingPrefix)
}

// programTarget is all that a program writes.
var programTarget = []Target{{Path: "the program"}}

// lossOfAck is the allowed loss: nothing that was acknowledged, anything else.
var lossOfAck = holdfast.Loss{
	Process: holdfast.Bound{Bytes: holdfast.Unlimited, Time: holdfast.Unlimited},
	Power:   holdfast.Bound{Bytes: holdfast.Unlimited, Time: holdfast.Unlimited},
}

// Acknowledged returns the notes in a program's output, each of a kind. The last line counts only if it is whole.
func Acknowledged(printed []byte, kind NoteKind) (notes []Note) {
	for len(printed) > 0 {
		line, rest, whole := bytes.Cut(printed, []byte("\n"))
		printed = rest
		text, isAck := strings.CutPrefix(strings.TrimSpace(string(line)), "ack ")
		if n, err := strconv.ParseUint(text, 10, 63); whole && isAck && err == nil {
			notes = append(notes, Note{Kind: kind, N: n})
		}
	}
	return notes
}

// readBack says what the reader of a program printed: the records as far as they follow each other.
// Behind them may be a part of a line, which a crash has torn.
func readBack(printed string) (*Survivors, error) {
	s := NewSurvivors(1)
	for line := range strings.Lines(printed) {
		n, err := strconv.ParseUint(strings.TrimSpace(line), 10, 63)
		torn := !strings.HasSuffix(line, "\n")
		switch {
		case err == nil && n == s.N[0]+1 && !s.Disorder[0]:
			s.N[0] = n
		case torn:
			s.TornTails++
		case err != nil:
			s.Disorder[0] = true
			return s, fmt.Errorf("--read printed %.40q, which is no number of a record", line)
		default:
			s.Disorder[0] = true
		}
	}
	return s, nil
}
