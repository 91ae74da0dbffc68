//go:build unix

package crash

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// CanKill says why level kill can't be had here; "" is that it can.
const CanKill = ""

// A chain is runs in one directory: each but the last is killed, and the next goes on with its files.
const chainRuns = 5

// leastForLiar is how many kills a liar meets until it is caught, however little time there is: load alone leaves no level not known.
const leastForLiar = 40

// byKill makes the verdict of level kill.
func (v *Verdict) byKill(ctx context.Context, w *Workload, o Options, most time.Duration) error {
	end, least := time.Now().Add(most), max(1, o.Least)
	if w.IsLiar() {
		least = max(least, leastForLiar)
	}
	r := rand.New(rand.NewPCG(v.Seed, 0))
	for runs := 0; v.Failure == nil && (runs < least || time.Now().Before(end)); runs += chainRuns - 1 {
		if err := v.chain(ctx, w, o, r); ctx.Err() != nil {
			return context.Cause(ctx)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// chain runs a workload in a new directory, kills it, and lets it go on, again and again.
func (v *Verdict) chain(ctx context.Context, w *Workload, o Options, r *rand.Rand) (err error) {
	dir, remove, err := o.Directory()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	targets := w.Targets(v.Policy)
	before := NewSurvivors(len(targets))
	for number := range chainRuns {
		c := NewChecker(targets, v.Loss)
		c.Inherit(before)
		kill := number < chainRuns-1
		var cmds []*exec.Cmd
		for process := range max(1, w.Processes) {
			cmds = append(cmds, o.Child(ctx, w.Name, v.Policy.String(), dir, strconv.FormatUint(r.Uint64(), 10), strconv.Itoa(number), strconv.Itoa(process)))
		}
		notes, killed, err := runAndKill(cmds, kill, time.Duration(r.Int64N(int64(12*time.Millisecond))))
		if broken := (*Violation)(nil); errors.As(err, &broken) {
			v.Failure = &Failure{Violation: broken, State: State{Crash: Process}, Words: broken.Words, Kill: number + 1}
			return nil
		}
		if err != nil {
			return err
		}
		for _, n := range notes {
			c.Note(n)
		}
		if before, err = w.Look(dir, targets); err != nil {
			return err
		}
		violation := c.Judge(Process, before, time.Now().UnixNano(), -1)
		if !kill {
			c.Tally.TemporaryEnd = before.Temporaries
			if violation == nil {
				violation = w.Leaves(before, true)
			}
		}
		v.Tally.Add(c.Tally)
		if killed {
			v.Kills++
		}
		if violation != nil {
			v.Failure = &Failure{Violation: violation, State: State{Crash: Process}, Words: violation.Words, Kill: number + 1}
			return nil
		}
	}
	return nil
}

// runAndKill starts some processes, and kills their process group some time after the first note, or lets
// them end in order. It returns what they noted, and whether they were killed before all had ended.
func runAndKill(cmds []*exec.Cmd, kill bool, after time.Duration) (notes []Note, killed bool, err error) {
	shared, err := NewNotes()
	if err != nil {
		return nil, false, err
	}
	defer shared.Close()
	g, err := newGroup()
	if err != nil {
		return nil, false, err
	}
	defer g.end()
	type end struct {
		cmd *exec.Cmd
		err error
	}
	ended, running := make(chan end, len(cmds)), 0
	said := make([]bytes.Buffer, len(cmds))
	for i, cmd := range cmds {
		shared.Give(cmd)
		cmd.Stdout, cmd.Stderr = &said[i], &said[i]
		g.take(cmd)
		if startErr := cmd.Start(); startErr != nil {
			err = errors.Join(err, startErr)
			break
		}
		running++
		go func() {
			err := cmd.Wait()
			if err != nil && cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL { // without the hint to who calls a child by hand
				why, _, _ := strings.Cut(said[i].String(), "\nhint: ")
				err = fmt.Errorf("the child failed: %w: %s", err, strings.TrimPrefix(why, "holdfast: "))
				if broken := Panicked(said[i].String()); broken != nil {
					err = broken
				}
			}
			ended <- end{cmd, err}
		}()
	}
	wait := func(e end) {
		running--
		switch {
		case e.err == nil:
		case e.cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL && kill:
			killed = true
		default:
			err = errors.Join(err, e.err)
		}
	}
	for err == nil && running > 0 && shared.Begun() == 0 {
		select {
		case e := <-ended: // it had nothing to do, or fails
			wait(e)
		case <-time.After(200 * time.Microsecond):
		}
	}
	if running > 0 && err == nil {
		time.Sleep(after)
	}
	if kill || err != nil {
		err = errors.Join(err, g.kill())
	} else {
		shared.End(0)
	}
	for running > 0 {
		wait(<-ended)
	}
	return shared.All(), killed, err
}

// Panicked returns what a process of ours has broken, if it panicked by what it printed, or nil. One that gets no memory or no thread is
// not to blame.
func Panicked(said string) *Violation {
	at := strings.Index(said, "panic: ")
	if fatal := strings.Index(said, "fatal error: "); at < 0 || fatal >= 0 && fatal < at {
		at = fatal
	}
	if at < 0 || strings.Contains(said, "out of memory") || strings.Contains(said, "newosproc") || strings.Contains(said, "failed to create new OS thread") {
		return nil
	}
	const most = 600
	words := said[at:]
	if len(words) > most {
		words = words[:most] + "…"
	}
	return &Violation{Rule: "panic", Words: "the program panicked: " + words}
}
