package probe

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// tracefsDirs are where tracefs is mounted, newer place first.
var tracefsDirs = []string{"/sys/kernel/tracing", "/sys/kernel/debug/tracing"}

// The system calls that are counted apart.
var (
	writeCalls = []int{unix.SYS_WRITE, unix.SYS_PWRITE64, unix.SYS_WRITEV, unix.SYS_PWRITEV, unix.SYS_PWRITEV2}
	syncCalls  = []int{unix.SYS_FSYNC, unix.SYS_FDATASYNC, syncFileRange, unix.SYS_SYNCFS}
)

// A SyscallCounter counts the system calls of all threads of this process in the kernel, without
// tracing. Threads that start later are counted too. Child processes are not (before Linux 5.13 they
// are).
type SyscallCounter struct {
	total, writes, syncs []int // perf events, one for each thread that Start found
}

// StartSyscallCounter starts to count. It counts with perf_event_open(2) on the
// tracepoint raw_syscalls:sys_enter, which takes root (or
// CAP_PERFMON and a readable tracefs). An error says what is missing; it wraps
// [errors.ErrUnsupported] where this system has no such counter.
//
// It costs time. While it counts, every system call of the process takes 0.2 µs
// more. To start and stop it takes tens of milliseconds, in which the kernel
// waits for all its CPUs. BenchmarkSyscallCounter has 125 ns a call without it,
// 307 with it, and 36 ms, on a virtual machine of two 2.6 GHz CPUs. Keep both
// off a clock.
func StartSyscallCounter() (*SyscallCounter, error) {
	tracepoint, err := tracepointID("raw_syscalls/sys_enter")
	if err != nil {
		return nil, err
	}
	// The events belong to the thread that opens them; prctl starts them all at once.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	c, err := openOnAllThreads(tracepoint)
	if err != nil {
		return nil, err
	}
	if err := unix.Prctl(unix.PR_TASK_PERF_EVENTS_ENABLE, 0, 0, 0, 0); err != nil {
		c.close()
		return nil, fmt.Errorf("system calls can't be counted: prctl: %w", err)
	}
	return c, nil
}

// Stop ends the counting and returns what was counted since Start. It frees
// what Start took, also on an error. Call it once.
func (c *SyscallCounter) Stop() (SyscallCounts, error) {
	defer c.close()
	for _, events := range [][]int{c.total, c.writes, c.syncs} {
		for _, fd := range events {
			if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_DISABLE, 0); err != nil {
				return SyscallCounts{}, fmt.Errorf("system calls can't be counted: %w", err)
			}
		}
	}
	var n SyscallCounts
	var errs [3]error
	n.Total, errs[0] = sumEvents(c.total)
	n.Writes, errs[1] = sumEvents(c.writes)
	n.Syncs, errs[2] = sumEvents(c.syncs)
	return n, errors.Join(errs[:]...)
}

func (c *SyscallCounter) close() {
	for _, events := range [][]int{c.total, c.writes, c.syncs} {
		for _, fd := range events {
			unix.Close(fd)
		}
	}
	*c = SyscallCounter{}
}

// tracepointID returns the number by which perf_event_open knows a tracepoint.
func tracepointID(name string) (uint64, error) {
	text, err := readTracefs(filepath.Join("events", name, "id"))
	if err == nil {
		return strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	}
	if errors.Is(err, fs.ErrPermission) {
		return 0, fmt.Errorf("system calls can't be counted: %w; only root may read tracefs: run as root, or allow reading it (mount -o remount,gid=… and mode=750)", err)
	}
	return 0, fmt.Errorf("system calls can't be counted: tracefs is not mounted on %s (as root: mount -t tracefs tracefs %[1]s): %w",
		tracefsDirs[0], errors.ErrUnsupported)
}

// readTracefs reads a file of tracefs where it is mounted. If it is mounted nowhere, it
// reads through a mount of our own that is attached to no directory. No other process
// sees that mount, and it ends with its descriptor (fsmount(2), Linux 5.2; it takes root).
func readTracefs(name string) ([]byte, error) {
	var first error
	for _, dir := range tracefsDirs {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil {
			return text, nil
		}
		if first == nil || os.IsPermission(err) {
			first = err
		}
	}
	context, err := unix.Fsopen("tracefs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return nil, first
	}
	defer unix.Close(context)
	if err := unix.FsconfigCreate(context); err != nil {
		return nil, first
	}
	root, err := unix.Fsmount(context, unix.FSMOUNT_CLOEXEC, 0)
	if err != nil {
		return nil, first
	}
	defer unix.Close(root)
	return os.ReadFile(filepath.Join(fmt.Sprintf("/proc/self/fd/%d", root), name))
}

