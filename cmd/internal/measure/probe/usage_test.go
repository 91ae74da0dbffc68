package probe

import (
	"github.com/holdfast-go/holdfast/internal/isolate"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

func usage(t *testing.T) Usage {
	t.Helper()
	u, err := ProcessUsage()
	isolate.Supported(t, err)
	return u
}

func TestProcessUsageGrowsWithWork(t *testing.T) {
	before := usage(t)
	for start := time.Now(); ; {
		now := usage(t)
		if now.User < before.User || now.System < before.System {
			t.Fatalf("went back from %+v to %+v", before, now)
		}
		if now.User+now.System > before.User+before.System {
			return
		}
		if time.Since(start) > time.Minute {
			t.Fatalf("no CPU time counted while this loop ran for a minute")
		}
	}
}

func TestProcessUsageCountsFaults(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows reports no faults")
	}
	const pages = 4096
	debug.FreeOSMemory() // else the heap may have such pages already
	before := usage(t)
	memory := make([]byte, pages*os.Getpagesize())
	for i := 0; i < len(memory); i += os.Getpagesize() {
		memory[i] = 1
	}
	after := usage(t)
	runtime.KeepAlive(memory)
	// A huge page is one fault for 512.
	if after.MinorFaults-before.MinorFaults < pages/1024 {
		t.Errorf("%d faults for %d new pages", after.MinorFaults-before.MinorFaults, pages)
	}
}

func TestProcessUsageCountsSwitches(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows reports no switches")
	}
	before := usage(t)
	there, back := make(chan struct{}), make(chan struct{})
	go func() {
		runtime.LockOSThread() // so that a wait for the other goroutine gives up the CPU
		for range there {
			back <- struct{}{}
		}
	}()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for range 100 {
		there <- struct{}{}
		<-back
	}
	close(there)
	if after := usage(t); after.VoluntarySwitches == before.VoluntarySwitches {
		t.Errorf("no voluntary switch in 100 turns of two threads: %+v", after)
	}
}

func TestProcessUsageCountsBlocksOf512Bytes(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the unit is stated for Linux alone")
	}
	dir := t.TempDir()
	if isolate.InMemory(t, dir) {
		t.Skipf("%s is in memory: nothing is written", dir)
	}
	const size = 1 << 20
	before := usage(t)
	f, err := os.Create(filepath.Join(dir, "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	blocks := usage(t).BlocksOut - before.BlocksOut
	if blocks == 0 {
		t.Skip("this kernel keeps no account (CONFIG_TASK_IO_ACCOUNTING)")
	}
	// The file system may add blocks of its own.
	if got := blocks * 512; got < size || got > 2*size {
		t.Errorf("%d blocks of 512 bytes for %d bytes written", blocks, size)
	}
}
