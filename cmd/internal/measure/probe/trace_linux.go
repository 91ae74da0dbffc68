package probe

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"github.com/holdfast-go/holdfast/internal/sys"
	"golang.org/x/sys/unix"
)

// A mark is prctl(2) with an option that no kernel has, so it does nothing but answer
// EINVAL. Its second and third argument distinguish it.
const (
	markOption = 0x686f6c64 // "hold"
	markSeal   = 0x66617374 // "fast"
	markBegin  = 1
	markEnd    = 2
)

// MarkSyscalls marks the beginning or the end of a count for [TraceSyscalls], if this program runs
// under it. Otherwise it does nothing. It may be called from any thread, and holds for all threads: no
// call before a mark is counted as one after it.
func MarkSyscalls(begin bool) error {
	place := uintptr(markEnd)
	if begin {
		place = markBegin
	}
	// Raw, because the Go runtime would add calls of its own around a call that
	// takes as long as this one under a tracer.
	_, _, errno := unix.RawSyscall6(unix.SYS_PRCTL, markOption, place, markSeal, 0, 0, 0)
	if errno != unix.EINVAL {
		return fmt.Errorf("system calls can't be counted: the mark is answered by %w, not by %w", errno, unix.EINVAL)
	}
	return nil
}

// TraceSyscalls runs cmd to its end, as cmd.Run does. It counts under ptrace(2) the system calls
// that its threads enter between [MarkSyscalls](true) and MarkSyscalls(false). It returns one
// SyscallCounts for each such pair, in order. It takes no rights beyond those to debug a child.
// Child processes of cmd are not counted.
//
// Each system call stops its thread twice, at some 20 µs more a call. BenchmarkTrace:
// 0.2 µs a call without it, 23 with it, on a virtual machine of two CPUs. The Go
// runtime then makes more or fewer calls of its own: Writes and Syncs are the same as in an undisturbed
// run, Total and every time are not. Never trace a run that is timed.
//
// An error that cmd.Run would return is returned unchanged, with the pairs that were
// complete. Marks that don't pair are an error too. Where nothing can be traced, the
// error says what forbids it, and cmd has done nothing. If cmd must end with a context,
// make it by [exec.CommandContext]. It needs Linux 5.3 (PTRACE_GET_SYSCALL_INFO).
func TraceSyscalls(cmd *exec.Cmd) ([]SyscallCounts, error) {
	if _, err := os.Stat("/proc/self/task"); err != nil {
		return nil, fmt.Errorf("system calls can't be counted: the threads of a process are not in /proc; mount it: %w", err)
	}
	// The tracer is a thread, and every request must come from it: ptrace(2).
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	attr := syscall.SysProcAttr{}
	if cmd.SysProcAttr != nil {
		attr = *cmd.SysProcAttr
	}
	attr.Ptrace = true // the child stops at its first instruction
	cmd.SysProcAttr = &attr
	if err := cmd.Start(); err != nil {
		if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) {
			return nil, traceError("PTRACE_TRACEME", err)
		}
		return nil, fmt.Errorf("system calls can't be counted: %w", err)
	}
	t := &tracer{leader: cmd.Process.Pid, threads: map[int]bool{cmd.Process.Pid: true}}
	err := t.run(cmd.Process.Kill)
	ended := cmd.Wait() // also after an error, to free its resources
	switch {
	case err != nil:
		return t.pairs, err
	case ended != nil:
		return t.pairs, ended
	case t.open:
		return t.pairs, errors.New("system calls can't be counted: the last mark begins and none ends")
	}
	return t.pairs, nil
}

// A tracer counts for all threads of one process.
type tracer struct {
	leader  int          // the process, which is also its first thread
	threads map[int]bool // the threads that have not ended
	open    bool         // between a begin and an end
	counts  SyscallCounts
	pairs   []SyscallCounts
}

const traceOptions = unix.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_EXITKILL

// seize moves the stopped child from PTRACE_TRACEME to PTRACE_SEIZE. Only the first can
// hold a program at its first instruction. Only under the second can a process that job
// control stops stay stopped. In between, a SIGSTOP holds it.
func (t *tracer) seize() error {
	if !t.inProcess(t.leader) {
		return fmt.Errorf("system calls can't be counted: the threads of process %d are not in /proc; mount it", t.leader)
	}
	if _, err := t.awaitStop(); err != nil {
		return err
	}
	if err := ptrace(unix.PTRACE_DETACH, t.leader, uintptr(unix.SIGSTOP)); err != nil {
		return traceError("PTRACE_DETACH", err)
	}
	if err := ptrace(unix.PTRACE_SEIZE, t.leader, traceOptions); err != nil {
		return traceError("PTRACE_SEIZE", err)
	}
	for {
		status, err := t.awaitStop()
		if err == nil {
			err = t.handle(t.leader, status)
		}
		if err != nil {
			return err
		}
		if int(status)>>16 == unix.PTRACE_EVENT_STOP {
			break
		}
	}
	if err := unix.Kill(t.leader, unix.SIGCONT); err != nil {
		return traceError("SIGCONT", err)
	}
	return nil
}

