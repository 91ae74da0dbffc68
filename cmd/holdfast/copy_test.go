package main

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// TestInterruptedCopyLeavesTheOldFileOrNone interrupts a copy that moves a byte a call,
// when it has begun.
func TestInterruptedCopyLeavesTheOldFileOrNone(t *testing.T) {
	skipWithoutSignals(t)
	t.Parallel()
	source := filepath.Join(t.TempDir(), "source")
	if err := os.WriteFile(source, bytes.Repeat([]byte("0123456789abcdef"), 4<<20), 0o666); err != nil {
		t.Fatal(err)
	}
	check := func(old string, signal os.Signal, more ...string) {
		t.Helper()
		dir := t.TempDir()
		file := filepath.Join(dir, "x")
		if old != "" {
			if err := os.WriteFile(file, []byte(old), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		before := namesIn(t, dir)
		c := startChild(t, append([]string{"copy", source, file, "--method", "readwrite", "--buffer", "1B"}, more...)...)
		for len(namesIn(t, dir)) == len(before) {
			runtime.Gosched()
		}
		if err := c.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if code := c.exit(t); code != exitBy(signal) || !strings.Contains(c.reported.String(), "holdfast: interrupted after 0 files, ") ||
			!strings.Contains(c.reported.String(), "\nhint: the copied files are complete; no partial file is left; with --resume, ") {
			t.Errorf("exit code %d:\n%s", code, c.reported.String())
		}
		if strings.Contains(c.stdout.String(), "failed") {
			t.Errorf("what was under way is reported as failed:\n%s", c.stdout.String())
		}
		got, _ := os.ReadFile(file)
		if after := namesIn(t, dir); string(got) != old || len(after) != len(before) {
			t.Errorf("%d bytes, want %q; %v", len(got), old, after)
		}
	}
	check("", os.Interrupt)
	check("", syscall.SIGTERM, "--policy", "atomic")
	check("as it was", os.Interrupt)
}

func namesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
