package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/internal/isolate"
	"github.com/holdfast-go/holdfast/internal/volume"
)

// skipWithout skips unless the file systems can be made here.
func skipWithout(t *testing.T, fileSystems string) {
	t.Helper()
	kinds, err := volume.Parse(fileSystems)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range kinds {
		if err := k.Can(); err != nil {
			t.Skip(err)
		}
	}
}

// nothingMounted wants no mount and no loop device of a directory.
func nothingMounted(t *testing.T, dir string) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	images, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		t.Fatal(err)
	}
	for _, image := range images {
		of, _ := os.ReadFile(image) // gone meanwhile: it was another's
		text = append(text, of...)
	}
	if strings.Contains(string(text), dir) {
		t.Errorf("something of %s is left:\n%s", dir, text)
	}
	nothingIn(t, dir)
}

// TestBenchMakesFileSystemsAndRemovesThem runs on two that lie on the disk, cold: then
// what was made is remounted in each trial.
func TestBenchMakesFileSystemsAndRemovesThem(t *testing.T) {
	isolate.Once(t)
	skipWithout(t, "ext4,xfs")
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "results.jsonl")
	shown, stderr := bench(t, "bench", "--dir", dir, "--allow-tmpfs", "--fs", "ext4,xfs", "--time", "1s", "--rounds", "1", "--writers", "1",
		"--policy", "buffer=4KiB", "--cache", "remount", "-o", file)
	nothingMounted(t, dir)
	run := readFile(t, file)
	if !slices.Equal(run.FileSystems(), []string{"ext4", "xfs"}) || run.Rounds() != 1 || len(run.Header.FileSystems) != 2 {
		t.Errorf("%d rounds on %v, %+v", run.Rounds(), run.FileSystems(), run.Header.FileSystems)
	}
	for _, trial := range run.Trials {
		if trial.Before != nil && !result.Remount.Holds(*trial.Before) {
			t.Errorf("%s was not cold: %+v", trial.Cell, trial.Before)
		}
	}
	for _, want := range []string{"\next4\n====\n", "\nxfs\n===\n", "\nside by side: ext4 and xfs\n", ", mounted with rw,"} {
		if !strings.Contains(shown, want) && !strings.Contains(strings.Join(strings.Fields(shown), " "), want) {
			t.Errorf("there is no %q in\n%s", want, shown)
		}
	}
	if !strings.Contains(stderr, "made xfs: in an image of ") {
		t.Errorf("stderr:\n%s", stderr)
	}
}

// TestInterruptRemovesFileSystems: so does a kill, once the run is taken up again.
func TestInterruptRemovesFileSystems(t *testing.T) {
	isolate.Once(t)
	skipWithout(t, "tmpfs,ext4")
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "results.jsonl")
	begin := func(args ...string) *child {
		c := startChild(t, append(args, "--allow-tmpfs")...)
		c.until(t, "round 1 of")
		return c
	}
	c := begin("study", "locks", "--dir", dir, "--fs", "tmpfs,ext4", "--count", "20", "--rounds", "1000", "-o", file)
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	c.exit(t)
	c = begin("bench", "--resume", file)
	if err := c.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := c.exit(t); code != cli.ExitInterrupted || !strings.Contains(c.reported.String(), "/holdfast-volume-") {
		t.Errorf("exit code %d:\n%s", code, c.reported.String())
	}
	nothingMounted(t, dir)
	if run := readFile(t, file); run.End == nil || run.End.State != result.Interrupted || len(run.Resumed) != 1 {
		t.Errorf("%+v after %d resumptions", run.End, len(run.Resumed))
	}
}