func (t *tracer) awaitStop() (unix.WaitStatus, error) {
	var status unix.WaitStatus
	err := sys.Uninterrupted(func() error {
		_, err := unix.Wait4(t.leader, &status, unix.WALL, nil)
		return err
	})
	if err != nil {
		return 0, traceError("wait4", err)
	}
	if !status.Stopped() {
		return 0, errors.New("system calls can't be counted: the program ended before it was traced")
	}
	return status, nil
}

// run serves the threads until the process is a zombie, and leaves that to
// cmd.Wait. After an error it kills the process and serves on.
func (t *tracer) run(kill func() error) error {
	failed := t.seize()
	if failed != nil {
		kill()
	}
	for {
		id, ended, err := t.next()
		if err != nil {
			kill()
			return errors.Join(failed, err)
		}
		if ended {
			return failed
		}
		if err := t.serve(id); err != nil && failed == nil {
			failed = err
			kill()
		}
	}
}

// childInfo is the siginfo_t that waitid(2) fills in.
type childInfo struct {
	signal, errno, code int32
	_                   [unsafe.Sizeof(uintptr(0))/4 - 1]int32 // the union is aligned like a pointer
	pid                 int32
	_                   [128]byte // it is of 128 bytes in all
}

// next waits for a thread with an event. Unlike wait(2) it leaves the event in place: it may belong to
// a child of another part of the program.
func (t *tracer) next() (id int, ended bool, err error) {
	for {
		id, exited, err := t.peek(unix.P_ALL, 0, 0)
		switch {
		case err != nil:
			return 0, false, traceError("waitid", err)
		case t.ours(id):
			return id, exited && id == t.leader, nil
		}
		// A zombie of another part of the program hides our events until it is fetched. So ask each
		// known thread.
		for known := range t.threads {
			if id, exited, err := t.peek(unix.P_PID, known, unix.WNOHANG); err == nil && id != 0 {
				return id, exited && id == t.leader, nil
			}
		}
		time.Sleep(100 * time.Microsecond)
	}
}

// From linux/wait.h and asm-generic/siginfo.h: see waitid(2).
const (
	wNoThread = 0x20000000 // __WNOTHREAD: only this thread's children and tracees
	cldExited = 1          // CLD_EXITED; between the two lies CLD_KILLED
	cldDumped = 3          // CLD_DUMPED
)

func (t *tracer) peek(kind, pid, flags int) (id int, exited bool, err error) {
	var info childInfo
	flags |= unix.WEXITED | unix.WSTOPPED | unix.WNOWAIT | unix.WALL | wNoThread
	err = sys.Uninterrupted(func() error {
		_, _, errno := unix.Syscall6(unix.SYS_WAITID, uintptr(kind), uintptr(pid), uintptr(unsafe.Pointer(&info)), uintptr(flags), 0, 0)
		if errno != 0 {
			return errno
		}
		return nil
	})
	exited = info.code >= cldExited && info.code <= cldDumped
	return int(info.pid), exited, err
}

// ours reports whether id is a thread of the traced process.
func (t *tracer) ours(id int) bool {
	if !t.threads[id] && t.inProcess(id) {
		t.threads[id] = true
	}
	return t.threads[id]
}

func (t *tracer) inProcess(id int) bool {
	_, err := os.Stat(fmt.Sprintf("/proc/%d/task/%d", t.leader, id))
	return err == nil
}

// serve fetches the event of a thread and handles it.
func (t *tracer) serve(id int) error {
	var status unix.WaitStatus
	got, err := unix.Wait4(id, &status, unix.WALL|unix.WNOHANG, nil)
	switch {
	case err == unix.EINTR, err == unix.ECHILD:
		return nil // next returns it again if it is still there
	case err != nil:
		return traceError("wait4", err)
	case got == 0:
		return nil
	case !status.Stopped():
		delete(t.threads, id)
		return nil
	}
	return t.handle(id, status)
}

// handle lets a stopped thread go on to its next stop at a system call. If a signal
// stopped it, it then gets that signal. A thread that job control stopped stays stopped.
func (t *tracer) handle(id int, status unix.WaitStatus) error {
	signal, event := status.StopSignal(), int(status)>>16
	switch {
	case signal == unix.SIGTRAP|0x80: // PTRACE_O_TRACESYSGOOD
		if err := t.count(id); err != nil {
			return err
		}
		return resume(unix.PTRACE_SYSCALL, id, 0)
	case event == unix.PTRACE_EVENT_CLONE:
		// The new thread may have stopped before, and so be known already.
		child, err := unix.PtraceGetEventMsg(id)
		if err != nil && err != unix.ESRCH {
			return traceError("PTRACE_GETEVENTMSG", err)
		}
		if err == nil {
			t.threads[int(child)] = true
		}
		return resume(unix.PTRACE_SYSCALL, id, 0)
	case event == unix.PTRACE_EVENT_STOP && slices.Contains(stopSignals, signal):
		return resume(unix.PTRACE_LISTEN, id, 0)
	case event == unix.PTRACE_EVENT_STOP && !t.inProcess(id):
		return resume(unix.PTRACE_DETACH, id, 0) // a process that clone(2) made without SIGCHLD
	case event != 0:
		return resume(unix.PTRACE_SYSCALL, id, 0)
	}
	return resume(unix.PTRACE_SYSCALL, id, signal)
}

