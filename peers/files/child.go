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
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/trial"
)

// A trialOrder is what a child process is told to do: one arm once, or one peer
// under one fault.
type trialOrder struct {
	Sizes sizes
	Group string
	Arm   string
	Dir   string // does not exist yet
	Fault string
	Peer  string
}

// A sample is what one trial took. It counts only if Err is empty.
type sample struct {
	Elapsed     time.Duration
	CPU         time.Duration // user and system, of the whole process
	Units       int           // files, or lines
	Bytes       uint64
	Allocs      uint64
	Err         string
	Unsupported bool // the arm can't do its work here
}

// childWord is the first argument of a child.
const childWord = "trial-of-its-own"

func isChild(args []string) bool { return len(args) == 3 && args[1] == childWord }

// childMain is a child: it does what the order says and prints what came of it.
func childMain(order string, out io.Writer) int {
	var t trialOrder
	var result any
	err := json.Unmarshal([]byte(order), &t)
	switch {
	case err != nil:
	case t.Fault != "":
		result, err = t.underFault(out)
	default:
		result = t.timed()
	}
	if err == nil {
		err = json.NewEncoder(out).Encode(result)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// child returns the command that carries out an order.
func (t trialOrder) child(ctx context.Context) (*exec.Cmd, error) {
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
	cmd, err := t.child(ctx)
	if err != nil {
		return s, err
	}
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return s, fmt.Errorf("%w: %s", err, firstLine(said.String()))
	}
	if err := json.Unmarshal(out, &s); err != nil {
		return s, fmt.Errorf("its process printed %q: %w", short(out), err)
	}
	switch {
	case s.Unsupported:
		return s, fmt.Errorf("%s (%w)", s.Err, errors.ErrUnsupported)
	case s.Err != "":
		return s, errors.New(s.Err)
	}
	return s, nil
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

// timed runs the arm in as many fresh folders as make a sample, after one that
// does not count.
func (t trialOrder) timed() (s sample) {
	g, a := find(groups(t.Sizes), t.Group, t.Arm)
	if a == nil {
		return sample{Err: fmt.Sprintf("%s/%s: there is no such arm", t.Group, t.Arm)}
	}
	if err := t.repeat(g.job.of(a), a, &s); err != nil {
		return sample{Err: err.Error(), Unsupported: errors.Is(err, errors.ErrUnsupported)}
	}
	return s
}

func (t trialOrder) repeat(j job, a *arm, s *sample) error {
	if err := os.Mkdir(t.Dir, 0o777); err != nil {
		return err
	}
	if err := a.clock(filepath.Join(t.Dir, "warm"), j.small(), &sample{}); err != nil {
		return err
	}
	for i := range j.folders() {
		if err := a.clock(filepath.Join(t.Dir, fmt.Sprintf("%03d", i)), j, s); err != nil {
			return err
		}
	}
	return nil
}

// small is a job of the same kind, to warm up with.
func (j job) small() job {
	j.Files = min(j.Files, 100)
	j.Lines = min(j.Lines, 2*j.Files)
	return j
}

// clock runs the arm once in a fresh folder and adds up what it took.
func (a *arm) clock(dir string, j job, sum *sample) error {
	s, err := newSite(dir, j)
	if err != nil {
		return err
	}
	write, err := a.ready(s)
	if err != nil {
		return err
	}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begun, cpu := time.Now(), cpuTime()
	err = write()
	sum.Elapsed += time.Since(begun)
	sum.CPU += cpuTime() - cpu
	runtime.ReadMemStats(&after)
	sum.Bytes += after.TotalAlloc - before.TotalAlloc
	sum.Allocs += after.Mallocs - before.Mallocs
	sum.Units += j.units()
	if err != nil {
		return err
	}
	return s.verify()
}

// cpuTime is what this process has used, or 0 where the system does not tell.
func cpuTime() time.Duration {
	used, err := sys.ProcessUsage()
	if err != nil {
		return 0
	}
	return used.User + used.System
}

func find(all []*group, name, of string) (*group, *arm) {
	for _, g := range all {
		for _, a := range g.arms {
			if g.name == name && a.name == of {
				return g, a
			}
		}
	}
	return nil, nil
}

// prepare brings the machine into the same state before every trial: what the
// trial before left is on the disk, and the page cache finds the memory that the
// trial will fill.
func prepare(dir string, j job) error {
	err := trial.PrepareMemory(dir, j.room())
	settle(dir)
	return err
}

// trialFolder names the folder of a trial; it is not made.
func trialFolder(dir string, g *group, a *arm, round int) string {
	word := strings.NewReplacer("/", "-", " ", "-").Replace(g.name + "-" + a.name)
	return filepath.Join(dir, fmt.Sprintf("%s-%d", word, round))
}
