//go:build go1.25

package files_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

var noContext = context.Background()

// appending returns a Set on real files that the test closes.
func appending(t *testing.T, options files.Options) *files.Set {
	t.Helper()
	f, err := files.New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func mustAppend(t *testing.T, f *files.Set, path, data string) {
	t.Helper()
	if err := f.Append(noContext, path, []byte(data)); err != nil {
		t.Fatal(err)
	}
}

func wantFile(t *testing.T, path, want string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Fatalf("%s holds %d bytes, not the %d that were appended", path, len(got), len(want))
	}
}

func appendPolicies() []holdfast.Policy {
	return []holdfast.Policy{
		holdfast.Unbuffered(), holdfast.Buffered(700), holdfast.Buffered(64 * holdfast.KiB), holdfast.Periodic(1e6), holdfast.Durable(), holdfast.EachDurable(),
		{Buffer: 4 * holdfast.KiB, FlushEvery: 1e6, Sync: holdfast.Sync{Mode: holdfast.SyncClose}},
		{Sync: holdfast.Sync{Mode: holdfast.SyncPeriodic, Bytes: 1000}},
		{Buffer: 4 * holdfast.KiB, FlushBytes: 500, Sync: holdfast.Sync{Mode: holdfast.SyncPeriodic, Every: 1e6, Bytes: 2 * holdfast.KiB}},
	}
}

func TestAppendKeepsTheOrderOfEachGoroutine(t *testing.T) {
	isolate.Once(t, isolate.Ordinary)
	for _, p := range appendPolicies() {
		t.Run(p.String(), func(t *testing.T) {
			f := appending(t, files.Options{Policy: p, Handles: 8, Memory: 128 * holdfast.KiB})
			dir := t.TempDir()
			const goroutines, paths, lines = 4, 10, 40
			var all sync.WaitGroup
			for g := range goroutines {
				all.Go(func() {
					for i := range lines {
						for n := range paths {
							data := fmt.Sprintf("%d %d %0*d\n", g, i, 50+i*i%700, n)
							if err := f.Append(noContext, filepath.Join(dir, fmt.Sprint(n)), []byte(data)); err != nil {
								t.Error(err)
							}
						}
					}
				})
			}
			all.Wait()
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			for n := range paths {
				got, err := os.ReadFile(filepath.Join(dir, fmt.Sprint(n)))
				if err != nil {
					t.Fatal(err)
				}
				checkLines(t, got, n, goroutines, lines)
			}
		})
	}
}

// checkLines checks that each goroutine's lines stand whole and in order in the file.
func checkLines(t *testing.T, got []byte, n, goroutines, lines int) {
	t.Helper()
	next := make([]int, goroutines)
	for line := range bytes.Lines(got) {
		var g, i int
		if _, err := fmt.Sscan(string(line), &g, &i); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		want := fmt.Sprintf("%d %d %0*d\n", g, next[g], 50+i*i%700, n)
		if string(line) != want {
			t.Fatalf("got %q, want %q", line, want)
		}
		next[g]++
	}
	for g := range next {
		if next[g] != lines {
			t.Errorf("file %d holds %d lines of goroutine %d, not %d", n, next[g], g, lines)
		}
	}
}

func TestAppendAfterCloseIsRefused(t *testing.T) {
	f := appending(t, files.Options{Policy: holdfast.Buffered(holdfast.KiB)})
	path := filepath.Join(t.TempDir(), "a")
	mustAppend(t, f, path, "accepted")
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"Append":  f.Append(noContext, path, []byte("x")),
		"Release": f.Release(noContext, path),
		"Flush":   f.Flush(noContext),
		"Sync":    f.Sync(noContext),
	} {
		if !errors.Is(err, os.ErrClosed) {
			t.Errorf("%s after Close: %v", name, err)
		}
	}
	wantFile(t, path, "accepted")
}

func TestFlushAndSyncBringAllToTheFiles(t *testing.T) {
	dir := t.TempDir() // before the Set, which is closed first: Windows removes no file that is open
	f := appending(t, files.Options{Policy: holdfast.Buffered(holdfast.KiB)})
	for i, step := range []func(context.Context) error{f.Flush, f.Sync} {
		path := filepath.Join(dir, fmt.Sprint(i))
		mustAppend(t, f, path, "accepted")
		if err := step(noContext); err != nil {
			t.Fatal(err)
		}
		wantFile(t, path, "accepted")
	}
}

func TestReleaseLetsTheNextAppendOpenThePathAnew(t *testing.T) {
	for _, p := range appendPolicies() {
		f := appending(t, files.Options{Policy: p})
		path := filepath.Join(t.TempDir(), "log")
		mustAppend(t, f, path, "old")
		if err := f.Release(noContext, path); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path, path+".1"); err != nil {
			t.Fatal(err)
		}
		mustAppend(t, f, path, "new")
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		wantFile(t, path+".1", "old")
		wantFile(t, path, "new")
	}
}
