package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast/internal/filetest"
)

// TestInterruptedGenLeavesNoHalfFile interrupts when the file has a beginning under
// another name.
func TestInterruptedGenLeavesNoHalfFile(t *testing.T) {
	skipWithoutSignals(t)
	for _, old := range []string{"", "as it was"} {
		dir := t.TempDir()
		file := filepath.Join(dir, "x")
		if old != "" {
			if err := os.WriteFile(file, []byte(old), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		c := startChild(t, "gen", file, "1GiB", "--policy", "sync=each", "--force")
		for !writesIn(t, c, dir) {
			runtime.Gosched()
		}
		if err := c.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if code := c.exit(t); code != exitBy(syscall.SIGTERM) || !strings.Contains(c.reported.String(), "holdfast: interrupted after ") {
			t.Fatalf("exit code %d:\n%s", code, c.reported.String())
		}
		got, _ := os.ReadFile(file)
		if left := filetest.LeftIn(dir); string(got) != old || len(left) > 0 {
			t.Errorf("%d bytes, want %q; besides %v", len(got), old, left)
		}
	}
}

// writesIn reports whether a command has a file open in a directory, with or without a name.
func writesIn(t *testing.T, c *child, dir string) bool {
	fds := filepath.Join("/proc", strconv.Itoa(c.Process.Pid), "fd")
	names, err := os.ReadDir(fds)
	if err != nil {
		return len(filetest.LeftIn(dir)) > 0
	}
	for _, name := range names {
		if at, _ := os.Readlink(filepath.Join(fds, name.Name())); strings.HasPrefix(at, dir) {
			return true
		}
	}
	return false
}
