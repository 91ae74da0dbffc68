package uml

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/volume"
	"github.com/holdfast-go/holdfast/internal/workdir"
)

// Run boots the kernel and runs the guest until it ends, ctx is cancelled or its
// limit is over. After nil, the program inside has ended without an error, and
// all it wrote to the share is in the files outside. An error is ctx's, a
// [*GuestError] or a [*CrashError]. Afterwards no process of the guest is left, and no file except
// in the share.
func (k Kernel) Run(ctx context.Context, g Guest) (err error) {
	if g.Line != nil {
		defer g.Line.Close() // a second time it does no harm
	}
	if err := g.check(); err != nil {
		return err
	}
	share, err := filepath.Abs(g.Share)
	if err != nil {
		return err
	}
	share, release, err := workdir.At(share)
	if err != nil {
		return err
	}
	defer release()
	boot, err := workdir.Make(share, volume.GuestPrefix+strconv.FormatUint(rand.Uint64(), 10))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, boot.Empty(), boot.Remove(), boot.Close()) }()
	dir := boot.Path()
	modules, err := k.modules(g.Modules)
	if err != nil {
		return err
	}
	files, err := thisProgram()
	if err != nil {
		return err
	}
	o := order{Boot: atItself(dir), Share: atItself(share), Task: g.Task, Beat: g.Silence / beatsPer, Line: g.Line != nil}
	if g.Tools {
		o.Tools = cmp.Or(os.Getenv("PATH"), "/usr/bin:/bin")
	}
	for _, m := range modules {
		inside := path.Join(modulePath, path.Base(m))
		files = append(files, packed{path: inside, mode: 0o644, from: filepath.Join(k.Modules, m)})
		o.Modules = append(o.Modules, inside)
	}
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	files = append(files, packed{path: orderPath, mode: 0o644, text: text})
	if err := writeInitramfs(filepath.Join(dir, initrdName), files); err != nil {
		return err
	}
	return k.boot(ctx, g, dir)
}

// atItself makes hostfs stay in the directory that is open. Without the dot, hostfs reads
// where the path leads and then uses the name that it found.
func atItself(dir string) string { return dir + "/." }

// boot runs the kernel in its boot directory.
func (k Kernel) boot(ctx context.Context, g Guest, boot string) error {
	limited, stop := context.WithCancel(ctx)
	defer stop()
	if g.Limit > 0 {
		defer time.AfterFunc(g.Limit, stop).Stop()
	}
	memory, err := memoryDir(boot, max(g.Memory, defaultMemory))
	if err != nil {
		return err
	}
	printed := &console{next: g.Console}
	if g.Silence > 0 {
		printed.heard = watchSilence(limited, g.Silence, stop)
	}
	ran := make(chan error)
	go func() { ran <- k.process(limited, g, boot, memory, printed) }()
	runErr := <-ran
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if limited.Err() != nil {
		var why []string
		if g.Silence > 0 {
			why = append(why, fmt.Sprintf("gave no sign of life for %v", g.Silence))
		}
		if g.Limit > 0 {
			why = append(why, fmt.Sprintf("had not ended after %v", g.Limit))
		}
		return &CrashError{"the guest " + strings.Join(why, ", or ") + ", and was killed", printed.lines}
	}
	var o outcome
	text, err := os.ReadFile(filepath.Join(boot, outcomeName))
	if err == nil {
		err = json.Unmarshal(text, &o)
	}
	switch {
	case err != nil && len(printed.lines) == 0 && runErr != nil:
		return &CrashError{Why: "it could not be started: " + runErr.Error()}
	case err != nil:
		return &CrashError{printed.end(), printed.lines}
	case o.Err != "":
		return &GuestError{o.Err}
	}
	return nil
}

// watchSilence calls stop when nothing was heard for a time, or a part of it more,
// unless ctx has ended. It counts parts of the time. If this program was itself stopped
// (SIGTSTP) and goes on, at most one part has passed for it. It reads in the next part
// what the guest has printed in the meantime.
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

