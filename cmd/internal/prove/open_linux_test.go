package prove

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// TestTooFewOpenFilesAreRefusedBefore holds that nothing is made which could not be removed.
func TestTooFewOpenFilesAreRefusedBefore(t *testing.T) {
	isolate.Process(t, func(t *testing.T) {
		dir := t.TempDir()
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 30, Max: 30}); err != nil {
			t.Fatal(err)
		}
		_, told, code := command(t, "--level", "kill", "--time", "1ms", "--dir", dir)
		if code != cli.ExitCannot || !strings.Contains(told, "prove needs 64 open files") || !strings.Contains(told, "\nhint: raise the number") {
			t.Errorf("exit code %d\n%s", code, told)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("left: %v, %v", left, err)
		}
	})
}

// TestSmallDiskIsRefusedBefore holds that a disk without room for the files of the workloads is refused with the numbers.
func TestSmallDiskIsRefusedBefore(t *testing.T) {
	isolate.Mounts(t, func(t *testing.T) {
		dir := t.TempDir()
		if err := unix.Mount("none", dir, "tmpfs", 0, "size=1m"); err != nil {
			t.Fatal(err)
		}
		defer unix.Unmount(dir, unix.MNT_DETACH)
		check := func(want string, args ...string) {
			t.Helper()
			_, told, code := command(t, append(args, "--level", "memory,kill", "--time", "1ms", "--dir", dir)...)
			want = "prove writes up to " + want + ", and " + dir + " has 1.0 MiB free"
			if code != cli.ExitCannot || !strings.Contains(told, want) || !strings.Contains(told, "\nhint: free some space") {
				t.Errorf("exit code %d\n%s\nwant %s", code, told, want)
			}
		}
		check("112 MiB")
		check("16 MiB", "--workload", "writer")
	})
}
