package main

import (
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// Counts of bytes and not times: what a command allocates before it does anything is the
// same on a busy machine.
func TestStartAllocatesLittle(t *testing.T) {
	cmd := exec.Command(os.Args[0], "help")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	trace, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	packages, sum := 0, 0
	for line := range strings.Lines(string(trace)) {
		// init internal/bytealg @0.008 ms, 0 ms clock, 0 bytes, 0 allocs
		if f := strings.Fields(line); len(f) == 11 && f[0] == "init" {
			n, err := strconv.Atoi(f[7])
			if err != nil {
				t.Fatal(line)
			}
			packages, sum = packages+1, sum+n
		}
	}
	const most = 160
	if packages == 0 || packages > most {
		t.Errorf("%d packages are initialised, want 1 to %d", packages, most)
	}
	if most := 600 << 10; sum > most {
		t.Errorf("packages allocate %d bytes before main, want at most %d", sum, most)
	}
	least := uint64(1 << 40)
	for range 5 { // other tests allocate too
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		newRoot()
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	if most := uint64(128 << 10); least > most {
		t.Errorf("the commands' flags and help allocate %d bytes, want at most %d", least, most)
	}
}
