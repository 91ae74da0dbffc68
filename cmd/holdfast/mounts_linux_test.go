package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// runOn runs a command, and returns its exit code and its output.
func runOn(t *testing.T, stdin string, args ...string) (code int, said string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	err := runCommand(t.Context(), args, strings.NewReader(stdin), &stdout, &stderr)
	code = cli.Report(&stderr, err)
	return code, stderr.String()
}

// TestAFileSystemThatReportsNoRoomIsWrittenTo: statfs of a tmpfs without a limit has zeros, as the one of
// some FUSE servers has.
func TestAFileSystemThatReportsNoRoomIsWrittenTo(t *testing.T) {
	source := filepath.Join(t.TempDir(), "source")
	isolate.Mounts(t, func(t *testing.T) {
		at := mounted(t, "tmpfs", "size=0")
		var s unix.Statfs_t
		if err := unix.Statfs(at, &s); err != nil || s.Blocks != 0 || s.Bavail != 0 {
			t.Skipf("it reports %d blocks, %v", s.Blocks, err)
		}
		if err := os.WriteFile(source, bytes.Repeat([]byte("x"), 100_000), 0o644); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{
			{"copy", source, filepath.Join(at, "copied")},
			{"copy", "-a", source, filepath.Join(at, "archived"), "--policy", "atomic"},
			{"gen", filepath.Join(at, "made"), "1MiB"},
			{"write", "--out", filepath.Join(at, "written"), "--policy", "sync=group"},
			{"bench", "--dir", at, "--dry-run"},
		} {
			if code, said := runOn(t, "a line\n", args...); code != cli.ExitOK {
				t.Errorf("%q: exit code %d: %s", args, code, said)
			}
		}
	})
}

// TestAReadOnlyFileSystemIsNamed, and not for want of room: statfs reports that none is free.
func TestAReadOnlyFileSystemIsNamed(t *testing.T) {
	source := filepath.Join(t.TempDir(), "source")
	isolate.Mounts(t, func(t *testing.T) {
		at := mounted(t, "tmpfs", "size=1m")
		for _, name := range []string{source, filepath.Join(at, "full")} { // as squashfs is
			if err := os.WriteFile(name, bytes.Repeat([]byte("x"), 1<<20), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := unix.Mount("none", at, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{
			{"copy", source, filepath.Join(at, "copied")},
			{"copy", source, at, "--policy", "atomic"},
			{"gen", filepath.Join(at, "made"), "1MiB"},
			{"write", "--out", filepath.Join(at, "written")},
			{"write", "-a", "--out", filepath.Join(at, "full"), "--policy", "sync=group"},
		} {
			code, said := runOn(t, "a line\n", args...)
			if code == cli.ExitOK || !strings.Contains(said, "read-only file system") || strings.Contains(said, "room") {
				t.Errorf("%q: exit code %d: %s", args, code, said)
			}
		}
	})
}
