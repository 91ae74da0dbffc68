//go:build go1.25

package files_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// onlyOursAllocates skips a test where others allocate at each call of the system.
func onlyOursAllocates(t *testing.T) {
	t.Helper()
	switch {
	case isolate.RaceEnabled:
		t.Skip("the race detector allocates")
	case runtime.GOOS == "windows":
		t.Skip("each call of package os allocates: the numbers are Linux's")
	}
}

func TestFilesAllocateLittle(t *testing.T) {
	isolate.Once(t, isolate.Ordinary)
	onlyOursAllocates(t)
	f, err := files.New(files.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	dir := t.TempDir()
	const n = 5000
	data := []byte("Hello World\n")
	paths := make([]string, n)
	for i := range paths {
		paths[i] = filepath.Join(dir, fmt.Sprintf("file%05d", i))
	}
	check := func(what string, n int, mode files.Mode, allocs, bytes float64) {
		t.Helper()
		write := func() {
			_, err := f.WriteAll(context.Background(), func(yield func(files.Write) bool) {
				for i := range n {
					if !yield(files.Write{Path: paths[i], Data: data, Mode: mode}) {
						return
					}
				}
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		write()
		var a, b float64
		if isolate.Least(1, func() float64 {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			write()
			runtime.ReadMemStats(&after)
			a, b = float64(after.Mallocs-before.Mallocs)/float64(n), float64(after.TotalAlloc-before.TotalAlloc)/float64(n)
			return max(a/allocs, b/bytes)
		}) > 1 {
			t.Errorf("%s: %.2f allocations and %.0f bytes a file", what, a, b)
		}
	}
	check("many", n, files.Truncate, 0.1, 56)
	check("a hundred", 100, files.Truncate, 1, 80)
	check("some", 25, files.Truncate, 3, 256)
	check("replaced", 500, files.Replace, 3.1, 256) // three a file, and on 32-bit systems a few for all of them
}

// TestOneFileMoreTakesItsResultAlone counts the bytes that a Set and its WriteAll allocate, for some
// files and for many. The difference is the results: 48 bytes a file, and the allocator's rounding.
func TestOneFileMoreTakesItsResultAlone(t *testing.T) {
	onlyOursAllocates(t)
	if strconv.IntSize < 64 {
		t.Skip("results are shorter on 32-bit systems")
	}
	dir, data := t.TempDir(), []byte("Hello World\n")
	write := func(n int) float64 {
		var before, after runtime.MemStats
		paths := make([]string, n)
		for i := range paths {
			paths[i] = filepath.Join(dir, fmt.Sprintf("file%05d", i))
		}
		runtime.ReadMemStats(&before)
		f, err := files.New(files.Options{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.WriteAll(context.Background(), func(yield func(files.Write) bool) {
			for _, path := range paths {
				if !yield(files.Write{Path: path, Data: data, Mode: files.Truncate}) {
					return
				}
			}
		})
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		return float64(after.TotalAlloc - before.TotalAlloc)
	}
	const few, many, most = 1113, 3353, 50 // these fill whole chunks
	if each := isolate.Least(most, func() float64 { return (write(many) - write(few)) / (many - few) }); each > most {
		t.Errorf("one file more takes %.1f bytes, want %d at most", each, most)
	}
}

func TestWriteAllocatesLittle(t *testing.T) {
	onlyOursAllocates(t)
	f, err := files.New(files.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	path, data := filepath.Join(t.TempDir(), "file"), []byte("Hello World\n")
	write := func() {
		if _, err := f.WriteFile(context.Background(), path, data, files.Truncate); err != nil {
			t.Fatal(err)
		}
	}
	if allocs := isolate.Least(2, func() float64 { return testing.AllocsPerRun(100, write) }); allocs > 2 {
		t.Errorf("%v allocations", allocs)
	}
}

func TestFilesForTwoFilesTakesLittle(t *testing.T) {
	onlyOursAllocates(t)
	dir, data := t.TempDir(), []byte("Hello World\n")
	write := func() {
		f, err := files.New(files.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		_, err = f.WriteAll(context.Background(), func(yield func(files.Write) bool) {
			for _, base := range []string{"/a", "/b"} {
				if !yield(files.Write{Path: dir + base, Data: data, Mode: files.Truncate}) {
					return
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if allocs := isolate.Least(55, func() float64 { return testing.AllocsPerRun(20, write) }); allocs > 55 {
		t.Errorf("%v allocations", allocs)
	}
}
