package uml

import (
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
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/volume"
)

// Run boots the kernel and runs the guest until it ends, ctx is cancelled or its
// limit is over. Nil says that the program inside has ended without an error, and
// that all it wrote to the share is in the files outside. An error is ctx's, a
// [*GuestError] or a [*CrashError]. Nothing of the guest is left afterwards, no
// process and no file, but what it made in the share.
func (k Kernel) Run(ctx context.Context, g Guest) (err error) {
	if g.Line != nil {
		defer g.Line.Close() // a second time it does no harm
	}
	if err := g.check(); err != nil {
		return err
	}
	share, err := filepath.Abs(g.Share)
	if err == nil {
		share, err = filepath.EvalSymlinks(share)
	}
	if err != nil {
		return err
	}
	boot, err := os.MkdirTemp(share, volume.GuestPrefix)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(boot)) }()
	if err := k.prepare(g, boot, share); err != nil {
		return err
	}
	return k.boot(ctx, g, boot)
}

// prepare makes the guest's first root.
func (k Kernel) prepare(g Guest, boot, share string) error {
	modules, err := k.modules(g.Modules)
	if err != nil {
		return err
	}
	files, err := k.contents(order{Boot: boot, Share: share, Task: g.Task, Beat: g.Silence / beatsPer, Line: g.Line != nil}, modules)
	if err != nil {
		return err
	}
	return writeInitramfs(filepath.Join(boot, initrdName), files)
}

// boot runs the kernel in its boot folder.
func (k Kernel) boot(ctx context.Context, g Guest, boot string) error {
	limited, stop := context.WithCancel(ctx)
	defer stop()
	if g.Limit > 0 {
		defer time.AfterFunc(g.Limit, stop).Stop()
	}
	memory, err := memoryFolder(boot, max(g.Memory, defaultMemory))
	if err != nil {
		return err
	}
	told := &console{next: g.Console}
	if g.Silence > 0 {
		told.heard = watchSilence(limited, g.Silence, stop)
	}
	runErr := k.process(limited, g, boot, memory, told)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case limited.Err() != nil:
		return &CrashError{g.overdue(), told.lines}
	}
	return ending(boot, told, runErr)
}

// watchSilence calls stop when nothing was heard for a time, or a part of it more, unless
// ctx has ended. It counts parts: when this program was itself stopped (SIGTSTP) and goes
// on, no more than one of them is over, and what was told meanwhile is read in the next.
func watchSilence(ctx context.Context, silence time.Duration, stop func()) (heard func()) {
	signs := make(chan struct{}, 1)
	go func() {
		parts := time.NewTicker(silence / beatsPer)
		defer parts.Stop()
		for quiet := 0; quiet <= beatsPer; {
			select {
			case <-ctx.Done():
				return
			case <-signs:
				quiet = 0
			case <-parts.C:
				quiet++
			}
		}
		stop()
	}()
	return func() {
		select {
		case signs <- struct{}{}:
		default: // one is there already
		}
	}
}

// ending reads how the program inside has ended.
func ending(boot string, told *console, runErr error) error {
	var o outcome
	text, err := os.ReadFile(filepath.Join(boot, outcomeName))
	if err == nil {
		err = json.Unmarshal(text, &o)
	}
	switch {
	case err != nil && len(told.lines) == 0 && runErr != nil:
		return &CrashError{Why: "it could not be started: " + runErr.Error()}
	case err != nil:
		return &CrashError{told.end(), told.lines}
	case o.Err != "":
		return &GuestError{o.Err}
	}
	return nil
}

// overdue says why a guest was killed that nobody has cancelled.
func (g Guest) overdue() string {
	var why []string
	if g.Silence > 0 {
		why = append(why, fmt.Sprintf("gave no sign of life for %v", g.Silence))
	}
	if g.Limit > 0 {
		why = append(why, fmt.Sprintf("had not ended after %v", g.Limit))
	}
	return "the guest " + strings.Join(why, ", or ") + ", and was killed"
}

// process runs the kernel and all its helpers as one group of processes, none of
// which is left when it returns, nor when this program is killed.
func (k Kernel) process(ctx context.Context, g Guest, boot, memory string, told io.Writer) error {
	// A kernel is killed with the thread that has started it (prctl(2),
	// PR_SET_PDEATHSIG), which must therefore stay.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, k.Program, g.arguments()...)
	cmd.Dir = boot
	cmd.Env = []string{"HOME=" + boot, "TMPDIR=" + memory, "PATH=" + os.Getenv("PATH")}
	cmd.Stdout, cmd.Stderr = told, told // one and the same: one goroutine writes
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return killGroup(cmd.Process.Pid) }
	cmd.WaitDelay = time.Second
	if g.Line != nil {
		cmd.ExtraFiles = []*os.File{g.Line}
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	if g.Line != nil {
		_ = g.Line.Close() // so that the other end sees the end of the guest
	}
	release, err := keepWatch(cmd.Process.Pid)
	if err != nil {
		return errors.Join(err, killGroup(cmd.Process.Pid), cmd.Wait())
	}
	defer release()
	// A kernel that panics aborts: its core would be as large as its memory.
	_ = unix.Prlimit(cmd.Process.Pid, unix.RLIMIT_CORE, &unix.Rlimit{}, nil)
	err = cmd.Wait()
	_ = killGroup(cmd.Process.Pid)
	return err
}

// keepWatch starts a shell that kills the group when this program ends without having
// called release: the kernel's helpers would outlive both it and the kernel. The
// shell waits for the end of a pipe that nobody else has.
func keepWatch(group int) (release func(), err error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("/bin/sh", "-c", `read -r _; kill -s KILL -- "-$1"`, "sh", fmt.Sprint(group))
	cmd.Stdin = read
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := errors.Join(cmd.Start(), read.Close()); err != nil {
		return nil, errors.Join(err, write.Close())
	}
	return func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = write.Close()
	}, nil
}

func killGroup(leader int) error {
	err := syscall.Kill(-leader, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

// memoryFolder returns where the file can be that is the guest's memory: in memory
// itself if there is room, else beside the guest's files, where the kernel writes it
// to the disk now and then. The file has no name. It is mapped to be executed, which
// a file system can forbid.
func memoryFolder(boot string, size int64) (string, error) {
	// The kernel adds to the memory what it can't use of its addresses: about 490 MiB.
	const gap = 512 << 20
	for _, dir := range []string{"/dev/shm", boot, os.TempDir()} {
		var s unix.Statfs_t
		if unix.Statfs(dir, &s) == nil && s.Flags&unix.ST_NOEXEC == 0 &&
			int64(s.Bavail)*s.Bsize > size+gap && unix.Access(dir, unix.W_OK) == nil {
			return dir, nil
		}
	}
	return "", fmt.Errorf("User-Mode Linux needs %d MiB for its memory in a file that may be executed, and neither /dev/shm nor %s nor %s has it (mounted noexec, or full)",
		(size+gap)>>20, filepath.Dir(boot), os.TempDir())
}
