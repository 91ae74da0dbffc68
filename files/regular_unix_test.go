//go:build go1.25 && unix

package files

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast"
)

func TestOnlyRegularFilesAreWritten(t *testing.T) {
	eachWay(t, func(t *testing.T, p holdfast.Policy, write func(f *Set, w Write) (Result, error)) {
		f := realFiles(t, Options{Policy: p, Retry: Retry{Attempts: 1}})
		dir := t.TempDir()
		pipe := filepath.Join(dir, "pipe")
		if err := syscall.Mkfifo(pipe, 0o666); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{pipe, dir, "/dev/null"} {
			for _, mode := range wholeModes[1:] {
				r, err := write(f, Write{Path: path, Data: []byte("x"), Mode: mode})
				if err == nil || r.Outcome != holdfast.OutcomeUntouched {
					t.Errorf("%v of %s: %+v", mode, path, r)
				}
			}
		}
		_, err := write(f, Write{Path: pipe, Data: []byte("x"), Mode: Append})
		if err == nil || !strings.Contains(err.Error(), "no regular file") {
			t.Errorf("a pipe: %v", err)
		}
		if names, _ := os.ReadDir(dir); len(names) != 1 {
			t.Errorf("left %v", names)
		}
	})
}
