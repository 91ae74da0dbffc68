package holdfast_test

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/holdfast-go/holdfast"
)

func TestFilesAllocateLittle(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	f, err := holdfast.NewFiles(holdfast.FilesOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	dir := t.TempDir()
	const n = 5000
	data := []byte("Hello World\n")
	paths := make([]string, n)
	names := make([]holdfast.Name, n)
	for i := range names {
		paths[i] = filepath.Join(dir, fmt.Sprintf("file%05d", i))
		names[i], _ = holdfast.NewName(paths[i])
	}
	check := func(what string, n int, prepared bool, mode holdfast.Mode, allocs, bytes float64) {
		t.Helper()
		write := func() {
			_, err := f.WriteAll(context.Background(), func(yield func(holdfast.FileWrite) bool) {
				for i := range n {
					w := holdfast.FileWrite{Path: paths[i], Data: data, Mode: mode}
					if prepared {
						w.Name = names[i]
					}
					if !yield(w) {
						return
					}
				}
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		write()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		write()
		runtime.ReadMemStats(&after)
		a, b := float64(after.Mallocs-before.Mallocs)/float64(n), float64(after.TotalAlloc-before.TotalAlloc)/float64(n)
		if a > allocs || b > bytes {
			t.Errorf("%s: %.2f allocations and %.0f bytes a file", what, a, b)
		}
	}
	check("prepared", n, true, holdfast.ModeTruncate, 1, 64)
	check("a hundred", 100, true, holdfast.ModeTruncate, 1, 80)
	check("some", 25, true, holdfast.ModeTruncate, 3, 256)
	check("paths", 500, false, holdfast.ModeTruncate, 3, 256)
	check("replaced", 500, true, holdfast.ModeReplace, 3, 256)
}

func TestWriteAllocatesLittle(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	f, err := holdfast.NewFiles(holdfast.FilesOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	path, data := filepath.Join(t.TempDir(), "file"), []byte("Hello World\n")
	write := func() {
		if _, err := f.Write(context.Background(), path, data, holdfast.ModeTruncate); err != nil {
			t.Fatal(err)
		}
	}
	if allocs := testing.AllocsPerRun(100, write); allocs > 3 {
		t.Errorf("%v allocations", allocs)
	}
}

func TestFilesForTwoFilesTakesLittle(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	dir, data := t.TempDir(), []byte("Hello World\n")
	allocs := testing.AllocsPerRun(20, func() {
		f, err := holdfast.NewFiles(holdfast.FilesOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		_, err = f.WriteAll(context.Background(), func(yield func(holdfast.FileWrite) bool) {
			for _, base := range []string{"/a", "/b"} {
				if !yield(holdfast.FileWrite{Path: dir + base, Data: data, Mode: holdfast.ModeTruncate}) {
					return
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	})
	if allocs > 55 {
		t.Errorf("%v allocations", allocs)
	}
}
