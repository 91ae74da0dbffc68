//go:build unix

package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/internal/cli"
)

// pipe makes a named pipe, which nobody writes to or reads from.
func pipe(t *testing.T, path string) string {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestEarlierResultsAreFiles gives --resume, --from and report what is none; none
// of them waits for the other end of a pipe, or reads a device.
func TestEarlierResultsAreFiles(t *testing.T) {
	dir := t.TempDir()
	check := func(sentence string, args ...string) {
		t.Helper()
		if code, stderr := refusalOf(t, args...); code != cli.ExitUsage || !strings.Contains(stderr, sentence) {
			t.Errorf("%q: exit code %d, stderr:\n%s", args, code, stderr)
		}
	}
	for _, none := range []string{pipe(t, filepath.Join(dir, "pipe")), "/dev/zero", dir} {
		check("--resume "+none+": new results are appended to a file, and this is not a regular file", "bench", "--resume", none)
	}
	check("/dev/zero: it is a device", "bench", "--from", "/dev/zero")
	check("/dev/zero: it is a device", "report", "/dev/zero")
	check("--resume - is not possible: new results are appended to a file", "bench", "--resume", "-")
}

// TestReadersOfAPipeEndWhenInterrupted: nobody opens the other end.
func TestReadersOfAPipeEndWhenInterrupted(t *testing.T) {
	quiet := pipe(t, filepath.Join(t.TempDir(), "pipe"))
	for _, args := range [][]string{{"report", quiet}, {"compare", quiet, quiet}, {"advise", "--need", "loss<=1s", quiet}, {"fleet", quiet}} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		var stderr strings.Builder
		code := cli.Report(&stderr, runCommand(ctx, args, nil, io.Discard, io.Discard))
		if want := "holdfast: interrupted while reading " + quiet + "\n"; code != cli.ExitInterrupted || stderr.String() != want {
			t.Errorf("%q: exit code %d, stderr:\n%s", args, code, stderr.String())
		}
		// The waiting reader gets its other end, and reads nothing.
		if end, err := os.OpenFile(quiet, os.O_RDWR, 0); err == nil {
			end.Close()
		}
	}
}
