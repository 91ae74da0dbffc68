// Package apart runs a test in a process of its own, which may change what holds for
// a whole process: limits, mounts. It is for tests only.
package apart

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// child tells the process that it is a test's own.
const child = "HOLDFAST_TEST_APART"

func isChild(t *testing.T) bool { return os.Getenv(child) == t.Name() }

// Process runs a test in a child process, of this test alone.
func Process(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	if isChild(t) {
		test(t)
		return
	}
	run(t, nil)
}

// run starts this test again, and fails or skips as that does.
func run(t *testing.T, how *syscall.SysProcAttr) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^"+strings.ReplaceAll(t.Name(), "/", "$/^")+"$", "-test.v")
	cmd.Env = append(os.Environ(), child+"="+t.Name())
	cmd.SysProcAttr = how
	out, err := cmd.CombinedOutput()
	switch {
	case errors.Is(err, fs.ErrPermission):
		t.Skipf("no process apart: %v", err)
	case err != nil:
		t.Fatalf("in a process apart: %v\n%s", err, out)
	case strings.Contains(string(out), "--- SKIP"):
		t.Skipf("in a process apart:\n%s", out)
	case !strings.Contains(string(out), "--- PASS: "+t.Name()+" "):
		t.Fatalf("the test did not run in a process apart:\n%s", out)
	}
}
