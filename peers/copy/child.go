package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/holdfast-go/holdfast/peers/internal/command"
)

// A trialOrder is the order to a child process: one arm's copying, once.
type trialOrder struct {
	Quick    bool
	Job, Arm string
	From, To string
	Files    int  // of the job's
	Bare     bool // copy and nothing else: for the arm that starts a process of its own
}

// carryOut is what a child does.
func (t trialOrder) carryOut(io.Writer) (any, error) {
	j, a, ok := t.find()
	if !ok {
		return nil, fmt.Errorf("%s/%s: there is no such arm", t.Job, t.Arm)
	}
	if t.Bare {
		return nil, a.copies(context.Background(), j, t.From, t.To)
	}
	return timed(context.Background(), a, j, t.From, t.To), nil
}

func (t trialOrder) find() (job, arm, bool) {
	for _, j := range jobs(t.Quick) {
		for _, a := range arms(j) {
			if j.name == t.Job && a.name == t.Arm {
				j.files = t.Files
				return j, a, true
			}
		}
	}
	return job{}, arm{}, false
}

// timed copies, with the clock running.
func timed(ctx context.Context, a arm, j job, from, to string) command.Sample {
	runtime.GC()
	begun, cpu := time.Now(), command.CPUTime()
	err := a.copies(ctx, j, from, to)
	s := command.Sample{Elapsed: time.Since(begun), CPU: command.CPUTime() - cpu, Units: j.files}
	if err != nil {
		return command.Broken(err)
	}
	return s
}

// bySelf copies in a process that is started for it.
func bySelf(ctx context.Context, j job, from, to string) error {
	cmd, err := command.Child(ctx, trialOrder{Job: j.name, Arm: "holdfast", From: from, To: to, Files: j.files, Bare: true})
	if err != nil {
		return err
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(out))
	}
	return nil
}
