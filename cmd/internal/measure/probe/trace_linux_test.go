package probe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/isolate"
	"golang.org/x/sys/unix"
)

// traced is the environment variable of a test's own child process that is traced, and
// tracedFile names the file that it may write.
const (
	traced     = "HOLDFAST_TEST_TRACED"
	tracedFile = "HOLDFAST_TEST_FILE"
)

// thisTest is a command that runs the test anew, alone, as the traced program.
func thisTest(ctx context.Context, t *testing.T, arguments ...string) (cmd *exec.Cmd, out *bytes.Buffer) {
	out = &bytes.Buffer{}
	cmd = exec.CommandContext(ctx, os.Args[0], isolate.OnlyThis(t), "-test.v")
	cmd.Env = append(os.Environ(), traced+"="+strings.Join(arguments, " "), tracedFile+"="+filepath.Join(t.TempDir(), "file"))
	cmd.Stdout, cmd.Stderr = out, out
	return cmd, out
}

// isTraced reports whether this is the traced program.
func isTraced() bool { return os.Getenv(traced) != "" }

// trace runs the test as the traced program.
func trace(t *testing.T, arguments ...string) []SyscallCounts {
	t.Helper()
	cmd, out := thisTest(t.Context(), t, append(arguments, "yes")...)
	counts, err := TraceSyscalls(cmd)
	if errors.Is(err, os.ErrPermission) || errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !strings.Contains(out.String(), "PASS") {
		t.Fatalf("its output is lost:\n%s", out)
	}
	return counts
}

// descriptor opens the traced program's file without the Go runtime's poller,
// which would make writes of its own.
func descriptor(t *testing.T) int {
	t.Helper()
	fd, err := unix.Open(os.Getenv(tracedFile), unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o666)
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

func mark(t *testing.T, begin bool) {
	t.Helper()
	if err := MarkSyscalls(begin); err != nil {
		t.Fatal(err)
	}
}

// onThreads runs do on the given number of threads at once; half of them start before it is called.
func onThreads(threads int, do func()) {
	start := make(chan struct{})
	var ready, done sync.WaitGroup
	for range threads / 2 {
		ready.Add(1)
		done.Go(func() {
			runtime.LockOSThread() // never unlocked: the thread ends with its goroutine
			ready.Done()
			<-start
			do()
		})
	}
	ready.Wait()
	close(start)
	for range threads - threads/2 {
		done.Go(func() {
			runtime.LockOSThread()
			do()
		})
	}
	done.Wait()
}

func writeAndSync(fd, writes, syncs int) {
	for range writes {
		unix.Pwrite(fd, []byte("x"), 0)
	}
	for range syncs {
		unix.Fdatasync(fd)
	}
}

func TestTraceCountsBetweenMarksExactly(t *testing.T) {
	const threads, writes, syncs, outside = 6, 50, 3, 7
	if isTraced() {
		fd := descriptor(t)
		writeAndSync(fd, outside, outside)
		mark(t, true)
		onThreads(threads, func() { writeAndSync(fd, writes, syncs) })
		mark(t, false)
		onThreads(threads, func() { writeAndSync(fd, outside, outside) })
		mark(t, true)
		mark(t, false)
		mark(t, true)
		writeAndSync(fd, 1, 2)
		mark(t, false)
		writeAndSync(fd, outside, outside)
		return
	}
	got := trace(t)
	want := []SyscallCounts{{Writes: threads * writes, Syncs: threads * syncs}, {}, {Writes: 1, Syncs: 2}}
	if len(got) != len(want) {
		t.Fatalf("%d pairs of marks, want %d: %+v", len(got), len(want), got)
	}
	for i := range want {
		if got[i].Writes != want[i].Writes || got[i].Syncs != want[i].Syncs || got[i].Total < got[i].Writes+got[i].Syncs {
			t.Errorf("pair %d: %+v, want %+v and at least their sum", i, got[i], want[i])
		}
	}
}

func TestTraceAgreesWithTheCounter(t *testing.T) {
	const threads, writes, syncs = 4, 30, 5
	if isTraced() {
		fd := descriptor(t)
		mark(t, true)
		onThreads(threads, func() { writeAndSync(fd, writes, syncs) })
		mark(t, false)
		return
	}
	withTracefs(t, func(t *testing.T) {
		fd, err := unix.Open(filepath.Join(t.TempDir(), "file"), unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o666)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		c, err := StartSyscallCounter()
		if err != nil {
			t.Fatal(err)
		}
		onThreads(threads, func() { writeAndSync(fd, writes, syncs) })
		seen, err := c.Stop()
		if err != nil {
			t.Fatal(err)
		}
		got := trace(t)
		if len(got) != 1 || got[0].Writes != seen.Writes || got[0].Syncs != seen.Syncs {
			t.Errorf("traced %+v, counted %+v", got, seen)
		}
	})
}

func TestTraceLeavesChildrenOut(t *testing.T) {
	if isTraced() {
		// dd's writes and fsync must not be counted. Its standard files are no pipes, so that the Go
		// runtime has nothing to write.
		mark(t, true)
		err := exec.Command("dd", "if=/dev/zero", "of="+os.Getenv(tracedFile), "bs=1", "count=100", "conv=fsync").Run()
		mark(t, false)
		if err != nil {
			t.Skipf("no dd: %v", err)
		}
		return
	}
	got := trace(t)
	if len(got) != 1 || got[0].Syncs != 0 || got[0].Writes >= 100 {
		t.Errorf("%+v: the child's calls are counted", got)
	}
}

// The Go runtime preempts by SIGURG, and a program may send itself any other.
func TestTraceForwardsSignals(t *testing.T) {
	if isTraced() {
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, unix.SIGUSR1)
		stop := make(chan struct{})
		busy := make(chan int)
		go func() {
			n := 0
			for {
				select {
				case <-stop:
					busy <- n
					return
				default:
					n++
				}
			}
		}()
		for range 20 {
			runtime.GC() // stops the world: the busy goroutine by SIGURG
			unix.Kill(os.Getpid(), unix.SIGUSR1)
			<-signals
		}
		close(stop)
		<-busy
		mark(t, true)
		mark(t, false)
		return
	}
	if got := trace(t); len(got) != 1 {
		t.Errorf("%+v, want one pair", got)
	}
}