// process runs the kernel and all its helpers as one group of processes. None of them
// is left when it returns, nor when this program is killed. It wants a goroutine of its own.
func (k Kernel) process(ctx context.Context, g Guest, boot, memory string, printed io.Writer) error {
	// When the thread ends that has started a kernel, the kernel is killed (prctl(2),
	// PR_SET_PDEATHSIG). So this thread must stay. It ends with this goroutine.
	runtime.LockOSThread()
	arguments := g.arguments()
	if wide() {
		if err := oldRegisters(); err != nil {
			return err
		}
		arguments = append(arguments, narrow...)
	}
	cmd := exec.CommandContext(ctx, k.Program, arguments...)
	cmd.Dir = boot
	cmd.Env = []string{"HOME=" + boot, "TMPDIR=" + memory, "PATH=" + os.Getenv("PATH")}
	cmd.Stdout, cmd.Stderr = printed, printed // one and the same: one goroutine writes
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
	// A kernel that panics aborts: its core would be as large as its memory.
	_ = unix.Prlimit(cmd.Process.Pid, unix.RLIMIT_CORE, &unix.Rlimit{}, nil)
	// The group is killed while its leader is a zombie: behind Wait, another process may have that number.
	for err = unix.EINTR; err == unix.EINTR; {
		err = unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
	}
	_ = killGroup(cmd.Process.Pid)
	release()
	return cmd.Wait()
}

// keepWatch starts a shell that kills the group if this program ends without calling release. Else
// the kernel's helpers would outlive both this program and the kernel. The shell waits for the end
// of a pipe that no other process has.
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

// memoryDir returns the directory for the file that is the guest's memory. It prefers a
// file system in memory if it has room. Beside the guest's files, the kernel writes
// the memory to the disk now and then. The file has no name. It is mapped to be
// executed, which a file system can forbid.
func memoryDir(boot string, size int64) (string, error) {
	// The kernel adds the addresses that it can't use to the memory: about 490 MiB.
	const gap = 512 << 20
	for _, dir := range []string{"/dev/shm", boot, os.TempDir()} {
		var s unix.Statfs_t
		if unix.Statfs(dir, &s) == nil && s.Flags&unix.ST_NOEXEC == 0 &&
			int64(s.Bavail)*int64(s.Bsize) > size+gap && unix.Access(dir, unix.W_OK) == nil {
			return dir, nil
		}
	}
	return "", fmt.Errorf("User-Mode Linux needs %d MiB for its memory in a file that may be executed, and neither /dev/shm nor %s nor %s has it (mounted noexec, or full)",
		(size+gap)>>20, filepath.Dir(boot), os.TempDir())
}

// self is the file that runs, even if it was replaced or removed meanwhile.
const self = "/proc/self/exe"

// thisProgram lists what the program needs to run elsewhere. First is itself, as the init. If it is
// linked dynamically, its interpreter and its shared libraries follow. The interpreter lists them in
// place of a run (ldd(1)).
//
// Note: debug/elf would link debug/dwarf too, which are a fiftieth of the CPU time of a cold build.
func thisProgram() ([]packed, error) {
	files := []packed{{path: initPath, mode: 0o755, from: self}}
	list := exec.Command(self, "version")
	list.Env = append(os.Environ(), "LD_TRACE_LOADED_OBJECTS=1")
	out, err := list.Output()
	var refused *exec.ExitError
	if err != nil && !errors.As(err, &refused) { // a static test program knows no version
		return nil, fmt.Errorf("listing the libraries of this program: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		// A library is "name => file (address)", the interpreter "file (address)".
		line, _, _ = strings.Cut(strings.TrimSpace(line), " (0x")
		name, from, isLibrary := strings.Cut(line, " => ")
		if !isLibrary {
			from = name
		}
		if !path.IsAbs(name) {
			name = path.Join(libraryPath, name)
		}
		if path.IsAbs(from) { // the kernel's own has no file
			files = append(files, packed{path: name, mode: 0o755, from: from})
		}
	}
	return files, nil
}
