package sys

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// ownMounts tells a test's own child process that it has a mount namespace of
// its own.
const ownMounts = "HOLDFAST_TEST_OWN_MOUNTS"

// inMountNamespace runs a test, for root, in a child process with a mount
// namespace of its own, so that the machine keeps the mounts it had.
func inMountNamespace(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	if os.Getenv(ownMounts) != "" {
		test(t)
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("to mount takes root")
	}
	runInMountNamespace(t)
}

func runInMountNamespace(t *testing.T) {
	t.Helper()
	child := exec.Command(os.Args[0], onlyThis(t), "-test.v")
	child.Env = append(os.Environ(), ownMounts+"=1")
	child.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	out, err := child.CombinedOutput()
	switch {
	case errors.Is(err, fs.ErrPermission):
		t.Skipf("no mount namespace: %v", err)
	case err != nil:
		t.Fatalf("in a mount namespace: %v\n%s", err, out)
	case strings.Contains(string(out), "--- SKIP"):
		t.Skipf("in a mount namespace:\n%s", out)
	}
	t.Logf("in a mount namespace:\n%s", out)
}

// onlyThis is the flag that runs this test alone.
func onlyThis(t *testing.T) string {
	return "-test.run=^" + strings.ReplaceAll(t.Name(), "/", "$/^") + "$"
}