// A thread that job control stopped stays stopped until it is continued: by then the file exists that
// says so.
func TestTraceLetsJobControlStop(t *testing.T) {
	if isTraced() {
		runtime.LockOSThread()
		fmt.Println("stopping")
		unix.Tgkill(os.Getpid(), unix.Gettid(), unix.SIGSTOP)
		if _, err := os.Stat(os.Getenv(tracedFile)); err != nil {
			t.Errorf("it went on by itself: %v", err)
		}
		mark(t, true)
		mark(t, false)
		return
	}
	cmd, out := thisTest(t.Context(), t, "yes")
	cmd.Stderr = nil
	file := cmd.Env[len(cmd.Env)-1][len(tracedFile+"="):]
	state, ended := make(chan string, 1), make(chan struct{})
	cmd.Stdout = writerFunc(func(p []byte) (int, error) {
		if bytes.Contains(p, []byte("stopping")) {
			go func() {
				state <- awaitAllStopped(cmd.Process.Pid)
				os.WriteFile(file, nil, 0o666)
				// More than one: all threads may have been seen between two system
				// calls, before the stop, which a SIGCONT that comes first does not end.
				for again := time.NewTicker(50 * time.Millisecond); ; <-again.C {
					select {
					case <-ended:
						return
					default:
						unix.Kill(cmd.Process.Pid, unix.SIGCONT)
					}
				}
			}()
		}
		return out.Write(p)
	})
	got, err := TraceSyscalls(cmd)
	close(ended)
	if errors.Is(err, os.ErrPermission) || errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil || len(got) != 1 {
		t.Fatalf("%+v, %v\n%s", got, err, out)
	}
	if state := <-state; state != "" {
		t.Error(state)
	}
}

// awaitAllStopped waits until every thread of a process is stopped.
func awaitAllStopped(pid int) string {
	for start := time.Now(); time.Since(start) < time.Minute; runtime.Gosched() {
		stats, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		if err != nil || len(stats) == 0 {
			return "its threads are not known"
		}
		stopped := 0
		for _, path := range stats {
			text, _ := os.ReadFile(path)
			if _, after, ok := strings.Cut(string(text), ") "); ok && (after[0] == 't' || after[0] == 'T') {
				stopped++
			}
		}
		if stopped == len(stats) {
			return ""
		}
	}
	return "it did not stop for a minute"
}

