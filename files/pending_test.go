//go:build go1.25

package files_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
)

func pendingIn(t *testing.T, o files.Options, path string) (*files.Set, *files.Pending) {
	t.Helper()
	f, err := files.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	p, err := f.Pending(path)
	if err != nil {
		t.Fatal(err)
	}
	return f, p
}

// onlyFiles fails unless the directory has these names, so that no temporary file is left.
func onlyFiles(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, e := range entries {
		have = append(have, e.Name())
	}
	if fmt.Sprint(have) != fmt.Sprint(names) {
		t.Errorf("the directory has %v, want %v", have, names)
	}
}

func TestPendingIsUnseenUntilCommit(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "state")
	os.WriteFile(path, []byte("old"), 0o640)
	_, p := pendingIn(t, files.Options{Policy: holdfast.Durable()}, path)
	io.WriteString(p, "0123456789")
	if n, err := p.ReadFrom(strings.NewReader(strings.Repeat("x", 300_000))); n != 300_000 || err != nil {
		t.Error(n, err)
	}
	if at, err := p.Seek(-2, io.SeekEnd); at != 300_008 || err != nil {
		t.Error(at, err)
	}
	io.WriteString(p, "end.")
	p.Seek(2, io.SeekStart)
	io.WriteString(p, "__")
	if err := p.Truncate(300_011); err != nil {
		t.Error(err)
	}
	if is, err := p.Stat(); err != nil || is.Size() != 300_011 || is.Mode() != shown(0o640) || is.Name() != "state" {
		t.Error(is, err)
	}
	if got, _ := os.ReadFile(path); string(got) != "old" {
		t.Errorf("before Commit: %d bytes", len(got))
	}
	if err := p.Commit(context.Background()); err != nil {
		t.Fatal(err)
	}
	want := "01__456789" + strings.Repeat("x", 299_998) + "end"
	if got, _ := os.ReadFile(path); string(got) != want {
		t.Errorf("%d bytes, %.20q, want %d", len(got), got, len(want))
	}
	if is, _ := os.Stat(path); is.Mode() != shown(0o640) {
		t.Error(is.Mode())
	}
	if err := errors.Join(p.Discard(), p.Close()); err != nil {
		t.Error("after Commit:", err)
	}
	for _, err := range []error{p.Commit(context.Background()), p.Truncate(0), p.Chmod(0o600)} {
		if !errors.Is(err, os.ErrClosed) {
			t.Error(err)
		}
	}
	onlyFiles(t, dir, "state")
}

func TestPendingThatIsDiscardedLeavesNothing(t *testing.T) {
	for name, end := range map[string]func(f *files.Set, p *files.Pending) error{
		"Discard":   func(_ *files.Set, p *files.Pending) error { return p.Discard() },
		"Close":     func(_ *files.Set, p *files.Pending) error { return p.Close() },
		"Set.Close": func(f *files.Set, _ *files.Pending) error { return f.Close() },
		"ended context": func(_ *files.Set, p *files.Pending) error {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			if err := p.Commit(ctx); !errors.Is(err, context.Canceled) {
				return fmt.Errorf("Commit returned %v", err)
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			f, p := pendingIn(t, files.Options{Policy: holdfast.Durable()}, filepath.Join(dir, "file"))
			io.WriteString(p, "half")
			if err := end(f, p); err != nil {
				t.Error(err)
			}
			if err := p.Commit(context.Background()); !errors.Is(err, os.ErrClosed) {
				t.Error(err)
			}
			onlyFiles(t, dir)
		})
	}
}

func TestPendingGetsTheModeThatIsAsked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, mode := range []fs.FileMode{0o600, 0o666, 0o4755, 0o444} {
		_, p := pendingIn(t, files.Options{}, path)
		if err := p.Chmod(mode & 0o777); err != nil {
			t.Fatal(err)
		}
		if mode&0o4000 != 0 {
			mode = fs.ModeSetuid | mode&0o777
			p.Chmod(mode)
		}
		io.WriteString(p, "x")
		if is, _ := p.Stat(); is.Mode() != mode && is.Mode() != shown(mode) {
			t.Errorf("Stat: %v, want %v", is.Mode(), mode)
		}
		if err := p.Commit(context.Background()); err != nil {
			t.Fatal(err)
		}
		if is, _ := os.Stat(path); is.Mode() != shown(mode) {
			t.Errorf("%v, want %v", is.Mode(), mode)
		}
	}
	os.Chmod(path, 0o644) // only root removes a read-only file under wine
}

