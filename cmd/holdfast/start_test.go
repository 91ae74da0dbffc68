package main

import (
	"cmp"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/internal/cli"
)

// Counts of bytes and not times: what a command allocates before it does anything is the
// same on a busy machine. The bounds are little above what was reached; the tests' own packages count too.
func TestStartAllocatesLittle(t *testing.T) {
	cmd := exec.Command(os.Args[0], "help")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	trace, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	type initialised struct {
		name  string
		bytes int
	}
	var packages []initialised
	sum := 0
	for line := range strings.Lines(string(trace)) {
		// init internal/bytealg @0.008 ms, 0 ms clock, 0 bytes, 0 allocs
		if f := strings.Fields(line); len(f) == 11 && f[0] == "init" {
			n, err := strconv.Atoi(f[7])
			if err != nil {
				t.Fatal(line)
			}
			packages, sum = append(packages, initialised{f[1], n}), sum+n
		}
	}
	slices.SortFunc(packages, func(a, b initialised) int { return cmp.Compare(b.bytes, a.bytes) })
	more := 0
	if runtime.GOOS == "windows" { // Go's own packages are more there
		more = 3
	}
	if most := 97 + more; len(packages) == 0 || len(packages) > most {
		t.Errorf("%d packages are initialised, want 1 to %d: %v", len(packages), most, packages)
	}
	if most := (106 + 2*more) << 10; sum > most {
		t.Errorf("packages allocate %d bytes before main, want at most %d; the first are %v", sum, most, packages[:min(len(packages), 8)])
	}
	t.Logf("%d packages, %d bytes", len(packages), sum)
}

// TestListsOfCommandsAreThoseOfAll: the root's help makes no command, and says the same.
func TestListsOfCommandsAreThoseOfAll(t *testing.T) {
	var want strings.Builder
	all := newRoot()
	all.SetOut(&want)
	cli.Help(all, nil)
	for _, args := range [][]string{nil, {"-h"}, {"--help"}, {"help"}} {
		var got strings.Builder
		if err := runCommand(t.Context(), args, nil, &got, io.Discard); err != nil || got.String() != want.String() {
			t.Errorf("%q prints %q, %v; want %q", args, got.String(), err, want.String())
		}
	}
}

// TestOnlyTheCommandThatIsAskedForIsMade: of copy one, of the root's help none but in name.
func TestOnlyTheCommandThatIsAskedForIsMade(t *testing.T) {
	check := func(mostCommands int, mostBytes uint64, args ...string) {
		t.Helper()
		least := uint64(1 << 40)
		for range 5 { // other tests allocate too
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			root := rootFor(args)
			runtime.ReadMemStats(&after)
			least = min(least, after.TotalAlloc-before.TotalAlloc)
			if n := len(root.Commands()); n > mostCommands {
				t.Fatalf("%q: %d commands are made, want at most %d", args, n, mostCommands)
			}
		}
		if least > mostBytes {
			t.Errorf("%q: flags and help allocate %d bytes, want at most %d", args, least, mostBytes)
		}
		t.Logf("%q: %d bytes", args, least)
	}
	check(100, 18<<10, "--help") // names alone
	check(1, 12<<10, "copy", "a", "b")
}
