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
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
)

func TestBatchMakesAllDurableTogether(t *testing.T) {
	for _, p := range wholePolicies {
		t.Run(p.String(), func(t *testing.T) {
			dir := t.TempDir()
			at := func(name string) string { return filepath.Join(dir, name) }
			os.WriteFile(at("gone"), []byte("x"), 0o644)
			set, err := files.New(files.Options{Policy: p, Batch: 7})
			if err != nil {
				t.Fatal(err)
			}
			defer set.Close()
			b := set.Begin()
			defer b.Discard()
			try := func(err error) {
				t.Helper()
				if err != nil {
					t.Error(err)
				}
			}
			try(b.Mkdir(at("sub"), 0o755))
			for i := range 20 {
				data := fmt.Appendf(nil, "file %d", i)
				try(b.Write(at(fmt.Sprintf("sub/%02d", i)), data))
				clear(data)
			}
			w, err := b.Create(at("streamed"))
			try(err)
			_, err = io.WriteString(w, "as it comes")
			try(err)
			try(w.Commit(context.Background()))
			own, err := os.OpenFile(at("tmp"), os.O_WRONLY|os.O_CREATE, 0o444)
			try(err)
			_, err = own.WriteString("mine")
			try(err)
			try(b.Add(own))
			try(own.Close())
			try(b.Rename(at("tmp"), at("sub/own")))
			try(b.Link(at("sub/own"), at("linked")))
			try(b.Remove(at("gone")))
			defer os.Chmod(at("linked"), 0o644) // only root removes a read-only file under wine
			totals, err := b.Commit(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			want := totals.Durable
			if p.Sync.Mode == holdfast.SyncNever {
				want = totals.Written
			}
			if totals.Files != 26 || want != 26 {
				t.Errorf("%+v", totals)
			}
			for i := range 20 {
				if got, _ := os.ReadFile(at(fmt.Sprintf("sub/%02d", i))); string(got) != fmt.Sprintf("file %d", i) {
					t.Errorf("%d: %q", i, got)
				}
			}
			if got, _ := os.ReadFile(at("linked")); string(got) != "mine" {
				t.Errorf("%q", got)
			}
			onlyFiles(t, dir, "linked", "streamed", "sub")
			if _, err := b.Commit(context.Background()); !errors.Is(err, os.ErrClosed) {
				t.Error(err)
			}
			if err := b.Write(at("late"), nil); !errors.Is(err, os.ErrClosed) {
				t.Error(err)
			}
		})
	}
}

// Until the step no file has its name, and after Discard, or Close of the Set, none ever gets it.
func TestBatchThatIsDiscardedLeavesNothing(t *testing.T) {
	for name, end := range map[string]func(*files.Set, *files.Batch) error{
		"Discard":   func(_ *files.Set, b *files.Batch) error { return b.Discard() },
		"Set.Close": func(f *files.Set, _ *files.Batch) error { return f.Close() },
		"ended context": func(_ *files.Set, b *files.Batch) error {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			if _, err := b.Commit(ctx); !errors.Is(err, context.Canceled) {
				return fmt.Errorf("Commit returned %v", err)
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			set, _ := files.New(files.Options{Policy: holdfast.Durable()})
			defer set.Close()
			b := set.Begin()
			for i := range 3 {
				if err := b.Write(filepath.Join(dir, fmt.Sprint(i)), []byte("x")); err != nil {
					t.Error(err)
				}
			}
			w, err := b.Create(filepath.Join(dir, "streamed"))
			if err != nil {
				t.Fatal(err)
			}
			if err := end(set, b); err != nil {
				t.Error(err)
			}
			if err := w.Commit(context.Background()); !errors.Is(err, os.ErrClosed) {
				t.Error(err)
			}
			w.Discard()
			onlyFiles(t, dir)
		})
	}
}

func TestBatchTellsItsFailuresInTenLines(t *testing.T) {
	dir := t.TempDir()
	set, _ := files.New(files.Options{Policy: holdfast.Durable(), Batch: 100})
	defer set.Close()
	b := set.Begin()
	manifest := filepath.Join(dir, "manifest")
	os.WriteFile(manifest+".new", nil, 0o644)
	for i := range 500 {
		if err := b.Write(filepath.Join(dir, "none", fmt.Sprint(i)), nil); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	}
	if err := b.Rename(manifest+".new", manifest); err != nil {
		t.Error(err)
	}
	w, err := b.Create(filepath.Join(dir, "left"))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Discard()
	totals, err := b.Commit(context.Background())
	if totals.Failed != 501 || !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "501 failed") || !strings.Contains(err.Error(), "1 pending") {
		t.Errorf("%+v, %v", totals, err)
	}
	if n := strings.Count(err.Error(), "\n"); n > 10 {
		t.Errorf("%d lines:\n%v", n, err)
	}
	if _, err := os.Stat(manifest); err == nil {
		t.Error("a rename was done though what was given before it failed")
	}
	results, err := set.WriteEach(context.Background(), make([]string, 500), nil, files.Replace)
	if n := strings.Count(err.Error(), "\n"); n != 9 || results.Totals().Failed != 500 || !strings.HasSuffix(err.Error(), "and 491 more") {
		t.Errorf("%d lines:\n%v", n, err)
	}
}

