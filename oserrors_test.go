package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/filecopy"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/readahead"
	"github.com/holdfast-go/holdfast/rotate"
	"github.com/holdfast-go/holdfast/wal"
)

// entries are the calls of all packages that begin with a path.
func entries(t *testing.T) map[string]func(path string) error {
	t.Helper()
	set := func(p holdfast.Policy) *files.Set {
		f, err := files.New(files.Options{Policy: p})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	group, unbuffered := set(holdfast.Durable()), set(holdfast.Unbuffered())
	batch := func(do func(b *files.Batch) error) error {
		b := group.Begin()
		defer b.Discard()
		return do(b)
	}
	elsewhere := t.TempDir()
	source := filepath.Join(elsewhere, "source")
	if err := os.WriteFile(source, []byte("x"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(elsewhere, 0o755); err != nil {
		t.Fatal(err)
	}
	all := func(to, from string) error {
		_, err := filecopy.All(context.Background(), func(yield func(string, string) bool) { yield(to, from) }, filecopy.Options{})
		return err
	}
	file := func(to, from string, o filecopy.Options) error {
		_, err := filecopy.File(context.Background(), to, from, o)
		return err
	}
	return map[string]func(path string) error{
		"holdfast.Create": func(path string) error { _, err := holdfast.Create(path, holdfast.Unbuffered()); return err },
		"holdfast.Append": func(path string) error { _, err := holdfast.Append(path, holdfast.Durable()); return err },
		"holdfast.OpenFile": func(path string) error {
			_, err := holdfast.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666, holdfast.Durable())
			return err
		},
		"files.WriteFile": func(path string) error { return files.WriteFile(path, nil, 0o644) },
		"files.WriteFileFunc": func(path string) error {
			return files.WriteFileFunc(path, 0o644, func(io.Writer) error { return nil })
		},
		"Set.WriteFile": func(path string) error {
			r, err := group.WriteFile(context.Background(), path, nil, files.Create)
			if failed := (*files.Error)(nil); !errors.As(r.Err, &failed) {
				t.Errorf("the result's Err is a %T", r.Err)
			}
			return err
		},
		"Set.WriteFile, Replace": func(path string) error {
			_, err := unbuffered.WriteFile(context.Background(), path, nil, files.Replace)
			return err
		},
		"Set.WriteFile, Truncate": func(path string) error {
			_, err := unbuffered.WriteFile(context.Background(), path, nil, files.Truncate)
			return err
		},
		"Set.Append":        func(path string) error { return unbuffered.Append(context.Background(), path, []byte("x")) },
		"Set.Append, group": func(path string) error { return group.Append(context.Background(), path, []byte("x")) },
		"Set.Pending":       func(path string) error { _, err := group.Pending(path); return err },
		"Batch.Create": func(path string) error {
			return batch(func(b *files.Batch) error { _, err := b.Create(path); return err })
		},
		"Batch.Write":              func(path string) error { return batch(func(b *files.Batch) error { return b.Write(path, nil) }) },
		"Batch.Mkdir":              func(path string) error { return batch(func(b *files.Batch) error { return b.Mkdir(path, 0o777) }) },
		"Batch.Rename":             func(path string) error { return batch(func(b *files.Batch) error { return b.Rename(source, path) }) },
		"Batch.Link":               func(path string) error { return batch(func(b *files.Batch) error { return b.Link(source, path) }) },
		"Batch.Remove":             func(path string) error { return batch(func(b *files.Batch) error { return b.Remove(path) }) },
		"filecopy.File from":       func(path string) error { return file(filepath.Join(elsewhere, "to"), path, filecopy.Options{}) },
		"filecopy.File to":         func(path string) error { return file(path, source, filecopy.Options{}) },
		"filecopy.File to, atomic": func(path string) error { return file(path, source, filecopy.Options{Atomic: true}) },
		"filecopy.All from":        func(path string) error { return all(filepath.Join(elsewhere, "to"), path) },
		"filecopy.All to":          func(path string) error { return all(path, source) },
		"readahead.Open":           func(path string) error { _, err := readahead.Open(path, readahead.Options{}); return err },
		"rotate.Open":              func(path string) error { _, err := rotate.Open(path, rotate.Options{}); return err },
		"wal.Open":                 func(path string) error { _, _, err := wal.Open(path, wal.Options{}); return err },
		"wal.Scan": func(path string) error {
			_, err := wal.Scan(path, func(wal.Record, *wal.DamageError) bool { return true })
			return err
		},
	}
}

// TestErrorsOfPathsAreKnownToPackageOs in every call that begins with a path: programs ask os.IsNotExist
// and its like, which see only errors of package os.
func TestErrorsOfPathsAreKnownToPackageOs(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none", "file")
	for name, open := range entries(t) {
		err := open(missing)
		var path *fs.PathError
		if !os.IsNotExist(err) || !errors.Is(err, fs.ErrNotExist) || !errors.As(err, &path) || !strings.HasPrefix(missing, path.Path) {
			t.Errorf("%s: %T %v", name, err, err)
		}
	}
	there := filepath.Join(t.TempDir(), "there")
	if err := os.WriteFile(there, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for name, open := range entries(t) {
		switch name {
		case "holdfast.OpenFile", "Set.WriteFile", "Batch.Mkdir":
			if err := open(there); !os.IsExist(err) {
				t.Errorf("%s: %T %v", name, err, err)
			}
		}
	}
}

// TestManyFailuresAreTenLines: in each error that joins the failures of many files.
func TestManyFailuresAreTenLines(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none")
	f, err := files.New(files.Options{Policy: holdfast.Durable()})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var paths []string
	b := f.Begin()
	for i := range 500 {
		paths = append(paths, filepath.Join(missing, fmt.Sprint(i)))
		b.Write(paths[i], nil)
	}
	results, all := f.WriteEach(context.Background(), paths, nil, files.Create)
	_, committed := b.Commit(context.Background())
	for i, err := range []error{all, results.Err(), committed} {
		if text := fmt.Sprint(err); strings.Count(text, "\n") >= 10 || !strings.Contains(text, "and 49") || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%d: %s", i, text)
		}
	}
}

// TestAWorkingDirectoryMayChange between a call with a relative path and the one that uses it.
func TestAWorkingDirectoryMayChange(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	for _, name := range []string{"removed", "renamed"} {
		for _, dir := range []string{first, second} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(dir), 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	f, err := files.New(files.Options{Policy: holdfast.Durable()})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	t.Chdir(first)
	b := f.Begin()
	p, err := f.Pending("pending")
	if err != nil {
		t.Fatal(err)
	}
	c, err := b.Create("created")
	if err != nil {
		t.Fatal(err)
	}
	own, err := os.Create("own")
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	w, err := holdfast.Create("log", holdfast.Durable())
	if err != nil {
		t.Fatal(err)
	}
	l, err := rotate.Open("rotated", rotate.Options{Policy: holdfast.Durable()})
	if err != nil {
		t.Fatal(err)
	}
	for i, err := range []error{b.Write("written", nil), b.Mkdir("made", 0o777), b.Rename("renamed", "other"), b.Remove("removed"), b.Add(own)} {
		if err != nil {
			t.Error(i, err)
		}
	}
	t.Chdir(second)
	for i, do := range []func() error{
		func() error { return c.Commit(t.Context()) },
		func() error { _, err := b.Commit(t.Context()); return err },
		func() error { return p.Commit(t.Context()) },
		func() error { _, err := w.Write([]byte("x")); return err },
		w.Close,
		func() error { _, err := l.Write([]byte("x\n")); return err },
		l.Rotate,
		l.Close,
	} {
		if err := do(); err != nil {
			t.Error(i, err)
		}
	}
	for _, name := range []string{"pending", "created", "own", "log", "rotated", "written", "made", "other"} {
		if _, err := os.Stat(filepath.Join(first, name)); err != nil {
			t.Error(err)
		}
	}
	if all, err := os.ReadDir(second); err != nil || len(all) != 2 {
		t.Errorf("where the program is now there are %v, %v", all, err)
	}
}
