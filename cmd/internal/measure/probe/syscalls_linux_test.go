package probe

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/isolate"
)

// withTracefs runs a test where tracefs is mounted. Root without one runs it in
// a child process with a mount namespace of its own, so that the machine keeps
// the mounts it had.
func withTracefs(t *testing.T, test func(t *testing.T)) {
	c, err := StartSyscallCounter()
	switch {
	case err == nil:
		c.Stop()
		test(t)
	case os.Geteuid() == 0 && errors.Is(err, errors.ErrUnsupported):
		isolate.Mounts(t, func(t *testing.T) {
			if err := unix.Mount("tracefs", tracefsDirs[0], "tracefs", 0, ""); err != nil {
				t.Skipf("tracefs can't be mounted: %v", err)
			}
			test(t)
		})
	default:
		t.Skip(err)
	}
}

func TestSyscallCounterCountsOldAndNewThreadsExactly(t *testing.T) {
	withTracefs(t, func(t *testing.T) {
		const workers, writes, syncs = 8, 1000, 3
		path := filepath.Join(t.TempDir(), "file")
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()

		start := make(chan struct{})
		var ready, done sync.WaitGroup
		work := func() {
			defer done.Done()
			for range writes {
				unix.Pwrite(int(f.Fd()), []byte("x"), 0)
			}
			for range syncs {
				unix.Fdatasync(int(f.Fd()))
			}
		}
		// Half of the threads live before Start, held by their goroutines.
		for range workers {
			ready.Add(1)
			done.Add(1)
			go func() {
				runtime.LockOSThread() // never unlocked: the thread ends with its goroutine
				ready.Done()
				<-start
				work()
			}()
		}
		ready.Wait()
		c, err := StartSyscallCounter()
		if err != nil {
			t.Fatal(err)
		}
		close(start)
		// The other half is born after it.
		for range workers {
			done.Add(1)
			go func() {
				runtime.LockOSThread()
				work()
			}()
		}
		done.Wait()
		got, err := c.Stop()
		if err != nil {
			t.Fatal(err)
		}
		if want := int64(2 * workers * syncs); got.Syncs != want {
			t.Errorf("syncs = %d, want %d", got.Syncs, want)
		}
		if want := int64(2 * workers * writes); got.Writes != want {
			t.Errorf("writes = %d, want %d", got.Writes, want)
		}
		if got.Total < got.Writes+got.Syncs {
			t.Errorf("total = %d is less than %d writes + %d syncs", got.Total, got.Writes, got.Syncs)
		}
	})
}

func TestSyscallCounterWhileThreadsAreBorn(t *testing.T) {
	withTracefs(t, func(t *testing.T) {
		f, err := os.Create(filepath.Join(t.TempDir(), "file"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		stop := make(chan struct{})
		var births sync.WaitGroup
		births.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				born := make(chan struct{})
				go func() {
					runtime.LockOSThread()
					close(born)
				}()
				<-born
			}
		})
		for range 20 {
			c, err := StartSyscallCounter()
			if err != nil {
				t.Fatal(err)
			}
			for range 10 {
				unix.Fdatasync(int(f.Fd()))
			}
			got, err := c.Stop()
			if err != nil {
				t.Fatal(err)
			}
			if got.Syncs != 10 {
				t.Errorf("syncs = %d, want 10", got.Syncs)
			}
		}
		close(stop)
		births.Wait()
	})
}

func TestSyscallCounterLeavesChildrenOut(t *testing.T) {
	withTracefs(t, func(t *testing.T) {
		c, err := StartSyscallCounter()
		if err != nil {
			t.Fatal(err)
		}
		// dd's fsync must not be counted.
		out := filepath.Join(t.TempDir(), "file")
		if text, err := exec.Command("dd", "if=/dev/zero", "of="+out, "bs=1", "count=100", "conv=fsync").CombinedOutput(); err != nil {
			c.Stop()
			t.Skipf("no dd: %v\n%s", err, text)
		}
		got, err := c.Stop()
		if err != nil {
			t.Fatal(err)
		}
		if got.Syncs != 0 {
			t.Errorf("syncs = %d, want 0: the child's are not ours", got.Syncs)
		}
	})
}

func TestSyscallCounterClosesItsDescriptors(t *testing.T) {
	withTracefs(t, func(t *testing.T) {
		// The first use of a file opens the Go runtime's own poller.
		startAndStop(t)
		before := openDescriptors(t)
		for range 3 {
			startAndStop(t)
		}
		if after := openDescriptors(t); after > before { // the collector may close descriptors of earlier tests
			t.Errorf("%d descriptors open, want %d as before", after, before)
		}
	})
}

func startAndStop(t *testing.T) {
	c, err := StartSyscallCounter()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Stop(); err != nil {
		t.Fatal(err)
	}
}

func openDescriptors(t *testing.T) int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func TestSyscallCounterSaysWhatIsMissing(t *testing.T) {
	check := func(err error, names string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), names) {
			t.Errorf("%v, want %q in it", err, names)
		}
		if !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%v is neither ErrUnsupported nor ErrPermission", err)
		}
	}
	_, err := tracepointID("raw_syscalls/none") // the error is the same where no tracefs is mounted
	check(err, "tracefs")
	isolate.Without(t, unix.SYS_PERF_EVENT_OPEN, unix.EPERM, func(t *testing.T) {
		_, err := StartSyscallCounter()
		check(err, "as root")
	})
}

func TestEventErrorNamesTheSetting(t *testing.T) {
	check := func(in error, want string, kind error) {
		t.Helper()
		got := eventError(in)
		if !strings.Contains(got.Error(), want) || !errors.Is(got, kind) {
			t.Errorf("eventError(%v) = %v, want %q in it and %v", in, got, want, kind)
		}
	}
	check(unix.EACCES, "kernel.perf_event_paranoid", fs.ErrPermission)
	check(unix.EPERM, "root", fs.ErrPermission)
	check(unix.ENOSYS, "kernel", errors.ErrUnsupported)
	check(unix.EMFILE, "perf_event_open", unix.EMFILE)
}

// BenchmarkSyscallCounter measures what counting adds to the cheapest call.
func BenchmarkSyscallCounter(b *testing.B) {
	b.Run("counting=no", func(b *testing.B) {
		for b.Loop() {
			unix.Getppid()
		}
	})
	b.Run("counting=yes", func(b *testing.B) {
		c, err := StartSyscallCounter()
		if err != nil {
			b.Skip(err)
		}
		for b.Loop() {
			unix.Getppid()
		}
		if _, err := c.Stop(); err != nil {
			b.Fatal(err)
		}
	})
	b.Run("start and stop", func(b *testing.B) {
		for b.Loop() {
			c, err := StartSyscallCounter()
			if err != nil {
				b.Skip(err)
			}
			c.Stop()
		}
	})
}
