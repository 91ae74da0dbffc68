package powercut

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash"
)

// Can returns nil if the power of a file system can be cut here, or what is missing.
func Can(ctx context.Context, o crash.Options, kind string) error {
	if kind == Model {
		return canModel(ctx, o)
	}
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

// Run makes the verdicts of file systems, on each the controls first, or of the model alone. It
// returns when all that it made is gone.
func Run(ctx context.Context, o crash.Options, kinds []string, most time.Duration) ([]*crash.Verdict, error) {
	what := order{Model: slices.Equal(kinds, []string{Model}), Kinds: kinds, States: o.States, Seconds: most.Seconds(), Seed: o.Seed, Program: o.Program}
	for _, p := range o.Policies {
		what.Policies = append(what.Policies, p.String())
	}
	for _, w := range o.Workloads {
		what.Workloads = append(what.Workloads, w.Name)
	}
	var all []*crash.Verdict
	err := enter(ctx, o, what, nil, func(a *answer) {
		if a.Verdict != nil {
			all = append(all, a.Verdict)
		}
	})
	// They came as they were ready.
	slices.SortStableFunc(all, func(a, b *crash.Verdict) int {
		return cmp.Or(cmp.Compare(slices.Index(kinds, a.FS), slices.Index(kinds, b.FS)), cmp.Compare(min(1, len(b.Control)), min(1, len(a.Control))),
			strings.Compare(a.Workload, b.Workload), strings.Compare(a.Policy.String(), b.Policy.String()))
	})
	return all, err
}

// Replay judges the state of a failure again. Its workload is one of the options'. With a command to look at it, that runs where the
// state is mounted, on this terminal.
func Replay(ctx context.Context, o crash.Options, f *crash.Failure, look string) (v *crash.Violation, err error) {
	w := crash.Find(o.Workloads, f.Log.Workload)
	if f.Log.Program != nil {
		w = f.Log.Program.Workload()
	}
	_, policyErr := holdfast.ParsePolicy(f.Log.Policy)
	switch {
	case w == nil || policyErr != nil:
		return nil, fmt.Errorf("there is no workload %q, or no policy %q", f.Log.Workload, f.Log.Policy)
	case f.State.Position < f.Log.Start || f.State.Position > len(f.Log.Entries):
		return nil, fmt.Errorf("the state is at entry %d, and the log has %d", f.State.Position, len(f.Log.Entries))
	}
	if f.Log.FS == Model {
		return replayModel(ctx, o, f, look)
	}
	if err := Can(ctx, o, f.Log.FS); err != nil && o.Room == nil {
		return nil, err
	}
	err = enter(ctx, o, order{Replay: f, Look: look}, os.Stdin, func(a *answer) { v = cmp.Or(v, a.Violation) })
	return v, err
}

// ShowRefusals lets the disk of each file system answer EIO to one write of a program's bytes. It
// shows the errors of the program's syncs then, and the files that are left.
func ShowRefusals(ctx context.Context, o crash.Options, kinds []string) (all []Refusal, err error) {
	err = enter(ctx, o, order{Kinds: kinds, Show: showRefusals}, nil, func(a *answer) { all = append(all, a.Refusals...) })
	slices.SortStableFunc(all, func(a, b Refusal) int { return cmp.Compare(slices.Index(kinds, a.FS), slices.Index(kinds, b.FS)) })
	return all, err
}

// ShowSyncs shows what the calls that make bytes durable send to the disk of each file system.
func ShowSyncs(ctx context.Context, o crash.Options, kinds []string) (all []Sync, err error) {
	err = enter(ctx, o, order{Kinds: kinds, Show: showSyncs}, nil, func(a *answer) { all = append(all, a.Syncs...) })
	slices.SortStableFunc(all, func(a, b Sync) int { return cmp.Compare(slices.Index(kinds, a.FS), slices.Index(kinds, b.FS)) })
	return all, err
}

// rooms are the ones that this process has started: it never aborts another's.
var rooms atomic.Int64

// enter starts the room, and calls each with its answers until it has ended.
func enter(ctx context.Context, o crash.Options, what order, stdin *os.File, each func(*answer)) error {
	runtime.LockOSThread() // the room is killed when the thread ends that started it: PR_SET_PDEATHSIG(2const)
	defer runtime.UnlockOSThread()
	owner := "holdfast-model" // nothing of it needs an abort: when it is killed, its disks end
	if !what.Model {
		mine, err := abortStale()
		if err != nil {
			return err
		}
		owner = fmt.Sprintf("%s:%d", mine, rooms.Add(1))
	}
	what.Owner = owner
	if what.Patience == 0 {
		what.Patience = patience
		if o.Room != nil {
			what.Patience *= 5
		}
	}
	text, err := json.Marshal(what)
	if err != nil {
		return err
	}
	if o.Room != nil {
		return enterAway(ctx, o, text, each)
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
	cmd, said := roomCommand(ctx, o, what.Model, stdin)
	cmd.ExtraFiles = []*os.File{orders, answers, mounts}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("a process with mounts of its own can't be started: %w", err)
	}
	_, _ = orders.Close(), answers.Close()
	go func() { // the room may end before it has read all
		_, _ = orderEnd.Write(append(text, '\n'))
	}()
	over := make(chan struct{})
	defer close(over)
	failed, err := attend(cmd, answersFrom(answerEnd, over), owner, max(patience, what.Patience), each)
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

// roomCommand is the room's process. Its report of a failure is in said, if it has no terminal.
func roomCommand(ctx context.Context, o crash.Options, model bool, stdin *os.File) (cmd *exec.Cmd, said *tail) {
	cmd, said = o.Child(ctx, roomArgument), &tail{}
	how := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID, Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	cmd.SysProcAttr, cmd.WaitDelay = how, patience
	if model { // in a user namespace, where it may mount; its user and group stay
		how.Cloneflags |= syscall.CLONE_NEWUSER
		how.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
		how.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
		how.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN} // which execve(2) takes from all but root
	}
	if stdin != nil {
		cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, os.Stdout, os.Stderr
	} else {
		cmd.Stderr = said
		how.Setpgid = true // Ctrl-C is for this process alone
	}
	return cmd, said
}

// enterAway lets another kernel obey the order.
func enterAway(ctx context.Context, o crash.Options, order []byte, each func(*answer)) error {
	var failed error
	err := o.Room(ctx, []string{awayArgument}, order, func(from io.Reader) error {
		for a := range answersFrom(from, ctx.Done()) {
			if a.Err != "" {
				failed = errors.Join(failed, errors.New(a.Err))
			} else {
				each(a)
			}
		}
		return nil
	})
	return cmp.Or(context.Cause(ctx), failed, err)
}

// obey is the process in another kernel: it does what is ordered there.
func obey(o crash.Options, in io.Reader, out io.Writer) error {
	var what order
	if err := json.NewDecoder(in).Decode(&what); err != nil {
		return err
	}
	answers := json.NewEncoder(out)
	var failed error
	err := enter(context.Background(), o, what, nil, func(a *answer) { failed = errors.Join(failed, answers.Encode(a)) })
	return errors.Join(err, failed)
}

// answersFrom returns what a room says until it ends, or until nobody waits for it any more.
func answersFrom(room io.Reader, over <-chan struct{}) <-chan *answer {
	lines := make(chan *answer)
	go func() {
		defer close(lines)
		for in := json.NewDecoder(room); ; {
			a := &answer{}
			err := in.Decode(a)
			if err == io.EOF {
				return
			}
			if err != nil {
				a = &answer{Err: err.Error()}
			}
			select {
			case lines <- a:
			case <-over:
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return lines
}

// attend calls each with a room's answers until the room has ended. One that says nothing for too
// long, or does not end, may wait in the kernel for its disks: they are aborted. If that does not
// free it, it is killed, and if it does not end even then, it is left.
func attend(cmd *exec.Cmd, lines <-chan *answer, owner string, patience time.Duration, each func(*answer)) (failed, exit error) {
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	times := 0
	for silence := time.NewTimer(patience); lines != nil || ended != nil; silence.Reset(patience) {
		select {
		case a, ok := <-lines:
			switch {
			case !ok:
				lines = nil
			case a.Err != "":
				failed = errors.Join(failed, errors.New(a.Err))
			default:
				each(a)
			}
		case exit = <-ended:
			ended = nil
		case <-silence.C:
			if times++; times > 2 {
				return errors.Join(failed, errors.New("it can't be killed, and is left")), exit
			}
			failed = errors.Join(failed, fmt.Errorf("the processes of level power have said nothing for %v%s", patience, stuck(cmd.Process.Pid)), abortOwner(owner))
			if times == 2 {
				_ = cmd.Process.Kill()
			}
		}
	}
	return failed, exit
}

// stuck says which threads wait in the kernel where no signal ends the wait, of a process and of all
// in its namespace of processes.
func stuck(process int) (words string) {
	namespace := func(process string) string {
		name, _ := os.Readlink(filepath.Join(process, "ns/pid"))
		return name
	}
	of := namespace(fmt.Sprint("/proc/", process))
	threads, _ := filepath.Glob("/proc/[0-9]*/task/[0-9]*")
	for _, thread := range threads {
		stat, _ := os.ReadFile(filepath.Join(thread, "stat"))
		name, rest, _ := strings.Cut(string(stat), ") ")
		if !strings.HasPrefix(rest, "D") || of == "" || namespace(filepath.Dir(filepath.Dir(thread))) != of {
			continue
		}
		_, name, _ = strings.Cut(name, "(")
		stack, _ := os.ReadFile(filepath.Join(thread, "stack"))
		lines := strings.Split(strings.TrimSpace(string(stack)), "\n")
		words += fmt.Sprintf("; %s waits in %s", name, strings.Join(lines[:min(6, len(lines))], " "))
	}
	return words
}

// A tail keeps the last bytes that were written to it.
type tail struct{ b []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	t.b = t.b[max(0, len(t.b)-8000):]
	return len(p), nil
}

func (t *tail) String() string { return strings.TrimSpace(string(t.b)) }
