package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/filecopy"
	"github.com/holdfast-go/holdfast/peers/internal/command"
)

// An arm is a program or library that copies.
type arm struct {
	name, note string
	// most is how many files of a job it copies, so that an arm with a process for each
	// of them ends; 0 is all. Its figures are those of a file all the same.
	most int
	// can says of a job whether the arm can do it; nil is any.
	can func(job) bool
	// copies copies; it is in the clock.
	copies func(ctx context.Context, j job, from, to string) error
}

// arms are all that can do the job; the first is ours, the second its twin.
func arms(j job) (able []arm) {
	for _, a := range everybody() {
		if a.can == nil || a.can(j) {
			able = append(able, a)
		}
	}
	return able
}

func everybody() []arm {
	plain := func(j job) bool { return !j.durable }
	alone := func(j job) bool { return j.alone }
	tree := func(j job) bool { return !j.alone && !j.durable }
	lasting := func(j job) bool { return j.durable }
	return []arm{
		{name: "holdfast", note: "Copy, or CopyAll of the directory; where it has to be durable, sync=close", copies: byHoldfast(filecopy.Options{})},
		{name: "holdfast (twin)", note: command.Twin, copies: byHoldfast(filecopy.Options{})},
		{name: "holdfast process", note: "the same, and the start of its process is in the clock, as a program's is", copies: bySelf},
		{name: "holdfast atomic", note: "CopyAll, Atomic", can: lasting, copies: byHoldfast(filecopy.Options{Atomic: true})},
		{name: "io.Copy", note: "os.Open, os.Create, io.Copy, Close", can: plain, copies: eachFile(ioCopy)},
		{name: "io.Copy, 1 MiB", note: "the same by read and write with a buffer of 1 MiB: io.CopyBuffer, hidden from the kernel's own copying", can: alone, copies: eachFile(bufferCopy)},
		{name: "os.CopyFS", note: "of the directory", can: tree, copies: copyFS},
		{name: "cp", note: "of coreutils; cp -r of a directory", can: plain, copies: program("cp", "-r")},
		{name: "cp, times kept", note: "cp -r --preserve=timestamps, which keeps the times as ours does", can: tree, copies: program("cp", "-r", "--preserve=timestamps")},
		{name: "rsync", note: "rsync --whole-file --archive", can: plain, copies: rsync},
		{name: "cat", note: "a process for each file", most: 50, can: alone, copies: eachFile(cat)},
		{name: "dd 64K", note: "bs=64K, a process for each file", most: 50, can: alone, copies: eachFile(dd("64K"))},
		{name: "dd 1M", note: "bs=1M, a process for each file", most: 50, can: alone, copies: eachFile(dd("1M"))},
		{name: "cp, sync", note: "cp -r, then sync of all files in one process, one after the other", can: lasting, copies: thenSync},
		{name: "io.Copy, fsync", note: "io.Copy and Sync, one file after the other; then the directory", can: lasting, copies: syncEach},
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

// versions are those of the compared programs.
func versions(ctx context.Context) (list []string) {
	for _, name := range []string{"cp", "rsync", "dd", "cat"} {
		out, err := exec.CommandContext(ctx, name, "--version").Output()
		if err != nil {
			list = append(list, name+" is not installed")
			continue
		}
		line, _, _ := strings.Cut(string(out), "\n")
		list = append(list, strings.Join(strings.Fields(line), " "))
	}
	return list
}
