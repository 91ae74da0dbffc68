package powercut

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash"
)

// modelTop is where the room of the model has its tmpfs. The directory exists for mounts, and no
// program looks for its files in it.
const modelTop = "/sys/fs/fuse/connections"

// canModel tries what the model needs: a room, and a mount in it.
func canModel(ctx context.Context, o crash.Options) error {
	if err := unix.Access("/dev/fuse", unix.R_OK|unix.W_OK); err != nil {
		return fmt.Errorf("%s: /dev/fuse can't be opened: %w", Model, err)
	}
	if err := enter(ctx, o, order{Model: true}, nil, func(*answer) {}); err != nil {
		if errors.Is(err, unix.ENOSPC) { // clone(2)
			err = fmt.Errorf("%w: /proc/sys/user/max_user_namespaces bounds them", err)
		}
		return fmt.Errorf("%s: a user namespace with mounts of its own is refused: %w", Model, err)
	}
	return nil
}

// serveTree starts the process that serves a tree, and mounts it. That process has the mounts from
// before, as all that serve have: see outside.
func (r *room) serveTree(ctx context.Context, c *cell, how string) (d *disk, err error) {
	d = &disk{point: c.in("mount"), log: c.in("log"), ended: make(chan error, 1)}
	if err := os.Mkdir(d.point, 0o700); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(d.log, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	if d.notes, err = crash.NewNotes(); err != nil {
		return nil, err
	}
	counted := d.notes.File()
	if how == countsPrinted {
		if counted, err = os.OpenFile(c.in("printed"), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
			return nil, errors.Join(err, d.notes.Close())
		}
		defer counted.Close()
	}
	number, err := openFuse()
	if err != nil {
		return nil, errors.Join(err, d.notes.Close())
	}
	device := os.NewFile(uintptr(number), "/dev/fuse")
	defer device.Close() // from then on the connection ends with the process
	var said tail
	cmd := r.child(ctx, treeArgument, how)
	cmd.Stderr = &said
	begin, err := cmd.StdinPipe() // a device can't be read before the mount
	if err != nil {
		return nil, errors.Join(err, d.notes.Close())
	}
	cmd.ExtraFiles = []*os.File{device, log, counted}
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, d.notes.Close())
	}
	d.kill = func() { _ = cmd.Process.Kill() }
	go func() {
		err := cmd.Wait()
		if err != nil {
			err = fmt.Errorf("the server's process: %w: %s", err, &said)
		}
		d.ended <- err
	}()
	if err := mountTree(number, d.point, "holdfast-model"); err != nil {
		d.kill()
		<-d.ended
		return nil, errors.Join(err, d.notes.Close())
	}
	c.disk.Store(d)
	if err := begin.Close(); err != nil {
		return nil, errors.Join(err, d.detach())
	}
	return d, nil
}

// serveTreeHere is the server's process.
func serveTreeHere(how string) error {
	notes, err := counter(how, 5)
	if err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	return (&treeServer{server: server{device: 3, file: 4, notes: notes}}).serve()
}

// recordTree runs what a cell is about on a tree of files, and returns the log.
func (r *room) recordTree(c *cell, long time.Duration, number int, seed uint64, there crash.Tree) (l *crash.Log, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience+long)
	defer cancel()
	if err := os.Mkdir(c.dir, 0o700); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(inTime(ctx, err), os.RemoveAll(c.dir)) }()
	l = &crash.Log{Workload: c.Workload.Name, Policy: c.Policy.String(), Seed: seed, Sector: 512, FS: Model, Again: number > 0, Program: r.order.programOf(c)}
	how := countsNotes
	if l.Program != nil {
		how = countsPrinted
	}
	c.step("start of the server's process")
	d, err := r.serveTree(ctx, c, how)
	if err != nil {
		return nil, err
	}
	defer func() {
		c.step("end of the server's process")
		err = errors.Join(err, d.detach())
	}()
	if err := there.Write(d.point); err != nil {
		return nil, err
	}
	start, err := d.entries()
	if err != nil {
		return nil, err
	}
	if l.Program != nil {
		_, err = r.workOfProgram(ctx, c, d.point, d, long, 0)
	} else {
		_, err = r.work(ctx, c, d.point, d, long, seed, number, false)
	}
	if err != nil && unix.Statfs(d.point, &unix.Statfs_t{}) == nil { // the server is not to blame
		err = &crash.RunError{Err: err}
	}
	if err != nil {
		return nil, err
	}
	all, err := d.entries()
	if err != nil {
		return nil, err
	}
	notes, upTo := d.notes.All(), func(counted uint64) int { return int(counted) }
	if l.Program != nil {
		if notes, upTo, err = printedNotes(c.in("printed")); err != nil {
			return nil, err
		}
	}
	addEntries(l, all, len(start), notes, upTo, c.liar == noFlush, nil)
	return l, nil
}

