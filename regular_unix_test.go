//go:build unix

package holdfast

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestOnlyRegularFilesAreWritten(t *testing.T) {
	eachWay(t, func(t *testing.T, p Policy, write func(f *Files, w FileWrite) (FileResult, error)) {
		f := realFiles(t, FilesOptions{Policy: p, Retry: Retry{Attempts: 1}})
		dir := t.TempDir()
		pipe := filepath.Join(dir, "pipe")
		if err := syscall.Mkfifo(pipe, 0o666); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{pipe, dir, "/dev/null"} {
			for _, mode := range wholeModes[1:] {
				r, err := write(f, FileWrite{Path: path, Data: []byte("x"), Mode: mode})
				if err == nil || r.Outcome != OutcomeUntouched {
					t.Errorf("%v of %s: %+v", mode, path, r)
				}
			}
		}
		_, err := write(f, FileWrite{Path: pipe, Data: []byte("x"), Mode: ModeAppend})
		if err == nil || !strings.Contains(err.Error(), "no regular file") {
			t.Errorf("a pipe: %v", err)
		}
		if names, _ := os.ReadDir(dir); len(names) != 1 {
			t.Errorf("left %v", names)
		}
	})
}
