package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// A picture is a list of some directories' files: each path with its kind, mode, size,
// time of change, and bytes or target.
type picture map[string]string

// look takes a picture of all that is in the directories, and of the directories.
func look(t *testing.T, dirs ...string) picture {
	t.Helper()
	seen := picture{}
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := e.Info()
			if err != nil {
				return err
			}
			seen[path] = fmt.Sprint(info.Mode(), info.ModTime().UnixNano())
			if info.Mode().IsRegular() {
				text, err := os.ReadFile(path)
				seen[path] += fmt.Sprintf(" %q", text)
				return err
			}
			if info.Mode()&fs.ModeSymlink != 0 {
				target, err := os.Readlink(path)
				seen[path] += " " + target
				return err
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return seen
}

// unchanged compares two pictures but for the paths given.
func unchanged(t *testing.T, before, after picture, but ...string) {
	t.Helper()
	for _, path := range but {
		delete(before, path)
		delete(after, path)
	}
	for path, was := range before {
		if after[path] != was {
			t.Errorf("%s was %s, and is %s", path, was, after[path])
		}
	}
	for path := range after {
		if _, ok := before[path]; !ok {
			t.Errorf("%s is new", path)
		}
	}
}

// plant makes a file, a directory and links of names in dir that a run might use.
func plant(t *testing.T, dir, outside string) {
	t.Helper()
	write := func(path string) {
		t.Helper()
		if err := errors.Join(os.WriteFile(path, []byte("mine: "+path), 0o640), os.Chtimes(path, time.Time{}, time.Unix(1e9, 0))); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(outside, "target"))
	for i := range 40 {
		write(filepath.Join(dir, fmt.Sprint(i)))
		write(filepath.Join(dir, fmt.Sprintf("memory-%d", i)))
	}
	for _, name := range []string{"holdfast-bench-", "holdfast-bench-file", "results.jsonl", "report.html", "baseline.jsonl", "default.jsonl"} {
		write(filepath.Join(dir, name))
	}
	for _, name := range []string{"holdfast-bench-1", "holdfast-bench-0000000001", "memory-"} {
		directory := filepath.Join(dir, name)
		if err := os.Mkdir(directory, 0o700); err != nil {
			t.Fatal(err)
		}
		write(filepath.Join(directory, "1"))
		write(filepath.Join(directory, "memory-1"))
	}
	if runtime.GOOS == "windows" {
		return
	}
	for name, target := range map[string]string{"holdfast-bench-2": outside, "holdfast-bench-3": "/dangling", "41": filepath.Join(outside, "target")} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPlantedFilesAreUnharmed runs the command in the middle of them: to the end,
// interrupted, and killed and taken up again.
func TestPlantedFilesAreUnharmed(t *testing.T) {
	isolate.Once(t)
	t.Parallel()
	dir, outside, directory := t.TempDir(), t.TempDir(), t.TempDir()
	plant(t, dir, outside)
	before := look(t, dir, outside)
	file := filepath.Join(directory, "results.jsonl")
	flags := small(dir, "--time", "1s", "--rounds", "2", "--policy", "sync=group")

	bench(t, append(flags, "-o", file)...)
	if runtime.GOOS == "linux" { // elsewhere nothing says what the page cache has
		bench(t, append(flags, "--cache", "warm")...)
	}
	bench(t, "bench", "--from", file, "--allow-tmpfs")
	bench(t, "report", file)
	unchanged(t, before, look(t, dir, outside), dir)
	if runtime.GOOS == "windows" {
		t.Skip("a process can't be sent an interrupt on Windows")
	}
	for _, signal := range []os.Signal{os.Interrupt, os.Kill} {
		file := filepath.Join(directory, signal.String())
		c := startChild(t, append(flags, "-o", file)...)
		c.until(t, "round 1 of 2")
		if err := c.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		c.exit(t)
		if !readFile(t, file).Complete() { // on a busy machine the run may end before the signal
			bench(t, "bench", "--resume", file, "--allow-tmpfs")
		}
		unchanged(t, before, look(t, dir, outside), dir)
	}
}

// TestResultsAreNeverWrittenOnto gives -o what is there already, of every kind.
func TestResultsAreNeverWrittenOnto(t *testing.T) {
	directory := t.TempDir()
	file := filepath.Join(directory, "file")
	dir := filepath.Join(directory, "dir")
	if err := errors.Join(os.WriteFile(file, []byte("mine"), 0o640), os.Mkdir(dir, 0o750)); err != nil {
		t.Fatal(err)
	}
	outputs := []string{file, dir, os.DevNull}
	if runtime.GOOS != "windows" {
		for name, target := range map[string]string{"link": file, "dangling": filepath.Join(directory, "none"), "directory": dir} {
			outputs = append(outputs, filepath.Join(directory, name))
			if err := os.Symlink(target, filepath.Join(directory, name)); err != nil {
				t.Fatal(err)
			}
		}
		outputs = append(outputs, pipe(t, filepath.Join(directory, "pipe")))
	}
	before := look(t, directory)
	for _, output := range outputs {
		code, stderr := refusalOf(t, small(t.TempDir(), "-o", output)...)
		is := "file"
		if output == dir {
			is = "directory"
		}
		if code != cli.ExitUsage || !strings.Contains(stderr, "holdfast: -o "+output+": the "+is+" exists, and nothing is overwritten\n") {
			t.Errorf("-o %s: exit code %d, stderr:\n%s", output, code, stderr)
		}
	}
	unchanged(t, before, look(t, directory))
}

// TestDryRunWritesNothing compares all that is in the directory, and when it was
// changed.
func TestDryRunWritesNothing(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	bench(t, small(dir, "--time", "1s", "--rounds", "1", "-o", "results.jsonl")...)
	bench(t, small(dir, "--time", "1s", "--rounds", "1", "-o", "killed.jsonl")...)
	text, err := os.ReadFile("killed.jsonl")
	if err == nil {
		err = os.WriteFile("killed.jsonl", text[:len(text)-10], 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	before := look(t, dir)
	for _, args := range [][]string{
		{}, {"--quick"}, {"--full"}, {"--steady"}, {"--steady", "--room", "1GiB"}, {"--rounds", "3", "--seed", "7"}, {"--width", "10%"},
		{"--rate", "50k"}, {"--cache", "cold"}, {"--cache", "drop"}, {"-o", "new.jsonl"},
		{"--from", "results.jsonl"}, {"--from", "results.jsonl", "-o", "new.jsonl"}, {"--resume", "killed.jsonl"},
	} {
		stdout, _ := bench(t, append([]string{"bench", "--dry-run", "--allow-tmpfs"}, args...)...)
		if !strings.Contains(stdout, "this is only a plan: nothing was measured or written") || !strings.Contains(stdout, " in random order (seed ") {
			t.Errorf("%q: stderr:\n%s", args, stdout)
		}
		unchanged(t, before, look(t, dir))
	}
}