// settleTries is how often Start looks for a moment without a new thread.
const settleTries = 200

// openOnAllThreads opens the events for each thread of the process exactly once.
//
// A thread inherits the events of the thread that starts it. If that thread has no events yet, the new
// one has none, and /proc does not show the difference. So it starts over until no thread was born
// between two listings: then every thread has its events, and every later one inherits.
//
// A listing ends early, without an error, if the thread that it has just reached ends (next_tid in
// Linux's fs/proc/base.c). That thread is not in the next listing. So a listing that equals its
// successor is complete.
func openOnAllThreads(tracepoint uint64) (*SyscallCounter, error) {
	for range settleTries {
		c, settled, err := tryAllThreads(tracepoint)
		if settled && err == nil {
			return c, nil
		}
		c.close()
		if err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("system calls can't be counted: threads kept starting and ending during %d tries", settleTries)
}

// tryAllThreads opens the three events of each thread that it lists. It reports
// whether two later listings have the same threads.
func tryAllThreads(tracepoint uint64) (c *SyscallCounter, settled bool, err error) {
	c = &SyscallCounter{}
	before, err := threads()
	if err != nil {
		return c, false, err
	}
	for _, id := range before {
		for _, kind := range []struct {
			events *[]int
			calls  []int
		}{{&c.total, nil}, {&c.writes, writeCalls}, {&c.syncs, syncCalls}} {
			fd, err := openEvent(tracepoint, id, kind.calls)
			if errors.Is(err, unix.ESRCH) {
				break // the thread has ended
			}
			if err != nil {
				return c, false, err
			}
			*kind.events = append(*kind.events, fd)
		}
	}
	for range 2 {
		now, err := threads()
		if err != nil || !slices.Equal(before, now) {
			return c, false, err
		}
	}
	return c, true, nil
}

// threads lists the threads of this process, in ascending order.
func threads() ([]int, error) {
	entries, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return nil, fmt.Errorf("system calls can't be counted: the threads are not known: %w", err)
	}
	var ids []int
	for _, e := range entries {
		id, err := strconv.Atoi(e.Name())
		if err != nil {
			return nil, fmt.Errorf("system calls can't be counted: /proc/self/task has %q", e.Name())
		}
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids, nil
}

// inheritThread is perf_event_attr.inherit_thread: threads inherit the event,
// child processes don't. It exists since Linux 5.13.
const inheritThread = 1 << 35

// openEvent opens a stopped event that counts the given system calls (none: all)
// of a thread and of the threads that it will start. One event with a filter does
// for several calls.
func openEvent(tracepoint uint64, thread int, calls []int) (int, error) {
	attr := unix.PerfEventAttr{
		Type:   unix.PERF_TYPE_TRACEPOINT,
		Config: tracepoint,
		Bits:   unix.PerfBitDisabled | unix.PerfBitInherit | inheritThread,
	}
	attr.Size = uint32(unsafe.Sizeof(attr))
	fd, err := unix.PerfEventOpen(&attr, thread, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if errors.Is(err, unix.EINVAL) {
		attr.Bits &^= inheritThread
		fd, err = unix.PerfEventOpen(&attr, thread, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	}
	if err != nil {
		return -1, eventError(err)
	}
	if len(calls) == 0 {
		return fd, nil
	}
	var terms []string
	for _, nr := range calls {
		terms = append(terms, "id == "+strconv.Itoa(nr))
	}
	filter, err := unix.BytePtrFromString(strings.Join(terms, " || "))
	if err == nil {
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.PERF_EVENT_IOC_SET_FILTER, uintptr(unsafe.Pointer(filter)))
		if errno == 0 {
			return fd, nil
		}
		err = errno
	}
	unix.Close(fd)
	return -1, eventError(err)
}

func eventError(err error) error {
	switch {
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return fmt.Errorf("system calls can't be counted: perf_event_open: %w; run as root, give CAP_PERFMON, or set kernel.perf_event_paranoid to 1 or less", err)
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENODEV):
		return fmt.Errorf("system calls can't be counted: this kernel has no such event (%v): %w", err, errors.ErrUnsupported)
	}
	return fmt.Errorf("system calls can't be counted: perf_event_open: %w", err)
}

// sumEvents sums the counts of the events. The count of an event includes the threads that inherited
// it.
func sumEvents(events []int) (sum int64, err error) {
	for _, fd := range events {
		var count [8]byte
		if n, err := unix.Read(fd, count[:]); err != nil || n != len(count) {
			return 0, fmt.Errorf("system calls can't be counted: the event gave %d bytes: %w", n, errors.Join(err, errors.ErrUnsupported))
		}
		sum += int64(binary.NativeEndian.Uint64(count[:]))
	}
	return sum, nil
}
