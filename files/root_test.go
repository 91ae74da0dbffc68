//go:build go1.25

package files_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
)

// newInRoot are the ways in which a Set keeps a root: of this system, and of the others.
var newInRoot = map[string]func(files.Options) (*files.Set, error){"": files.New, "portable ": files.NewInPortableRoot}

// inRoot returns a Set in the root of a new directory, and one beside that it may not touch. The root is
// named by a path that leads nowhere by now, where a directory that is open can be renamed: nothing may use it.
func inRoot(t *testing.T, newSet func(files.Options) (*files.Set, error)) (set *files.Set, root *os.Root, dir, outside string) {
	t.Helper()
	top := t.TempDir()
	dir, outside = filepath.Join(top, "dir"), filepath.Join(top, "outside")
	first := filepath.Join(top, "first")
	if err := errors.Join(os.Mkdir(first, 0o777), os.Mkdir(outside, 0o777), os.WriteFile(filepath.Join(outside, "file"), []byte("theirs"), 0o644)); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(first)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	if err := os.Rename(first, dir); err != nil && runtime.GOOS == "windows" {
		dir = first
	} else if err != nil {
		t.Fatal(err)
	}
	set, err = newSet(files.Options{Policy: holdfast.Durable(), MkdirAll: true, Root: root})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { set.Close() })
	return set, root, dir, outside
}

// waysInRoot write a text to a path, each by another call.
var waysInRoot = map[string]func(set *files.Set, root *os.Root, path, text string) error{
	"Create": func(set *files.Set, _ *os.Root, path, text string) error {
		_, err := set.WriteFile(context.Background(), path, []byte(text), files.Create)
		return err
	},
	"Replace": func(set *files.Set, _ *os.Root, path, text string) error {
		_, err := set.WriteFile(context.Background(), path, []byte(text), files.Replace)
		return err
	},
	"Truncate": func(set *files.Set, _ *os.Root, path, text string) error {
		_, err := set.WriteFile(context.Background(), path, []byte(text), files.Truncate)
		return err
	},
	"Append": func(set *files.Set, _ *os.Root, path, text string) error {
		return errors.Join(set.Append(context.Background(), path, []byte(text)), set.Release(context.Background(), path))
	},
	"Pending": func(set *files.Set, _ *os.Root, path, text string) error {
		p, err := set.Pending(path)
		if err != nil {
			return err
		}
		defer p.Discard()
		_, err = p.Write([]byte(text))
		return errors.Join(err, p.Commit(context.Background()))
	},
	"Batch.Write": func(set *files.Set, _ *os.Root, path, text string) error {
		b := set.Begin()
		defer b.Discard()
		if err := b.Write(path, []byte(text)); err != nil {
			return err
		}
		_, err := b.Commit(context.Background())
		return err
	},
	"Batch.Add": func(set *files.Set, root *os.Root, path, text string) error {
		if above := filepath.Dir(path); above != "." {
			if err := root.Mkdir(above, 0o777); err != nil && !os.IsExist(err) {
				return err
			}
		}
		f, err := root.Create(path)
		if err != nil {
			return err
		}
		_, err = f.WriteString(text)
		b := set.Begin()
		defer b.Discard()
		if err := errors.Join(err, b.Add(f), f.Close()); err != nil {
			return err
		}
		_, err = b.Commit(context.Background())
		return err
	},
	"Batch.Rename, Link, Remove": func(set *files.Set, _ *os.Root, path, text string) error {
		if _, err := set.WriteFile(context.Background(), "from/file", []byte(text), files.Replace); err != nil {
			return err
		}
		b := set.Begin()
		defer b.Discard()
		if above := filepath.Dir(path); above != "." {
			if err := b.Mkdir(above, 0o777); err != nil && !os.IsExist(err) {
				return err
			}
		}
		if err := errors.Join(b.Link("from/file", "from/link"), b.Rename("from/link", path), b.Remove("from/file")); err != nil {
			return err
		}
		_, err := b.Commit(context.Background())
		return err
	},
}

