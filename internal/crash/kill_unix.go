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

// byKill makes the verdict of level kill.
func (v *Verdict) byKill(ctx context.Context, w *Workload, o Options, most time.Duration) error {
	end := time.Now().Add(most)
	r := rand.New(rand.NewPCG(v.Seed, 0))
	for runs := 0; v.Failure == nil && (runs == 0 || runs < o.Least || time.Now().Before(end)); runs += chainRuns - 1 {
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
		cmd := o.Child(ctx, w.Name, v.Policy.String(), dir, strconv.FormatUint(r.Uint64(), 10), strconv.Itoa(number))
		notes, killed, err := runAndKill(cmd, kill, time.Duration(r.Int64N(int64(12*time.Millisecond))))
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

// runAndKill starts a child, and kills its process group some time after its first note, or lets
// it end in order. It returns what it noted, and whether it was killed before it had ended.
func runAndKill(cmd *exec.Cmd, kill bool, after time.Duration) (notes []Note, killed bool, err error) {
	shared, err := NewNotes()
	if err != nil {
		return nil, false, err
	}
	defer shared.Close()
	shared.Give(cmd)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	g, err := newGroup()
	if err != nil {
		return nil, false, err
	}
	defer g.end()
	g.take(cmd)
	if err := cmd.Start(); err != nil {
		return nil, false, err
	}
	failed := func(err error) error { // without the hint to who calls a child by hand
		why, _, _ := strings.Cut(said.String(), "\nhint: ")
		return fmt.Errorf("the child failed: %w: %s", err, strings.TrimPrefix(why, "holdfast: "))
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for begun := false; !begun; {
		select {
		case err := <-ended: // it had nothing to do, or fails
			if err != nil {
				err = failed(err)
			}
			return shared.All(), false, err
		case <-time.After(200 * time.Microsecond):
			begun = shared.Begun() > 0
		}
	}
	time.Sleep(after)
	if kill {
		err = g.kill()
	} else {
		shared.End(0)
	}
	waited := <-ended
	killed = kill && waited != nil && cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
	if waited != nil && !killed {
		err = errors.Join(err, failed(waited))
	}
	return shared.All(), killed, err
}
