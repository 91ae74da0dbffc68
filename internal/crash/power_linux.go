package crash

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/crash/syscallfault"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// mostLeaps bounds leapsOf. mostCuts is how many power cuts follow each other in one history, and cutLives how often a program is killed and goes on before each.
const (
	mostLeaps = 16
	mostCuts  = 3
	cutLives  = 3
)

// byEnds runs the program once, and judges what its end would have left at moments that SIGKILL meets by chance alone: behind each
// acknowledgement and before each call.
func (x *proving) byEnds(ctx context.Context) error {
	_, _, err := x.livesAndCut(ctx, x.judgeOf(ctx), Tree{}, 0)
	return err
}

// byPower runs the program, kills it and lets it go on, and then explores what a power cut may leave of all these lives. On
// one state it goes on, and so does the history.
func (x *proving) byPower(ctx context.Context) error {
	judge, there := x.judgeOf(ctx), Tree{}
	for cut := 0; cut < mostCuts && there.Files != nil || cut == 0; cut++ {
		var err error
		if judge, there, err = x.livesAndCut(ctx, judge, there, cut); err != nil || x.v.Failure != nil || x.v.Unknown != "" {
			return err
		}
		if !time.Now().Before(x.end) {
			break
		}
	}
	return nil
}

// livesAndCut traces some lives of the program on the present files, and explores the trace. It returns one of the states with the
// judge that knows it.
func (x *proving) livesAndCut(ctx context.Context, judge Judge, there Tree, cut int) (next Judge, left Tree, err error) {
	err = x.inDirectory(func(dir string) error {
		if err := there.Write(dir); err != nil {
			return err
		}
		out, err := sys.MemoryFile("holdfast-acks")
		if err != nil {
			return err
		}
		defer out.Close()
		t := newTrace(dir, x.Naming, func() int64 {
			info, err := out.Stat()
			if err != nil {
				return 0
			}
			return info.Size()
		})
		began := time.Now()
		lives := 1 + x.r.IntN(cutLives)
		if t.ends = x.v.Level == Kill; t.ends {
			lives = 1
		}
		for number := 0; number < lives && (number == 0 || time.Since(began) < time.Until(x.end)); number++ {
			if err := x.traced(ctx, dir, out, t, cut+number > 0, number, lives); err != nil || x.v.Failure != nil || x.v.Unknown != "" {
				return errors.Join(err, t.end())
			}
		}
		if err := t.end(); err != nil {
			return err
		}
		printed, err := printedIn(out)
		if err != nil {
			return err
		}
		if !x.read { // if it reads what no power cut has touched, it is no fault of the reader that it can't read a state
			_, err := x.Survey(ctx, dir)
			x.read = err == nil
		}
		next, left, err = x.explore(ctx, judge, t, printed, min(time.Since(began), time.Until(x.end)))
		return err
	})
	return next, left, err
}

// traced is one life of several.
func (x *proving) traced(ctx context.Context, dir string, out *os.File, t *trace, behind bool, number, lives int) error {
	if number > 0 {
		if _, err := out.WriteString("\n" + NewLife + "\n"); err != nil {
			return err
		}
	}
	left := time.Until(x.end)
	part := max(10*time.Millisecond, min(max(200*time.Millisecond, min(left/10, time.Second)), left/time.Duration(3*lives))) // more of the same shows little that is new
	after := time.Duration(x.byChance(float64(time.Millisecond), float64(part)))
	if number == 0 {
		after = max(after, part/4)
	}
	if t.ends { // one long life meets late and rare events
		after = max(10*time.Millisecond, min(left/4, 2*time.Second))
	}
	var s *syscallfault.Supervisor
	l, err := x.live(ctx, dir, out, life{behind: behind, until: until(after), start: func(cmd *exec.Cmd) (err error) {
		s, err = syscallfault.Start(cmd, dir, traced, t.meet)
		return err
	}})
	if s != nil {
		_, stopped := s.Stop()
		err = errors.Join(err, stopped)
	}
	if err != nil {
		return err
	}
	t.killed()
	if behind {
		x.dead(l, dir, nil, 1, fmt.Sprintf("in life %d", number+1))
	}
	return nil
}

// explore judges states of a trace for some time, and at least some.
func (x *proving) explore(ctx context.Context, judge Judge, t *trace, printed []byte, most time.Duration) (next Judge, left Tree, err error) {
	most = max(most, 100*time.Millisecond)
	end := time.Now().Add(most)
	last := 0
	next = judge
	e := &explorer{targets: programTarget, starts: t.starts, leaps: leapsOf(t.log, mostLeaps), loss: x.v.Loss, only: Power, late: func() bool { return err != nil || time.Now().After(end) }}
	e.by = func(tree Tree, n int64) (violation *Violation) {
		if err != nil || ctx.Err() != nil {
			return nil
		}
		err = x.inDirectory(func(dir string) error {
			if err := tree.Write(dir); err != nil {
				return err
			}
			tally, found, then, err := judge(dir, printed[:n])
			last = max(last, int(tally.Acknowledged))
			if violation = found; found != nil {
				x.v.Tally.Lost = max(1, tally.Lost)
			}
			if err == nil && found == nil {
				next, left = x.from(then), tree
			}
			return err
		})
		return violation
	}
	if t.ends {
		e.only = Process
	}
	const first = 24
	for states := first; x.v.Failure == nil && err == nil && ctx.Err() == nil; states *= 2 {
		tally, failure := e.explore(t.log, states, x.r.Uint64())
		x.v.Tally.Add(Tally{States: tally.States, Violations: tally.Violations})
		if failure != nil {
			failure.Shrink()
			x.fail(failure, t, printed)
		}
		if e.late() {
			break
		}
	}
	x.v.Tally.Acknowledged += int64(last)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return next, left, err
}

// from lets a judge know that a new life begins.
func (x *proving) from(judge Judge) Judge {
	return func(dir string, printed []byte) (Tally, *Violation, Judge, error) {
		return judge(dir, append([]byte("\n"+NewLife+"\n"), printed...))
	}
}

// fail makes a verdict of a failing state of a trace. Where a call may have kept what is lost, and no supervisor sees that, it is
// not known.
func (x *proving) fail(f *Failure, t *trace, printed []byte) {
	if len(t.unseen) > 0 && !t.ends {
		x.v.Tally.Violations = 0
		x.v.Unknown = fmt.Sprintf("it uses %s, of which a supervisor of system calls does not see what it keeps; without that: %s",
			strings.Join(slices.Sorted(maps.Keys(t.unseen)), ", "), f.Words)
		return
	}
	x.v.Verdict, x.v.Failure = Broken, f
	tree := f.Tree()
	upTo := 0
	for _, e := range f.Log.Entries[:f.State.Position] {
		if e.Op == Noted {
			upTo = int(e.Note.N)
		}
	}
	f.Kill = max(1, x.v.Kills)
	f.Log, f.State = x.logOf(tree, printed[:upTo]), State{Crash: f.State.Crash}
	f.State.Position = len(f.Log.Entries)
}
