//go:build unix

package crash

import (
	"bytes"
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
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/workdir"
)

// Prove crashes the program again and again, and judges what it has after each crash by what it
// acknowledged. At level power the disk is no real one: with the program all goes that was not synced.
func (p Program) Prove(ctx context.Context) (v *Verdict, err error) {
	v = Cell{Workload: p.Workload()}.Verdict(cmp.Or(p.Level, Kill), p.Seed)
	began := time.Now()
	defer func() { v.Elapsed = time.Since(began) }()
	r := rand.New(rand.NewPCG(p.Seed, 3))
	for v.Level != Fault && v.Failure == nil && (time.Since(began) < p.Time || v.Kills == 0) {
		dir, remove, err := Options{Dir: p.Dir}.Directory()
		if err != nil {
			return v, err
		}
		err = p.chain(ctx, v, r, dir)
		if err = errors.Join(err, remove()); err != nil {
			return v, err
		}
	}
	if v.Level == Fault {
		if err := p.byFault(ctx, v, r, began.Add(p.Time)); err != nil {
			return v, err
		}
	}
	if v.Tally.Acknowledged == 0 {
		return v, fmt.Errorf("the program acknowledged nothing in %d runs", v.Kills+v.Faults)
	}
	return v, nil
}

func (p Program) chain(ctx context.Context, v *Verdict, r *rand.Rand, dir string) error {
	judge := p.judgeOf(ctx, v)
	for number := range chainRuns {
		after := time.Duration(r.Int64N(int64(60 * time.Millisecond)))
		var printed []byte
		var said string
		var err error
		if v.Level == PowerCut {
			printed, said, err = p.runAndCut(ctx, dir, after)
		} else {
			printed, said, err = p.run(ctx, dir, 1, after, (*exec.Cmd).Start)
		}
		if err != nil {
			return fmt.Errorf("%w: %s", err, said)
		}
		v.Kills++
		if err := v.crashed(judge, dir, printed, fmt.Sprintf("after crash %d of a directory", number+1)); err != nil || v.Failure != nil {
			return err
		}
	}
	return nil
}

// crashed judges what a crash has left.
func (v *Verdict) crashed(judge Judge, dir string, printed []byte, when string) error {
	t, violation, err := judge(dir, printed)
	v.Tally.Add(t)
	if err == nil && violation != nil {
		v.Verdict, v.Failure = Broken, &Failure{Violation: violation, State: State{Crash: Process}, Words: when + ": " + violation.Words, Kill: max(1, v.Kills)}
	}
	return err
}

// judgeOf returns the judge of a new directory.
func (p Program) judgeOf(ctx context.Context, v *Verdict) Judge {
	if p.Judge != nil {
		return p.Judge()
	}
	c := NewChecker(programTarget, v.Loss)
	return func(dir string, printed []byte) (t Tally, violation *Violation, err error) {
		for _, n := range Acknowledged(printed, Flushed) {
			c.Note(n)
		}
		c.Note(anyBegun)
		found, err := p.Survey(ctx, dir)
		if failed := (*exec.ExitError)(nil); errors.As(err, &failed) && (v.FaultsOf > 0 || v.Level == PowerCut) {
			err = nil // it could be read without a fault: what can't be now is lost
		}
		if err != nil {
			return t, nil, err
		}
		if violation = c.Judge(Process, found, time.Now().UnixNano(), -1); violation != nil {
			violation.Words = p.Words(violation, c)
		}
		t, c.Tally = c.Tally, Tally{}
		return t, violation, nil
	}
}

// Survey lets the reader of the program say what a directory has. With an error it is what the
// reader said before, or nothing.
func (p Program) Survey(ctx context.Context, dir string) (*Survivors, error) {
	read := exec.CommandContext(ctx, "sh", "-c", p.Read)
	read.Dir = dir
	g, err := newGroup()
	if err != nil {
		return nil, err
	}
	defer g.end()
	g.take(read)
	read.WaitDelay = time.Second // for what it has started, and what is killed with it
	var told bytes.Buffer
	read.Stderr = &told
	text, err := read.Output()
	if err != nil {
		return NewSurvivors(1), fmt.Errorf("--read: %w: %s", err, strings.TrimSpace(told.String()))
	}
	return readBack(string(text))
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

// RunAgain runs the program on what a crash has left, kills it when it has acknowledged something,
// and judges what it has then. The second result is the first broken promise.
func (p Program) RunAgain(ctx context.Context, dir string, before *Survivors) (Tally, *Violation, error) {
	c := NewChecker(programTarget, lossOfAck)
	c.Inherit(before)
	c.Note(anyBegun)
	printed, said, err := p.run(ctx, dir, 1, 5*time.Millisecond, (*exec.Cmd).Start)
	if full := fullDisk(said, 0); err != nil && full != nil {
		return c.Tally, nil, full
	}
	if err != nil && ctx.Err() == nil {
		return c.Tally, &Violation{Rule: "again", Words: strings.TrimSpace(fmt.Sprintf("the second run, on what a crash left, failed: %v: %s", err, said))}, nil
	}
	if err != nil {
		return c.Tally, nil, err
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

// run starts the program, waits until it has printed so many bytes, and kills its process group some time later.
// What it prints is kept in memory.
func (p Program) run(ctx context.Context, dir string, size int64, after time.Duration, start func(*exec.Cmd) error) (printed []byte, said string, err error) {
	out, err := sys.MemoryFile("holdfast-acks") // a file takes all that a pipe would make the program wait for
	if err != nil {
		return nil, "", err
	}
	defer out.Close()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, "sh", "-c", p.Command)
	if cmd.Dir = dir; p.Start != nil {
		cmd = p.Start(ctx, dir)
	}
	cmd.Stdout, cmd.Stderr = out, &stderr
	g, err := newGroup()
	if err != nil {
		return nil, "", err
	}
	defer g.end()
	g.take(cmd)
	if err := start(cmd); err != nil {
		return nil, "", err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	const patience = 10 * time.Second
	limit := time.Now().Add(patience)
	over := false
	for begun := false; !begun && !over; {
		select {
		case err = <-ended:
			over = true
		case <-time.After(time.Millisecond):
			info, statErr := out.Stat()
			begun = statErr != nil || info.Size() >= size || time.Now().After(limit)
		}
	}
	if !over {
		time.Sleep(after)
		err = g.kill()
		<-ended
	}
	if ctx.Err() != nil {
		return nil, "", context.Cause(ctx)
	}
	printed, readErr := io.ReadAll(io.NewSectionReader(out, 0, math.MaxInt64))
	return printed, strings.TrimSpace(stderr.String()), errors.Join(err, readErr)
}

// provingPrefix begins the names of the directories in which programs work or look.
const provingPrefix = "holdfast-prove-"

// Directory makes a directory for a program, below one for what is kept about it. Its path has no
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

// lossOfAck is what may be lost: nothing that was acknowledged, anything else.
var lossOfAck = holdfast.Loss{
	Process: holdfast.Bound{Bytes: holdfast.Unlimited, Time: holdfast.Unlimited},
	Power:   holdfast.Bound{Bytes: holdfast.Unlimited, Time: holdfast.Unlimited},
}

// Acknowledged returns the notes of what a program printed, each of a kind. The last line counts only if it is whole.
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
