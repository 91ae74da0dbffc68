package powercut

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/lab/fuselog"
	"github.com/holdfast-go/holdfast/internal/lab/prove"
)

// Can returns nil if the power of a file system can be cut here, or what is missing.
func Can(kind string) error {
	k, err := kindOf(kind)
	if err != nil {
		return err
	}
	if err := k.Can(); err != nil {
		return err
	}
	if err := unix.Access("/dev/fuse", unix.R_OK|unix.W_OK); err != nil {
		return fmt.Errorf("%s: /dev/fuse can't be opened: %w", kind, err)
	}
	return nil
}

// Run makes the verdicts of file systems, on each the controls first. It returns when all that it
// made is gone.
func Run(ctx context.Context, o prove.Options, kinds []string, most time.Duration) ([]*prove.Verdict, error) {
	what := order{Kinds: kinds, States: o.States, Seconds: most.Seconds(), Seed: o.Seed}
	for _, p := range o.Policies {
		what.Policies = append(what.Policies, p.String())
	}
	for _, w := range o.Workloads {
		what.Workloads = append(what.Workloads, w.Name)
	}
	var all []*prove.Verdict
	err := enter(ctx, o, what, nil, func(a *answer) {
		v := a.Verdict
		if w := prove.Find(v.Workload); w != nil {
			v.Loss = prove.Cell{Workload: w, Policy: v.Policy}.Verdict(v.Level, 0).Loss
		}
		all = append(all, v)
	})
	// They came as they were ready.
	slices.SortStableFunc(all, func(a, b *prove.Verdict) int {
		return cmp.Or(cmp.Compare(slices.Index(kinds, a.FS), slices.Index(kinds, b.FS)), cmp.Compare(min(1, len(b.Control)), min(1, len(a.Control))),
			strings.Compare(a.Workload, b.Workload), strings.Compare(a.Policy.String(), b.Policy.String()))
	})
	return all, err
}

// Replay judges the state of a failure again. With a command to look at it, that runs where the
// state is mounted, on this terminal.
func Replay(ctx context.Context, o prove.Options, f *prove.Failure, look string) (v *prove.Violation, err error) {
	w := prove.Find(f.Log.Workload)
	_, policyErr := holdfast.ParsePolicy(f.Log.Policy)
	switch {
	case w == nil || policyErr != nil:
		return nil, fmt.Errorf("there is no workload %q, or no policy %q", f.Log.Workload, f.Log.Policy)
	case f.State.Position < f.Log.Start || f.State.Position > len(f.Log.Entries):
		return nil, fmt.Errorf("the state is at entry %d, and the log has %d", f.State.Position, len(f.Log.Entries))
	}
	if err := Can(f.Log.FS); err != nil {
		return nil, err
	}
	err = enter(ctx, o, order{Replay: f, Look: look}, os.Stdin, func(a *answer) { v = a.Violation })
	return v, err
}

// enter starts the room, and calls each with its answers until it has ended.
func enter(ctx context.Context, o prove.Options, what order, stdin *os.File, each func(*answer)) error {
	runtime.LockOSThread() // the room is killed when the thread ends that started it: PR_SET_PDEATHSIG(2const)
	defer runtime.UnlockOSThread()
	owner, err := fuselog.AbortStale()
	if err != nil {
		return err
	}
	what.Owner = owner
	text, err := json.Marshal(what)
	if err != nil {
		return err
	}
	orders, orderEnd, err := os.Pipe()
	if err != nil {
		return err
	}
	defer orders.Close()
	defer orderEnd.Close()
	answerEnd, answers, err := os.Pipe()
	if err != nil {
		return err
	}
	defer answerEnd.Close()
	defer answers.Close()
	mounts, err := os.Open("/proc/self/ns/mnt")
	if err != nil {
		return err
	}
	defer mounts.Close()
	cmd := o.Child(ctx, roomArgument)
	said := &tail{}
	cmd.Stderr = said
	if stdin != nil {
		cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, os.Stdout, os.Stderr
	}
	cmd.ExtraFiles = []*os.File{orders, answers, mounts}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID, Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if stdin == nil {
		cmd.SysProcAttr.Setpgid = true // Ctrl-C is this process's affair
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("a process with mounts of its own can't be started: %w", err)
	}
	_, _ = orders.Close(), answers.Close()
	go func() { // the room may end before it has read all
		_, _ = orderEnd.Write(append(text, '\n'))
	}()
	var failed error
	in := bufio.NewReaderSize(answerEnd, 1<<16)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			if err != io.EOF || len(line) > 0 {
				failed = errors.Join(failed, err)
			}
			break
		}
		var a answer
		if err := json.Unmarshal(line, &a); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		if a.Err != "" {
			failed = errors.Join(failed, errors.New(a.Err))
			continue
		}
		each(&a)
	}
	err = cmd.Wait()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case failed != nil:
		return failed
	case err != nil:
		return fmt.Errorf("the room ended: %w: %s", err, said)
	}
	return nil
}

// A tail keeps the last bytes that were written to it.
type tail struct{ b []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	t.b = t.b[max(0, len(t.b)-2000):]
	return len(p), nil
}

func (t *tail) String() string { return strings.TrimSpace(string(t.b)) }