// eachWayInRoot calls do with each way to write, and with each way in which a Set keeps a root.
func eachWayInRoot(do func(name string, newSet func(files.Options) (*files.Set, error), write func(set *files.Set, root *os.Root, path, text string) error)) {
	for keeps, newSet := range newInRoot {
		for name, write := range waysInRoot {
			do(keeps+name, newSet, write)
		}
	}
}

func TestASetWritesInItsRoot(t *testing.T) {
	eachWayInRoot(func(name string, newSet func(files.Options) (*files.Set, error), write func(set *files.Set, root *os.Root, path, text string) error) {
		set, root, dir, _ := inRoot(t, newSet)
		for _, path := range []string{"file", "below/file"} {
			if err := write(set, root, path, "text"); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if data, err := os.ReadFile(filepath.Join(dir, path)); err != nil || string(data) != "text" {
				t.Errorf("%s: %q, %v", name, data, err)
			}
		}
		if strings.HasSuffix(name, "Create") || strings.Contains(name, "Batch.Rename") {
			return // of these the link is the file
		}
		// A link inside leads to its target.
		if err := errors.Join(os.Mkdir(filepath.Join(dir, "links"), 0o777), os.WriteFile(filepath.Join(dir, "inside"), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		if err := linked("../inside", filepath.Join(dir, "links", "in")); err != nil {
			t.Log(err) // Windows may not let us
			return
		}
		if err := write(set, root, "links/in", "text"); err != nil {
			t.Errorf("%s through a link: %v", name, err)
		}
		if data, err := os.ReadFile(filepath.Join(dir, "inside")); err != nil || string(data) != "text" {
			t.Errorf("%s through a link: %q, %v", name, data, err)
		}
	})
}

func TestASetWritesNothingOutsideItsRoot(t *testing.T) {
	eachWayInRoot(func(name string, newSet func(files.Options) (*files.Set, error), write func(set *files.Set, root *os.Root, path, text string) error) {
		set, root, dir, outside := inRoot(t, newSet)
		for link, to := range map[string]string{"up": "..", "away": outside, "file": "../outside/file", "other": filepath.Join(outside, "other")} {
			symlink(t, to, filepath.Join(dir, link))
		}
		for _, path := range []string{"../outside/file", "../outside/other", "up/outside/other", "away/file", "away/other", "away/below/file", "file", "other", outside + "/file"} {
			err := write(set, root, path, "ours")
			if replaces := strings.HasSuffix(name, "Batch.Rename, Link, Remove"); err == nil && !(replaces && (path == "file" || path == "other")) {
				t.Errorf("%s to %s: no error", name, path)
			}
			if entries, failed := os.ReadDir(outside); failed != nil || len(entries) != 1 {
				t.Fatalf("%s to %s: outside there is %v, %v", name, path, entries, failed)
			}
			if data, failed := os.ReadFile(filepath.Join(outside, "file")); failed != nil || string(data) != "theirs" {
				t.Fatalf("%s to %s: the file outside holds %q, %v", name, path, data, failed)
			}
		}
	})
}

// TestErrorsInARootAreAsOfPackageOs too.
func TestErrorsInARootAreAsOfPackageOs(t *testing.T) {
	for keeps, newSet := range newInRoot {
		_, root, _, _ := inRoot(t, newSet)
		set, err := newSet(files.Options{Policy: holdfast.Durable(), Root: root})
		if err != nil {
			t.Fatal(err)
		}
		defer set.Close()
		for name, write := range waysInRoot {
			if name == "Batch.Add" || name == "Batch.Rename, Link, Remove" {
				continue // they make it
			}
			if err := write(set, root, "none/file", "x"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s%s: %v", keeps, name, err)
			}
		}
		if _, err := set.Pending("none/file"); !os.IsNotExist(err) {
			t.Errorf("%s%T %v", keeps, err, err)
		}
		if _, err := set.Pending("../file"); err == nil || !strings.Contains(err.Error(), "../file") || !strings.Contains(err.Error(), "escapes") {
			t.Error(keeps, err)
		}
	}
}