// TestBatchForgetsADirectoryThatIsThere: who extracts an archive meets it all the time.
func TestBatchForgetsADirectoryThatIsThere(t *testing.T) {
	set, _ := files.New(files.Options{Policy: holdfast.Durable()})
	defer set.Close()
	dir := filepath.Join(t.TempDir(), "dir")
	b := set.Begin()
	for i := range 3 {
		if err := b.Mkdir(dir, 0o777); (err != nil) != (i > 0) || err != nil && !os.IsExist(err) {
			t.Errorf("time %d: %v", i, err)
		}
	}
	if err := b.Mkdir(filepath.Join(dir, "none", "dir"), 0o777); !os.IsNotExist(err) {
		t.Error(err)
	}
	totals, err := b.Commit(t.Context())
	if err == nil || strings.Contains(err.Error(), "exists") || totals.Files != 2 || totals.Durable != 1 || totals.Failed != 1 {
		t.Errorf("%+v, %v", totals, err)
	}
}

func TestBatchAddRefusesAFileWithoutItsName(t *testing.T) {
	dir := t.TempDir()
	set, _ := files.New(files.Options{Policy: holdfast.Durable()})
	defer set.Close()
	b := set.Begin()
	defer b.Discard()
	f, _ := os.Create(filepath.Join(dir, "f"))
	defer f.Close()
	rename(t, f.Name(), f.Name()+".away")
	if err := b.Add(f); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	os.WriteFile(f.Name(), nil, 0o644)
	if err := b.Add(f); !errors.Is(err, holdfast.ErrUnlinked) {
		t.Error(err)
	}
}

// After a Commit without an error every file is there at any power cut; before, and after an error, the
// old one or the new one is.
func TestBatchKeepsWhatItCommitsAtEachFault(t *testing.T) {
	for _, c := range []struct{ handles, files int }{
		{0, 4},   // all are synced at the end, each by itself
		{4, 4},   // each while the next is written
		{64, 18}, // 16 together, the others at the end
	} {
		for call := 1; committed(t, c.handles, c.files, call); call++ {
		}
	}
}

// committed has one call of a batch fail, and reports whether there were as many calls.
func committed(t *testing.T, handles, count, call int) (more bool) {
	t.Helper()
	d := fault.NewDisk()
	d.MkdirAll("a")
	d.MkdirAll("b")
	var paths []string
	for i := range count {
		paths = append(paths, fmt.Sprintf("/%c/%d", 'a'+i%2, i))
		d.WriteFile(paths[i], []byte("old"), 0o644)
	}
	f := newSet(d, files.Options{Policy: holdfast.Durable(), Handles: handles, Retry: files.Retry{Attempts: 1}})
	before := len(d.Calls())
	d.Add(fault.DiskFault{Op: fault.AnyDiskOp, First: call, Times: 1, Err: syscall.EIO})
	b := f.Begin()
	var wrong error
	for i, p := range paths {
		if i%2 == 0 {
			wrong = errors.Join(wrong, b.Write(p, []byte("new")))
			continue
		}
		w, err := b.Create(p)
		if err == nil {
			if _, err = io.WriteString(w, "new"); err == nil {
				err = w.Commit(context.Background())
			}
			w.Discard()
		}
		wrong = errors.Join(wrong, err)
	}
	_, err := b.Commit(context.Background())
	err = errors.Join(wrong, err)
	for seed := range uint64(5) {
		image := d.PowerCut(rand.New(rand.NewPCG(seed, uint64(call))))
		for _, p := range paths {
			if got, _ := image.File(p); string(got) != "new" && (err == nil || string(got) != "old") {
				t.Errorf("call %d: %v, and after a power cut %s is %q", call, err, p, got)
			}
		}
	}
	f.Close()
	if v := d.Violations(); len(v) > 0 || d.Open() > 0 {
		t.Errorf("call %d: %d descriptors are open, %v", call, d.Open(), v)
	}
	return len(d.Calls())-before >= call
}