func TestPendingFollowsALink(t *testing.T) {
	dir := t.TempDir()
	os.Mkdir(filepath.Join(dir, "real"), 0o755)
	symlink(t, "real/file", filepath.Join(dir, "link"))
	_, p := pendingIn(t, files.Options{}, filepath.Join(dir, "link"))
	io.WriteString(p, "new")
	if err := p.Commit(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(filepath.Join(dir, "real", "file")); string(got) != "new" {
		t.Errorf("%q", got)
	}
	onlyFiles(t, filepath.Join(dir, "real"), "file")
	onlyFiles(t, dir, "link", "real")
}

// A Pending whose directory was moved away and made anew is not put into the new one.
func TestPendingInADirectoryThatWasMovedIsRefused(t *testing.T) {
	dir := t.TempDir()
	in := filepath.Join(dir, "in")
	os.Mkdir(in, 0o755)
	_, p := pendingIn(t, files.Options{Policy: holdfast.Durable()}, filepath.Join(in, "file"))
	rename(t, in, filepath.Join(dir, "away"))
	os.Mkdir(in, 0o755)
	if err := p.Commit(context.Background()); err == nil || runtime.GOOS != "windows" && !strings.Contains(err.Error(), "is left in that directory") { // there a directory is used by its path
		t.Error(err)
	}
	onlyFiles(t, in)
}

// At every call that fails, and every crash, the old file or the new one is whole.
func TestPendingKeepsTheOldFileWholeAtEachFault(t *testing.T) {
	for call := 1; ; call++ {
		d := fault.NewDisk()
		d.MkdirAll("d")
		d.WriteFile("/d/file", []byte("old"), 0o644)
		f := newSet(d, files.Options{Policy: holdfast.Durable(), Retry: files.Retry{Attempts: 1}})
		before := len(d.Calls())
		d.Add(fault.DiskFault{Op: fault.AnyDiskOp, First: call, Times: 1, Err: syscall.EIO})
		p, err := f.Pending("/d/file")
		if err == nil {
			if _, err = io.WriteString(p, "the new one"); err == nil {
				err = p.Commit(context.Background())
			}
			p.Discard()
		}
		if now, _ := d.ReadFile("/d/file"); string(now) != "old" && string(now) != "the new one" || err == nil && string(now) == "old" {
			t.Errorf("call %d: %v, and the file is %q", call, err, now)
		}
		for seed := range uint64(5) {
			got, _ := d.PowerCut(rand.New(rand.NewPCG(seed, uint64(call)))).File("/d/file")
			if string(got) != "the new one" && (err == nil || string(got) != "old") {
				t.Errorf("call %d, power cut: %v, and the file is %q", call, err, got)
			}
		}
		f.Close()
		if v := d.Violations(); len(v) > 0 || d.Open() > 0 {
			t.Errorf("call %d: %d descriptors are open, %v", call, d.Open(), v)
		}
		if len(d.Calls())-before < call {
			break
		}
	}
}

func TestErrorsAreAsOfPackageOs(t *testing.T) {
	dir := t.TempDir()
	set, _ := files.New(files.Options{Policy: holdfast.Durable()})
	defer set.Close()
	b := set.Begin()
	defer b.Discard()
	path := filepath.Join(dir, "none", "file")
	_, pending := set.Pending(path)
	_, created := b.Create(path)
	for i, err := range []error{pending, created, files.WriteFile(path, nil, 0o644),
		files.WriteFileFunc(path, 0o644, func(io.Writer) error { return nil })} {
		if !os.IsNotExist(err) || !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), path) {
			t.Errorf("%d: %T %v", i, err, err)
		}
	}
}

func TestWriteFileFuncKeepsTheOldFileIfItFails(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := files.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	failed := errors.New("no more")
	err := files.WriteFileFunc(path, 0o644, func(w io.Writer) error {
		io.WriteString(w, "half")
		return failed
	})
	if got, _ := os.ReadFile(path); !errors.Is(err, failed) || string(got) != "old" {
		t.Errorf("%v, %q", err, got)
	}
	func() {
		defer func() { recover() }()
		files.WriteFileFunc(path, 0o644, func(w io.Writer) error { panic("in the middle") })
	}()
	if n, _ := openIn(dir); n > 0 {
		t.Errorf("%d descriptors are open after a panic", n)
	}
	if err := files.WriteFileFunc(path, 0o644, func(w io.Writer) error {
		_, err := io.WriteString(w, "new")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(path); string(got) != "new" {
		t.Errorf("%q", got)
	}
	if is, _ := os.Stat(path); is.Mode() != shown(0o600) {
		t.Error(is.Mode())
	}
	if err := files.WriteFile(path, nil, 0); err == nil || !strings.Contains(err.Error(), "perm=0") {
		t.Error(err)
	}
	onlyFiles(t, dir, "file")
}
