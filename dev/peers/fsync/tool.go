package fsync

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// A tool is a program of other people's.
type tool struct {
	name   string
	debian string // the package that has it
	path   string // empty where it is not installed
}

// findTools looks for all of them.
func findTools() []tool {
	return []tool{
		{"fio", "fio", find("fio", "")},
		{"pg_test_fsync", "postgresql", find("pg_test_fsync", "/usr/lib/postgresql/*/bin/pg_test_fsync")},
	}
}

// find returns the path of a program on the PATH. Without one it returns the last path, by
// name, that matches a pattern, or an empty one.
func find(name, pattern string) string {
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) == 0 {
		return ""
	}
	return slices.Max(found)
}

// pathOf returns the path of the named tool, or "".
func pathOf(tools []tool, name string) string {
	for _, t := range tools {
		if t.name == name {
			return t.path
		}
	}
	return ""
}

// version returns the tool's own words about its version.
func (t tool) version() string {
	out, err := exec.Command(t.path, "--version").Output()
	if err != nil {
		return t.name + " of an unknown version"
	}
	return strings.TrimSpace(string(out))
}

// inDir runs a trial in a new directory, which is removed.
func (s *site) inDir(try func(dir string) (sample, error)) (sample, error) {
	dir, err := os.MkdirTemp(s.ground.Dir(), "trial-")
	if err != nil {
		return sample{}, err
	}
	taken, err := try(dir)
	return taken, errors.Join(err, os.RemoveAll(dir))
}

// outlast is how long a tool may take beyond what it is asked to.
const outlast = time.Minute

// patience returns a context that ends a tool which hangs.
func (s *site) patience(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, 10*s.length+outlast)
}

// start returns the tool's command, which ends by SIGTERM, so that the tool can
// tidy up.
func start(ctx context.Context, path string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = time.Second
	return cmd
}

// toolError names the tool and its last line.
func toolError(path string, err error, said string) error {
	lines := strings.Split(strings.TrimSpace(said), "\n")
	return fmt.Errorf("%s: %w: %s", filepath.Base(path), err, lines[len(lines)-1])
}
