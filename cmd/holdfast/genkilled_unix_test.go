//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/probe"
	"github.com/holdfast-go/holdfast/internal/filetest"
)

// TestKilledGenLeavesNothing kills it while it writes, at moments that the file's growth
// distinguishes.
func TestKilledGenLeavesNothing(t *testing.T) {
	if f, err := probe.CreateUnnamed(t.TempDir(), 0o666); err != nil {
		t.Skip(err)
	} else {
		f.Close()
	}
	for _, old := range []string{"", "as it was"} {
		for _, after := range []int64{0, 1 << 20, 8 << 20, 30 << 20} {
			dir := t.TempDir()
			file := filepath.Join(dir, "x")
			if old != "" {
				if err := os.WriteFile(file, []byte(old), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			c := startChild(t, "gen", file, "1GiB", "--policy", "sync=never", "--force")
			for written(c, dir) < after {
				runtime.Gosched()
			}
			if err := c.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			c.Wait() // it was killed
			got, _ := os.ReadFile(file)
			if left := filetest.LeftIn(dir); string(got) != old || len(left) > 0 {
				t.Errorf("after %d bytes: %d bytes, want %q; besides %v", after, len(got), old, left)
			}
		}
	}
}

// written returns how large the file is that a command writes in a directory, or -1.
func written(c *child, dir string) int64 {
	fds := fmt.Sprintf("/proc/%d/fd", c.Process.Pid)
	names, _ := os.ReadDir(fds)
	for _, name := range names {
		path := filepath.Join(fds, name.Name())
		if at, _ := os.Readlink(path); filepath.Dir(at) == dir {
			if info, err := os.Stat(path); err == nil {
				return info.Size()
			}
		}
	}
	return -1
}