// stopSignals are the signals of a stop by job control. Other stops are PTRACE_EVENT_STOP too:
// ptrace(2), Group-stop.
var stopSignals = []syscall.Signal{unix.SIGSTOP, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU}

// resume lets a thread go on. A thread that was killed meanwhile (ESRCH) is no error.
func resume(request, id int, signal syscall.Signal) error {
	if err := ptrace(request, id, uintptr(signal)); err != nil && err != unix.ESRCH {
		return traceError("ptrace", err)
	}
	return nil
}

// syscallInfo is struct ptrace_syscall_info of linux/ptrace.h, Linux 5.3, as it
// is at the entry of a system call. It is the same on every machine.
type syscallInfo struct {
	op   uint8
	_    [3]uint8
	arch uint32
	_    [2]uint64 // instruction and stack pointer
	nr   uint64
	args [6]uint64
	_    uint32 // ret_data of a seccomp stop
	_    uint32
}

// count counts a system call at its entry, unless it is a mark. A call that the kernel
// restarts after a signal enters twice; a tracepoint counts it twice too.
func (t *tracer) count(id int) error {
	var info syscallInfo
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_GET_SYSCALL_INFO, uintptr(id),
		unsafe.Sizeof(info), uintptr(unsafe.Pointer(&info)), 0, 0)
	switch {
	case errno == unix.ESRCH:
		return nil
	case errno != 0:
		return traceError("PTRACE_GET_SYSCALL_INFO", errno)
	case info.op != unix.PTRACE_SYSCALL_INFO_ENTRY:
		return nil
	case info.nr == unix.SYS_PRCTL && info.args[0] == markOption && info.args[2] == markSeal:
		switch place := info.args[1]; {
		case place == markBegin && !t.open:
			t.open, t.counts = true, SyscallCounts{}
		case place == markEnd && t.open:
			t.open, t.pairs = false, append(t.pairs, t.counts)
		default:
			return fmt.Errorf("system calls can't be counted: mark %d does not pair with the one before it (1 begins, 2 ends)", place)
		}
		return nil
	}
	t.counts.Total++
	if slices.Contains(writeCalls, int(info.nr)) {
		t.counts.Writes++
	}
	if slices.Contains(syncCalls, int(info.nr)) {
		t.counts.Syncs++
	}
	return nil
}

func ptrace(request, id int, data uintptr) error {
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, uintptr(request), uintptr(id), 0, data, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

func traceError(call string, err error) error {
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		scope, _ := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope")
		status, _ := os.ReadFile("/proc/self/status")
		return fmt.Errorf("system calls can't be counted: %s: %w; %s", call, err, whatForbids(strings.TrimSpace(string(scope)), string(status)))
	case errors.Is(err, unix.ENOSYS):
		return fmt.Errorf("system calls can't be counted: this kernel, or a filter on it, has no ptrace (%v): %w", err, errors.ErrUnsupported)
	case call == "PTRACE_GET_SYSCALL_INFO":
		return fmt.Errorf("system calls can't be counted: %s: %w; it takes Linux 5.3 (%w)", call, err, errors.ErrUnsupported)
	}
	return fmt.Errorf("system calls can't be counted: %s: %w", call, err)
}

// whatForbids returns the reason why this process can't trace its own child. It judges by the setting
// of Yama (Documentation/admin-guide/LSM/Yama.rst) and by proc_pid_status(5).
func whatForbids(yama, status string) string {
	fields := map[string]string{}
	for line := range strings.Lines(status) {
		name, value, _ := strings.Cut(line, ":")
		fields[name] = strings.TrimSpace(value)
	}
	switch {
	case yama == "3":
		return "kernel.yama.ptrace_scope is 3, which forbids it until the machine is restarted with another value"
	case yama == "2":
		return "kernel.yama.ptrace_scope is 2: run as root, give CAP_SYS_PTRACE, or set it to 1"
	case fields["TracerPid"] != "" && fields["TracerPid"] != "0":
		return "process " + fields["TracerPid"] + " traces this one already: run it without a debugger or strace"
	case fields["Seccomp"] == "2":
		return "a seccomp filter is on this process, as in a container: let it call ptrace (docker run --cap-add=SYS_PTRACE)"
	}
	return "this process may not trace its own child: run as root"
}
