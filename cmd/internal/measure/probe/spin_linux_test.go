package probe_test

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/probe"
	"github.com/holdfast-go/holdfast/internal/isolate"
	"github.com/holdfast-go/holdfast/internal/spin"
)

// TestWaitForTheLockYieldsTheThread counts the system calls of a process in which one goroutine
// waits for a lock, and its holder makes calls meanwhile. Each call takes the tracer as long, so the
// waiter makes about as many. When the waiter made no calls, a holder that lost its processor to the
// waiter got it back only after milliseconds.
func TestWaitForTheLockYieldsTheThread(t *testing.T) {
	const turns = 1000
	const child = "HOLDFAST_TEST_WAITS"
	if os.Getenv(child) == "" {
		cmd := exec.Command(os.Args[0], isolate.OnlyThis(t))
		cmd.Env = append(os.Environ(), child+"=yes")
		counts, err := probe.TraceSyscalls(cmd)
		if errors.Is(err, os.ErrPermission) || errors.Is(err, errors.ErrUnsupported) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Log(counts)
		if len(counts) != 1 || counts[0].Total < turns+turns/10 {
			t.Errorf("system calls were %+v, want %d and some hundreds of the waiter", counts, turns)
		}
		return
	}
	runtime.GOMAXPROCS(1)
	var mu spin.Mutex
	mu.Lock()
	if err := probe.MarkSyscalls(true); err != nil {
		t.Fatal(err)
	}
	taken := make(chan bool)
	go func() {
		mu.Lock()
		taken <- true
		mu.Unlock()
	}()
	for range turns {
		unix.Getppid()
		runtime.Gosched()
	}
	mu.Unlock()
	<-taken
	if err := probe.MarkSyscalls(false); err != nil {
		t.Fatal(err)
	}
}