// TestABatchKeepsFilesOpen until a group of them can be synced, however much other programs have written:
// half as many as Handles, and fewer where the process has none left.
func TestABatchKeepsFilesOpen(t *testing.T) {
	for _, descriptors := range []int{0, 7} {
		d := fault.NewDisk()
		d.SetDirty(1 << 40)
		d.SetDescriptors(descriptors)
		f := newSet(d, files.Options{Policy: holdfast.Durable(), Handles: 64})
		b := f.Begin()
		write := func(i int) {
			if err := b.Write(fmt.Sprint("/", i), []byte("x")); err != nil {
				t.Error(err)
			}
			w, err := b.Create(fmt.Sprint("/streamed", i))
			if err == nil {
				err = w.Commit(context.Background())
			}
			if err != nil {
				t.Error(err)
			}
		}
		write(0)
		if n := d.Count(fault.DiskSync); n > 0 {
			t.Errorf("%d syncs for two files", n)
		}
		for i := range 50 {
			write(i + 1)
		}
		if n := d.MostOpen(); n > 64+32 || descriptors == 0 && n < 16 {
			t.Errorf("%d were open", n)
		}
		if totals, err := b.Commit(context.Background()); err != nil || totals.Durable != 102 {
			t.Errorf("%+v, %v", totals, err)
		}
		if n := d.Count(fault.DiskSyncAll); n > 0 {
			t.Errorf("%d syncs of what other programs have written too", n)
		}
		f.Close()
		if v := d.Violations(); len(v) > 0 || d.Open() > 0 {
			t.Errorf("%d descriptors are open, %v", d.Open(), v)
		}
	}
}

// TestABatchTellsWhichFileFailed to be synced: it is not made, and the others are durable.
func TestABatchTellsWhichFileFailed(t *testing.T) {
	d := fault.NewDisk()
	d.SetDirty(1 << 40)
	f := newSet(d, files.Options{Policy: holdfast.Durable(), Handles: 16})
	defer f.Close()
	b := f.Begin()
	d.Add(fault.DiskFault{Op: fault.DiskSync, First: 6, Times: 1, Err: syscall.EIO})
	for i := range 10 {
		if err := b.Write(fmt.Sprint("/", i), []byte("x")); err != nil {
			t.Error(err)
		}
	}
	totals, err := b.Commit(context.Background())
	var failed *files.Error
	if !errors.As(err, &failed) || failed.Op != "sync" || !errors.Is(err, syscall.EIO) || totals.Untouched != 1 || totals.Durable != 9 {
		t.Fatalf("%+v, %v", totals, err)
	}
	if _, none := d.ReadFile(failed.Path); none == nil || len(d.ProcessCrash().Files) != 9 {
		t.Errorf("%s was made, or its temporary file is left", failed.Path)
	}
}

func TestBatchTakesFilesOfManyGoroutines(t *testing.T) {
	dir := t.TempDir()
	set, _ := files.New(files.Options{Policy: holdfast.Durable(), Batch: 10, Handles: 16})
	defer set.Close()
	b := set.Begin()
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range 15 {
				path := filepath.Join(dir, fmt.Sprintf("%d-%d", g, i))
				if i%3 > 0 {
					b.Write(path, []byte(path))
					continue
				}
				w, err := b.Create(path)
				if err != nil {
					t.Error(err)
					return
				}
				io.WriteString(w, path)
				w.Commit(context.Background())
			}
		})
	}
	all.Wait()
	if totals, err := b.Commit(context.Background()); err != nil || totals.Durable != 120 {
		t.Error(totals, err)
	}
	names, _ := os.ReadDir(dir)
	for _, e := range names {
		path := filepath.Join(dir, e.Name())
		if got, _ := os.ReadFile(path); string(got) != path {
			t.Errorf("%s: %q", path, got)
		}
	}
	if len(names) != 120 {
		t.Errorf("%d files", len(names))
	}
}
