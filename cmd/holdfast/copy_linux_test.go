package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/internal/cli"
)

// awaitWrites waits until a process has made n writes.
func awaitWrites(t *testing.T, process int, writes int) {
	t.Helper()
	for made := 0; made < writes; {
		counts, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", process))
		if err != nil {
			t.Skipf("the kernel doesn't count a process's writes: %v", err)
		}
		_, text, _ := strings.Cut(string(counts), "syscw: ")
		if _, err := fmt.Sscan(text, &made); err != nil {
			t.Fatalf("%v in:\n%s", err, counts)
		}
	}
}

// TestResumedCopyGoesOnWhereItWasInterrupted interrupts a copy that moves a byte a call
// behind the first bytes, and gives the same again.
func TestResumedCopyGoesOnWhereItWasInterrupted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	source, file := filepath.Join(dir, "source"), filepath.Join(dir, "x")
	if err := runCommand(t.Context(), []string{"gen", source, "32MiB", "--quiet", "--policy", "sync=never"}, nil, nil, nil); err != nil {
		t.Fatal(err)
	}
	c := startChild(t, "copy", source, file, "--resume", "--method", "readwrite", "--buffer", "1B")
	const before = 10_000
	awaitWrites(t, c.Process.Pid, before+1000)
	if err := c.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := c.exit(t); code != cli.ExitInterrupted || !strings.Contains(c.reported.String(), "\nhint: the copied files are complete; the same command continues the unfinished large file, ") {
		t.Fatalf("exit code %d:\n%s", code, c.reported.String())
	}
	if got := strings.Join(namesIn(t, dir), " "); got != ".x.holdfast-partial source" {
		t.Fatalf("what is left: %s", got)
	}
	c = startChild(t, "copy", source, file, "--resume", "--json")
	if code := c.exit(t); code != cli.ExitOK {
		t.Fatalf("exit code %d:\n%s", code, c.reported.String())
	}
	var line struct {
		Resumed int64 `json:"resumed_bytes"`
		Copied  int64 `json:"copied_bytes"`
	}
	if err := json.NewDecoder(&c.stdout).Decode(&line); err != nil || line.Resumed < before || line.Resumed+line.Copied != 32<<20 {
		t.Errorf("%v, %+v", err, line)
	}
	want, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the copy has %d bytes of %d, or others: %v", len(got), len(want), err)
	}
	if got := strings.Join(namesIn(t, dir), " "); got != "source x" {
		t.Errorf("what is left: %s", got)
	}
}
