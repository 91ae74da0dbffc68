//go:build unix

package prove

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// CanKill says why level kill can't be had here; "" is that it can.
const CanKill = ""

// A chain is runs in one directory: each but the last is killed, and the next goes on with what it left.
const chainRuns = 5

// killers is how many chains run at a time: most of each is the start of a process.
const killers = 3

// byKill makes the verdict of level kill.
func (v *Verdict) byKill(ctx context.Context, w *Workload, o Options, most time.Duration) error {
	end := time.Now().Add(most)
	var mu sync.Mutex
	errs := make([]error, killers)
	var group sync.WaitGroup
	for i := range killers {
		group.Go(func() {
			r := rand.New(rand.NewPCG(v.Seed, uint64(i)))
			for first := i == 0; errs[i] == nil && ctx.Err() == nil && (first || time.Now().Before(end)); first = false {
				mu.Lock()
				over := v.Failure != nil
				mu.Unlock()
				if over {
					return
				}
				errs[i] = v.chain(ctx, w, o, r, &mu)
			}
		})
	}
	group.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errors.Join(errs...)
}

// chain runs a workload in a new directory, kills it, and lets it go on, again and again.
func (v *Verdict) chain(ctx context.Context, w *Workload, o Options, r *rand.Rand, mu *sync.Mutex) (err error) {
	top, err := os.MkdirTemp(o.Dir, "holdfast-prove-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(top)) }()
	dir := filepath.Join(top, "d")
	if err := os.Mkdir(dir, 0o777); err != nil {
		return err
	}
	targets := w.Targets(v.Policy)
	before := newSurvivors(len(targets))
	for number := range chainRuns {
		c := NewChecker(targets, v.Loss)
		c.Inherit(before)
		killed := number < chainRuns-1
		file := filepath.Join(top, fmt.Sprint("notes", number))
		cmd := o.Child(ctx, w.Name, v.Policy.String(), dir, file, strconv.FormatUint(r.Uint64(), 10), strconv.Itoa(number))
		notes, now, err := runAndKill(cmd, file, killed, time.Duration(r.Int64N(int64(12*time.Millisecond))))
		if err != nil {
			return err
		}
		for _, n := range notes {
			c.Note(n)
		}
		if before, err = Survey(dir, targets); err != nil {
			return err
		}
		violation := c.Judge(Process, before, now, -1)
		if !killed {
			c.Tally.TemporaryEnd = before.Temporaries
			if violation == nil {
				violation = w.Leaves(before)
			}
		}
		mu.Lock()
		v.Tally.Add(c.Tally)
		if killed {
			v.Kills++
		}
		if violation != nil && v.Failure == nil {
			v.Failure = &Failure{Violation: violation, State: State{Crash: Process}, Words: violation.Words, Targets: targets, Loss: v.Loss, Kill: number + 1}
		}
		mu.Unlock()
		if violation != nil {
			return nil
		}
	}
	return nil
}

// runAndKill starts a child, and kills its process group some time after its first note, or lets
// it end in order. It returns what it noted.
func runAndKill(cmd *exec.Cmd, file string, kill bool, after time.Duration) ([]Note, int64, error) {
	shared, err := ShareNotes(file)
	if err != nil {
		return nil, 0, err
	}
	defer shared.Close()
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if err := cmd.Start(); err != nil {
		return nil, 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for begun := false; !begun; {
		select {
		case err := <-ended: // it had nothing to do, or fails
			if err != nil {
				err = fmt.Errorf("the child failed: %w: %s", err, said.String())
			}
			return shared.All(), time.Now().UnixNano(), err
		case <-time.After(200 * time.Microsecond):
			begun = shared.Begun() > 0
		}
	}
	time.Sleep(after)
	if kill {
		err = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	} else {
		shared.End(0)
	}
	now := time.Now().UnixNano()
	waited := <-ended
	switch {
	case errors.Is(err, syscall.ESRCH):
		err = nil // it has made all that it makes
	case waited != nil && !(kill && cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL):
		err = errors.Join(err, fmt.Errorf("the child failed: %w: %s", waited, said.String()))
	}
	return shared.All(), now, err
}

// Survey says what is there below a directory.
func Survey(dir string, targets []Target) (*Survivors, error) {
	s := newSurvivors(len(targets))
	paths, ids := byPath(targets)
	for _, p := range paths {
		data, err := real{dir}.ReadFile(p)
		if err != nil {
			return nil, err
		}
		s.Survey(targets, ids[p], data)
	}
	return s, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && IsTemporary(d.Name()) {
			s.Temporaries++
		}
		return err
	})
}
