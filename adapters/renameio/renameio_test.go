package renameio_test

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/adapters/renameio"
)

// holds fails the test unless the directory has these files alone, with this text in the first.
func holds(t *testing.T, dir, text string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(names, " ") {
		t.Errorf("%s has %q, want %q", dir, got, names)
	}
	if len(names) > 0 {
		if data, err := os.ReadFile(filepath.Join(dir, names[0])); err != nil || string(data) != text {
			t.Errorf("%s holds %q, %v; want %q", names[0], data, err, text)
		}
	}
}

func permOf(t *testing.T, path string) fs.FileMode {
	t.Helper()
	is, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return is.Mode().Perm()
}

func TestTheFileIsThereWhenItIsReplaced(t *testing.T) {
	for name, make := range map[string]func(path string) (*renameio.PendingFile, error){
		"TempFile":       func(path string) (*renameio.PendingFile, error) { return renameio.TempFile("", path) },
		"NewPendingFile": func(path string) (*renameio.PendingFile, error) { return renameio.NewPendingFile(path) },
		"in TempDir": func(path string) (*renameio.PendingFile, error) {
			return renameio.TempFile(renameio.TempDir(filepath.Dir(path)), path)
		},
		"elsewhere": func(path string) (*renameio.PendingFile, error) {
			return renameio.NewPendingFile(path, renameio.WithTempDir(t.TempDir()))
		},
	} {
		for _, old := range []bool{false, true} {
			dir := t.TempDir()
			path := filepath.Join(dir, "file")
			if old {
				if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			p, err := make(path)
			if err != nil {
				t.Fatal(name, err)
			}
			fmt.Fprint(p, "news")
			if _, err := p.Seek(0, io.SeekStart); err != nil {
				t.Error(err)
			}
			if _, err := p.WriteAt([]byte("New"), 0); err != nil {
				t.Error(err)
			}
			if data, err := os.ReadFile(path); old && (err != nil || string(data) != "old") || !old && !os.IsNotExist(err) {
				t.Errorf("%s: before there is %q, %v", name, data, err)
			}
			if err := p.CloseAtomicallyReplace(); err != nil {
				t.Error(name, err)
			}
			if err := p.Cleanup(); err != nil {
				t.Errorf("%s: Cleanup behind it: %v", name, err)
			}
			holds(t, dir, "News", "file")
			if perm := permOf(t, path); perm != 0o600 && runtime.GOOS != "windows" {
				t.Errorf("%s: %v", name, perm)
			}
		}
	}
}

func TestCleanupLeavesTheOldFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, close := range []bool{false, true} {
		p, err := renameio.TempFile("", path)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(p, "half")
		if close {
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		}
		for range 2 {
			if err := p.Cleanup(); err != nil {
				t.Error(err)
			}
		}
		holds(t, dir, "old", "file")
	}
}

func TestCloseMayReplace(t *testing.T) {
	dir := t.TempDir()
	p, err := renameio.NewPendingFile(filepath.Join(dir, "file"), renameio.WithReplaceOnClose())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Cleanup()
	fmt.Fprint(p, "new")
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	holds(t, dir, "new", "file")
	if err := p.Cleanup(); err != nil {
		t.Error(err)
	}
	holds(t, dir, "new", "file")
}

// TestFailuresAreAsOfPackageOs, and Cleanup removes what is left.
func TestFailuresAreAsOfPackageOs(t *testing.T) {
	dir := t.TempDir()
	none := filepath.Join(dir, "none", "file")
	if _, err := renameio.NewPendingFile(none); !os.IsNotExist(err) {
		t.Errorf("%T %v", err, err)
	}
	if err := renameio.WriteFile(none, nil, 0o644); !os.IsNotExist(err) {
		t.Errorf("%T %v", err, err)
	}
	if err := renameio.Symlink("to", none); !os.IsNotExist(err) {
		t.Errorf("%T %v", err, err)
	}
	path := filepath.Join(dir, "file")
	if err := os.MkdirAll(filepath.Join(path, "in it"), 0o777); err != nil {
		t.Fatal(err)
	}
	for i, err := range []error{renameio.WriteFile(path, []byte("x"), 0o644), renameio.Symlink("to", path)} {
		link, ok := err.(*os.LinkError)
		if !ok || link.New != path || strings.Contains(err.Error(), "\n") {
			t.Errorf("%d: %T %v", i, err, err)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
	p, err := renameio.TempFile("", filepath.Join(dir, "other"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(p.Name()); err != nil {
		t.Skip(err) // not while it is open
	}
	if err := p.CloseAtomicallyReplace(); err == nil {
		t.Error("a file whose name was removed is there")
	}
}

func TestWriteFileKeepsPermissions(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	data := bytes.Repeat([]byte("text"), 1<<18)
	for _, perm := range []fs.FileMode{0o640, 0o600} {
		if err := renameio.WriteFile(path, data, perm); err != nil {
			t.Fatal(err)
		}
		holds(t, dir, string(data), "file")
		if got := permOf(t, path); got != 0o640 && runtime.GOOS != "windows" {
			t.Errorf("%v", got)
		}
	}
}

func TestSymlinkReplacesOne(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "link")
	for _, to := range []string{"first", "second"} {
		if err := renameio.Symlink(to, path); err != nil {
			t.Skip(err) // Windows may not let us
		}
		if got, err := os.Readlink(path); err != nil || got != to {
			t.Errorf("%q, %v", got, err)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}
