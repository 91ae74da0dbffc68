package copies

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/dev/peers/internal/command"
	"github.com/holdfast-go/holdfast/filecopy"
)

type (
	// A race is a job in one state of the page cache.
	race  = command.Group[raced, how]
	arm   = command.Arm[how]
	raced struct {
		job
		state state
	}
)

// how is how an arm copies.
type how struct {
	// most is how many files of a job it copies, so that an arm with a process for each
	// of them ends; 0 is all. Its figures are per file all the same.
	most int
	// can says of a job whether the arm can do it; nil is any.
	can     func(job) bool
	command bool // it is our own command, which is built before
	// copies copies; it is in the clock.
	copies func(ctx context.Context, j job, from, to string) error
}

// races are all jobs in the states.
func races(quick bool, states []state) (all []*race) {
	for _, j := range jobs(quick) {
		for _, s := range states {
			r := &race{Name: j.name + "/" + string(s), Title: j.title + ", " + string(s), Unit: "file", Job: raced{j, s}}
			for _, a := range everybody() {
				if a.Do.can == nil || a.Do.can(j) {
					r.Arms = append(r.Arms, a)
				}
			}
			r.Notes = []string{"In the clock: from nothing until every copy is written and closed, and synced where that is asked for."}
			all = append(all, r)
		}
	}
	return all
}

func everybody() []*arm {
	plain := func(j job) bool { return !j.durable }
	alone := func(j job) bool { return j.alone }
	tree := func(j job) bool { return !j.alone && !j.durable }
	lasting := func(j job) bool { return j.durable }
	return []*arm{
		{Name: "holdfast", Note: "Copy, or CopyAll of the directory; where it has to be durable, sync=close", Do: how{copies: byHoldfast(filecopy.Options{})}},
		{Name: "holdfast (twin)", Note: command.Twin, Do: how{copies: byHoldfast(filecopy.Options{})}},
		{Name: "holdfast command", Note: "the command holdfast copy of all files; its start is in the clock, as the start of every other program is", Do: how{can: plain, command: true, copies: program("holdfast", "copy", "--quiet")}},
		{Name: "holdfast atomic", Note: "CopyAll, Atomic", Do: how{can: lasting, copies: byHoldfast(filecopy.Options{Atomic: true})}},
		{Name: "io.Copy", Note: "os.Open, os.Create, io.Copy, Close", Do: how{can: plain, copies: eachFile(ioCopy)}},
		{Name: "io.Copy, 1 MiB", Note: "the same by read and write with a buffer of 1 MiB: io.CopyBuffer, hidden from the kernel's own copying", Do: how{can: alone, copies: eachFile(bufferCopy)}},
		{Name: "os.CopyFS", Note: "of the directory", Do: how{can: tree, copies: copyFS}},
		{Name: "cp", Note: "of coreutils; cp -r of a directory", Do: how{can: plain, copies: program("cp", "-r")}},
		{Name: "cp, times kept", Note: "cp -r --preserve=timestamps, which keeps the times as ours does", Do: how{can: tree, copies: program("cp", "-r", "--preserve=timestamps")}},
		{Name: "rsync", Note: "rsync --whole-file --archive", Do: how{can: plain, copies: rsync}},
		{Name: "cat", Note: "a process for each file", Do: how{most: 50, can: alone, copies: eachFile(cat)}},
		{Name: "dd 64K", Note: "bs=64K, a process for each file", Do: how{most: 50, can: alone, copies: eachFile(dd("64K"))}},
		{Name: "dd 1M", Note: "bs=1M, a process for each file", Do: how{most: 50, can: alone, copies: eachFile(dd("1M"))}},
		{Name: "cp, sync", Note: "cp -r, then sync of all files in one process, one after the other", Do: how{can: lasting, copies: thenSync}},
		{Name: "io.Copy, fsync", Note: "io.Copy and Sync, one file after the other; then the directory", Do: how{can: lasting, copies: syncEach}},
	}
}

