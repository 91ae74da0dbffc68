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
)

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

// TestADescriptorIsNoLog: the file that a shell has redirected to keeps its name and its bytes.
func TestADescriptorIsNoLog(t *testing.T) {
	dir := t.TempDir()
	out, err := os.Create(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	named := fmt.Sprintf("/dev/fd/%d", out.Fd())
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(named, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{named, link} {
		f, err := Open(path, Options{})
		if err == nil {
			err = errors.Join(f.Rotate(), f.Close())
		}
		if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "can't be rotated") {
			t.Errorf("%s: %v", path, err)
		}
	}
	if files := logsIn(t, dir); len(files) != 1 || len(files["out"]) != 0 {
		t.Error(files)
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