// detach ends the server's process, whoever still uses its files.
func (d *disk) detach() error {
	err := errors.Join(unix.Unmount(d.point, unix.MNT_DETACH), d.notes.Close())
	select {
	case ended := <-d.ended:
		return errors.Join(err, ended)
	case <-time.After(time.Second):
	}
	d.kill()
	<-d.ended
	return err
}

// againFor is how long a run on a crash state writes.
const againFor = 20 * time.Millisecond

// judgeModel makes the verdict of a cell of the model.
func (r *room) judgeModel(c *cell, end time.Time) (*crash.Verdict, error) {
	began := time.Now()
	v := c.verdict()
	long := c.lasts(end)
	e := crash.Exploration{States: r.order.States, End: end}
	e.Record = func(number int, seed uint64, there crash.Tree) (*crash.Log, error) {
		lasts := long
		if number > 0 {
			lasts = againFor
		}
		l, err := r.recordTree(c, lasts, number, seed, there)
		c.step("states")
		return l, err
	}
	if read := readerOf(r.top, r.order.programOf(c), c.Workload, c.Policy); read != nil {
		e.Read = func(t crash.Tree) (*crash.Survivors, error) {
			c.step("reading a state")
			return read(t)
		}
	}
	if err := v.Explore(c.Workload, e); err != nil {
		return nil, err
	}
	switch f := v.Failure; {
	case f == nil:
	case v.IsLiar():
		f.Log = nil // a liar's files are not kept
	default:
		f.Shrink()
	}
	v.Elapsed = time.Since(began)
	return v, nil
}

// readerOf returns what says what is in a tree: in a new directory the program's reader does, or the
// workload. It is nil if the paths of the workload's targets say that.
func readerOf(in string, p *crash.Program, w *crash.Workload, policy holdfast.Policy) func(crash.Tree) (*crash.Survivors, error) {
	targets := w.Targets(policy)
	read := func(dir string) (*crash.Survivors, error) { return w.Look(dir, targets) }
	if p != nil {
		read = func(dir string) (*crash.Survivors, error) {
			ctx, cancel := context.WithTimeout(context.Background(), patience/2)
			defer cancel()
			return p.Survey(ctx, dir)
		}
	} else if w.Survey == nil {
		return nil
	}
	return func(t crash.Tree) (s *crash.Survivors, err error) {
		err = withTree(in, t, func(dir string) (err error) {
			s, err = read(dir)
			return err
		})
		if n := len(targets); s == nil {
			s = &crash.Survivors{N: make([]uint64, n), Disorder: make([]bool, n), Half: make([]bool, n)}
		}
		return s, err
	}
}

// withTree calls fn with a directory that has a tree, and removes it.
func withTree(in string, t crash.Tree, fn func(dir string) error) error {
	dir, remove, err := crash.Options{Dir: in}.Directory()
	if err != nil {
		return err
	}
	if err = t.Write(dir); err == nil {
		err = fn(dir)
	}
	return errors.Join(err, remove())
}

// replayModel judges a state of the model again. It needs no namespace: nothing is mounted.
func replayModel(ctx context.Context, o crash.Options, f *crash.Failure, look string) (*crash.Violation, error) {
	if look != "" {
		err := withTree(o.Dir, f.Tree(), func(dir string) error {
			cmd := exec.CommandContext(ctx, "sh", "-c", look)
			cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = dir, os.Stdin, os.Stdout, os.Stderr
			return cmd.Run()
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", look, err)
		}
	}
	w, p := crash.Find(o.Workloads, f.Log.Workload), f.Log.Program
	policy, err := holdfast.ParsePolicy(f.Log.Policy)
	if p != nil {
		w, policy, err = p.Workload(), holdfast.Unbuffered(), nil // a program has none
		f.Targets, f.Loss = w.Targets(policy), w.Loss(policy)
	}
	if rule := f.Violation.Rule; p != nil && (rule == "again" || rule == "hang") { // it is run once more
		var v *crash.Violation
		err := withTree(o.Dir, f.Tree(), func(dir string) error {
			before, err := p.Survey(ctx, dir)
			if err != nil {
				return err
			}
			_, v, err = p.RunAgain(ctx, dir, before)
			return err
		})
		return v, err
	}
	if w != nil && err == nil { // else Replay says so
		f.Read = readerOf(o.Dir, p, w, policy)
	}
	return f.Replay(o.Workloads)
}
