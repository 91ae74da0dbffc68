package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// A trialOrder is what a child process is told to do: one arm's copying, once.
type trialOrder struct {
	Quick    bool
	Job, Arm string
	From, To string
	Files    int  // of the job's
	Bare     bool // copy and nothing else: for the arm that starts a process of its own
}

// A sample is what one trial took.
type sample struct {
	Elapsed     time.Duration
	CPU         time.Duration // user and system, of the child and the programs that it ran
	Files       int
	Err         string
	Unsupported bool
}

// childWord is the first argument of a child.
const childWord = "trial-of-its-own"

// childMain is a child: it does what the order says and prints what came of it.
func childMain(order string, out io.Writer) int {
	var t trialOrder
	if err := json.Unmarshal([]byte(order), &t); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	j, a, ok := t.find()
	if !ok {
		fmt.Fprintf(os.Stderr, "%s/%s: there is no such arm\n", t.Job, t.Arm)
		return 1
	}
	ctx := context.Background()
	if t.Bare {
		if err := a.copies(ctx, j, t.From, t.To); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
	s := timed(ctx, a, j, t.From, t.To)
	if err := json.NewEncoder(out).Encode(s); err != nil {
		return 1
	}
	return 0
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
func timed(ctx context.Context, a arm, j job, from, to string) sample {
	runtime.GC()
	begun, cpu := time.Now(), cpuTime()
	err := a.copies(ctx, j, from, to)
	s := sample{Elapsed: time.Since(begun), CPU: cpuTime() - cpu, Files: j.files}
	if err != nil {
		s.Err, s.Unsupported = err.Error(), errors.Is(err, errors.ErrUnsupported)
	}
	return s
}

// bySelf copies in a process that is started for it.
func bySelf(ctx context.Context, j job, from, to string) error {
	cmd, err := trialOrder{Job: j.name, Arm: "holdfast", From: from, To: to, Files: j.files, Bare: true}.command(ctx)
	if err != nil {
		return err
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(out))
	}
	return nil
}

// command returns the process that carries out an order.
func (t trialOrder) command(ctx context.Context) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	order, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	return exec.CommandContext(ctx, self, childWord, string(order)), nil
}

// patience is after how long an arm is taken to hang.
const patience = 10 * time.Minute

func startTrial(ctx context.Context, t trialOrder) (s sample, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd, err := t.command(ctx)
	if err != nil {
		return s, err
	}
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		line, _, _ := strings.Cut(strings.TrimSpace(said.String()), "\n")
		return s, fmt.Errorf("%w: %s", err, line)
	}
	if err := json.Unmarshal(out, &s); err != nil {
		return s, fmt.Errorf("its process printed %.80q: %w", out, err)
	}
	switch {
	case s.Unsupported:
		return s, fmt.Errorf("%s (%w)", s.Err, errors.ErrUnsupported)
	case s.Err != "":
		return s, errors.New(s.Err)
	}
	return s, nil
}

// cpuTime is what this process and those that it has waited for have used, or 0 where
// the system does not tell.
func cpuTime() time.Duration {
	used, err := sys.ProcessUsage()
	if err != nil {
		return 0
	}
	return used.User + used.System + childrenTime()
}