// byHoldfast copies by our own functions.
func byHoldfast(o filecopy.Options) func(context.Context, job, string, string) error {
	return func(ctx context.Context, j job, from, to string) error {
		if j.durable && !o.Atomic {
			o.Policy.Sync = holdfast.Sync{Mode: holdfast.SyncClose}
		}
		if !j.alone {
			_, err := filecopy.All(ctx, func(yield func(string, string) bool) { yield(to, from) }, o)
			return err
		}
		return eachFile(func(ctx context.Context, from, to string) error {
			_, err := filecopy.File(ctx, to, from, o)
			return err
		})(ctx, j, from, to)
	}
}

// eachFile copies the files one by one, into a directory that it makes.
func eachFile(one func(ctx context.Context, from, to string) error) func(context.Context, job, string, string) error {
	return func(ctx context.Context, j job, from, to string) error {
		if err := j.makeDirs(to); err != nil {
			return err
		}
		copies := j.paths(to)
		for i, path := range j.paths(from) {
			if err := one(ctx, path, copies[i]); err != nil {
				return err
			}
		}
		return nil
	}
}

func (j job) makeDirs(dir string) error {
	err := os.Mkdir(dir, 0o777)
	for i := range j.dirs {
		err = errors.Join(err, os.Mkdir(filepath.Join(dir, fmt.Sprintf("%03d", i)), 0o777))
	}
	return err
}

func ioCopy(_ context.Context, from, to string) error {
	return between(from, to, func(w, r *os.File) error {
		_, err := io.Copy(w, r)
		return err
	})
}

// plainReader and plainWriter hide what lets the kernel copy.
type (
	plainReader struct{ io.Reader }
	plainWriter struct{ io.Writer }
)

func bufferCopy(_ context.Context, from, to string) error {
	return between(from, to, func(w, r *os.File) error {
		_, err := io.CopyBuffer(plainWriter{w}, plainReader{r}, make([]byte, mib))
		return err
	})
}

func between(from, to string, do func(w, r *os.File) error) (err error) {
	r, err := os.Open(from)
	if err != nil {
		return err
	}
	defer r.Close()
	w, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	return do(w, r)
}

func syncEach(ctx context.Context, j job, from, to string) error {
	err := eachFile(func(_ context.Context, from, to string) error {
		return between(from, to, func(w, r *os.File) error {
			_, err := io.Copy(w, r)
			return errors.Join(err, w.Sync())
		})
	})(ctx, j, from, to)
	if err != nil {
		return err
	}
	d, err := os.Open(to)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func copyFS(_ context.Context, _ job, from, to string) error { return os.CopyFS(to, os.DirFS(from)) }

// program copies all with one process. It copies a directory as one, or all files of a job of
// single ones into an existing directory.
func program(name string, args ...string) func(context.Context, job, string, string) error {
	return func(ctx context.Context, j job, from, to string) error {
		if !j.alone {
			return run(ctx, name, append(args, from, to)...)
		}
		if err := j.makeDirs(to); err != nil {
			return err
		}
		return run(ctx, name, append(append(args, j.paths(from)...), to)...)
	}
}

func rsync(ctx context.Context, j job, from, to string) error {
	return run(ctx, "rsync", "--whole-file", "--archive", from+"/", to)
}

func cat(ctx context.Context, from, to string) error {
	return between(from, to, func(w, _ *os.File) error {
		cmd := exec.CommandContext(ctx, "cat", from)
		cmd.Stdout = w
		return cmd.Run()
	})
}

func dd(block string) func(ctx context.Context, from, to string) error {
	return func(ctx context.Context, from, to string) error {
		return run(ctx, "dd", "if="+from, "of="+to, "bs="+block, "status=none")
	}
}

func thenSync(ctx context.Context, j job, from, to string) error {
	if err := run(ctx, "cp", "-r", from, to); err != nil {
		return err
	}
	return run(ctx, "sync", append(j.paths(to), to)...)
}

func run(ctx context.Context, name string, args ...string) error {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("%s is not installed (%w)", name, errors.ErrUnsupported)
	}
	if err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, bytes.TrimSpace(out))
	}
	return nil
}
