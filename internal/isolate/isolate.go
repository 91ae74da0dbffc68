// Package isolate gives a test surroundings of its own: a process whose limits and mounts it may
// change, another user, a goroutine that may panic, a terminal; and it says whether the race
// detector is on. It is for tests only.
package isolate

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// Tests are the tests of a package whose tests start the test program as a command, for its
// TestMain. A command unknown to TestMain would run all tests, and each of them would start the
// next one. Run refuses such a command; go test gives none.
type Tests struct{ *testing.M }

// Run is [testing.M.Run].
func (tests Tests) Run() int {
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "%s is a test, and has no command %q\n", os.Args[0], flag.Arg(0))
		return 2
	}
	return tests.M.Run()
}

// RefusesUnknownCommand checks that this package's TestMain uses [Tests].
func RefusesUnknownCommand(t *testing.T) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// First with no test to run, so that it ends even if nothing refuses it.
	for _, args := range [][]string{{"-test.run=^$", "no-such-command"}, {"no-such-command"}} {
		out, err := exec.Command(self, args...).CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 2 || !strings.Contains(string(out), `"no-such-command"`) {
			t.Fatalf("%q: err = %v, want exit code 2 and the command's name:\n%s", args, err, out)
		}
	}
}

// child is the environment variable that marks the process of a single test.
const child = "HOLDFAST_TEST_ISOLATE"

func isChild(t *testing.T) bool { return os.Getenv(child) == t.Name() }

// Process runs a test in a child process of this test alone.
func Process(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	if isChild(t) {
		test(t)
		return
	}
	run(t, nil)
}

// OnlyThis returns the flag with which a test program runs this test alone.
func OnlyThis(t *testing.T) string {
	return "-test.run=^" + strings.ReplaceAll(t.Name(), "/", "$/^") + "$"
}

// run starts this test again in a child process, and fails or skips as the child does.
func run(t *testing.T, how *syscall.SysProcAttr) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, OnlyThis(t), "-test.v")
	cmd.Env = append(os.Environ(), child+"="+t.Name())
	cmd.SysProcAttr = how
	out, err := cmd.CombinedOutput()
	switch {
	case errors.Is(err, fs.ErrPermission):
		t.Skipf("no process of its own: %v", err)
	case err != nil:
		t.Fatalf("in a process of its own: %v\n%s", err, out)
	case strings.Contains(string(out), "--- SKIP"):
		t.Skipf("in a process of its own:\n%s", out)
	case !strings.Contains(string(out), "--- PASS: "+t.Name()+" "):
		t.Fatalf("the test did not run in a process of its own:\n%s", out)
	}
}