func TestTraceEndsWithItsContext(t *testing.T) {
	if isTraced() {
		fmt.Println("waiting")
		mark(t, true)
		select {}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd, _ := thisTest(ctx, t, "yes")
	cmd.Stdout = writerFunc(func(p []byte) (int, error) {
		if bytes.Contains(p, []byte("waiting")) {
			cancel()
		}
		return len(p), nil
	})
	_, err := TraceSyscalls(cmd)
	if errors.Is(err, os.ErrPermission) || errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	var exit *exec.ExitError
	if !errors.Is(err, context.Canceled) && !errors.As(err, &exit) {
		t.Errorf("err = %v, want that it was killed", err)
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestTraceReportsHowTheProgramEnded(t *testing.T) {
	if isTraced() {
		mark(t, true)
		mark(t, false)
		os.Exit(7)
	}
	cmd, _ := thisTest(t.Context(), t, "yes")
	got, err := TraceSyscalls(cmd)
	if errors.Is(err, os.ErrPermission) || errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 7 || len(got) != 1 {
		t.Errorf("%+v, %v; want one pair and exit code 7", got, err)
	}
	if _, err := TraceSyscalls(exec.Command(filepath.Join(t.TempDir(), "none"))); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("err = %v, want ErrNotExist", err)
	}
}

func TestTraceWantsMarksInPairs(t *testing.T) {
	if isTraced() {
		for _, begin := range strings.Fields(os.Getenv(traced)) {
			mark(t, begin == "begin")
		}
		return
	}
	check := func(marks string, pairs int, want string) {
		t.Helper()
		cmd, _ := thisTest(t.Context(), t, marks)
		got, err := TraceSyscalls(cmd)
		if errors.Is(err, os.ErrPermission) || errors.Is(err, errors.ErrUnsupported) {
			t.Skip(err)
		}
		if err == nil || !strings.Contains(err.Error(), want) || len(got) != pairs {
			t.Errorf("%s: %+v, %v; want %d pairs and %q", marks, got, err, pairs, want)
		}
	}
	check("begin", 0, "none ends")
	check("end", 0, "does not pair")
	check("begin end begin", 1, "none ends")
	check("begin begin end", 0, "does not pair")
}

// A zombie of this thread that belongs to another part of the program is neither fetched
// nor in the way.
func TestTraceLeavesOtherChildrenAlone(t *testing.T) {
	if isTraced() {
		mark(t, true)
		onThreads(4, func() { writeAndSync(-1, 10, 1) })
		mark(t, false)
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	other := exec.Command("true")
	if err := other.Start(); err != nil {
		t.Skip(err)
	}
	got := trace(t)
	if len(got) != 1 || got[0].Writes != 40 || got[0].Syncs != 4 {
		t.Errorf("%+v, want 40 writes and 4 syncs", got)
	}
	if err := other.Wait(); err != nil {
		t.Errorf("the other child: %v", err)
	}
}

func TestMarksDoNothingUntraced(t *testing.T) {
	mark(t, false)
	mark(t, true)
	mark(t, true)
}

func TestWhatForbidsTracing(t *testing.T) {
	check := func(yama, status, want string) {
		t.Helper()
		if got := whatForbids(yama, status); !strings.Contains(got, want) {
			t.Errorf("whatForbids(%q, %q) = %q, want %q in it", yama, status, got, want)
		}
	}
	const free = "Name:\tx\nTracerPid:\t0\nSeccomp:\t0\n"
	check("3", free, "ptrace_scope is 3")
	check("2", free, "CAP_SYS_PTRACE")
	check("1", "TracerPid:\t12\nSeccomp:\t0\n", "process 12")
	check("0", "TracerPid:\t0\nSeccomp:\t2\n", "seccomp")
	check("", free, "root")
	check("", "", "root")
}

func TestTraceErrorNamesTheKind(t *testing.T) {
	check := func(call string, in error, kind error) {
		t.Helper()
		got := traceError(call, in)
		if !errors.Is(got, kind) || !strings.HasPrefix(got.Error(), "system calls can't be counted: ") {
			t.Errorf("traceError(%s, %v) = %v, want %v", call, in, got, kind)
		}
	}
	check("PTRACE_TRACEME", unix.EPERM, os.ErrPermission)
	check("PTRACE_TRACEME", unix.ENOSYS, errors.ErrUnsupported)
	check("PTRACE_GET_SYSCALL_INFO", unix.EIO, errors.ErrUnsupported)
	check("wait4", unix.EINVAL, unix.EINVAL)
}

// BenchmarkTrace measures what tracing adds to two of the cheapest calls: a byte
// that dd reads of /dev/zero and writes to /dev/null.
func BenchmarkTrace(b *testing.B) {
	dd := func(b *testing.B) *exec.Cmd {
		return exec.Command("dd", "if=/dev/zero", "of=/dev/null", "bs=1", fmt.Sprintf("count=%d", b.N))
	}
	b.Run("traced=no", func(b *testing.B) {
		if err := dd(b).Run(); err != nil {
			b.Skip(err)
		}
	})
	b.Run("traced=yes", func(b *testing.B) {
		if _, err := TraceSyscalls(dd(b)); err != nil {
			b.Skip(err)
		}
	})
}

func TestTraceNamesTheFilterThatForbidsIt(t *testing.T) {
	isolate.Without(t, unix.SYS_PTRACE, unix.EPERM, func(t *testing.T) {
		counts, err := TraceSyscalls(exec.Command("true"))
		if err == nil || !strings.Contains(err.Error(), "seccomp") || !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%v, %v; want an error that names seccomp", counts, err)
		}
	})
}

func TestTraceWithoutPtraceIsUnsupported(t *testing.T) {
	isolate.Without(t, unix.SYS_PTRACE, unix.ENOSYS, func(t *testing.T) {
		if counts, err := TraceSyscalls(exec.Command("true")); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%v, %v; want ErrUnsupported", counts, err)
		}
	})
}
