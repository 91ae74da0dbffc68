package gen

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// TestGenWhoseLastSyncFailsReportsThatTheFileIsThere has fsync(2) fail, by which gen makes
// the name durable. The bytes before were made durable by fdatasync(2).
func TestGenWhoseLastSyncFailsReportsThatTheFileIsThere(t *testing.T) {
	isolate.Process(t, func(t *testing.T) {
		dir := t.TempDir()
		if err := isolate.Forbid(unix.SYS_FSYNC, unix.EIO, unix.SECCOMP_FILTER_FLAG_TSYNC); err != nil {
			t.Skip("no filter of system calls: ", err)
		}
		path := filepath.Join(dir, "g")
		for _, args := range [][]string{{"gen", path, "300000"}, {"gen", path, "300001", "--force"}, {"gen", path, "300002", "--force"}} {
			if args[2] == "300002" { // without locks it has a temporary name, and syncs the directory alone
				if err := isolate.Forbid(unix.SYS_FLOCK, unix.EBADF, unix.SECCOMP_FILTER_FLAG_TSYNC); err != nil {
					t.Fatal(err)
				}
			}
			var stderr strings.Builder
			err := genRun(t.Context(), args, nil, io.Discard, &stderr)
			code := cli.Report(&stderr, err)
			info, statErr := os.Stat(path)
			if statErr != nil || info.Size() < 300000 {
				t.Fatalf("%q: %v; the file: %v", args, err, statErr)
			}
			if code != cli.ExitNotMet || !strings.Contains(stderr.String(), "sync of the ") || !strings.Contains(stderr.String(), "\nhint: the file is complete, but a power cut may lose it; ") {
				t.Errorf("%q: the file is there, and exit code %d, stderr:\n%s", args, code, stderr.String())
			}
			if entries, _ := os.ReadDir(dir); len(entries) != 1 {
				t.Errorf("%q left %v", args, entries)
			}
		}
	})
}
