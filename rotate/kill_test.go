//go:build unix

package rotate

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/killtest"
)

// killedLog makes the test below be the process that is killed: a path and a policy, a line
// each.
const killedLog = "HOLDFAST_TEST_KILLED_LOG"

func TestKilledProcessLosesNoMoreThanItsPolicy(t *testing.T) {
	if path, policy, ok := strings.Cut(os.Getenv(killedLog), "\n"); ok {
		t.Fatal(logUntilKilled(path, policy))
	}
	for _, p := range []holdfast.Policy{
		holdfast.Unbuffered(),
		holdfast.Buffered(holdfast.KiB),
		holdfast.Periodic(10 * time.Millisecond),
		holdfast.Durable(),
	} {
		t.Run(p.String(), func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "app.log")
			acknowledged := killtest.After(t, 300, killedLog, path, p)
			bound := int64(p.Loss().Process.Bytes)
			least, size := acknowledged, int64(0)
			for size < bound && least > 0 { // the last records may be lost, and no more bytes
				least--
				size += int64(len(record(0, int(least))))
			}
			if err := durableIn(logsIn(t, dir), least); err != nil {
				t.Errorf("of %d: %v", acknowledged, err)
			}
			// The next process goes on, and finishes what was begun.
			f, err := Open(path, Options{Compress: true, OnError: func(e *Error) { t.Error(e) }})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Write([]byte("next\n")); err != nil {
				t.Error(err)
			}
			tended(f)
			if err := f.Close(); err != nil {
				t.Error(err)
			}
			files := logsIn(t, dir)
			if err := durableIn(files, least); err != nil {
				t.Errorf("opened again: of %d: %v", acknowledged, err)
			}
			if !strings.HasSuffix("\n"+string(files["app.log"]), "\nnext\n") {
				t.Errorf("the next record is glued to a torn one: %q", files["app.log"])
			}
			for name := range files {
				if name != "app.log" && !strings.HasSuffix(name, packed) {
					t.Errorf("%s is left", name)
				}
			}
		})
	}
}

// logUntilKilled writes records and says so on stdout, a byte each.
func logUntilKilled(path, policy string) error {
	p, err := holdfast.ParsePolicy(policy)
	if err != nil {
		return err
	}
	f, err := Open(path, Options{Policy: p, MaxSize: 3 * holdfast.KiB, Compress: true})
	if err != nil {
		return err
	}
	for n := 0; ; n++ {
		if _, err := f.Write(record(0, n)); err != nil {
			return err
		}
		if _, err := fmt.Fprint(os.Stdout, "+"); err != nil {
			return err
		}
	}
}

// tended waits until the background has looked after the backups.
func tended(f *File) {
	for tending := true; tending; time.Sleep(time.Millisecond) {
		f.mu.RLock()
		tending = f.tending
		f.mu.RUnlock()
	}
}

func TestModeAndOwnerAreKept(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "app.log")
	f, err := Open(path, Options{Perm: 0o600, Compress: true})
	if err != nil {
		t.Fatal(err)
	}
	modeOf := func(path string) os.FileMode {
		t.Helper()
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode()
	}
	if m := modeOf(path); m != 0o600 {
		t.Errorf("a new log has the mode %v", m)
	}
	_, err = f.Write([]byte("x\n"))
	if err = errors.Join(err, os.Chmod(path, 0o626), f.Rotate()); err != nil { // which no umask leaves
		t.Fatal(err)
	}
	tended(f)
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	files := logsIn(t, dir)
	for name := range files {
		if m := modeOf(filepath.Join(dir, name)); m != 0o626 {
			t.Errorf("%s has the mode %v", name, m)
		}
	}
	if len(files) != 2 {
		t.Error(names(files))
	}
}

func TestLogIsReachedByALinkAndARelativePath(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := errors.Join(os.Mkdir("real", 0o777), os.Symlink("real/app.log", "link")); err != nil {
		t.Fatal(err)
	}
	f, err := Open("link", Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir("/")
	_, err = f.Write([]byte("x\n"))
	if err = errors.Join(err, f.Rotate(), f.Close()); err != nil {
		t.Fatal(err)
	}
	if files := logsIn(t, filepath.Join(dir, "real")); len(files) != 2 || len(files["app.log"]) > 0 {
		t.Error(names(files))
	}
	if _, err := os.Readlink(filepath.Join(dir, "link")); err != nil {
		t.Error(err)
	}
}
