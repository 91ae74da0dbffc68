//go:build go1.25 && unix

package files_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
)

func TestOnlyRegularFilesAreWritten(t *testing.T) {
	eachWay(t, func(t *testing.T, p holdfast.Policy, write func(f *files.Set, w files.Write) (files.Result, error)) {
		f := realFiles(t, files.Options{Policy: p, Retry: files.Retry{Attempts: 1}})
		dir := t.TempDir()
		pipe := filepath.Join(dir, "pipe")
		if err := syscall.Mkfifo(pipe, 0o666); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{pipe, dir, "/dev/null"} {
			for _, mode := range wholeModes[1:] {
				r, err := write(f, files.Write{Path: path, Data: []byte("x"), Mode: mode})
				if err == nil || r.Outcome != holdfast.OutcomeUntouched {
					t.Errorf("%v of %s: %+v", mode, path, r)
				}
			}
		}
		_, err := write(f, files.Write{Path: pipe, Data: []byte("x"), Mode: files.Append})
		if err == nil || !strings.Contains(err.Error(), "no regular file") {
			t.Errorf("a pipe: %v", err)
		}
		if names, _ := os.ReadDir(dir); len(names) != 1 {
			t.Errorf("left %v", names)
		}
	})
}
